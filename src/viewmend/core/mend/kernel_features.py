"""Features of a view whose inner products are a kernel: Nyström's approximation on landmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from viewmend.backend.namespace import Array, array_namespace, is_numpy, to_numpy
from viewmend.backend.threads import for_each, row_blocks, serial_blas
from viewmend.core.common.rows import Column, Rows, Sums
from viewmend.core.common.scaling import far_centre
from viewmend.core.common.small_sums import beside, on_host, summed_in_pieces, total
from viewmend.core.mend.loo_ridge import RIDGES, leverages_of

# Eigenvalues of the landmark kernel below this share of the largest are rounding errors of float32.
RANK_TOLERANCE = 1e-6
# Features of which the least ridge leaves less than this share are left out.
LEAST_SHRINKAGE = 1e-3
# Entries of the kernel worked on at a time: in NumPy, as many as a cache holds; and elsewhere.
PIECE, LARGE_PIECE = 1 << 18, 1 << 26
# Rows whose products are summed at a time.
GRAM_ROWS = 1024
# Partial sums over the rows: enough for many threads, few enough to cost no memory.
N_PARTS = 8

# Representations of some rows by name, each (n_rows, n_components_r).
Points = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class KernelMap:
    """The map from the representations of a sample to its features, also of new samples.

    With ``k(x, y)`` the mean over the representations ``r`` of ``exp(-|x_r - y_r|^2 / s_r)`` and
    ``k_x`` its values at the landmarks, the features are ``(k_x - centre) linear``. Over the rows
    of the fit they sum to zero and are orthogonal.

    Attributes
    ----------
    landmarks : mapping of str to array (n_landmarks, n_components_r)
        By representation.
    scales : mapping of str to float
        The ``s_r``.
    centre : array (n_landmarks,)
    linear : array (n_landmarks, n_features)
    spectrum : array (n_features,)
        Squared lengths of the features over the rows of the fit, ascending.
    n_rows : int
        Of the fit.
    """

    landmarks: Mapping[str, Array]
    scales: Mapping[str, float]
    centre: np.ndarray
    linear: np.ndarray
    spectrum: np.ndarray
    n_rows: int

    def __call__(self, points: Points) -> Array:
        """Features (n_rows, n_features) of float32."""
        return self.features(mean_kernel(points, self.landmarks, self.scales))

    def features(self, K: Array) -> Array:
        """Features (n_rows, n_features) of rows with kernels ``K`` (n_rows, n_landmarks)."""
        return linear_map(K, self.centre, self.linear)


@dataclass(frozen=True, eq=False)
class Features:
    """Kernel features ``Phi`` (n_rows, n_features) of some rows, and their leverages.

    The latter are (n_rows, n_ridges), in the fit of all rows of the view with each of `RIDGES`.
    """

    Phi: Array
    leverages: Array


@dataclass(frozen=True, eq=False)
class Kernel:
    """A kernel at landmarks, as in `KernelMap`, before it has axes.

    ``represent`` makes the representations of a block of rows; None where the block has them.
    ``centre`` (n_landmarks,) is near the mean of its values.
    """

    landmarks: Mapping[str, Array]
    scales: Mapping[str, float]
    centre: np.ndarray
    represent: Callable[[Any], Points] | None


@dataclass(frozen=True, eq=False)
class KernelProducts:
    """The kernel of a view and what its axes follow from.

    ``K`` is a column (n_rows, n_landmarks), ``among`` (n_landmarks, n_landmarks) the kernel of the
    landmarks, ``sums`` are those of `kernel_sums`.
    """

    kernel: Kernel
    among: Array
    K: Column
    sums: Sums


def kernel_products(
    rows: Rows,
    blocks: Column,
    landmarks: Points,
    width: float,
    represent: Callable[[Any], Points] | None = None,
) -> KernelProducts:
    """The kernel between the rows of a view and landmarks, and products of its columns.

    ``s_r`` is the mean squared distance between rows and landmarks over ``width``: the smaller
    ``width``, the wider the kernel.

    Parameters
    ----------
    rows : Rows
    blocks : column
        Representations by name of the rows of a view, each (n_rows, n_components_r), or what
        ``represent`` makes these of.
    landmarks : mapping of str to array (n_landmarks, n_components_r)
        Rows of the representations.
    width : float
    represent : callable, optional
        Called with some rows of a block.
    """
    scales = _scales(rows, blocks, landmarks, width, represent)
    among = mean_kernel(landmarks, landmarks, scales)
    centre = to_numpy(total(among)) / len(among)
    kernel = Kernel(landmarks, scales, centre, represent)
    return KernelProducts(kernel, among, *rows.both(kernel_rows, blocks, shared=kernel))


def kernel_features(rows: Rows, views: list[KernelProducts]) -> list[tuple[KernelMap, Column]]:
    """Centred Nyström features, rotated so that their Gram matrix is diagonal, of some views.

    The list is emptied: the kernel of a view is let go when there are features of it. Columns are
    of `Features`.
    """
    # Nyström: with K (n, m) between rows and landmarks and K_m (m, m) among these, the features
    # K K_m^{-1/2} have inner products K K_m^{-1} K^T, which approximate the kernel of all rows.
    xp = array_namespace(views[0].among)
    # View beside view, because each decomposition runs on one thread.
    maps = for_each(_rotated_axes, views, xp)
    return [(axes, rows.map(feature_rows, views.pop(0).K, shared=axes)) for axes in maps]


def mean_kernel(points: Points, landmarks: Points, scales: Mapping[str, float]) -> Array:
    """Mean over the representations of Gaussian kernels, (n_rows, n_landmarks) of float32."""
    some = next(iter(points.values()))
    xp = array_namespace(some)
    n_landmarks = len(next(iter(landmarks.values())))
    K = xp.empty((len(some), n_landmarks), dtype=xp.float32, device=some.device)
    sides = _sides(landmarks, scales, K)

    def work(part: slice) -> None:
        K[part] = _mean_kernel({name: X[part] for name, X in points.items()}, sides)

    for_each(work, _parts(K), xp)
    return K


def linear_map(K: Array, centre: Array, linear: Array) -> Array:
    """``(K - centre) linear``, of the type of the kernels ``K`` (n_rows, n_landmarks).

    Multiplied in double precision: on axes of little variance, which small ridges let count,
    ``linear`` has large entries that nearly cancel.
    """
    xp = array_namespace(K)
    centre, linear = (xp.asarray(A, dtype=xp.float64, device=K.device) for A in (centre, linear))
    return xp.astype((xp.astype(K, xp.float64) - centre) @ linear, K.dtype)


@dataclass(frozen=True, eq=False)
class _Side:
    """Landmarks of a representation, ready for products with rows.

    ``-|x - l|^2 / s`` is ``x (2 l / s) - |x|^2 / s - |l|^2 / s``.
    """

    centre: Array | None
    doubled: Array
    squares: Array
    scale: float

    @classmethod
    def of(cls, points: Array, scale: float) -> _Side:
        xp = array_namespace(points)
        centre = far_centre(points)
        points = points if centre is None else points - centre
        squares = xp.sum(points * points, axis=1) / scale
        return cls(centre, (points * (2 / scale)).T, squares, scale)

    def kernel(self, X: Array) -> Array:
        xp = array_namespace(X)
        X = X if self.centre is None else X - self.centre
        # In place: these arrays are the largest of a fit.
        powers = X @ self.doubled
        powers -= xp.sum(X * X, axis=1, keepdims=True) / self.scale
        powers -= self.squares
        # Rounding may take a distance below zero where rows are equal.
        return xp.exp(xp.clip(powers, None, 0.0))


def _sides(landmarks: Points, scales: Mapping[str, float], like: Array) -> dict[str, _Side]:
    return {name: _Side.of(beside(A, like), scales[name]) for name, A in landmarks.items()}


def _mean_kernel(points: Points, sides: Mapping[str, _Side]) -> Array:
    return sum(side.kernel(points[name]) for name, side in sides.items()) / len(sides)


def _parts(K: Array) -> list[slice]:
    """Pieces of the rows of a kernel, or of points."""
    size = PIECE if is_numpy(array_namespace(K)) else LARGE_PIECE
    return row_blocks(K.shape[0], K.shape[1], size)


# ------------------------------------------------------------------ tasks


def scale_sums(
    block: Any, shared: tuple[Callable[[Any], Points] | None, Mapping[str, np.ndarray]]
) -> Sums:
    """By representation: number of rows, and squared distances from a centre (n_components_r,).

    For ``shared = (represent, centres)``.
    """
    represent, centres = shared
    some = _some(block, represent)

    def work(part: slice) -> Sums:
        points = _piece(block, part, represent)
        sums: dict[str, Any] = {"n": points[next(iter(centres))].shape[0]}
        for name, centre in centres.items():
            gaps = points[name] - beside(centre, points[name])
            sums[name] = total(gaps * gaps, axis=None)
        return sums

    return summed_in_pieces(work, some, _parts(some))


def kernel_rows(block: Any, kernel: Kernel) -> tuple[Array, Sums]:
    """The kernel ``K`` of the rows, and the `kernel_sums` of it."""
    some = _some(block, kernel.represent)
    xp = array_namespace(some)
    K = xp.empty((some.shape[0], len(kernel.centre)), dtype=xp.float32, device=some.device)
    sides = _sides(kernel.landmarks, kernel.scales, K)

    def rows_of(part: slice) -> Array:
        K[part] = _mean_kernel(_piece(block, part, kernel.represent), sides)
        return K[part]

    size = GRAM_ROWS if is_numpy(xp) else max(LARGE_PIECE // K.shape[1], 1)
    return K, kernel_sums(rows_of, kernel.centre, row_blocks(K.shape[0], 1, size), K)


def kernel_sums(
    rows_of: Callable[[slice], Array], centre: np.ndarray, parts: Sequence[slice], like: Array
) -> Sums:
    """Number ``n`` of rows, and sums of their kernels less a centre, and of the products of these.

    Less the centre (n_landmarks,), so that products lose no digits to a common part. ``rows_of``
    gives the kernels (n_part, n_landmarks) of a part of the rows, beside the array ``like``.
    """
    xp, m = array_namespace(like), len(centre)
    centre = xp.asarray(centre, dtype=xp.float64, device=like.device)

    def work(hand: Sequence[slice]) -> Sums:
        gram = xp.zeros((m, m), dtype=xp.float64, device=like.device)
        sums = xp.zeros(m, dtype=xp.float64, device=like.device)
        for part in hand:
            # In double precision, because the ridge is compared with the small eigenvalues. Of a
            # product with its own transpose, half is computed.
            gaps = xp.astype(rows_of(part), xp.float64) - centre
            gram += gaps.T @ gaps
            sums += xp.sum(gaps, axis=0)
        return {"gram": gram, "total": sums}

    done = for_each(work, _hands(parts, xp), xp)
    n_rows = sum(part.stop - part.start for part in parts)
    return {"n": n_rows, **{what: sum(each[what] for each in done) for what in done[0]}}


def feature_rows(K: Array, kernel: KernelMap) -> Features:
    """Features and leverages of rows with kernels ``K`` (n_rows, n_landmarks)."""
    xp = array_namespace(K)
    Phi = xp.empty((K.shape[0], len(kernel.spectrum)), dtype=K.dtype, device=K.device)
    leverages = xp.empty((K.shape[0], len(RIDGES)), dtype=K.dtype, device=K.device)
    centre, linear = (xp.asarray(A, device=K.device) for A in (kernel.centre, kernel.linear))

    def work(part: slice) -> None:
        Phi[part] = linear_map(K[part], centre, linear)
        leverages[part] = leverages_of(Phi[part], kernel.spectrum, kernel.n_rows)

    for_each(work, _parts(K), xp)
    return Features(Phi, leverages)


def _hands(parts: Sequence[slice], xp: Any) -> list[Sequence[slice]]:
    """Parts dealt into `N_PARTS` hands, whatever the number of threads; elsewhere one hand."""
    n_hands = min(N_PARTS, len(parts)) if is_numpy(xp) else 1
    return [parts[i::n_hands] for i in range(n_hands)]


def _some(block: Any, represent: Callable[[Any], Points] | None) -> Array:
    """An array with the rows of a block."""
    return next(iter(block.values())) if represent is None else block


def _piece(block: Any, part: slice, represent: Callable[[Any], Points] | None) -> Points:
    """Representations of some rows of a block."""
    if represent is not None:
        return represent(block[part])
    return {name: X[part] for name, X in block.items()}


# ------------------------------------------------------------------ between the passes


def _scales(
    rows: Rows,
    blocks: Column,
    landmarks: Points,
    width: float,
    represent: Callable[[Any], Points] | None,
) -> dict[str, float]:
    """Means of ``|x - l|^2`` over rows and landmarks, over ``width``, without the distances."""
    # With m the mean of the landmarks, mean |x - l|^2 = mean |x - m|^2 + mean |l - m|^2.
    points = {name: to_numpy(A).astype(np.float64) for name, A in landmarks.items()}
    centres = {name: A.mean(axis=0) for name, A in points.items()}
    sums = on_host(rows.sums(scale_sums, blocks, shared=(represent, centres)))
    n_rows = max(float(sums["n"]), 1.0)
    means = {
        name: float(sums[name]) / n_rows + float(np.mean(np.sum((A - centres[name]) ** 2, axis=1)))
        for name, A in points.items()
    }
    # Rows that are all equal have no scale; any number does.
    return {name: mean / width if mean > 0 else 1.0 for name, mean in means.items()}


def _rotated_axes(view: KernelProducts) -> KernelMap:
    """The map to principal axes of the whitened kernel, without those that no ridge lets count.

    The decompositions are made where the sums are.
    """
    kernel, among, sums = view.kernel, view.among, view.sums
    xp = array_namespace(sums["gram"])
    n_rows = float(sums["n"])
    mean = sums["total"] / n_rows
    gram = sums["gram"] - n_rows * mean[:, None] * mean
    # On one thread, as everywhere: the digits must not depend on their number.
    with serial_blas():
        whitening = _inverse_root(xp.asarray(among, dtype=xp.float64, device=gram.device))
        # Whitened features are never formed: only their Gram matrix and the combined rotation.
        spectrum, rotation = xp.linalg.eigh(whitening.T @ gram @ whitening)
        spectrum = to_numpy(spectrum)
        # Eigenvalues ascend. One feature at least, also of rows that are all equal.
        counts = spectrum > LEAST_SHRINKAGE * n_rows * min(RIDGES)
        first = min(len(spectrum) - int(counts.sum()), len(spectrum) - 1)
        linear = to_numpy(whitening @ rotation[:, first:])
    spectrum = np.maximum(spectrum[first:], 0)
    centre = kernel.centre + to_numpy(mean)
    return KernelMap(kernel.landmarks, kernel.scales, centre, linear, spectrum, int(n_rows))


def _inverse_root(K: Array) -> Array:
    """``R`` (m, rank) with ``R R^T`` the pseudo-inverse of a kernel matrix (m, m)."""
    xp = array_namespace(K)
    values, vectors = xp.linalg.eigh((K + K.T) / 2)
    known = to_numpy(values)
    first = int(np.searchsorted(known, RANK_TOLERANCE * known[-1], side="right"))
    return vectors[:, first:] / xp.sqrt(values[first:])
