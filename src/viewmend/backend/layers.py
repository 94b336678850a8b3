"""Compiled passes over the rows of layers of neurons, and a step of Adam on their weights.

They run on one thread and without the lock of the interpreter, write in place, and so spare the
several passes and copies that the same would take in NumPy.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "FAST",
    "add_to_rows",
    "affine",
    "column_dots",
    "combine",
    "cross_entropy",
    "decoder_gaps",
    "subtract_targets",
    "take_adam_step",
    "times_tanh_slope",
    "where_positive",
]

# Sums may be taken in another order within one row, which lets them run in vectors. So do NumPy's
# rules for errors: by those of Python every division asks whether it is by zero.
FAST = {"reassoc", "contract", "nsz"}
ZERO, ONE = np.float32(0), np.float32(1)
# What a new gradient and its square count in the means of Adam, and what is added to the root.
SHARE, SQUARE_SHARE, STABILISER = np.float32(0.1), np.float32(0.001), np.float32(1e-8)
# Numbers smaller than this count as zero: near the smallest of all, products crawl.
TINY = np.float32(1e-36)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def subtract_targets(D, u, X, by_u):  # type: ignore[no-untyped-def]
    """``|D + u - X|^2``; the gaps ``D + u - X`` are put in the place of ``D``.

    ``by_u`` gets their column sums.
    """
    total = 0.0
    by_u[:] = 0
    for i in range(D.shape[0]):
        row, target = D[i], X[i]
        squares = row[0] - row[0]
        for c in range(row.size):
            row[c] += u[c] - target[c]
            squares += row[c] * row[c]
            by_u[c] += row[c]
        total += float(squares)
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def add_to_rows(out, rows, B):  # type: ignore[no-untyped-def]
    """Add the rows of ``B`` to those of ``out`` that are named."""
    for r in range(rows.size):
        row, other = out[rows[r]], B[r]
        for c in range(row.size):
            row[c] += other[c]


@njit(cache=True, nogil=True, error_model="numpy")
def times_tanh_slope(B, T):  # type: ignore[no-untyped-def]
    """``B (1 - T^2)`` entry by entry, in place: the gradient before ``tanh``, of which T came."""
    for i in range(B.shape[0]):
        row, other = B[i], T[i]
        for c in range(row.size):
            row[c] -= row[c] * other[c] * other[c]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def decoder_gaps(D, u, X, by_u):  # type: ignore[no-untyped-def]
    """``|X - relu(D + u)|^2``; half its gradient by ``D`` is put in the place of ``D``.

    ``by_u`` gets the column sums of that.
    """
    total = 0.0
    by_u[:] = ZERO
    for i in range(D.shape[0]):
        row, target, squares = D[i], X[i], ZERO
        for c in range(row.size):
            d = row[c] + u[c]
            gap = max(d, ZERO) - target[c]
            squares += gap * gap
            row[c] = gap if d > ZERO else ZERO
            by_u[c] += row[c]
        total += float(squares)
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def affine(H, scale, shift, out):  # type: ignore[no-untyped-def]
    """``h_ic scale_c + shift_c``."""
    for i in range(H.shape[0]):
        own, row = H[i], out[i]
        for c in range(row.size):
            row[c] = own[c] * scale[c] + shift[c]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def combine(B, P, d, weights):  # type: ignore[no-untyped-def]
    """``b_ic u_c + p_ic v_c + d_i w_c`` in the place of ``b``; ``weights`` is u, v, w."""
    u, v, w = weights
    for i in range(B.shape[0]):
        row, other = B[i], P[i]
        for c in range(row.size):
            row[c] = row[c] * u[c] + other[c] * v[c] + d[i] * w[c]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def column_dots(B, H):  # type: ignore[no-untyped-def]
    """``sum_i b_ic h_ic`` of every column."""
    out = np.zeros(H.shape[1], H.dtype)
    for i in range(H.shape[0]):
        one, other = B[i], H[i]
        for c in range(out.size):
            out[c] += one[c] * other[c]
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def cross_entropy(logits, known, slopes):  # type: ignore[no-untyped-def]
    """Mean of ``-log softmax(relu(logits))`` at the known classes; ``slopes`` gets its gradient."""
    n, loss = logits.shape[0], 0.0
    for i in range(n):
        scores, row = logits[i], slopes[i]
        top = max(scores.max(), ZERO)
        for c in range(row.size):
            row[c] = np.exp(max(scores[c], ZERO) - top)
        mass = row.sum()
        loss += np.log(mass) + top - max(scores[known[i]], ZERO)
        row /= mass
        row[known[i]] -= ONE
        for c in range(row.size):
            row[c] = row[c] / np.float32(n) if scores[c] > ZERO else ZERO
    return loss / n


@njit(cache=True, nogil=True, error_model="numpy")
def where_positive(B, H, factors):  # type: ignore[no-untyped-def]
    """``factors_i b_i`` in place where ``H`` is positive, and zero elsewhere."""
    for i in range(H.shape[0]):
        row, other, factor = B[i], H[i], factors[i]
        for c in range(row.size):
            row[c] = factor * row[c] if other[c] > ZERO else ZERO


@njit(cache=True, nogil=True, error_model="numpy")
def _flushed(x):  # type: ignore[no-untyped-def]
    """Zero for what weight decay has worn down to almost nothing."""
    return x if abs(x) > TINY else ZERO


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def take_adam_step(state, gradient, rates):  # type: ignore[no-untyped-def]
    """A step of Adam with weight decay, on flat arrays.

    ``state`` is the parameters with the means of their gradients and of the squares of these;
    ``rates`` the decay, the learning rate and the root of the mean squares' bias, corrected both.
    """
    w, means, squares = state
    decay, rate, root = rates
    for k in range(w.size):
        g = gradient[k] + decay * w[k]
        m = means[k] + SHARE * (g - means[k])
        s = squares[k] + SQUARE_SHARE * (g * g - squares[k])
        means[k], squares[k] = _flushed(m), _flushed(s)
        w[k] = _flushed(w[k] - rate * m / (np.sqrt(s) * root + STABILISER))
