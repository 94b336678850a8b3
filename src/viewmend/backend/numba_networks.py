"""Compiled passes of deep matrix factorisation: over rows of a layer, and a round of iRprop+.

They run on one thread and without the lock of the interpreter, write in place, and so spare the
several passes and copies that the same would take in NumPy. By Python's rules for errors every
division asks whether it is by zero, and nothing would run in vectors; so NumPy's are taken.
"""

from __future__ import annotations

from viewmend.backend.compiling import jit
from viewmend.backend.numba_cpu import SUMS

__all__ = ["add_to_rows", "move_by_signs", "subtract_targets", "times_tanh_slope"]


@jit(error_model="numpy", fastmath=SUMS)
def subtract_targets(D, u, X, by_u):  # type: ignore[no-untyped-def]
    """``|D + u - X|^2``; the gaps ``D + u - X`` are put in the place of ``D``.

    ``by_u`` gets their column sums.
    """
    total = 0.0
    for c in range(by_u.size):
        by_u[c] = 0
    for i in range(D.shape[0]):
        row, target = D[i], X[i]
        squares = row[0] - row[0]
        for c in range(row.size):
            row[c] += u[c] - target[c]
            squares += row[c] * row[c]
            by_u[c] += row[c]
        total += float(squares)
    return total


@jit(error_model="numpy")
def add_to_rows(out, rows, B):  # type: ignore[no-untyped-def]
    """Add the rows of ``B`` to those of ``out`` that are named."""
    for r in range(rows.size):
        row, other = out[rows[r]], B[r]
        for c in range(row.size):
            row[c] += other[c]


@jit(error_model="numpy")
def times_tanh_slope(B, T):  # type: ignore[no-untyped-def]
    """``B (1 - T^2)`` entry by entry, in place: the gradient before ``tanh``, of which T came."""
    for i in range(B.shape[0]):
        row, other = B[i], T[i]
        for c in range(row.size):
            row[c] -= row[c] * other[c] * other[c]


@jit(error_model="numpy")
def move_by_signs(point, gradient, state, factors, rose):  # type: ignore[no-untyped-def]
    """One round of iRprop+ on flat arrays, in place; ``rose`` tells if the last raised the loss.

    ``state`` are the step lengths, the last move, and the gradient remembered from the last round,
    zero where its sign turned. ``factors`` are those by which steps grow and shrink, and the
    longest step, in the precision of the arrays.
    """
    steps, moves, memory = state
    grow, shrink, longest = factors
    zero = grow - grow
    for k in range(point.size):
        g = gradient[k]
        same, turned = memory[k] * g > zero, memory[k] * g < zero
        grown = min(grow * steps[k], longest) if same else steps[k]
        step = shrink * steps[k] if turned else grown
        forward = (step if g < zero else zero) - (step if g > zero else zero)
        back = -moves[k] if rose else zero
        move = back if turned else forward
        steps[k], moves[k], memory[k] = step, move, zero if turned else g
        point[k] += move
