"""MVAR: one regression per view on shared labels, robust to outlying samples, adaptively weighted.

H. Tao, C. Hou, F. Nie, J. Zhu, D. Yi, "Scalable multi-view semi-supervised classification via
adaptive regression", IEEE Transactions on Image Processing 26(9), 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from viewmend.baselines.base import CompleteViewClassifier, Grid, Solution, check_memory
from viewmend.baselines.maths.ridge import ridge_coefficients
from viewmend.core.common.simplex import power_weights
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.impute.base import ViewImputer
from viewmend.models.inductive import InductiveMixin
from viewmend.parameters import Integer, Real, Rule

# Rounds over which the objective must stand still.
WINDOW = 6


@dataclass(eq=False, repr=False)
class MVARClassifier(InductiveMixin, CompleteViewClassifier):
    """Multi-view classification by adaptive regression; needs complete views.

    Minimises ``sum_v alpha_v^r (sum_i s_i |x_i^v W_v + b_v - f_i| + lam |[W_v; b_v]|^2)`` over
    linear models ``W_v, b_v``, view weights ``alpha`` in the simplex, and classes ``f_i`` (one-hot)
    of the unlabelled samples. The norms are not squared, so that single outliers count less;
    ``s_i`` is ``label_weight`` for labelled samples and 1 for others. New samples are classified by
    ``sum_v alpha_v^r (x^v W_v + b_v)``.

    Parameters
    ----------
    label_weight : float, default=1e4
        Weight of labelled samples. If it is too small and ``lam`` is large, all samples end up in
        one class.
    lam : float, default=100
        Ridge penalty, also on the intercepts.
    r : float > 1, default=2
        The nearer to 1, the more the best view counts.
    tol : float, default=1e-6
        Relative spread of the last six objectives below which the rounds end.
    max_iter, imputer, random_state, view_sizes
        As in `CompleteViewClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_, history_, n_iter_, imputer_
        As in `CompleteViewClassifier`.
    view_weights_ : array (n_views,)
        Weights of the views.
    coefs_ : list of array (n_features_v, n_classes)
        Coefficients of the linear model of every view.
    intercepts_ : list of array (n_classes,)
        Intercepts of the linear model of every view.
    """

    label_weight: float = 1e4
    lam: float = 100.0
    r: float = 2.0
    max_iter: int = 29
    tol: float = 1e-6
    imputer: ViewImputer | None = None
    random_state: int | np.random.Generator | None = None
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "label_weight": Real(0, low_open=True),
        "lam": Real(0, low_open=True),
        "r": Real(1, low_open=True),
        "max_iter": Integer(1),
        "tol": Real(0),
    }
    grid: ClassVar[Grid] = {"label_weight": (1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6)}
    script_grid: ClassVar[Grid] = {"label_weight": (1.0, 1e2, 1e4, 1e6)}

    def _solve(self, data: MultiViewData, labels: Labels, _rng: np.random.Generator) -> Solution:
        side = min(data.n_samples, max(data.n_features) + 1)
        check_memory(3.0 * 8 * side**2, self, f"3 dense arrays of {side} x {side}")
        views = [np.hstack([X_v, np.ones((len(X_v), 1))]) for X_v in data.views]
        Y, labelled = labels.one_hot(), labels.labelled
        s = np.where(labelled, self.label_weight, 1.0)
        W = [labelled_ridge(X_v[labelled], Y[labelled], self.lam) for X_v in views]
        T = np.ones((len(views), len(Y)))
        alpha = np.full(len(views), 1 / len(views))
        history: list[float] = []
        for _ in range(self.max_iter):
            F = np.where(labelled[:, None], Y, best_classes(views, W, T, alpha**self.r))
            T = np.stack(
                [sample_weights(X_v, W_v, F, s) for X_v, W_v in zip(views, W, strict=True)]
            )
            W = [weighted_ridge(X_v, F, t, self.lam) for X_v, t in zip(views, T, strict=True)]
            costs = view_costs(views, W, F, s, self.lam)
            alpha = power_weights(costs, self.r)
            history.append(float(alpha**self.r @ costs))
            if is_still(history, self.tol):
                break
        F = np.where(labelled[:, None], Y, view_scores(views, W, T, alpha**self.r))
        extras = {"coefs_": [W_v[:-1] for W_v in W], "intercepts_": [W_v[-1] for W_v in W]}
        return Solution(F, None, tuple(history), alpha, extras)

    def _score_new(self, data: MultiViewData, _X: Any) -> np.ndarray:
        """Weighted sum of the views' linear models."""
        data = self._prepare_new(data)
        models = zip(
            self.view_weights_**self.r, data.views, self.coefs_, self.intercepts_, strict=True
        )
        return sum(a * (X_v @ W_v + b_v) for a, X_v, W_v, b_v in models)


def labelled_ridge(X_l: np.ndarray, Y_l: np.ndarray, lam: float) -> np.ndarray:
    """Argmin over ``[W; b]`` of ``|X_l W + 1 b^T - Y_l|^2 + lam |W|^2``; here ``b`` is free.

    The last column of ``X_l`` (n_labelled, n_features + 1) is all ones, and left out.
    """
    centre, mean = X_l[:, :-1].mean(axis=0), Y_l.mean(axis=0)
    W = weighted_ridge(X_l[:, :-1] - centre, Y_l - mean, np.ones(len(X_l)), lam)
    return np.vstack([W, mean - centre @ W])


def view_scores(
    views: Sequence[np.ndarray], W: Sequence[np.ndarray], T: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """``sum_v weights_v t_v(i) x_i^v W_v``, (n_samples, n_classes)."""
    return np.sum(
        [a * t[:, None] * (X_v @ W_v) for a, t, X_v, W_v in zip(weights, T, views, W, strict=True)],
        axis=0,
    )


def best_classes(
    views: Sequence[np.ndarray], W: Sequence[np.ndarray], T: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Argmin over one-hot ``f_i`` of ``sum_v weights_v t_v(i) |x_i^v W_v - f_i|^2``."""
    scores = view_scores(views, W, T, weights)
    return np.eye(scores.shape[1])[np.argmax(scores, axis=1)]


def sample_weights(X_v: np.ndarray, W_v: np.ndarray, F: np.ndarray, s: np.ndarray) -> np.ndarray:
    """``s_i / (2 |residual_i|)``, which make squared norms touch the plain ones from above."""
    residual = X_v @ W_v - F
    return s / (2 * np.sqrt(np.einsum("ij,ij->i", residual, residual) + np.finfo(float).eps))


def weighted_ridge(X: np.ndarray, F: np.ndarray, t: np.ndarray, lam: float) -> np.ndarray:
    """Argmin over ``W`` of ``sum_i t_i |x_i W - f_i|^2 + lam |W|^2``, with positive ``t``."""
    root = np.sqrt(t)[:, None]
    return ridge_coefficients(root * X, root * F, lam)


def view_costs(
    views: Sequence[np.ndarray],
    W: Sequence[np.ndarray],
    F: np.ndarray,
    s: np.ndarray,
    lam: float,
) -> np.ndarray:
    """``sum_i s_i |x_i^v W_v - f_i| + lam |W_v|^2`` of every view."""
    return np.array(
        [
            s @ np.linalg.norm(X_v @ W_v - F, axis=1) + lam * np.sum(W_v**2)
            for X_v, W_v in zip(views, W, strict=True)
        ]
    )


def is_still(history: Sequence[float], tol: float) -> bool:
    """Whether the last objectives differ by less than ``tol`` of the last one."""
    last = history[-WINDOW:]
    return len(last) == WINDOW and max(last) - min(last) <= tol * abs(last[-1])
