"""Labels that are smooth on a learned graph and linear in the features: FMSEL and CFMSC.

Both methods minimise, over labels ``F``, a graph ``S`` with rows in the simplex and view weights
``alpha`` in the simplex::

    structure |S - sum_v alpha_v A_v|^2 + smoothness tr(F^T L F) + regression tr(F^T R F)
        + sum_i label_weights_i |f_i - y_i|^2

with ``L`` the Laplacian of ``(S + S^T) / 2`` and ``tr(F^T R F)`` what is left of a ridge
regression of ``F`` on the features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from scipy.sparse import csr_array, diags_array

from viewmend.baselines.maths.learned_graph import learn_graph, with_entries
from viewmend.baselines.maths.ridge import RegressionResidual
from viewmend.core.common.linear_systems import column_ratio
from viewmend.core.common.simplex import simplex_qp
from viewmend.core.graphs.spreading import label_gaps, laplacian

Apply = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class FlexibleProblem:
    """The objective at the head of this module, in its symbols; its factors are positive.

    The support (n_samples, n_samples) stores an entry wherever some view's graph does; ``A``
    (n_views, n_stored) are the entries of every view's graph there. ``Y`` (n_samples, n_classes),
    ``label_weights`` (n_samples,).
    """

    support: csr_array
    A: np.ndarray
    R: RegressionResidual
    Y: np.ndarray
    label_weights: np.ndarray
    structure: float
    smoothness: float
    regression: float


@dataclass(frozen=True, eq=False)
class FlexibleResult:
    """Labels (n_samples, n_classes), graph, view weights (n_views,), objective per round."""

    F: np.ndarray
    S: csr_array
    alpha: np.ndarray
    history: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Splitting:
    """Degrees (n_samples,) and the inverse of the label system with them in place of ``L``."""

    degrees: np.ndarray
    inverse: Apply


def minimise_flexible(problem: FlexibleProblem, max_iter: int, tol: float) -> FlexibleResult:
    """Labels, graph and view weights in turn, until the objective changes by less than ``tol``."""
    n_views = len(problem.A)
    alpha = np.full(n_views, 1 / n_views)
    S, F = fused_view_graph(problem, alpha), problem.Y
    splitting = label_splitting(problem)
    history: list[float] = []
    for _ in range(max_iter):
        F = update_labels(problem, splitting, S, F)
        S = update_graph(problem, alpha, F)
        alpha = update_view_weights(problem, S)
        history.append(flexible_objective(problem, F, S, alpha))
        if len(history) > 1 and abs(history[-2] - history[-1]) <= tol * abs(history[-2]):
            break
    return FlexibleResult(F, S, alpha, tuple(history))


def fused_view_graph(problem: FlexibleProblem, alpha: np.ndarray) -> csr_array:
    """``sum_v alpha_v A_v`` on the common support."""
    return with_entries(problem.support, alpha @ problem.A)


def label_splitting(problem: FlexibleProblem) -> Splitting:
    """The label system without its graph weights, which serves every graph on the support.

    ``smoothness D + U + regression R``, with the degrees ``D`` of the views' mean graph, is a
    diagonal less a matrix of low rank.
    """
    n_views = len(problem.A)
    degrees = laplacian(fused_view_graph(problem, np.full(n_views, 1 / n_views))).diagonal()
    diagonal = problem.smoothness * degrees + problem.label_weights + problem.regression
    inverse = _low_rank_inverse(diagonal, problem.R.basis, problem.regression * problem.R.shares)
    return Splitting(degrees, inverse)


def update_labels(
    problem: FlexibleProblem,
    splitting: Splitting,
    S: csr_array,
    start: np.ndarray,
    tol: float = 1e-6,
) -> np.ndarray:
    """Argmin over ``F``: ``(smoothness L + U + regression R) F = U Y``, ``U`` the label weights.

    Conjugate gradients, preconditioned by the splitting. A diagonal would not do: labelled rows,
    which weigh up to 1e6 more, and features that explain nearly everything would stall them.
    """
    L, U = laplacian(S), problem.label_weights[:, None]
    smoothness, regression = problem.smoothness, problem.regression
    # What the splitting leaves out.
    rest = csr_array(smoothness * (L - diags_array(splitting.degrees)))

    def residual(F: np.ndarray) -> np.ndarray:
        linear = regression * (problem.R @ F)
        return np.asarray(U * (problem.Y - F) - smoothness * (L @ F) - linear)

    return _split_gradients(rest, splitting.inverse, residual, problem.Y, start, tol)


def update_graph(problem: FlexibleProblem, alpha: np.ndarray, F: np.ndarray) -> csr_array:
    """Argmin over ``S``: rows ``fused_i - smoothness / (4 structure) |f_i - f_j|^2`` projected."""
    return learn_graph(fused_view_graph(problem, alpha), F, problem.smoothness / problem.structure)


def update_view_weights(problem: FlexibleProblem, S: csr_array) -> np.ndarray:
    """Argmin over ``alpha`` in the simplex of ``|S - sum_v alpha_v A_v|^2``."""
    return simplex_qp(problem.A @ problem.A.T, problem.A @ S.data)


def flexible_objective(
    problem: FlexibleProblem, F: np.ndarray, S: csr_array, alpha: np.ndarray
) -> float:
    """The objective at the head of this module."""
    fit = np.sum((S.data - alpha @ problem.A) ** 2)
    smooth = S.data @ label_gaps(S, F) / 2
    left = np.sum(F * (problem.R @ F))
    labels = problem.label_weights @ np.sum((F - problem.Y) ** 2, axis=1)
    return float(
        problem.structure * fit + problem.smoothness * smooth + problem.regression * left + labels
    )


def _low_rank_inverse(diagonal: np.ndarray, basis: np.ndarray, scale: np.ndarray) -> Apply:
    """``(diag(diagonal) - basis diag(scale) basis^T)^{-1}`` as a function (Woodbury)."""
    scaled = basis / diagonal[:, None]
    capacitance = -(basis.T @ scaled)
    capacitance[np.diag_indices_from(capacitance)] += 1 / scale
    factor = scipy.linalg.cho_factor(capacitance, overwrite_a=True, check_finite=False)

    def apply(F: np.ndarray) -> np.ndarray:
        inner = scipy.linalg.cho_solve(factor, scaled.T @ F, check_finite=False)
        return np.asarray(F / diagonal[:, None] + scaled @ inner)

    return apply


def _split_gradients(
    rest: csr_array,
    inverse: Apply,
    residual_of: Apply,
    reference: np.ndarray,
    start: np.ndarray,
    tol: float,
    max_iter: int = 1000,
) -> np.ndarray:
    """Conjugate gradients for ``(P + rest) F = right``, where ``P`` is applied inverted alone.

    Columns are solved to ``tol`` of the error of ``reference``, errors in the norm of the
    preconditioned residual, which is close to that of the energy.
    """
    first = residual_of(reference)
    enough = tol**2 * np.einsum("ij,ij->j", first, inverse(first))
    F = start.copy()
    residual = residual_of(F)
    step = inverse(residual)
    # P @ direction follows the recurrence of direction, so that no product with P is needed.
    direction, P_direction = step, residual.copy()
    energy = np.einsum("ij,ij->j", residual, step)
    for _ in range(max_iter):
        if np.all(energy <= enough):
            break
        curved = P_direction + rest @ direction
        length = column_ratio(energy, np.einsum("ij,ij->j", direction, curved))
        F += length * direction
        residual -= length * curved
        step = inverse(residual)
        energy_old, energy = energy, np.einsum("ij,ij->j", residual, step)
        conjugacy = column_ratio(energy, energy_old)
        direction = step + conjugacy * direction
        P_direction = residual + conjugacy * P_direction
    return F
