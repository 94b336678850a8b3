"""MLAN: one graph learned together with the labels; neighbours come from all views together.

F. Nie, G. Cai, X. Li, "Multi-view clustering and semi-supervised classification with adaptive
neighbours", AAAI 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.sparse import csc_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh
from sklearn.neighbors import NearestNeighbors

from viewmend.backend import dispatch
from viewmend.baselines.base import ROUND_RULES, CompleteViewClassifier, Solution
from viewmend.core.common.linear_systems import harmonic_labels
from viewmend.core.common.scaling import standardise_rows
from viewmend.core.common.simplex import project_simplex
from viewmend.core.graphs.spreading import joined_to_label, label_gaps, laplacian
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.exceptions import InvalidViewsError
from viewmend.impute.base import ViewImputer
from viewmend.parameters import AnyOf, OneOf, Real, Rule

# New weights (n_views,) from the old ones and the spreads <D_v, S>. The released code rescales
# distances that already carry the weight of the round before; its fixed point is 1 / (4 spread).
WEIGHTINGS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "paper": lambda _w, spreads: 1 / (2 * np.sqrt(spreads)),
    "code": lambda w, spreads: np.sqrt(w / spreads) / 2,
}


@dataclass(eq=False, repr=False)
class MLANClassifier(CompleteViewClassifier):
    """Multi-view learning with adaptive neighbours; needs complete views or an imputer.

    Minimises ``sum_v sqrt(sum_ij |x_i^v - x_j^v|^2 s_ij) + alpha |S|^2 + 2 lam tr(F^T L_S F)``
    with ``F = Y`` on labelled rows and the rows of ``S`` on the simplex of each sample's nearest
    neighbours under the mean distance of the views. ``alpha`` follows from the distances, as the
    value for which those neighbours are the support. Rows of every view are centred and scaled to
    unit deviation first; without this the method loses ten points of accuracy or more.

    Parameters
    ----------
    lam : float or "random", default="random"
        Weight of the labels in the graph; "random" draws an integer from 1 to 30 as its authors do.
    n_neighbors : int, default=7
        Number of neighbours. The authors use 9, the AGF-TI paper 7.
    weighting : {"paper", "code"}, default="paper"
        View weights ``1 / (2 sqrt(<D_v, S>))``, or those of the released code, which give poor
        views even less weight. The objective descends under "paper" only.
    max_iter, tol, imputer, random_state, view_sizes
        As in `CompleteViewClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_, history_, n_iter_, imputer_
        As in `CompleteViewClassifier`.
    graph_ : sparse array (n_samples, n_samples)
        ``S`` before it is made symmetric.
    lam_ : float
        The value of ``lam`` that was used.
    view_weights_ : array (n_views,)
        Weights of the views; they sum to one.
    """

    lam: float | Literal["random"] = "random"
    n_neighbors: int = 7
    weighting: str = "paper"
    max_iter: int = 30
    tol: float = 1e-8
    imputer: ViewImputer | None = None
    random_state: int | np.random.Generator | None = None
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "lam": AnyOf(Real(0), OneOf("random")),
        "weighting": OneOf(*WEIGHTINGS),
        **ROUND_RULES,
    }

    def _solve(self, data: MultiViewData, labels: Labels, rng: np.random.Generator) -> Solution:
        Y = labels.one_hot()
        lam = float(rng.integers(1, 31)) if self.lam == "random" else float(self.lam)
        views = [standardise_rows(X_v) for X_v in data.views]
        lists, D, S, alpha = adaptive_neighbours(views, self.n_neighbors)
        F = lowest_eigenvectors(listed_graph(S, lists), labels.n_classes, rng)
        w = np.ones(data.n_views)
        history: list[float] = []
        for _ in range(self.max_iter):
            w = WEIGHTINGS[self.weighting](w, spreads(D, S))
            S = fit_neighbour_weights(D, w, lam * listed_gaps(S, lists, F), alpha)
            F = harmonic_labels(laplacian(listed_graph(S, lists)), Y, labels.labelled)
            gaps = listed_gaps(S, lists, F)
            history.append(np.sqrt(spreads(D, S)).sum() + np.sum(S * (alpha * S + lam * gaps)))
            if len(history) > 2 and abs(history[-2] - history[-1]) <= self.tol * history[-1]:
                break
        graph = listed_graph(S, lists)
        graph.eliminate_zeros()
        reachable = joined_to_label(graph, labels.labelled)
        extras = {"graph_": graph, "lam_": lam}
        return Solution(F, reachable, tuple(history), w / w.sum(), extras)


def adaptive_neighbours(
    views: Sequence[np.ndarray], k: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Neighbour lists under the mean squared distance ``e``, kept for good; ``D, S, alpha``.

    On the lists (n_samples, k) alone, ``D`` (n_views, n_samples, k) are the squared distances of
    every view and ``S`` (n_samples, k) starts; ``alpha`` is the mean over the samples of
    ``(k e_{k+1} - sum_{t <= k} e_t) / 2``. ``k`` is lowered to ``n_samples - 2``.
    """
    # The mean of squared distances is that of the joined columns: no n x n array is needed.
    joined = np.hstack(views)
    if len(joined) < 3:
        msg = f"MLAN needs a neighbour and one beyond, so 3 samples, got {len(joined)}; add samples"
        raise InvalidViewsError(msg)
    k = min(k, len(joined) - 2)
    lists = NearestNeighbors(n_neighbors=k + 1).fit(joined).kneighbors(return_distance=False)
    D = np.stack([listed_distances(X_v, lists) for X_v in views])
    # The search rounds: order by the exact distances.
    order = np.argsort(D.mean(axis=0), axis=1, kind="stable")
    lists = np.take_along_axis(lists, order, axis=1)
    D = np.take_along_axis(D, order[None], axis=2)
    e = D.mean(axis=0)
    alpha = np.mean(k * e[:, k] - e[:, :k].sum(axis=1)) / 2
    S = dispatch.nearest_anchor_weights(e, k)[:, :k]
    # Where k + 1 neighbours tie, all of them got a share.
    S = S / S.sum(axis=1, keepdims=True)
    return lists[:, :k], D[:, :, :k], S, max(float(alpha), np.finfo(float).eps)


def listed_distances(X_v: np.ndarray, lists: np.ndarray) -> np.ndarray:
    """``|x_i - x_j|^2`` (n_samples, k) for the listed j of every i, in blocks of rows."""
    D_v = np.empty(lists.shape)
    step = max(1, 2**22 // (lists.shape[1] * X_v.shape[1]))
    for start in range(0, len(X_v), step):
        rows = slice(start, start + step)
        gaps = X_v[rows, None, :] - X_v[lists[rows]]
        D_v[rows] = np.einsum("ijk,ijk->ij", gaps, gaps)
    return D_v


def listed_graph(S: np.ndarray, lists: np.ndarray) -> csr_array:
    """Rows of weights (n_samples, k) as a graph; zeros stay stored."""
    n_samples, k = S.shape
    starts = np.arange(0, S.size + 1, k)
    return csr_array((S.ravel(), lists.ravel(), starts), shape=(n_samples, n_samples))


def listed_gaps(S: np.ndarray, lists: np.ndarray, F: np.ndarray) -> np.ndarray:
    """``|f_i - f_j|^2`` (n_samples, k) for the listed j of every i."""
    return label_gaps(listed_graph(S, lists), F).reshape(S.shape)


def lowest_eigenvectors(graph: csr_array, n_vectors: int, rng: np.random.Generator) -> np.ndarray:
    """Argmin of ``tr(F^T L F)`` over ``F^T F = I`` (n_samples, n_vectors).

    A graph of as many components as vectors has solutions that are constant on each of them, none
    better than the others. Only gaps along edges are asked of ``F``, which are then zero: so is
    the answer.
    """
    n_samples = graph.shape[0]
    edges = graph.copy()
    edges.eliminate_zeros()
    if connected_components(edges, directed=False)[0] >= n_vectors:
        return np.zeros((n_samples, n_vectors))
    # Shifted below zero, where the Laplacian is singular, and inverted: the lowest come first.
    L = csc_array(laplacian(graph))
    start = rng.uniform(size=n_samples)
    return eigsh(L, k=min(n_vectors, n_samples - 1), sigma=-1e-4, v0=start)[1]


def spreads(D: np.ndarray, S: np.ndarray) -> np.ndarray:
    """``<D_v, S>`` of every view, kept off zero, where a weight would be infinite."""
    return np.maximum(np.einsum("vij,ij->v", D, S), 1e-12)


def fit_neighbour_weights(
    D: np.ndarray, w: np.ndarray, pulls: np.ndarray, alpha: float
) -> np.ndarray:
    """Row-wise argmin over the simplex of ``sum_j (sum_v w_v D_v + pulls)_ij s_ij + alpha s_ij^2``.

    ``D`` (n_views, n_samples, k); ``pulls`` and the result (n_samples, k).
    """
    return project_simplex(-(np.einsum("v,vij->ij", w, D) + pulls) / (2 * alpha))
