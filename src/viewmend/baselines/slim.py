"""SLIM: a sparse linear classifier per view, and shared labels that reproduce similarities.

Y. Yang, D.-C. Zhan, X.-R. Sheng, Y. Jiang, "Semi-supervised multi-modal learning with incomplete
modalities", IJCAI 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from scipy.sparse import csr_array, eye_array

from viewmend.baselines.base import ROUND_RULES, BaselineClassifier, Grid, Solution, check_memory
from viewmend.baselines.maths.ridge import ridge_coefficients
from viewmend.core.common.linear_systems import harmonic_labels
from viewmend.core.graphs.neighbours import neighbour_graph
from viewmend.core.graphs.spreading import normalise_graph
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.parameters import Real, Rule

# Coefficients (n_features, n_classes) and intercepts (n_classes,) of a view.
Model: TypeAlias = tuple[np.ndarray, np.ndarray]
# Under the root of the norm of a row, which has no derivative at zero otherwise.
SMOOTHING = 1e-8
# Steps of gradient descent on the labels in each round.
N_STEPS = 10


@dataclass(eq=False, repr=False)
class SLIMClassifier(BaselineClassifier):
    """Semi-supervised learning with incomplete modalities; needs no imputation.

    Minimises over the views ``v``, each with the ``n_v`` samples that it has,
    ``sum_v (1/n_v) |X_v W_v + 1 b_v^T - F_v|^2 + lam1 |W_v|_{2,1}
    + (lam2/n_v) |S_v - F_v F_v^T|^2``: linear classifiers ``W_v, b_v`` with few used features, and
    the labels ``F`` of the unlabelled samples, ``F_v`` its rows of view ``v``. ``S_v`` is the
    normalised neighbour graph of the view.

    Re-derived: the paper's code is not public, so the similarity term and the norm follow its
    description and the parameters of its call in the experiments of AGF-TI.

    Parameters
    ----------
    lam1 : float, default=1
        Weight of the penalty that makes the classifiers use few features.
    lam2 : float, default=1
        Weight of the similarities. If it is small and ``lam1`` is above 0.01, all labels drift to
        one class.
    n_neighbors, max_iter, tol, view_sizes
        As in `BaselineClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_, history_, n_iter_
        As in `BaselineClassifier`.
    coefs_ : list of array (n_features_v, n_classes)
        Coefficients of the linear model of every view.
    intercepts_ : list of array (n_classes,)
        Intercepts of the linear model of every view.
    """

    lam1: float = 1.0
    lam2: float = 1.0
    n_neighbors: int = 7
    max_iter: int = 30
    tol: float = 1e-4
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "lam1": Real(0, low_open=True),
        "lam2": Real(0),
        **ROUND_RULES,
    }
    grid: ClassVar[Grid] = dict.fromkeys(
        ("lam1", "lam2"), (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
    )
    script_grid: ClassVar[Grid] = grid

    def _solve(self, data: MultiViewData, labels: Labels, _rng: np.random.Generator) -> Solution:
        views = observed_views(data, self.n_neighbors)
        side = max(min(view.X.shape) for view in views)
        check_memory(3.0 * 8 * side**2, self, f"3 dense arrays of {side} x {side}")
        Y, labelled = labels.one_hot(), labels.labelled
        F = harmonic_labels(summed_laplacian(views, len(Y)), Y, labelled, ridge=1e-6)
        q = [np.ones(view.X.shape[1]) for view in views]
        step = float(len(Y))
        history: list[float] = []
        for _ in range(self.max_iter):
            models = [fit_view(view, F, q_v, self.lam1) for view, q_v in zip(views, q, strict=True)]
            q = [1 / (2 * row_norms(W_v)) for W_v, _ in models]
            F, step = descend(LabelCost(views, models, self.lam2), F, ~labelled, step)
            penalty = sum(row_norms(W_v).sum() for W_v, _ in models)
            history.append(LabelCost(views, models, self.lam2).value(F) + self.lam1 * penalty)
            if len(history) > 1 and abs(history[-2] - history[-1]) <= self.tol * abs(history[-2]):
                break
        extras = {"coefs_": [W_v for W_v, _ in models], "intercepts_": [b_v for _, b_v in models]}
        return Solution(F, None, tuple(history), extras=extras)


@dataclass(frozen=True, eq=False)
class ObservedView:
    """The samples that a view has: their numbers, features and normalised neighbour graph."""

    rows: np.ndarray
    X: np.ndarray
    S: csr_array


def observed_views(data: MultiViewData, n_neighbors: int) -> list[ObservedView]:
    """Every view as its observed samples and the normalised graph between them."""
    views = []
    for v, X_v in enumerate(data.views):
        rows = np.flatnonzero(data.observed[:, v])
        graph = normalise_graph(neighbour_graph(X_v[rows], n_neighbors))
        views.append(ObservedView(rows, X_v[rows], graph))
    return views


def summed_laplacian(views: Sequence[ObservedView], n_samples: int) -> csr_array:
    """``sum_v (I - S_v)``, each on the samples of its view, (n_samples, n_samples)."""
    total = csr_array((n_samples, n_samples))
    for view in views:
        entries = (eye_array(len(view.rows)) - view.S).tocoo()
        where = (view.rows[entries.row], view.rows[entries.col])
        total = total + csr_array((entries.data, where), total.shape)
    return total


def row_norms(W: np.ndarray) -> np.ndarray:
    """Smoothed Euclidean norms of the rows."""
    return np.sqrt(np.einsum("ij,ij->i", W, W) + SMOOTHING)


def fit_view(view: ObservedView, F: np.ndarray, q: np.ndarray, lam1: float) -> Model:
    """Argmin over ``W, b`` of ``(1/n_v) |X W + 1 b^T - F_v|^2 + lam1 sum_j q_j |w_j|^2``.

    With ``q_j = 1 / (2 |w_j|)`` of the last round this lowers the row-sparse norm, which is the
    largest function below these squares.
    """
    n_v, centre, mean = len(view.rows), view.X.mean(axis=0), F[view.rows].mean(axis=0)
    # Scaled by the root of q, the penalty is a plain ridge.
    X, F_c = (view.X - centre) / np.sqrt(q), F[view.rows] - mean
    W = ridge_coefficients(X, F_c, n_v * lam1) / np.sqrt(q)[:, None]
    return W, mean - centre @ W


class LabelCost:
    """``sum_v (1/n_v) |P_v - F_v|^2 + (lam2/n_v) |S_v - F_v F_v^T|^2``, ``P_v`` the predictions."""

    def __init__(self, views: Sequence[ObservedView], models: Sequence[Model], lam2: float) -> None:
        self.views, self.lam2 = views, lam2
        pairs = zip(views, models, strict=True)
        self.predictions = [view.X @ W_v + b_v for view, (W_v, b_v) in pairs]

    def value(self, F: np.ndarray) -> float:
        total = 0.0
        for view, P in zip(self.views, self.predictions, strict=True):
            F_v = F[view.rows]
            # |F F^T| = |F^T F|, which is small.
            similarity = (
                np.sum(view.S.data**2)
                - 2 * np.sum(F_v * (view.S @ F_v))
                + np.sum((F_v.T @ F_v) ** 2)
            )
            total += (np.sum((P - F_v) ** 2) + self.lam2 * similarity) / len(view.rows)
        return float(total)

    def gradient(self, F: np.ndarray) -> np.ndarray:
        total = np.zeros_like(F)
        for view, P in zip(self.views, self.predictions, strict=True):
            F_v = F[view.rows]
            pull = 4 * self.lam2 * (F_v @ (F_v.T @ F_v) - view.S @ F_v)
            total[view.rows] += (2 * (F_v - P) + pull) / len(view.rows)
        return total


def descend(
    cost: LabelCost, F: np.ndarray, free: np.ndarray, step: float
) -> tuple[np.ndarray, float]:
    """Labels after a few steps of gradient descent over the rows ``free``, by Armijo's rule.

    Returned with the step to start from next time.
    """
    value, first_step = cost.value(F), step
    for _ in range(N_STEPS):
        gradient = np.where(free[:, None], cost.gradient(F), 0.0)
        slope = np.sum(gradient**2)
        while (lower := cost.value(F - step * gradient)) > value - 1e-4 * step * slope:
            step /= 2
            # No step lowers the cost any more: F is stationary up to rounding.
            if step * slope <= 1e-15 * abs(value):
                return F, first_step
        F, value, step = F - step * gradient, lower, 2 * step
    return F, step
