"""Compiled kernels of graphs for NumPy arrays.

Every row of a result belongs to one thread, and sums over rows are added block by block, so that
the numbers do not depend on the number of threads. Nothing is checked here: whoever makes a graph
checks its indices.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from viewmend.backend.compiling import jit
from viewmend.backend.numba_cpu import SUMS
from viewmend.backend.numba_spreading import (
    cg_direction,
    cg_step,
    column_dots,
    energies,
    group_sums,
)
from viewmend.backend.scipy_graphs import renumbered
from viewmend.backend.threads import over_rows, parallel_map, row_blocks

__all__ = [
    "add_product",
    "cg_direction",
    "cg_step",
    "column_dots",
    "degrees",
    "energies",
    "find_places",
    "group_sums",
    "homophily",
    "is_connected",
    "multiply",
    "n_distinct",
    "renumbered",
    "row_sums",
    "symmetric_pattern",
    "weighted_places",
]

# Samples of the rows of a graph (n_rows,), indices and weights of its edges (n_rows, k).
Triple = tuple[np.ndarray, np.ndarray, np.ndarray]


def multiply(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, B: np.ndarray
) -> np.ndarray:
    """``W B`` (n_rows, n_columns) for a graph and an array of two axes."""
    dtype = np.result_type(data, B)
    B = np.ascontiguousarray(B, dtype=dtype)
    out = np.zeros((indptr.size - 1, B.shape[1]), dtype=dtype)
    add_product((indptr, indices, data), B, 1.0, out)
    return out


def add_product(
    graph: tuple[np.ndarray, np.ndarray, np.ndarray], B: np.ndarray, factor: float, out: np.ndarray
) -> None:
    """Add ``factor W B`` to ``out`` (n_rows, n_columns), which is of the type of ``B``."""
    indptr, indices, data = graph
    if not out.size:
        return
    total = np.ascontiguousarray(out)
    flat = np.ascontiguousarray(B).ravel(), B.dtype.type(factor), total.ravel()
    over_rows(_add_product, len(out), _row_size(indptr), indptr, indices, data, *flat)
    if total is not out:
        out[...] = total


def row_sums(indptr: np.ndarray, data: np.ndarray) -> np.ndarray:
    """Sum of every row, (n_rows,) of float64."""
    out = np.empty(indptr.size - 1)
    over_rows(_row_sums, out.size, _row_size(indptr), indptr, data, out)
    return out


def n_distinct(rows: np.ndarray, n: int) -> int:
    """How many numbers there are among ``rows``, each below ``n``."""
    return int(np.count_nonzero(np.bincount(rows, minlength=n)))


def symmetric_pattern(
    triples: Sequence[Triple], n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Places (i, j) and (j, i) of all edges of positive weight between ``n`` samples, once each.

    Returns ``indptr`` (n + 1,), ``indices`` (n_places,) ascending in every row, and for every
    place the number of its mirror image.
    """
    ahead = _forward_pattern(triples, n)
    back = _transposed(*ahead)
    sizes = np.empty(n, dtype=np.int64)
    over_rows(_merged_sizes, n, _row_size(ahead[0]), *ahead, *back, sizes)
    indptr = _starts(sizes)
    indices = np.empty(indptr[-1], dtype=np.int32)
    over_rows(_merge, n, _row_size(indptr), *ahead, *back, indptr, indices)
    mirror = np.empty(indices.size, dtype=np.int32)
    _mirror(indptr, indices, indptr[:-1].copy(), mirror)
    return indptr, indices, mirror


def find_places(triple: Triple, indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Where in the pattern the edges of a graph are, (n_rows, k) of int32; -1 of no edge."""
    n_rows, k = triple[1].shape
    places = np.empty((n_rows, k), dtype=np.int32)
    over_rows(_find_places, n_rows, 8 * k, triple, indptr, indices, places)
    return places


def weighted_places(
    pairs: Sequence[tuple[np.ndarray, np.ndarray, float]], mirror: np.ndarray
) -> np.ndarray:
    """Half the sum of ``factor * weights`` at their places and at the mirror images of these.

    ``pairs`` are places, weights and factor of every graph. Returns (n_places,) of float32.
    """
    total = np.zeros(mirror.size)
    for places, weights, factor in pairs:
        # Rows of a graph are rows of the pattern, each of which belongs to one thread.
        over_rows(_add_at_places, *places.shape, places, weights, factor, total)
    out = np.empty(mirror.size, dtype=np.float32)
    over_rows(_mean_with_mirror, mirror.size, 1, total, mirror, out)
    return out


def homophily(triples: Sequence[Triple], classes: np.ndarray) -> np.ndarray:
    """Share of each graph's weight between samples of one class, (n_graphs,)."""
    classes = np.ascontiguousarray(classes)

    def sums(triple: Triple) -> np.ndarray:
        blocks = row_blocks(*triple[1].shape)
        parts = [_class_sums((rows.start, rows.stop), triple, classes) for rows in blocks]
        return np.sum(parts, axis=0)

    same, total = np.array(parallel_map(sums, triples)).T
    return np.divide(same, total, out=np.zeros_like(total), where=total > 0)


def degrees(triples: Sequence[Triple], n: int) -> np.ndarray:
    """Row sums of every symmetric graph, (n_graphs, n) of float64."""
    out = np.zeros((len(triples), n))
    parallel_map(lambda pair: _add_degrees(*pair), zip(triples, out, strict=True))
    return out


def is_connected(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray) -> bool:
    """Whether paths of positive weight lead from the first sample to all others."""
    return bool(_count_reached(indptr, indices, data) == indptr.size - 1)


def _row_size(indptr: np.ndarray) -> int:
    """Mean number of entries of a row."""
    return int(indptr[-1] // max(1, indptr.size - 1))


def _starts(sizes: np.ndarray) -> np.ndarray:
    """``indptr`` of rows with these numbers of entries: int32 if they can be counted with it."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return starts.astype(np.int32) if starts[-1] < 2**31 else starts


def _forward_pattern(triples: Sequence[Triple], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the edges of every row in any graph, ascending, once each."""
    places = np.full((len(triples), n), -1, dtype=np.int32)
    for place, (rows, _, _) in zip(places, triples, strict=True):
        place[rows] = np.arange(rows.size, dtype=np.int32)
    most = sum(indices.shape[1] for _, indices, _ in triples)
    blocks = row_blocks(n, max(1, most))

    def find(rows: slice) -> tuple[np.ndarray, np.ndarray]:
        columns = np.empty((rows.stop - rows.start, most), dtype=np.int32)
        sizes = np.zeros(len(columns), dtype=np.int64)
        for place, triple in zip(places, triples, strict=True):
            _collect(place[rows], triple, columns, sizes)
        return sizes, _unique_rows(columns, sizes)

    found = parallel_map(find, blocks)
    sizes, columns = zip(*found, strict=True)
    return _starts(np.concatenate(sizes)), np.concatenate(columns)


def _transposed(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    starts = _starts(np.bincount(indices, minlength=indptr.size - 1))
    rows = np.empty_like(indices)
    _transpose(indptr, indices, starts[:-1].copy(), rows)
    return starts, rows


# Flat arrays and numbers without sign, for which no index is looked at twice: a third less time.
@jit(fastmath=SUMS)
def _add_product(rows, indptr, indices, data, B, factor, out):  # type: ignore[no-untyped-def]
    size, four = np.uint64(out.size // (indptr.size - 1)), np.uint64(4)
    for i in range(np.uint64(rows[0]), np.uint64(rows[1])):
        row, stop = i * size, np.uint64(indptr[i + np.uint64(1)])
        whole = stop - (stop - np.uint64(indptr[i])) % four
        # Four entries at a time: every entry of the result is read and written less often.
        for e in range(np.uint64(indptr[i]), whole, four):
            e_1, e_2, e_3 = e + np.uint64(1), e + np.uint64(2), e + np.uint64(3)
            w_0, w_1 = factor * data[e], factor * data[e_1]
            w_2, w_3 = factor * data[e_2], factor * data[e_3]
            b_0, b_1 = np.uint64(indices[e]) * size, np.uint64(indices[e_1]) * size
            b_2, b_3 = np.uint64(indices[e_2]) * size, np.uint64(indices[e_3]) * size
            for c in range(size):
                ahead = w_0 * B[b_0 + c] + w_1 * B[b_1 + c]
                out[row + c] += ahead + w_2 * B[b_2 + c] + w_3 * B[b_3 + c]
        for e in range(whole, stop):
            w_0, b_0 = factor * data[e], np.uint64(indices[e]) * size
            for c in range(size):
                out[row + c] += w_0 * B[b_0 + c]


@jit(fastmath=SUMS)
def _row_sums(rows, indptr, data, out):  # type: ignore[no-untyped-def]
    for i in range(rows[0], rows[1]):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[e])
        out[i] = total


@jit()
def _collect(place, triple, columns, sizes):  # type: ignore[no-untyped-def]
    """Append the samples that the edges of a graph lead to, to those of the rows it has."""
    samples, indices, weights = triple
    for i in range(place.size):
        row = place[i]
        if row < 0:
            continue
        for j in range(indices.shape[1]):
            if weights[row, j] != 0:
                columns[i, sizes[i]] = samples[indices[row, j]]
                sizes[i] += 1


@jit()
def _unique_rows(columns, sizes):  # type: ignore[no-untyped-def]
    """Sort the columns of every row, drop repeated ones; the rest in a row, sizes in place."""
    total = 0
    for i in range(sizes.size):
        row = np.sort(columns[i, : sizes[i]])
        size = 0
        for j in row:
            if size == 0 or columns[i, size - 1] != j:
                columns[i, size] = j
                size += 1
        sizes[i] = size
        total += size
    out = np.empty(total, dtype=columns.dtype)
    end = 0
    for i in range(sizes.size):
        for j in range(sizes[i]):
            out[end] = columns[i, j]
            end += 1
    return out


@jit()
def _transpose(indptr, indices, starts, rows):  # type: ignore[no-untyped-def]
    """Rows of every column, ascending; ``starts`` are used up."""
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            rows[starts[j]] = i
            starts[j] += 1


@jit()
def _merged_sizes(rows, indptr, indices, indptr_t, indices_t, sizes):  # type: ignore[no-untyped-def]
    for i in range(rows[0], rows[1]):
        a, b = indptr[i], indptr_t[i]
        size = 0
        while a < indptr[i + 1] or b < indptr_t[i + 1]:
            a, b, _ = _next_merged(i, a, b, indptr, indices, indptr_t, indices_t)
            size += 1
        sizes[i] = size


@jit()
def _merge(rows, indptr, indices, indptr_t, indices_t, starts, out):  # type: ignore[no-untyped-def]
    for i in range(rows[0], rows[1]):
        a, b = indptr[i], indptr_t[i]
        for place in range(starts[i], starts[i + 1]):
            a, b, out[place] = _next_merged(i, a, b, indptr, indices, indptr_t, indices_t)


@jit()
def _next_merged(i, a, b, indptr, indices, indptr_t, indices_t):  # type: ignore[no-untyped-def]
    """The next of two ascending lists, and how far each has come with it."""
    left, right = a < indptr[i + 1], b < indptr_t[i + 1]
    if left and right and indices[a] == indices_t[b]:
        return a + 1, b + 1, indices[a]
    if left and (not right or indices[a] < indices_t[b]):
        return a + 1, b, indices[a]
    return a, b + 1, indices_t[b]


@jit()
def _mirror(indptr, indices, starts, out):  # type: ignore[no-untyped-def]
    """Rows ascend, and so do the columns of each: place by place, a column's entries follow."""
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            out[e] = starts[j]
            starts[j] += 1


@jit()
def _find_places(rows, triple, indptr, indices, places):  # type: ignore[no-untyped-def]
    samples, columns, weights = triple
    for row in range(rows[0], rows[1]):
        i = samples[row]
        for j in range(columns.shape[1]):
            if weights[row, j] == 0:
                places[row, j] = -1
                continue
            column = samples[columns[row, j]]
            low, high = indptr[i], indptr[i + 1]
            while low < high:
                middle = (low + high) // 2
                if indices[middle] < column:
                    low = middle + 1
                else:
                    high = middle
            places[row, j] = low


@jit()
def _add_at_places(rows, places, weights, factor, total):  # type: ignore[no-untyped-def]
    for row in range(rows[0], rows[1]):
        for j in range(places.shape[1]):
            if places[row, j] >= 0:
                total[places[row, j]] += factor * weights[row, j]


@jit()
def _mean_with_mirror(rows, total, mirror, out):  # type: ignore[no-untyped-def]
    for e in range(rows[0], rows[1]):
        out[e] = (total[e] + total[mirror[e]]) / 2


@jit()
def _class_sums(rows, triple, classes):  # type: ignore[no-untyped-def]
    """Weight between samples of one class, and weight in all."""
    samples, indices, weights = triple
    same = total = 0.0
    for row in range(rows[0], rows[1]):
        own = classes[samples[row]]
        for j in range(indices.shape[1]):
            weight = np.float64(weights[row, j])
            total += weight
            # Unknown classes are equal to each other, but agree on nothing.
            if own >= 0 and classes[samples[indices[row, j]]] == own:
                same += weight
    return same, total


@jit()
def _add_degrees(triple, out):  # type: ignore[no-untyped-def]
    samples, indices, weights = triple
    for row in range(indices.shape[0]):
        for j in range(indices.shape[1]):
            half = np.float64(weights[row, j]) / 2
            out[samples[row]] += half
            out[samples[indices[row, j]]] += half


@jit()
def _count_reached(indptr, indices, data):  # type: ignore[no-untyped-def]
    """How many samples paths of positive weight reach from the first one."""
    n = indptr.size - 1
    if n == 0:
        return 0
    reached = np.zeros(n, dtype=np.bool_)
    queue = np.empty(n, dtype=np.int32)
    reached[0] = True
    queue[0] = 0
    n_reached, done = 1, 0
    while done < n_reached < n:
        i = queue[done]
        done += 1
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if data[e] > 0 and not reached[j]:
                reached[j] = True
                queue[n_reached] = j
                n_reached += 1
    return n_reached
