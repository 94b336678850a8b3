"""FMSEL: one graph learned from the views, and labels that fit a linear model.

Z. Li, Q. Qiang, B. Zhang, F. Wang, F. Nie, "Flexible multi-view semi-supervised learning with
unified graph", Neural Networks 142, 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

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
from viewmend.models.inductive import InductiveMixin
from viewmend.parameters import Real, Rule

# Weight that holds the labelled rows at their labels.
LABEL_WEIGHT = 1e6


@dataclass(eq=False, repr=False)
class FMSELClassifier(InductiveMixin, CompleteViewClassifier):
    """Flexible multi-view semi-supervised learning with a unified graph; needs complete views.

    Minimises ``|S - sum_v alpha_v A_v|^2 + lam1 [tr(F^T L F) + tr((F - Y)^T U (F - Y))]
    + lam2 [|X B + 1 b^T - F|^2 + xi |B|^2]`` over labels ``F``, a graph ``S`` with rows in the
    simplex and Laplacian ``L``, view weights ``alpha`` in the simplex and a linear model ``B, b``
    of the concatenated views ``X``. ``A_v`` are the views' neighbour graphs; ``U`` is 1e6 for
    labelled samples and 0 for others. The linear model classifies new samples.

    Re-derived: the paper's text is not public, so the objective follows its abstract and the
    parameters of its call in the experiments of AGF-TI.

    Parameters
    ----------
    lam1 : float, default=0.1
        Weight of the smoothness of the labels on the graph. From about 100 on, labels dominate the
        graph.
    lam2 : float, default=0.1
        Weight of the linear model.
    xi : float, default=0.1
        Ridge penalty of the linear model.
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
    coef_ : array (n_features, n_classes)
        Coefficients ``B`` of the linear model.
    intercept_ : array (n_classes,)
        Intercepts ``b`` of the linear model.
    """

    lam1: float = 0.1
    lam2: float = 0.1
    xi: float = 0.1
    n_neighbors: int = 7
    max_iter: int = 30
    tol: float = 1e-5
    imputer: ViewImputer | None = None
    random_state: int | np.random.Generator | None = None
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "lam1": Real(0, low_open=True),
        "lam2": Real(0, low_open=True),
        "xi": Real(0, low_open=True),
        **ROUND_RULES,
    }
    grid: ClassVar[Grid] = dict.fromkeys(("lam1", "lam2", "xi"), (1e-6, 1e-2, 1.0, 1e2, 1e6))
    script_grid: ClassVar[Grid] = {"lam1": (0.1,), "lam2": (0.1, 10.0), "xi": (1e-3, 0.1)}

    def _solve(self, data: MultiViewData, labels: Labels, _rng: np.random.Generator) -> Solution:
        X = np.hstack(data.views)
        rank = min(X.shape)
        check_memory(4.0 * 8 * len(X) * rank, self, f"4 dense arrays of {len(X)} x {rank}")
        graphs = [directed_neighbour_graph(X_v, self.n_neighbors) for X_v in data.views]
        problem = FlexibleProblem(
            *on_common_support(graphs),
            R=regression_residual(X, self.xi),
            Y=labels.one_hot(),
            label_weights=self.lam1 * LABEL_WEIGHT * labels.labelled,
            structure=1.0,
            smoothness=self.lam1,
            regression=self.lam2,
        )
        minimum = minimise_flexible(problem, self.max_iter, self.tol)
        coefficients, intercept = problem.R.coefficients(minimum.F)
        extras = {"graph_": minimum.S, "coef_": coefficients, "intercept_": intercept}
        return Solution(minimum.F, None, minimum.history, minimum.alpha, extras)

    def _score_new(self, data: MultiViewData, _X: Any) -> np.ndarray:
        """Predictions of the linear model."""
        data = self._prepare_new(data)
        return np.hstack(data.views) @ self.coef_ + self.intercept_
