"""Compiled sums over the pairs of a graph, for arrays in single precision.

A graph is symmetric with zero diagonal, and has one value per pair ``i < j``. Two tables describe
it: ``upper`` holds, row by row, the pairs in rising order, and ``full`` both sides of every pair.
Each row is worked on by one thread in a fixed order, so that results do not depend on the number
of threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit, prange

__all__ = [
    "CHUNKS",
    "decoder_gaps",
    "graph_product",
    "pair_gradients",
    "pair_products",
    "relu_of_pairs",
    "relu_slopes",
    "rows_gradients",
    "rows_product",
    "shrink_gradients",
    "shrunk_degrees",
    "shrunk_graph",
    "side_gradients",
    "side_sums",
]

# Sums may be taken in another order within one row, which lets them run in vectors.
FAST = {"reassoc", "contract", "nsz"}
# Parts into which sums over all rows are split: more than the threads, but a fixed number.
CHUNKS = 32
ZERO = np.float32(0)


@njit(cache=True, parallel=True, fastmath=FAST)
def graph_product(starts, columns, pairs, values, loops, H, out):  # type: ignore[no-untyped-def]
    """``(A + D) H``, with ``D`` the diagonal ``loops``; on the table ``full``."""
    for i in prange(H.shape[0]):
        row, own = out[i], H[i]
        for c in range(row.size):
            row[c] = loops[i] * own[c]
        stop = starts[i + 1]
        rest = stop - (stop - starts[i]) % 4
        # Four at a time, so that the row is read and written a quarter as often.
        for e in range(starts[i], rest, 4):
            v0, v1 = values[pairs[e]], values[pairs[e + 1]]
            v2, v3 = values[pairs[e + 2]], values[pairs[e + 3]]
            h0, h1 = H[columns[e]], H[columns[e + 1]]
            h2, h3 = H[columns[e + 2]], H[columns[e + 3]]
            for c in range(row.size):
                row[c] += v0 * h0[c] + v1 * h1[c] + v2 * h2[c] + v3 * h3[c]
        for e in range(rest, stop):
            value, other = values[pairs[e]], H[columns[e]]
            for c in range(row.size):
                row[c] += value * other[c]


@njit(cache=True, fastmath=FAST)
def rows_product(starts, columns, pairs, values, loops, H, rows, out):  # type: ignore[no-untyped-def]  # noqa: PLR0913
    """Some rows of `graph_product`, one after the other."""
    for r in range(rows.size):
        i, row = rows[r], out[r]
        for c in range(row.size):
            row[c] = loops[i] * H[i, c]
        for e in range(starts[i], starts[i + 1]):
            value, other = values[pairs[e]], H[columns[e]]
            for c in range(row.size):
                row[c] += value * other[c]


@njit(cache=True, fastmath=FAST)
def rows_gradients(starts, columns, pairs, values, loops, H, rows, grad, by_h, by_values):  # type: ignore[no-untyped-def]  # noqa: PLR0913
    """Add the gradients of `rows_product` by ``H`` and by ``values``."""
    for r in range(rows.size):
        i, slope = rows[r], grad[r]
        for c in range(slope.size):
            by_h[i, c] += loops[i] * slope[c]
        for e in range(starts[i], starts[i + 1]):
            p, j = pairs[e], columns[e]
            value, total = values[p], ZERO
            for c in range(slope.size):
                by_h[j, c] += value * slope[c]
                total += slope[c] * H[j, c]
            by_values[p] += total


@njit(cache=True, fastmath=FAST)
def _inner(left, right):  # type: ignore[no-untyped-def]
    total = ZERO
    for c in range(left.size):
        total += left[c] * right[c]
    return total


@njit(cache=True, parallel=True, fastmath=FAST)
def pair_products(starts, columns, left, right, out):  # type: ignore[no-untyped-def]
    """``<left_i, right_j> + <left_j, right_i>`` of every pair; on ``upper``."""
    for i in prange(left.shape[0]):
        for e in range(starts[i], starts[i + 1]):
            j = columns[e]
            out[e] = _inner(left[i], right[j]) + _inner(left[j], right[i])


@njit(cache=True, parallel=True, fastmath=FAST)
def relu_of_pairs(starts, columns, H, weights, out):  # type: ignore[no-untyped-def]
    """``sum_c weights_c relu(h_ic + h_jc)`` of every pair; on ``upper``."""
    for i in prange(H.shape[0]):
        own = H[i]
        for e in range(starts[i], starts[i + 1]):
            other = H[columns[e]]
            total = ZERO
            for c in range(own.size):
                total += weights[c] * max(own[c] + other[c], ZERO)
            out[e] = total


@njit(cache=True, parallel=True, fastmath=FAST)
def relu_slopes(starts, columns, pairs, grad, H, out):  # type: ignore[no-untyped-def]
    """Sums of ``grad_p [h_ic + h_jc > 0]`` over the pairs p = {i, j} of i; on ``full``."""
    for i in prange(H.shape[0]):
        own, row = H[i], out[i]
        row[:] = ZERO
        for e in range(starts[i], starts[i + 1]):
            other, slope = H[columns[e]], grad[pairs[e]]
            for c in range(row.size):
                row[c] += slope * np.float32(own[c] + other[c] > ZERO)


@njit(cache=True, parallel=True)
def side_sums(starts, sided, graphs, sides, out):  # type: ignore[no-untyped-def]
    """Row sums (n, n_graphs) of ``graphs`` (n_pairs, n_graphs) times the ``sides``; on ``full``.

    ``sides`` (2 n_pairs,) has the factors above the diagonal, then those below.
    """
    n_pairs, n_graphs = graphs.shape
    for i in prange(out.shape[0]):
        row = out[i]
        row[:] = ZERO
        for e in range(starts[i], starts[i + 1]):
            s = sided[e]
            p = s if s < n_pairs else s - n_pairs
            for g in range(n_graphs):
                row[g] += graphs[p, g] * sides[s]


@njit(cache=True, parallel=True)
def pair_gradients(starts, columns, grad, sides, out):  # type: ignore[no-untyped-def]
    """Gradient of `side_sums` by the graphs; on ``upper``."""
    n_pairs, n_graphs = out.shape
    for i in prange(grad.shape[0]):
        for e in range(starts[i], starts[i + 1]):
            j = columns[e]
            for g in range(n_graphs):
                out[e, g] = grad[i, g] * sides[e] + grad[j, g] * sides[e + n_pairs]


@njit(cache=True, parallel=True)
def side_gradients(starts, columns, grad, graphs, out):  # type: ignore[no-untyped-def]
    """Gradient of `side_sums` by the sides; on ``upper``."""
    n_pairs, n_graphs = graphs.shape
    for i in prange(grad.shape[0]):
        for e in range(starts[i], starts[i + 1]):
            j = columns[e]
            above = below = ZERO
            for g in range(n_graphs):
                above += grad[i, g] * graphs[e, g]
                below += grad[j, g] * graphs[e, g]
            out[e], out[e + n_pairs] = above, below


@njit(cache=True)
def _shrink(a, low, high):  # type: ignore[no-untyped-def]
    """Zero below ``low``, a ramp up to ``high``, the identity above; without branches."""
    return (high * max(a - low, ZERO) - low * max(a - high, ZERO)) / (high - low)


@njit(cache=True, parallel=True)
def shrunk_degrees(starts, pairs, A, low, high, out):  # type: ignore[no-untyped-def]
    """``1 / sqrt(1 + sum_j shrink(a_ij))`` of every sample; on ``full``."""
    for i in prange(out.size):
        total = np.float32(1)
        for e in range(starts[i], starts[i + 1]):
            total += _shrink(A[pairs[e]], low, high)
        out[i] = np.float32(1) / np.sqrt(total)


@njit(cache=True, parallel=True)
def shrunk_graph(starts, columns, A, low, high, roots, out):  # type: ignore[no-untyped-def]
    """``shrink(a_ij) root_i root_j`` of every pair; on ``upper``."""
    for i in prange(roots.size):
        for e in range(starts[i], starts[i + 1]):
            out[e] = _shrink(A[e], low, high) * roots[i] * roots[columns[e]]


@njit(cache=True, parallel=True)
def shrink_gradients(starts, columns, A, low, high, roots, grad, out, by_low):  # type: ignore[no-untyped-def] # noqa: PLR0913
    """Gradient of `shrunk_graph` by ``A``, and by ``low`` with ``high - low`` fixed, row by row."""
    ramp = high - low
    for i in prange(roots.size):
        total = ZERO
        for e in range(starts[i], starts[i + 1]):
            a, slope = A[e], grad[e] * roots[i] * roots[columns[e]]
            if a <= low:
                out[e] = ZERO
            elif a >= high:
                out[e] = slope
            else:
                out[e] = slope * high / ramp
                total += slope * ((a - low) - high) / ramp
        by_low[i] = total


@njit(cache=True, parallel=True, fastmath=FAST)
def decoder_gaps(D, u, X, sums):  # type: ignore[no-untyped-def]
    """Gradient of ``1/2 |X - relu(D + u)|^2`` by ``D``, in its place, with its sums.

    ``sums`` (CHUNKS, n_features + 1) gets the column sums of the gradient of each chunk of rows,
    and the squares of the gaps in the last column.
    """
    n_rows, n_columns = D.shape
    for chunk in prange(CHUNKS):
        added, total = sums[chunk], ZERO
        added[:] = ZERO
        for i in range(chunk * n_rows // CHUNKS, (chunk + 1) * n_rows // CHUNKS):
            for c in range(n_columns):
                d = D[i, c] + u[c]
                gap = max(d, ZERO) - X[i, c]
                total += gap * gap
                D[i, c] = gap if d > ZERO else ZERO
                added[c] += D[i, c]
        added[n_columns] = total
