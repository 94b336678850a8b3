"""Features of a view whose inner products are a kernel: Nyström's approximation on landmarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from viewmend.backend import dispatch
from viewmend.core.common.scaling import far_centre

# Eigenvalues of the landmark kernel below this share of the largest are rounding errors of float32.
RANK_TOLERANCE = 1e-6
# Rows worked on at a time.
BLOCK = 8192


@dataclass(frozen=True, eq=False)
class KernelMap:
    """The map from the representations of a sample to its features, also of new samples.

    With ``k(x, y)`` the mean over the representations ``r`` of ``exp(-|x_r - y_r|^2 / s_r)`` and
    ``k_x`` its values at the landmarks, the features are ``(k_x - centre) linear``. The landmarks
    are ``rows`` (n_landmarks,) of the fit. ``landmarks`` (n_landmarks, n_components_r) and
    ``scales``, the ``s_r``, are by representation; ``centre`` is (n_landmarks,) and ``linear``
    (n_landmarks, n_features).
    """

    rows: np.ndarray
    landmarks: Mapping[str, np.ndarray]
    scales: Mapping[str, float]
    centre: np.ndarray
    linear: np.ndarray

    def __call__(self, representations: Mapping[str, np.ndarray]) -> np.ndarray:
        """Features (n_rows, n_features) of float32."""
        K = mean_kernel(representations, self.landmarks, self.scales)
        return ((K - self.centre) @ self.linear).astype(np.float32)


@dataclass(frozen=True, eq=False)
class KernelFeatures:
    """Features of the observed rows of a view, on the axes of their own covariance.

    Columns of ``Phi`` (n_rows, n_features) sum to zero and are orthogonal; ``spectrum``
    (n_features,) has their squared lengths, ascending.
    """

    Phi: np.ndarray
    spectrum: np.ndarray
    map: KernelMap


def kernel_features(
    representations: Mapping[str, np.ndarray], landmarks: np.ndarray, width: float
) -> KernelFeatures:
    """Centred Nyström features, rotated so that their Gram matrix is diagonal.

    ``s_r`` is the mean squared distance between rows and landmarks over ``width``: the smaller
    ``width``, the wider the kernel. The landmarks (n_landmarks,) are rows of the representations
    (n_rows, n_components_r).
    """
    # Nyström: with K (n, m) between rows and landmarks and K_m (m, m) among these, the features
    # K K_m^{-1/2} have inner products K K_m^{-1} K^T, which approximate the kernel of all rows.
    points = {name: X[landmarks] for name, X in representations.items()}
    scales = {name: _scale(X, points[name], width) for name, X in representations.items()}
    K = mean_kernel(representations, points, scales)
    whitening = _inverse_root(K[landmarks].astype(np.float64))
    axes = rotated_axes(K, whitening)
    return KernelFeatures(
        axes(K), axes.spectrum, KernelMap(landmarks, points, scales, axes.centre, axes.rotation)
    )


@dataclass(frozen=True, eq=False)
class Axes:
    """``(phi - centre) rotation``: columns without mean, and orthogonal.

    ``rotation`` is (n_features, n_axes); ``spectrum`` (n_axes,) has the squared lengths of the
    columns, ascending.
    """

    centre: np.ndarray
    rotation: np.ndarray
    spectrum: np.ndarray

    def __call__(self, Phi: np.ndarray) -> np.ndarray:
        centred = Phi - self.centre.astype(Phi.dtype)
        return np.asarray(centred @ self.rotation.astype(Phi.dtype))


def rotated_axes(Phi: np.ndarray, whitening: np.ndarray | None = None) -> Axes:
    """Principal axes of ``Phi whitening``, for ``Phi`` (n_rows, n_features).

    ``whitening`` (n_features, n_axes) is the identity by default.
    """
    centre = Phi.mean(axis=0, dtype=np.float64)
    # In double precision, because the ridge is compared with the small eigenvalues.
    gram = _gram(Phi - centre.astype(Phi.dtype))
    if whitening is None:
        spectrum, rotation = scipy.linalg.eigh(gram)
    else:
        # Whitened features are never formed: only their Gram matrix and the combined rotation.
        spectrum, rotation = scipy.linalg.eigh(whitening.T @ gram @ whitening)
        rotation = whitening @ rotation
    return Axes(centre, rotation, np.maximum(spectrum, 0))


def mean_kernel(
    representations: Mapping[str, np.ndarray],
    landmarks: Mapping[str, np.ndarray],
    scales: Mapping[str, float],
) -> np.ndarray:
    """Mean over the representations of Gaussian kernels, (n_rows, n_landmarks)."""
    n_rows = len(next(iter(representations.values())))
    total = np.zeros((n_rows, len(next(iter(landmarks.values())))), dtype=np.float32)
    for name, X in representations.items():
        # In place: these arrays are the largest of a fit.
        centre = far_centre(landmarks[name])
        kernel = dispatch.squared_distances(X, landmarks[name], centre)
        kernel /= -scales[name]
        total += np.exp(kernel, out=kernel)
    total /= len(representations)
    return total


def _scale(X: np.ndarray, landmarks: np.ndarray, width: float) -> float:
    """Mean of ``|x - l|^2`` over rows and landmarks, over ``width``, without the distances."""
    # mean |x - l|^2 = mean |x|^2 + mean |l|^2 - 2 <mean x, mean l>.
    rows, points = X.astype(np.float64), landmarks.astype(np.float64)
    squares = np.einsum("ij,ij->", rows, rows) / len(X)
    squares += np.einsum("ij,ij->", points, points) / len(landmarks)
    mean = float(squares - 2 * rows.mean(axis=0) @ points.mean(axis=0))
    # Rows that are all equal have no scale; any number does.
    return mean / width if mean > 0 else 1.0


def _inverse_root(K: np.ndarray) -> np.ndarray:
    """``R`` (m, rank) with ``R R^T`` the pseudo-inverse of a kernel matrix (m, m)."""
    values, vectors = scipy.linalg.eigh((K + K.T) / 2)
    in_rank = values > RANK_TOLERANCE * values[-1]
    return np.asarray(vectors[:, in_rank] / np.sqrt(values[in_rank]))


def _gram(K: np.ndarray) -> np.ndarray:
    """``K^T K`` in double precision, without a copy of ``K`` in it."""
    gram = np.zeros((K.shape[1], K.shape[1]))
    for start in range(0, len(K), BLOCK):
        block = K[start : start + BLOCK].astype(np.float64)
        gram += block.T @ block
    return gram
