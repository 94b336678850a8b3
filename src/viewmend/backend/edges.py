"""Compiled sums over the edges of a symmetric graph, for arrays in single precision.

A graph without loops has one value per *entry* (i, j); both entries of an edge are stored, row by
row with rising j. The table of a pattern is ``(starts, uppers, stops, columns, mirrors)``: the
entries of row i are those from ``starts[i]`` to ``stops[i]``, and ``mirrors`` tells where (j, i)
is. Blanks fill every row up to ``starts[i + 1]``, so that sums take eight entries at a time. They
point to the row itself, must be zero in the graph of a product, and are not read elsewhere; what a
kernel writes to them has no meaning where it says no more. From ``uppers[i]``, a multiple of four,
all entries with j > i follow: what is the same for both entries of an edge is found there.

Kernels run on one thread and without the lock of the interpreter. They take the entries of a row as
arrays of their own: positions counted from zero need no check of their sign, which would keep the
loops out of vectors.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from viewmend.backend.layers import FAST

__all__ = [
    "EIGHT",
    "FOUR",
    "add_doubts",
    "critic_gradients",
    "edge_gradients",
    "graph_product",
    "hidden_units",
    "relu_of_sums",
    "relu_slopes",
    "row_scores",
    "rows_gradients",
    "rows_product",
    "shrink_graph",
    "threshold_gradient",
]

# Entries taken at a time: a row of sums is then read and written an eighth as often, and its memory
# is seldom compared with that of the summands, which the compiler cannot know to be elsewhere.
EIGHT, FOUR = 8, 4
ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)


# Written out by Numba where it is called, as LLVM alone leaves the sums slower.
@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST, inline="always")
def _add_row(a, j, H, row):  # type: ignore[no-untyped-def]
    """Add ``sum_k a_k H[j_k]``."""
    for eight in range(a.size // EIGHT):
        k = EIGHT * eight
        h0, h1, h2, h3 = H[j[k]], H[j[k + 1]], H[j[k + 2]], H[j[k + 3]]
        h4, h5, h6, h7 = H[j[k + 4]], H[j[k + 5]], H[j[k + 6]], H[j[k + 7]]
        a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        a4, a5, a6, a7 = a[k + 4], a[k + 5], a[k + 6], a[k + 7]
        for c in range(row.size):
            first = a0 * h0[c] + a1 * h1[c] + a2 * h2[c] + a3 * h3[c]
            row[c] += first + a4 * h4[c] + a5 * h5[c] + a6 * h6[c] + a7 * h7[c]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def graph_product(table, A, loops, H, out):  # type: ignore[no-untyped-def]
    """``(A + D) H``, with ``loops`` the diagonal of ``D``."""
    starts, _, _, columns, _ = table
    for i in range(loops.size):
        part, own, row = slice(starts[i], starts[i + 1]), H[i], out[i]
        for c in range(row.size):
            row[c] = loops[i] * own[c]
        _add_row(A[part], columns[part], H, row)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def hidden_units(table, A, H, factors, bits, cut, out):  # type: ignore[no-untyped-def]
    """``relu((A + I) H)``, times ``factors_i``; zero where the random bits are below ``cut``."""
    starts, _, _, columns, _ = table
    for i in range(factors.size):
        part, own, row, drawn = slice(starts[i], starts[i + 1]), H[i], out[i], bits[i]
        for c in range(row.size):
            row[c] = own[c]
        _add_row(A[part], columns[part], H, row)
        for c in range(row.size):
            row[c] = max(row[c], ZERO) * (factors[i] if drawn[c] >= cut else ZERO)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def rows_product(table, A, H, rows, out):  # type: ignore[no-untyped-def]
    """Some rows of ``(A + I) H``."""
    starts, _, stops, columns, _ = table
    for r in range(rows.size):
        i, row = rows[r], out[r]
        row[:] = H[i]
        for e in range(starts[i], stops[i]):
            value, other = A[e], H[columns[e]]
            for c in range(row.size):
                row[c] += value * other[c]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def rows_gradients(table, A, sides, rows, by_h, by_a):  # type: ignore[no-untyped-def]
    """Add the gradient of `rows_product` by ``H``, and put there the one by the entries of ``A``.

    ``sides`` is ``H`` and the gradient by the product. No row may be there twice.
    """
    starts, _, stops, columns, _ = table
    H, grad = sides
    for r in range(rows.size):
        i, slope = rows[r], grad[r]
        for c in range(slope.size):
            by_h[i, c] += slope[c]
        for e in range(starts[i], stops[i]):
            j, value, total = columns[e], A[e], ZERO
            for c in range(slope.size):
                by_h[j, c] += value * slope[c]
                total += slope[c] * H[j, c]
            by_a[e] = total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def relu_of_sums(table, H, weights, out):  # type: ignore[no-untyped-def]
    """``sum_c weights_c relu(h_ic + h_jc)`` of every entry."""
    starts, uppers, _, columns, mirrors = table
    for i in range(H.shape[0]):
        part, own = slice(uppers[i], starts[i + 1]), H[i]
        t, j, back = out[part], columns[part], mirrors[part]
        for four in range(j.size // FOUR):
            k = FOUR * four
            h0, h1, h2, h3 = H[j[k]], H[j[k + 1]], H[j[k + 2]], H[j[k + 3]]
            t0 = t1 = t2 = t3 = ZERO
            for c in range(own.size):
                h, w = own[c], weights[c]
                t0 += w * max(h + h0[c], ZERO)
                t1 += w * max(h + h1[c], ZERO)
                t2 += w * max(h + h2[c], ZERO)
                t3 += w * max(h + h3[c], ZERO)
            t[k], t[k + 1], t[k + 2], t[k + 3] = t0, t1, t2, t3
        for k in range(j.size):
            out[back[k]] = t[k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def relu_slopes(table, slopes, H, out):  # type: ignore[no-untyped-def]
    """Sums of ``slopes_ij [h_ic + h_jc > 0]`` over the entries of every row; zero in blanks."""
    starts, _, _, columns, _ = table
    for i in range(H.shape[0]):
        part, own, row = slice(starts[i], starts[i + 1]), H[i], out[i]
        row[:] = ZERO
        s, j = slopes[part], columns[part]
        for four in range(j.size // FOUR):
            k = FOUR * four
            h0, h1, h2, h3 = H[j[k]], H[j[k + 1]], H[j[k + 2]], H[j[k + 3]]
            s0, s1, s2, s3 = s[k], s[k + 1], s[k + 2], s[k + 3]
            for c in range(row.size):
                x = -own[c]
                two = (s0 if h0[c] > x else ZERO) + (s1 if h1[c] > x else ZERO)
                row[c] += two + (s2 if h2[c] > x else ZERO) + (s3 if h3[c] > x else ZERO)


@njit(cache=True, nogil=True, error_model="numpy")
def _shrink(a, low, high):  # type: ignore[no-untyped-def]
    """Zero below ``low``, a ramp up to ``high``, the identity above; without branches."""
    return (high * max(a - low, ZERO) - low * max(a - high, ZERO)) / (high - low)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def shrink_graph(table, A, bounds, H, shrunk, roots, scaled):  # type: ignore[no-untyped-def]
    """``shrink(a_ij)``, but in blanks; ``1 / sqrt(1 + sum_j shrink(a_ij))``; its product with h_i.

    What is found is put in the last three arrays.
    """
    starts, _, stops, _, _ = table
    low, high = bounds
    for i in range(roots.size):
        a, row = A[starts[i] : stops[i]], shrunk[starts[i] : stops[i]]
        total = ONE
        for k in range(a.size):
            row[k] = _shrink(a[k], low, high)
            total += row[k]
        root = ONE / np.sqrt(total)
        own, out = H[i], scaled[i]
        for c in range(own.size):
            out[c] = root * own[c]
        roots[i] = root


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def _pair_products(table, H, B, out):  # type: ignore[no-untyped-def]
    """``<h_i, b_j> + <h_j, b_i>`` of every entry."""
    starts, uppers, _, columns, mirrors = table
    for i in range(H.shape[0]):
        part, h, b = slice(uppers[i], starts[i + 1]), H[i], B[i]
        t, j, back = out[part], columns[part], mirrors[part]
        for four in range(j.size // FOUR):
            k = FOUR * four
            h0, h1, h2, h3 = H[j[k]], H[j[k + 1]], H[j[k + 2]], H[j[k + 3]]
            b0, b1, b2, b3 = B[j[k]], B[j[k + 1]], B[j[k + 2]], B[j[k + 3]]
            t0 = t1 = t2 = t3 = ZERO
            for c in range(h.size):
                t0 += h[c] * b0[c] + h0[c] * b[c]
                t1 += h[c] * b1[c] + h1[c] * b[c]
                t2 += h[c] * b2[c] + h2[c] * b[c]
                t3 += h[c] * b3[c] + h3[c] * b[c]
            t[k], t[k + 1], t[k + 2], t[k + 3] = t0, t1, t2, t3
        for k in range(j.size):
            out[back[k]] = t[k]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def edge_gradients(table, A, bounds, sides, rows, by_shrunk, out):  # type: ignore[no-untyped-def]
    """Gradient by the edges of ``A`` of ``<B, S H>`` and more, with ``S = shrink(A)``.

    ``sides`` is H, B; ``by_shrunk`` has the rest of the gradient by the entries of ``S``, taken one
    by one, in some rows. Zero in blanks.
    """
    starts, _, stops, _, mirrors = table
    low, high = bounds
    steepness = high / (high - low)
    _pair_products(table, sides[0], sides[1], out)
    for i in rows:
        for e in range(starts[i], stops[i]):
            out[e] += by_shrunk[e]
            out[mirrors[e]] += by_shrunk[e]
    for i in range(starts.size - 1):
        a, t = A[starts[i] : stops[i]], out[starts[i] : stops[i]]
        for k in range(a.size):
            below_high = steepness if a[k] > low else ZERO
            t[k] *= ONE if a[k] >= high else below_high
        out[stops[i] : starts[i + 1]] = ZERO


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def threshold_gradient(table, A, bounds, sides, by_shrunk):  # type: ignore[no-untyped-def]
    """Gradient by ``low`` of what `edge_gradients` is the gradient of, with ``high - low`` held."""
    _, uppers, stops, columns, mirrors = table
    (low, high), (H, B) = bounds, sides
    total = 0.0
    for i in range(H.shape[0]):
        for e in range(uppers[i], stops[i]):
            j = columns[e]
            if j < i or A[e] <= low or A[e] >= high:
                continue
            slope = by_shrunk[e] + by_shrunk[mirrors[e]]
            for c in range(H.shape[1]):
                slope += H[i, c] * B[j, c] + H[j, c] * B[i, c]
            total += slope * ((A[e] - low) - high) / (high - low)
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def row_scores(table, A, critic, out):  # type: ignore[no-untyped-def]
    """Row sums of ``a_ij v_ij``."""
    starts, _, stops, _, _ = table
    for i in range(starts.size - 1):
        a, v = A[starts[i] : stops[i]], critic[starts[i] : stops[i]]
        total = ZERO
        for k in range(a.size):
            total += a[k] * v[k]
        out[i] = total


@njit(cache=True, nogil=True, error_model="numpy")
def add_doubts(table, critic, slopes, by_a):  # type: ignore[no-untyped-def]
    """Add the gradient of `row_scores` by the edges of ``A``, but in blanks."""
    starts, _, stops, columns, mirrors = table
    for i in range(starts.size - 1):
        part = slice(starts[i], stops[i])
        v, j, back, row = critic[part], columns[part], mirrors[part], by_a[part]
        for k in range(row.size):
            row[k] += slopes[i] * v[k] + slopes[j[k]] * critic[back[k]]


@njit(cache=True, nogil=True, error_model="numpy")
def _sigmoid(x):  # type: ignore[no-untyped-def]
    return HALF + HALF * np.tanh(HALF * x)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def critic_gradients(table, graphs, critic, out):  # type: ignore[no-untyped-def]
    """Gradient by ``critic`` of a loss that takes the last graph for made, the others for real.

    ``1/(2n) sum_i [mean over the real ones of softplus(-s_gi) + softplus(s_i) of the made one]``,
    with ``s_gi`` the `row_scores` of graph ``g``; ``graphs`` is (n_graphs, n_entries).
    """
    starts, _, stops, _, _ = table
    n_real = graphs.shape[0] - 1
    share = HALF / np.float32(starts.size - 1)
    for i in range(starts.size - 1):
        part = slice(starts[i], stops[i])
        v, row = critic[part], out[part]
        row[:] = ZERO
        for g in range(n_real + 1):
            a, score = graphs[g, part], ZERO
            for k in range(v.size):
                score += a[k] * v[k]
            real = -share / np.float32(n_real) * _sigmoid(-score)
            slope = real if g < n_real else share * _sigmoid(score)
            for k in range(v.size):
                row[k] += slope * a[k]
