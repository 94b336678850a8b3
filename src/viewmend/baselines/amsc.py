"""AMSC: soft labels of every view, tied together by shared class probabilities.

W. Zhuge, T. Luo, R. Fan, H. Tao, C. Hou, D. Yi, "Absent multiview semisupervised classification",
IEEE Transactions on Cybernetics, 2024.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.sparse import csr_array, hstack

from viewmend.baselines.base import ROUND_RULES, BaselineClassifier, Grid, Solution
from viewmend.baselines.maths.anchored import scaled_anchor_graph, smoothness, solve_anchored
from viewmend.core.agfti.anchor_count import graph_size
from viewmend.core.agfti.anchors import kmeans_anchors
from viewmend.core.agfti.propagation import reachable_samples
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.parameters import AnyOf, Integer, OneOf, Real, Rule


@dataclass(eq=False, repr=False)
class AMSCClassifier(BaselineClassifier):
    """Absent multi-view semi-supervised classification (AMSC).

    Minimises, over soft labels ``F_v`` of the samples each view has and shared class
    probabilities ``Y`` with rows on the simplex, those of labelled samples fixed::

        ((1/V) sum_v J_v^p)^{1/p},
        J_v = tr(F_v^T L_v F_v) + sum_{i in view v} sum_j y_ij^gamma |f_i^v - e_j|^2

    where ``L_v = I - Z_v Lambda_v^{-1} Z_v^T`` comes from the anchors of view ``v`` and is never
    formed. Missing views need no imputation: a sample takes part in the views it has.

    Re-derived: the paper's code is not public. The objective follows its text; the rounds are block
    coordinate descent on it.

    Parameters
    ----------
    gamma : float > 1, default=3.1
        The larger, the softer the shared probabilities. Around 1.5 they may collapse to a few
        classes.
    power : float in (0, 1], default=0.5
        Exponent ``p`` over the views; the smaller, the more the best view counts.
    n_anchors : int or "auto", default="auto"
        Number of anchors per view, found by k-means on its observed rows. "auto" is the largest
        power of two that is at most 256 and at most a quarter of the observed rows of every view.
        At most the number of rows of the smallest view is used.
    n_neighbors : int, default=7
        Number of anchors that a sample is joined to.
    tol : float, default=1e-4
        Relative decrease of the objective below which the rounds end.
    max_iter, random_state, view_sizes
        As in `BaselineClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_, history_, n_iter_
        As in `BaselineClassifier`; ``label_distributions_`` are the shared probabilities.
    view_weights_ : array (n_views,)
        ``J_v^{p-1}``, scaled to sum one.
    n_anchors_ : int
        Number of anchors that were used.
    """

    gamma: float = 3.1
    power: float = 0.5
    n_anchors: int | Literal["auto"] = "auto"
    n_neighbors: int = 7
    max_iter: int = 50
    tol: float = 1e-4
    view_sizes: Sequence[int] | None = None
    random_state: int | np.random.Generator | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "gamma": Real(1, low_open=True),
        "power": Real(0, 1, low_open=True),
        "n_anchors": AnyOf(Integer(2), OneOf("auto")),
        **ROUND_RULES,
    }
    grid: ClassVar[Grid] = {"gamma": (1.1, 1.5, 1.9, 2.3, 2.7, 3.1)}
    script_grid: ClassVar[Grid] = {"gamma": (1.1, 1.6, 2.1, 2.6, 3.1)}

    def _solve(self, data: MultiViewData, labels: Labels, rng: np.random.Generator) -> Solution:
        poorest = int(data.observed.sum(axis=0).min())
        m, k = graph_size(self.n_anchors, self.n_neighbors, poorest)
        S = observed_graphs(data, m, k, rng)
        given, labelled = labels.one_hot(), labels.labelled
        # Unlabelled rows start at zero: the first round hears the labels alone.
        Y, a = given, np.full(len(S), 1 / len(S))
        history: list[float] = []
        for _ in range(self.max_iter):
            F = [
                view_labels(S_v, seen, Y**self.gamma)
                for S_v, seen in zip(S, data.observed.T, strict=True)
            ]
            H = np.stack([vertex_distances(F_v) for F_v in F]) * data.observed.T[:, :, None]
            shared = power_rows(np.tensordot(a, H, axes=1), self.gamma)
            Y = np.where(labelled[:, None], given, shared)
            costs = view_costs(S, F, H, Y**self.gamma)
            a = mean_weights(costs, self.power)
            history.append(float(np.mean(costs**self.power) ** (1 / self.power)))
            if len(history) > 1 and history[-2] - history[-1] <= self.tol * history[-2]:
                break
        reachable = reachable_samples(hstack(S), labelled)
        return Solution(Y, reachable, tuple(history), a, {"n_anchors_": m})


def observed_graphs(
    data: MultiViewData, n_anchors: int, k: int, rng: np.random.Generator
) -> list[csr_array]:
    """``S_v = Z_v Lambda_v^{-1/2}`` (n_samples, n_anchors) of all views, missing rows empty."""
    graphs = []
    for X_v, seen in zip(data.views, data.observed.T, strict=True):
        rows = X_v[seen]
        S_v = scaled_anchor_graph(rows, kmeans_anchors(rows, n_anchors, rng), k)
        # Rows of the view back to their places among all samples.
        starts = np.zeros(len(seen) + 1, dtype=S_v.indptr.dtype)
        starts[1:][seen] = np.diff(S_v.indptr)
        graphs.append(csr_array((S_v.data, S_v.indices, np.cumsum(starts)), (len(seen), n_anchors)))
    return graphs


def view_labels(S_v: csr_array, seen: np.ndarray, Y_power: np.ndarray) -> np.ndarray:
    """Argmin over ``F_v`` of ``tr(F_v^T L_v F_v) + sum_ij y_ij^gamma |f_i - e_j|^2``.

    Solves ``(L_v + U) F_v = Y^gamma`` on the rows ``seen`` in the view, ``U = diag(Y^gamma 1)``;
    the other rows of ``F_v`` (n_samples, n_classes) are zero.
    """
    R = np.where(seen[:, None], Y_power, 0.0)
    return solve_anchored(1 + R.sum(axis=1), S_v, R)


def vertex_distances(F_v: np.ndarray) -> np.ndarray:
    """``|f_i - e_j|^2`` for every row ``i`` and class ``j``."""
    return np.sum(F_v**2, axis=1, keepdims=True) - F_v**2 + (1 - F_v) ** 2


def power_rows(H: np.ndarray, gamma: float) -> np.ndarray:
    """Row-wise argmin over the simplex of ``sum_j y_j^gamma h_j``: ``y_j ~ h_j^{1/(1-gamma)}``."""
    logs = np.log(np.maximum(H, 1e-300)) / (1 - gamma)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def view_costs(
    S: Sequence[csr_array], F: Sequence[np.ndarray], H: np.ndarray, Y_power: np.ndarray
) -> np.ndarray:
    """``J_v`` of all views, (n_views,); ``H`` (n_views, n_samples, n_classes) are distances."""
    within = [smoothness(S_v, F_v) for S_v, F_v in zip(S, F, strict=True)]
    return np.asarray(within) + np.einsum("vij,ij->v", H, Y_power)


def mean_weights(costs: np.ndarray, power: float) -> np.ndarray:
    """Slopes ``J_v^{p-1}`` of ``sum_v J_v^p`` up to a factor, (n_views,), summing to one."""
    slopes = np.maximum(costs, 1e-12) ** (power - 1)
    return slopes / slopes.sum()
