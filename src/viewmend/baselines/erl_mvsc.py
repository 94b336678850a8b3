"""ERL-MVSC: an embedding regulariser that is learned close to the views' Laplacians.

A. Huang, Z. Wang, Y. Zheng, T. Zhao, C.-W. Lin, "Embedding regularizer learning for multi-view
semi-supervised classification", IEEE Transactions on Image Processing, 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csc_array, csr_array, diags_array, eye_array
from scipy.sparse.linalg import splu
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import NearestNeighbors

from viewmend.baselines.base import ROUND_RULES, CompleteViewClassifier, Solution, check_memory
from viewmend.core.common.linear_systems import block_cg
from viewmend.core.common.scaling import standardise_rows
from viewmend.core.common.simplex import power_weights
from viewmend.core.graphs.spreading import joined_to_label, normalise_graph, weighted_sum
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.impute.base import ViewImputer
from viewmend.parameters import OneOf, Real, Rule

# Where the released code and the stated objective part: for (beta, delta) the factor of M + M^T in
# the step of the labels, and that of Y Y^T in the step of the embedding.
VARIANTS: dict[str, Callable[[float, float], tuple[float, float]]] = {
    "coded": lambda beta, delta: (beta * delta / 2, beta / 2),
    "derived": lambda beta, delta: (beta / (2 * delta), -beta / 2),
}


@dataclass(eq=False, repr=False)
class ERLMVSCClassifier(CompleteViewClassifier):
    """Embedding regulariser learning; needs complete views or an imputer.

    States the objective ``1/2 sum_v omega_v^alpha |M - S_v|^2 + beta/2 tr(Y^T M Y)
    + gamma |M|_{2,1} + delta/2 |Y - L|^2`` over ``M`` (n_samples, n_samples), scores ``Y`` and
    ``omega`` on the simplex, where ``L`` are the given labels and ``S_v`` the Laplacian of view v,
    in whose graph labelled samples are joined if and only if they share their class.

    ``M`` is a diagonal times the sum of a sparse matrix and one of rank n_classes, and never
    formed: a round costs as much as a few passes over the views' graphs.

    Parameters
    ----------
    alpha : float > 1, default=2
        The larger, the more even the view weights.
    beta, gamma, delta : float, default=1, 1, 10
        Weights of the terms of the objective.
    variant : {"coded", "derived"}, default="coded"
        "derived" uses the stationary points of the stated objective, which is unbounded below: if
        ``beta`` is large for the data, it finds no minimum. The released code differs in a factor
        (``beta delta / 2`` for ``beta / (2 delta)`` in the step of ``Y``) and in a sign (plus
        ``beta / 2 Y Y^T`` for minus in that of ``M``), and classifies better.
    tol : float, default=1e-4
        Change of the objective below which the rounds end. Those of the released code may not
        converge: with many labels in a class they diverge. If ``max_iter`` ends them, the scores
        are those of the round with the smallest objective.
    n_neighbors, max_iter, imputer, random_state, view_sizes
        As in `CompleteViewClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_, n_iter_, imputer_
        As in `CompleteViewClassifier`.
    view_weights_ : array (n_views,)
        ``omega``.
    history_ : tuple of float
        The stated objective after each round.
    """

    alpha: float = 2.0
    beta: float = 1.0
    gamma: float = 1.0
    delta: float = 10.0
    variant: str = "coded"
    n_neighbors: int = 20
    max_iter: int = 40
    tol: float = 1e-4
    imputer: ViewImputer | None = None
    random_state: int | np.random.Generator | None = None
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "alpha": Real(1, low_open=True),
        "beta": Real(0),
        "gamma": Real(0),
        "delta": Real(0, low_open=True),
        "variant": OneOf(*VARIANTS),
        **ROUND_RULES,
    }

    def _solve(self, data: MultiViewData, labels: Labels, _rng: np.random.Generator) -> Solution:
        L = labels.one_hot()
        smoothing, pull = VARIANTS[self.variant](self.beta, self.delta)
        S = [informed_laplacian(X_v, L, labels.labelled, self.n_neighbors) for X_v in data.views]
        omega = np.full(data.n_views, 1 / data.n_views)
        M = Embedding(np.ones(data.n_samples), weighted_sum(omega, S), L, 0.0)
        D = np.ones(data.n_samples)
        history: list[float] = []
        best = L, omega
        for _ in range(self.max_iter):
            Y = embed_labels(M, L, smoothing, self)
            M = learn_embedding(S, omega**self.alpha, Y, self.gamma * D, pull)
            D = 1 / (2 * M.row_norms())
            omega = power_weights(M.squared_distances(S), self.alpha)
            fit = omega**self.alpha @ M.squared_distances(S) / 2
            history.append(fit + regularisers(M, Y, L, (self.beta, self.gamma, self.delta)))
            best = (Y, omega) if history[-1] == min(history) else best
            if len(history) > 1 and abs(history[-2] - history[-1]) < self.tol:
                best = Y, omega
                break
        Y, omega = best
        reachable = joined_to_label(weighted_sum(np.ones(data.n_views), S), labels.labelled)
        return Solution(lift_rows(Y), reachable, tuple(history), omega)


@dataclass(frozen=True, eq=False)
class Embedding:
    """``M = diag(r) (S + pull Y Y^T)``, by its parts; ``S`` (n_samples, n_samples) is symmetric."""

    r: np.ndarray
    S: csr_array
    Y: np.ndarray
    pull: float

    def __matmul__(self, B: np.ndarray) -> np.ndarray:
        return self.r[:, None] * (self.S @ B + self.pull * (self.Y @ (self.Y.T @ B)))

    def row_norms(self) -> np.ndarray:
        """``|m_i|`` (n_samples,), kept off zero, where its inverse would be infinite."""
        cross = self.S @ self.Y + self.pull / 2 * (self.Y @ (self.Y.T @ self.Y))
        squares = self.S.multiply(self.S).sum(axis=1)
        squares = squares + 2 * self.pull * np.einsum("ij,ij->i", self.Y, cross)
        return np.maximum(self.r * np.sqrt(np.maximum(squares, 0)), 1e-12)

    def squared_distances(self, matrices: Sequence[csr_array]) -> np.ndarray:
        """``|M - S_v|^2`` to every one of some sparse symmetric matrices, (n_views,)."""
        square = np.sum(self.row_norms() ** 2)
        return np.array([square - self._gain(S_v) for S_v in matrices]).clip(0)

    def _gain(self, S_v: csr_array) -> float:
        """``2 <M, S_v> - |S_v|^2``."""
        rows = self.S.multiply(S_v).sum(axis=1)
        rows = rows + self.pull * np.einsum("ij,ij->i", self.Y, S_v @ self.Y)
        return 2 * self.r @ rows - np.sum(S_v.data**2)


def informed_laplacian(X_v: np.ndarray, L: np.ndarray, labelled: np.ndarray, k: int) -> csr_array:
    """Normalised Laplacian of a view whose labelled samples are joined by their classes alone.

    ``L`` (n_samples, n_classes) has one-hot rows of labelled samples, zero rows of the others.
    """
    W = normalise_graph(heat_graph(standardise_rows(X_v), k)).tocoo()
    # Among labelled samples the classes decide, and not the neighbours.
    others = ~(labelled[W.row] & labelled[W.col])
    classes = csr_array(L)
    W = csr_array((W.data[others], (W.row[others], W.col[others])), W.shape) + classes @ classes.T
    scale = diags_array(1 / np.sqrt(W.sum(axis=1) + 1e-8))
    return csr_array(eye_array(W.shape[0]) - scale @ W @ scale)


def heat_graph(X: np.ndarray, k: int) -> csr_array:
    """``exp(-|x_i - x_j|^2 / (2 t^2))`` where i is a nearest neighbour of j or j of i.

    ``t`` is the mean distance of two samples.
    """
    n_samples = X.shape[0]
    k = min(k, n_samples - 1)
    total = sum(float(block.sum()) for block in pairwise_distances_chunked(X))
    t = max(total / (n_samples * (n_samples - 1)), np.finfo(float).tiny ** 0.25)
    distances, columns = NearestNeighbors(n_neighbors=k).fit(X).kneighbors()
    weights = np.exp(-(distances**2) / (2 * t**2))
    starts = np.arange(0, weights.size + 1, k)
    graph = csr_array((weights.ravel(), columns.ravel(), starts), shape=(n_samples, n_samples))
    return csr_array(graph.maximum(graph.T))


def embed_labels(M: Embedding, L: np.ndarray, smoothing: float, method: object) -> np.ndarray:
    """``(I + smoothing (M + M^T))^{-1} L``, the step of the scores ``Y``.

    The system is sparse, ``A = I + smoothing (R S + S R)``, but for ``U C U^T`` of rank
    2 n_classes: Woodbury's identity leaves systems with ``A`` and a small one.
    """
    n_classes = L.shape[1]
    R = diags_array(M.r)
    A = csr_array(eye_array(len(L)) + smoothing * (R @ M.S + M.S @ R))
    U = np.hstack([R @ M.Y, M.Y])
    X = solve_symmetric(A, np.hstack([L, U]), method)
    X_L, X_U = X[:, :n_classes], X[:, n_classes:]
    C = smoothing * M.pull * np.kron([[0, 1], [1, 0]], np.eye(n_classes))
    return X_L - X_U @ np.linalg.solve(np.eye(2 * n_classes) + C @ (U.T @ X_U), C @ (U.T @ X_L))


def solve_symmetric(A: csr_array, B: np.ndarray, method: object) -> np.ndarray:
    """Solution of ``A X = B`` by conjugate gradients, or by factors where ``A`` is indefinite."""
    if A.diagonal().min() > 0:
        # Scores fade with every edge from a label: the small ones count.
        X = block_cg(A, B, tol=1e-12)
        if np.linalg.norm(A @ X - B) <= 1e-8 * np.linalg.norm(B):
            return X
    n_samples = len(B)
    # The factors of a neighbour graph are nearly full.
    check_memory(2 * 8 * n_samples**2, method, f"2 factors of {n_samples} x {n_samples}")
    return splu(csc_array(A)).solve(B)


def learn_embedding(
    S: Sequence[csr_array], powers: np.ndarray, Y: np.ndarray, shrinkage: np.ndarray, pull: float
) -> Embedding:
    """``diag(sum_v powers_v + 2 shrinkage)^{-1} (sum_v powers_v S_v + pull Y Y^T)``.

    With ``pull = -beta / 2`` the argmin over ``M`` of ``1/2 sum_v powers_v |M - S_v|^2
    + beta/2 tr(Y^T M Y) + sum_i shrinkage_i |m_i|^2``, the last being a bound of the l2,1 norm.
    ``powers`` (n_views,) are ``omega_v^alpha``, ``shrinkage`` (n_samples,) is ``gamma D_ii`` with
    ``D_ii = 1 / (2 |m_i|)`` of the round before.
    """
    return Embedding(1 / (powers.sum() + 2 * shrinkage), weighted_sum(powers, S), Y, pull)


def regularisers(
    M: Embedding, Y: np.ndarray, L: np.ndarray, factors: tuple[float, float, float]
) -> float:
    """``beta/2 tr(Y^T M Y) + gamma |M|_{2,1} + delta/2 |Y - L|^2``."""
    beta, gamma, delta = factors
    smoothness = np.einsum("ij,ij->", Y, M @ Y)
    return float(
        beta / 2 * smoothness + gamma * M.row_norms().sum() + delta / 2 * np.sum((Y - L) ** 2)
    )


def lift_rows(Y: np.ndarray) -> np.ndarray:
    """Rows without a positive score, less their smallest entry; the largest stays the largest."""
    hopeless = Y.max(axis=1, keepdims=True) <= 0
    return np.where(hopeless, Y - Y.min(axis=1, keepdims=True), Y)
