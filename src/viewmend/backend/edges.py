"""Compiled sums over the edges of a symmetric graph, for arrays in single precision.

A graph without loops has one value per *entry* (i, j); both entries of an edge are stored, row by
row. The table of a pattern is ``(starts, stops, columns, mirrors)``: the entries of row i are those
from ``starts[i]`` to ``stops[i]``, and ``mirrors`` tells where (j, i) is. Blanks fill every row up
to ``starts[i + 1]``, so that sums take four entries at a time: they point to the row itself, and
have the value zero in every graph; what a kernel writes to them has no meaning where it says no
more.

Kernels work on the rows from ``start`` to ``stop``, one after the other and without the lock of
the interpreter, so that results do not depend on the number of threads. They take the entries of a
row as arrays of their own: positions counted from zero need no check of their sign, which would
keep the loops out of vectors.
"""

from __future__ import annotations

import numpy as np
from numba import njit

__all__ = [
    "FOUR",
    "add_doubts",
    "add_inner_products",
    "critic_gradients",
    "decoder_gaps",
    "degree_roots",
    "drop_units",
    "graph_product",
    "normalised_rows",
    "relu_of_sums",
    "relu_slopes",
    "row_scores",
    "rows_gradients",
    "rows_product",
    "shrink_gradients",
    "take_adam_step",
    "threshold_gradient",
    "where_positive",
]

# Sums may be taken in another order within one row, which lets them run in vectors. So do NumPy's
# rules for errors: by those of Python every division asks whether it is by zero.
FAST = {"reassoc", "contract", "nsz"}
# Entries taken at a time: a row of sums is then read and written a quarter as often.
FOUR = 4
ZERO, HALF, ONE = np.float32(0), np.float32(0.5), np.float32(1)
# What a new gradient and its square count in the means of Adam, and what is added to the root.
SHARE, SQUARE_SHARE, STABILISER = np.float32(0.1), np.float32(0.001), np.float32(1e-8)
# Numbers smaller than this count as zero: near the smallest of all, products crawl.
TINY = np.float32(1e-36)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def graph_product(start, stop, table, graph, H, out):  # type: ignore[no-untyped-def]
    """``(A + D) H``; ``graph`` is the entries of ``A`` and the diagonal of ``D``."""
    starts, _, columns, _ = table
    values, loops = graph
    for i in range(start, stop):
        row, own = out[i], H[i]
        for c in range(row.size):
            row[c] = loops[i] * own[c]
        a, j = values[starts[i] : starts[i + 1]], columns[starts[i] : starts[i + 1]]
        for four in range(a.size // FOUR):
            k = FOUR * four
            h0, h1, h2, h3 = H[j[k]], H[j[k + 1]], H[j[k + 2]], H[j[k + 3]]
            a0, a1, a2, a3 = a[k], a[k + 1], a[k + 2], a[k + 3]
            for c in range(row.size):
                row[c] += a0 * h0[c] + a1 * h1[c] + a2 * h2[c] + a3 * h3[c]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def add_inner_products(start, stop, table, A, low, sides, out):  # type: ignore[no-untyped-def]
    """Add ``<h_i, b_j>`` where ``a_ij`` is above ``low``, perhaps elsewhere; ``sides`` is H, B.

    It is the gradient of ``<B, A H>`` by the mirrored entry.
    """
    starts, _, columns, _ = table
    H, B = sides
    for i in range(start, stop):
        part = slice(starts[i], starts[i + 1])
        a, j, t, own = A[part], columns[part], out[part], H[i]
        for four in range(a.size // FOUR):
            k = FOUR * four
            if max(a[k], a[k + 1], a[k + 2], a[k + 3]) <= low:
                continue
            b0, b1, b2, b3 = B[j[k]], B[j[k + 1]], B[j[k + 2]], B[j[k + 3]]
            t0 = t1 = t2 = t3 = ZERO
            for c in range(own.size):
                h = own[c]
                t0, t1 = t0 + h * b0[c], t1 + h * b1[c]
                t2, t3 = t2 + h * b2[c], t3 + h * b3[c]
            t[k], t[k + 1] = t[k] + t0, t[k + 1] + t1
            t[k + 2], t[k + 3] = t[k + 2] + t2, t[k + 3] + t3


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def rows_product(table, graph, H, rows, out):  # type: ignore[no-untyped-def]
    """Some rows of `graph_product`."""
    starts, stops, columns, _ = table
    values, loops = graph
    for r in range(rows.size):
        i, row = rows[r], out[r]
        for c in range(row.size):
            row[c] = loops[i] * H[i, c]
        for e in range(starts[i], stops[i]):
            value, other = values[e], H[columns[e]]
            for c in range(row.size):
                row[c] += value * other[c]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def rows_gradients(table, graph, sides, rows, by_h, inner):  # type: ignore[no-untyped-def]
    """Add the gradients of `rows_product` by ``H``, and by the entries of ``A`` to ``inner``.

    ``sides`` is ``H`` and the gradient by the product.
    """
    starts, stops, columns, _ = table
    (values, loops), (H, grad) = graph, sides
    for r in range(rows.size):
        i, slope = rows[r], grad[r]
        for c in range(slope.size):
            by_h[i, c] += loops[i] * slope[c]
        for e in range(starts[i], stops[i]):
            j, value, total = columns[e], values[e], ZERO
            for c in range(slope.size):
                by_h[j, c] += value * slope[c]
                total += slope[c] * H[j, c]
            inner[e] += total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def relu_of_sums(start, stop, table, H, weights, out):  # type: ignore[no-untyped-def]
    """``sum_c weights_c relu(h_ic + h_jc)`` of every entry."""
    starts, _, columns, _ = table
    for i in range(start, stop):
        own = H[i]
        t, j = out[starts[i] : starts[i + 1]], columns[starts[i] : starts[i + 1]]
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


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def relu_slopes(start, stop, table, slopes, H, out):  # type: ignore[no-untyped-def]
    """Sums of ``slopes_ij [h_ic + h_jc > 0]`` over the entries of every row; zero in blanks."""
    starts, _, columns, _ = table
    for i in range(start, stop):
        own, row = H[i], out[i]
        row[:] = ZERO
        s, j = slopes[starts[i] : starts[i + 1]], columns[starts[i] : starts[i + 1]]
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
def degree_roots(start, stop, table, A, bounds, shrunk, roots):  # type: ignore[no-untyped-def]
    """``1 / sqrt(1 + sum_j shrink(a_ij))`` of every row; also ``shrink(a_ij)``, but in blanks."""
    starts, stops, _, _ = table
    low, high = bounds
    for i in range(start, stop):
        a, row = A[starts[i] : stops[i]], shrunk[starts[i] : stops[i]]
        total = ONE
        for k in range(a.size):
            row[k] = _shrink(a[k], low, high)
            total += row[k]
        roots[i] = ONE / np.sqrt(total)


@njit(cache=True, nogil=True, error_model="numpy")
def normalised_rows(start, stop, table, shrunk, roots, out):  # type: ignore[no-untyped-def]
    """``shrunk_ij root_i root_j``."""
    starts, _, columns, _ = table
    for i in range(start, stop):
        j, row = columns[starts[i] : starts[i + 1]], out[starts[i] : starts[i + 1]]
        s, root = shrunk[starts[i] : starts[i + 1]], roots[i]
        for k in range(row.size):
            row[k] = s[k] * root * roots[j[k]]


@njit(cache=True, nogil=True, error_model="numpy")
def shrink_gradients(start, stop, table, graph, bounds, inner, out):  # type: ignore[no-untyped-def]
    """Gradient by the edges of ``A`` through `normalised_rows` with the roots held, but in blanks.

    ``graph`` is ``A`` and the roots; ``inner`` has the gradient by the normalised entries, taken
    one by one.
    """
    starts, stops, columns, mirrors = table
    (A, roots), (low, high) = graph, bounds
    steepness = high / (high - low)
    for i in range(start, stop):
        part = slice(starts[i], stops[i])
        a, there, j, back = A[part], inner[part], columns[part], mirrors[part]
        row, root = out[part], roots[i]
        for k in range(a.size):
            slope = (there[k] + inner[back[k]]) * root * roots[j[k]]
            below_high = steepness if a[k] > low else ZERO
            row[k] = slope * (ONE if a[k] >= high else below_high)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def threshold_gradient(table, graph, bounds, inner, sides):  # type: ignore[no-untyped-def]
    """Gradient by ``low`` through `normalised_rows`, with ``high - low`` and the roots held.

    ``sides`` is H, B as in `add_inner_products`, which only edges on the ramp need here; ``inner``
    has the rest of the gradient by the normalised entries.
    """
    starts, stops, columns, mirrors = table
    (A, roots), (low, high), (H, B) = graph, bounds, sides
    total = 0.0
    for i in range(roots.size):
        for e in range(starts[i], stops[i]):
            j = columns[e]
            if j < i or A[e] <= low or A[e] >= high:
                continue
            slope = inner[e] + inner[mirrors[e]]
            for c in range(H.shape[1]):
                slope += H[i, c] * B[j, c] + H[j, c] * B[i, c]
            total += slope * roots[i] * roots[j] * ((A[e] - low) - high) / (high - low)
    return total


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def row_scores(start, stop, table, A, critic, out):  # type: ignore[no-untyped-def]
    """Row sums of ``a_ij v_ij``."""
    starts, stops, _, _ = table
    for i in range(start, stop):
        a, v = A[starts[i] : stops[i]], critic[starts[i] : stops[i]]
        total = ZERO
        for k in range(a.size):
            total += a[k] * v[k]
        out[i] = total


@njit(cache=True, nogil=True, error_model="numpy")
def add_doubts(start, stop, table, critic, slopes, by_a):  # type: ignore[no-untyped-def]
    """Add the gradient of `row_scores` by the edges of ``A``, but in blanks."""
    starts, stops, columns, mirrors = table
    for i in range(start, stop):
        part = slice(starts[i], stops[i])
        v, j, back, row = critic[part], columns[part], mirrors[part], by_a[part]
        for k in range(row.size):
            row[k] += slopes[i] * v[k] + slopes[j[k]] * critic[back[k]]


@njit(cache=True, nogil=True, error_model="numpy")
def _sigmoid(x):  # type: ignore[no-untyped-def]
    return HALF + HALF * np.tanh(HALF * x)


@njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)
def critic_gradients(start, stop, table, graphs, critic, out):  # type: ignore[no-untyped-def]
    """Gradient by ``critic`` of a loss that takes the last graph for made, the others for real.

    ``1/(2n) sum_i [mean over the real ones of softplus(-s_gi) + softplus(s_i) of the made one]``,
    with ``s_gi`` the `row_scores` of graph ``g``; ``graphs`` is (n_graphs, n_entries).
    """
    starts, stops, _, _ = table
    n_real = graphs.shape[0] - 1
    share = HALF / np.float32(starts.size - 1)
    for i in range(start, stop):
        v, row = critic[starts[i] : stops[i]], out[starts[i] : stops[i]]
        row[:] = ZERO
        for g in range(n_real + 1):
            a, score = graphs[g, starts[i] : stops[i]], ZERO
            for k in range(v.size):
                score += a[k] * v[k]
            real = -share / np.float32(n_real) * _sigmoid(-score)
            slope = real if g < n_real else share * _sigmoid(score)
            for k in range(v.size):
                row[k] += slope * a[k]


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


@njit(cache=True, nogil=True, error_model="numpy")
def drop_units(H, bits, cut, scale):  # type: ignore[no-untyped-def]
    """``relu(H)`` in place, times zero where the random bits are below ``cut``, else ``scale``."""
    for i in range(H.shape[0]):
        row, drawn = H[i], bits[i]
        for c in range(row.size):
            row[c] = max(row[c], ZERO) * (scale if drawn[c] >= cut else ZERO)


@njit(cache=True, nogil=True, error_model="numpy")
def where_positive(B, H, scale):  # type: ignore[no-untyped-def]
    """``scale B`` in place where ``H`` is positive, and zero elsewhere."""
    for i in range(H.shape[0]):
        row, other = B[i], H[i]
        for c in range(row.size):
            row[c] = scale * row[c] if other[c] > ZERO else ZERO


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
