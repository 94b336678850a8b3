"""AMMSS: one label matrix over weighted anchor graphs of all views.

X. Cai, F. Nie, W. Cai, H. Huang, "Heterogeneous image features integration via multi-modal
semi-supervised learning model", ICCV 2013.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.sparse import csr_array, hstack

from viewmend.baselines.base import ROUND_RULES, CompleteViewClassifier, Grid, Solution
from viewmend.baselines.maths.anchored import scaled_anchor_graph, smoothness, solve_anchored
from viewmend.core.agfti.anchor_count import graph_size
from viewmend.core.agfti.anchors import kmeans_anchors
from viewmend.core.agfti.propagation import reachable_samples
from viewmend.core.common.simplex import power_weights
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.impute.base import ViewImputer
from viewmend.parameters import AnyOf, Integer, OneOf, Real, Rule


@dataclass(eq=False, repr=False)
class AMMSSClassifier(CompleteViewClassifier):
    """Adaptive multi-modal semi-supervised classification (AMMSS).

    Minimises, over soft labels ``F`` that equal the given ones and view weights ``a`` on the
    simplex::

        sum_v a_v^r tr(F^T L_v F) + lam |F_u|^2,    L_v = I - Z_v Lambda_v^{-1} Z_v^T

    where ``Z_v`` joins samples to the anchors of view ``v``, ``Lambda_v`` are the anchors' degrees
    and ``F_u`` the rows of unlabelled samples. Needs complete views, so missing ones are imputed
    first. The graphs between samples are never formed: ``F_u`` comes from a Cholesky
    factorisation as large as the anchors of all views together.

    Re-derived: the paper's code is not public. The weights and the shared ``F`` follow the paper.
    That ``lam`` pulls unlabelled rows to zero is our interpretation of how the method is called.

    Parameters
    ----------
    r : float > 1, default=2
        The larger, the more even the view weights. Near 1 with ``lam=0``, one view gets all the
        weight.
    lam : float >= 0, default=0.2
        How strongly unlabelled rows are pulled to zero, relative to the weights ``a_v^r``, which
        shrink with ``r``.
    n_anchors : int or "auto", default="auto"
        Number of anchors per view, found by k-means. "auto" is the largest power of two that is at
        most 256 and at most a quarter of the samples. At most the number of samples is used.
    n_neighbors : int, default=7
        Number of anchors that a sample is joined to.
    max_iter, tol, imputer, random_state, view_sizes
        As in `CompleteViewClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_, history_, n_iter_, imputer_
        As in `CompleteViewClassifier`.
    view_weights_ : array (n_views,)
        Weights of the views, on the simplex.
    n_anchors_ : int
        Number of anchors that were used.
    """

    r: float = 2.0
    lam: float = 0.2
    n_anchors: int | Literal["auto"] = "auto"
    n_neighbors: int = 7
    max_iter: int = 50
    tol: float = 1e-6
    imputer: ViewImputer | None = None
    view_sizes: Sequence[int] | None = None
    random_state: int | np.random.Generator | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "r": Real(1, low_open=True),
        "lam": Real(0),
        "n_anchors": AnyOf(Integer(2), OneOf("auto")),
        **ROUND_RULES,
    }
    grid: ClassVar[Grid] = {
        "r": (10**0.1, 10**0.5, 10**0.9, 10**1.3, 10**1.7),
        "lam": (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    }
    script_grid: ClassVar[Grid] = {**grid, "lam": (0.0, 0.3, 0.6, 0.9)}

    def _solve(self, data: MultiViewData, labels: Labels, rng: np.random.Generator) -> Solution:
        m, k = graph_size(self.n_anchors, self.n_neighbors, data.n_samples)
        S = [scaled_anchor_graph(X_v, kmeans_anchors(X_v, m, rng), k) for X_v in data.views]
        Y = labels.one_hot()
        a = np.full(len(S), 1 / len(S))
        history: list[float] = []
        for _ in range(self.max_iter):
            F = weighted_labels(S, Y, labels.labelled, a**self.r, self.lam)
            costs = np.array([smoothness(S_v, F) for S_v in S])
            a = power_weights(costs, self.r)
            pull = self.lam * np.sum(F[~labels.labelled] ** 2)
            history.append(float(a**self.r @ costs + pull))
            if len(history) > 1 and history[-2] - history[-1] <= self.tol * abs(history[-2]):
                break
        reachable = reachable_samples(hstack(S), labels.labelled)
        return Solution(F, reachable, tuple(history), a, {"n_anchors_": m})


def weighted_labels(
    S: Sequence[csr_array], Y: np.ndarray, labelled: np.ndarray, weights: np.ndarray, lam: float
) -> np.ndarray:
    """Argmin of ``sum_v w_v tr(F^T L_v F) + lam |F_u|^2`` with ``F = Y`` on labelled rows.

    With the views side by side, ``S = [sqrt(w_1) S_1, sqrt(w_2) S_2, ...]``, the unlabelled rows
    solve ``((sum_v w_v + lam) I - S_u S_u^T) F_u = S_u S_l^T Y_l``. ``S_v`` (n_samples,
    n_anchors), ``Y`` and ``F`` (n_samples, n_classes), positive ``weights`` (n_views,).
    """
    stacked = csr_array(hstack([np.sqrt(w_v) * S_v for w_v, S_v in zip(weights, S, strict=True)]))
    S_u = stacked[~labelled]
    diagonal = np.full(S_u.shape[0], weights.sum() + lam)
    F = Y.copy()
    F[~labelled] = solve_anchored(diagonal, S_u, S_u @ (stacked[labelled].T @ Y[labelled]))
    return F
