"""Similarity network fusion, then label spreading.

B. Wang, A. M. Mezlini, F. Demir, M. Fiume, Z. Tu, M. Brudno, B. Haibe-Kains, A. Goldenberg,
"Similarity network fusion for aggregating data types on a genomic scale", Nature Methods 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array
from sklearn.metrics import pairwise_distances

from viewmend.baselines.base import BaselineClassifier, Grid, Solution, check_memory
from viewmend.core.graphs.spreading import joined_to_label, spread_labels
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels, check_class_prior
from viewmend.parameters import Integer, Real, Rule


@dataclass(eq=False, repr=False)
class SimilarityFusionClassifier(BaselineClassifier):
    """Similarity network fusion (SNF): the views' similarity graphs diffuse through each other.

    Every view has a full transition matrix ``P_v`` from a Gaussian kernel of local width and a
    sparse one ``S_v`` that keeps the nearest neighbours. The full ones are replaced
    ``n_diffusions`` times by ``S_v mean_{u != v}(P_u) S_v^T``; labels spread over their mean.

    Re-derived: the paper needs every view of every sample. Here ``P_v`` and ``S_v`` cover the
    samples that have view ``v``, and the mean for a pair of samples is over the views that both
    have. A pair without any other common view keeps its own ``P_v``; a pair without any common view
    is not joined.

    It needs several dense n x n arrays, so use it for at most some thousand samples.

    Parameters
    ----------
    n_neighbors : int, default=20
        Number of neighbours in ``S_v`` and in the width of the kernel, ``K``.
    kernel_width : float, default=0.5
        Factor of the width, ``mu``; the paper advises 0.3 to 0.8.
    n_diffusions : int, default=20
        Number of diffusion steps, ``t`` in the paper.
    spreading : float in [0, 1), default=0.9
        How far labels spread over the graph; the larger, the further.
    class_prior : None, "labeled", "uniform", array (n_classes,) or dict, default=None
        Total score of every class after spreading; None gives all classes the same.
    view_sizes
        As in `BaselineClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_
        As in `viewmend.AGFTIClassifier`.
    similarity_ : array (n_samples, n_samples)
        Symmetric, zero on the diagonal and between samples that share no view.
    """

    n_neighbors: int = 20
    kernel_width: float = 0.5
    n_diffusions: int = 20
    spreading: float = 0.9
    class_prior: Any = None
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "n_neighbors": Integer(1),
        "kernel_width": Real(0, low_open=True),
        "n_diffusions": Integer(0),
        "spreading": Real(0, 1, high_open=True),
    }
    grid: ClassVar[Grid] = {"n_neighbors": (10, 20), "kernel_width": (0.3, 0.5, 0.8)}

    def _solve(self, data: MultiViewData, labels: Labels, _rng: np.random.Generator) -> Solution:
        prior = check_class_prior(self.class_prior, labels)
        n_samples, n_arrays = data.n_samples, 2 * data.n_views + 6
        what = f"{n_arrays} dense arrays of {n_samples} x {n_samples}"
        check_memory(8.0 * n_arrays * n_samples**2, self, what)
        kernels = [
            local_kernel(data.rows_seen(v), self.n_neighbors, self.kernel_width)
            for v in range(data.n_views)
        ]
        rows = [np.flatnonzero(seen) for seen in data.observed.T]
        W = fuse_similarities(kernels, rows, n_samples, self.n_neighbors, self.n_diffusions)
        graph = csr_array(W)
        F = spread_labels(graph, labels.one_hot(), self.spreading)
        mass = F.sum(axis=0)
        F = F * (np.ones_like(mass) if prior is None else prior) / mass
        reachable = joined_to_label(graph, labels.labelled)
        return Solution(F, reachable, extras={"similarity_": W})


def local_kernel(X: np.ndarray, k: int, width: float) -> np.ndarray:
    """``exp(-d_ij^2 / (width e_ij))``, ``e_ij`` the mean of ``d_ij`` and of both rows' reach.

    The reach of a row of ``X`` is its mean distance to its ``k`` nearest rows.
    """
    distances = pairwise_distances(X)
    k = min(k, len(X) - 1)
    nearest = np.partition(distances, k, axis=1)[:, : k + 1]
    # A row's distance to itself, zero, is among the k + 1 smallest.
    reach = nearest.sum(axis=1) / max(k, 1)
    local = (reach[:, None] + reach[None, :] + distances) / 3
    # Duplicates have no distance to measure a width by, and are as similar as can be.
    return np.exp(-np.divide(distances**2, width * local, out=distances * 0, where=local > 0))


def transition(W: np.ndarray) -> np.ndarray:
    """``w_ij / (2 sum_{k != i} w_ik)`` off the diagonal, one half on it (Eq. 2 of the paper).

    Rows sum to one, but for rows without any similarity, which sum to one half.
    """
    P = W.copy()
    np.fill_diagonal(P, 0)
    total = 2 * P.sum(axis=1, keepdims=True)
    np.divide(P, total, out=P, where=total > 0)
    np.fill_diagonal(P, 0.5)
    return P


def nearest_transition(W: np.ndarray, k: int) -> csr_array:
    """``w_ij / sum_{k in N_i} w_ik`` at the ``k`` rows most similar to ``i`` (Eq. 3 of the paper).

    As in the paper, a sample is its own nearest neighbour: ``W`` is largest on the diagonal.
    """
    n_rows = len(W)
    k = min(k, n_rows)
    columns = np.argpartition(-W, k - 1, axis=1)[:, :k]
    nearest = np.take_along_axis(W, columns, axis=1)
    nearest /= nearest.sum(axis=1, keepdims=True)
    starts = np.arange(0, n_rows * k + 1, k)
    return csr_array((nearest.ravel(), columns.ravel(), starts), shape=W.shape)


def fuse_similarities(
    kernels: Sequence[np.ndarray],
    rows: Sequence[np.ndarray],
    n_samples: int,
    k: int,
    n_diffusions: int,
) -> np.ndarray:
    """Cross-diffusion of the views' kernels, and the mean of the outcomes, (n_samples, n_samples).

    The kernel of a view (n_observed_v, n_observed_v) is about the samples ``rows`` (n_observed_v,).
    The result is symmetric, zero on the diagonal and where no view has both samples.
    """
    P = [transition(kernel) for kernel in kernels]
    S = [nearest_transition(kernel, k) for kernel in kernels]
    blocks = [np.ix_(seen, seen) for seen in rows]
    n_seen = np.zeros((n_samples, n_samples))
    for block in blocks:
        n_seen[block] += 1
    for _ in range(n_diffusions):
        total = _sum_at(P, blocks, n_samples)
        for v, (S_v, block) in enumerate(zip(S, blocks, strict=True)):
            others, n_others = total[block] - P[v], n_seen[block] - 1
            # Pairs that no other view has keep their own similarity.
            mean = np.divide(others, n_others, out=P[v].copy(), where=n_others > 0)
            P[v] = transition((S_v @ (S_v @ mean).T).T)
    W = _sum_at(P, blocks, n_samples) / np.maximum(n_seen, 1)
    W = (W + W.T) / 2
    np.fill_diagonal(W, 0)
    return W


def _sum_at(
    P: Sequence[np.ndarray], blocks: Sequence[tuple[np.ndarray, ...]], n_samples: int
) -> np.ndarray:
    """Sum of the views' arrays, each laid out over all samples."""
    total = np.zeros((n_samples, n_samples))
    for P_v, block in zip(P, blocks, strict=True):
        total[block] += P_v
    return total
