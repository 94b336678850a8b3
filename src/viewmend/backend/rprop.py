"""A compiled round of resilient back-propagation."""

from __future__ import annotations

from numba import njit

__all__ = ["move_by_signs"]


# Without NumPy's rules for errors nothing would run in vectors.
@njit(cache=True, nogil=True, error_model="numpy")
def move_by_signs(point, gradient, state, factors, rose):  # type: ignore[no-untyped-def]
    """One round of iRprop+ on flat arrays, in place.

    Parameters
    ----------
    point, gradient : array (n_parameters,)
    state : tuple of array (n_parameters,)
        Step lengths, last move, and the gradient remembered from the last round: zero where its
        sign turned.
    factors : tuple of float of the arrays' precision
        By which steps grow and shrink, and the longest step.
    rose : bool
        Whether the last move raised the loss.
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
