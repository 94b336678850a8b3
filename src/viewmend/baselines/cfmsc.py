"""CFMSC: classification by projections of the views and their graphs, fused.

B. Jiang, C. Zhang, Y. Zhong, Y. Liu, Y. Zhang, X. Wu, W. Sheng, "Adaptive collaborative fusion for
multi-view semi-supervised classification", Information Fusion 96, 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from viewmend.baselines.base import (
    ROUND_RULES,
    CompleteViewClassifier,
    Grid,
    Solution,
    check_memory,
)
from viewmend.baselines.maths.flexible import FlexibleProblem, minimise_flexible
from viewmend.baselines.maths.learned_graph import on_common_support
from viewmend.baselines.maths.ridge import regression_residual
from viewmend.core.graphs.neighbours import directed_neighbour_graph
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.impute.base import ViewImputer
from viewmend.parameters import Real, Rule

# Pull of the labelled rows to their labels, and of the others to zero.
LABELLED_WEIGHT = 1e4
UNLABELLED_WEIGHT = 1e-4


@dataclass(eq=False, repr=False)
class CFMSCClassifier(CompleteViewClassifier):
    """Adaptive collaborative fusion of projections and graphs; needs complete views.

    Minimises ``|sum_v X_v W_v + 1 b^T - F|^2 + lam sum_v |W_v|^2 + beta tr(F^T L F)
    + gamma |S - sum_v alpha_v A_v|^2 + tr((F - Y)^T U (F - Y))`` over labels ``F``, projections
    ``W_v, b``, a graph ``S`` with rows in the simplex and Laplacian ``L``, and view weights
    ``alpha`` in the simplex. ``A_v`` are the views' neighbour graphs; ``U`` is 1e4 for labelled
    samples and 1e-4 for others.

    Re-derived: neither the paper's text nor its code is public, so the objective follows its
    summary and the parameters of its call in the experiments of AGF-TI. It may differ from the
    original more than the other methods.

    Parameters
    ----------
    lam : float, default=1
        Ridge penalty of the projections.
    beta : float, default=1
        Weight of the smoothness of the labels on the graph.
    gamma : float, default=1
        How close the graph stays to the fused graphs. Below ``beta``, labels dominate the graph.
    n_neighbors, max_iter, tol, imputer, random_state, view_sizes
        As in `CompleteViewClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_, history_, n_iter_, imputer_
        As in `CompleteViewClassifier`.
    view_weights_ : array (n_views,)
        Weights of the views.
    graph_ : sparse array (n_samples, n_samples)
        The learned ``S``.
    """

    lam: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0
    n_neighbors: int = 7
    max_iter: int = 30
    tol: float = 1e-5
    imputer: ViewImputer | None = None
    random_state: int | np.random.Generator | None = None
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "lam": Real(0, low_open=True),
        "beta": Real(0, low_open=True),
        "gamma": Real(0, low_open=True),
        **ROUND_RULES,
    }
    grid: ClassVar[Grid] = dict.fromkeys(
        ("lam", "beta", "gamma"), (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
    )
    script_grid: ClassVar[Grid] = grid

    def _solve(self, data: MultiViewData, labels: Labels, _rng: np.random.Generator) -> Solution:
        X = np.hstack(data.views)
        rank = min(X.shape)
        check_memory(4.0 * 8 * len(X) * rank, self, f"4 dense arrays of {len(X)} x {rank}")
        graphs = [directed_neighbour_graph(X_v, self.n_neighbors) for X_v in data.views]
        problem = FlexibleProblem(
            *on_common_support(graphs),
            R=regression_residual(X, self.lam),
            Y=labels.one_hot(),
            label_weights=np.where(labels.labelled, LABELLED_WEIGHT, UNLABELLED_WEIGHT),
            structure=self.gamma,
            smoothness=self.beta,
            regression=1.0,
        )
        minimum = minimise_flexible(problem, self.max_iter, self.tol)
        return Solution(minimum.F, None, minimum.history, minimum.alpha, {"graph_": minimum.S})
