"""FMSSL: a bipartite graph learned from those of all views, together with the labels.

B. Zhang, Q. Qiang, F. Wang, F. Nie, "Fast multi-view semi-supervised learning with learned graph",
IEEE Transactions on Knowledge and Data Engineering 34(1), 2022.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.sparse import csr_array, diags_array

from viewmend.baselines.base import ROUND_RULES, CompleteViewClassifier, Grid, Solution
from viewmend.baselines.maths.anchored import solve_anchored
from viewmend.baselines.maths.learned_graph import learn_graph
from viewmend.core.agfti.anchor_count import graph_size, largest_power_of_two
from viewmend.core.agfti.anchors import balanced_hierarchical
from viewmend.core.agfti.bipartite import anchor_graph
from viewmend.core.agfti.propagation import anchor_scale, reachable_samples
from viewmend.core.common.simplex import simplex_qp
from viewmend.core.graphs.spreading import label_gaps, weighted_sum
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.exceptions import InvalidParameterError
from viewmend.impute.base import ViewImputer
from viewmend.parameters import AnyOf, Integer, OneOf, Real, Rule

# The paper takes 256 anchors, and 1024 from 10 000 samples on.
MANY_SAMPLES, FEW_ANCHORS, MANY_ANCHORS = 10_000, 256, 1024
# Rounds before the stopping rule is asked.
LEAST_ROUNDS = 3


@dataclass(eq=False, repr=False)
class FMSSLClassifier(CompleteViewClassifier):
    """Fast multi-view semi-supervised learning with a learned graph (FMSSL).

    Minimises, over a bipartite graph ``P`` between samples and anchors with rows on the simplex,
    view weights ``d`` on the simplex, and soft labels ``F`` of samples and ``G`` of anchors::

        |P - sum_v d_v B_v|^2 + alpha sum_ij p_ij |f_i - g_j|^2 + u sum_{i labelled} |f_i - y_i|^2

    where ``B_v`` joins samples to anchors in view ``v``, and ``P`` is zero where their weighted sum
    is, so the objective may rise in the round after a view has lost all its weight. The anchors
    correspond across views: they are centres of the concatenated features, of which every view
    takes its columns. Needs complete views, so missing ones are imputed first.

    The paper starts from random ``F`` and ``G``; with a large ``alpha``, ``P`` never recovers from
    that. Here they start at zero, so that the first graph is the mean of the views' graphs.

    Parameters
    ----------
    alpha : float > 0, default=0.01
        How much the labels shape the graph.
    label_strength : float > 0, default=999
        ``u``, how strongly given labels are kept.
    n_anchors : int or "auto", default="auto"
        Number of anchors, a power of two. "auto" is the largest one that is at most a quarter of
        the samples and at most 256, or 1024 from 10 000 samples on. At most the number of samples
        is used.
    n_neighbors : int, default=7
        Number of anchors that a sample is joined to in each view.
    tol : float, default=1e-5
        Change of the objective below which the rounds end.
    max_iter, imputer, random_state, view_sizes
        As in `CompleteViewClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_, history_, n_iter_, imputer_
        As in `CompleteViewClassifier`.
    view_weights_ : array (n_views,)
        ``d``, on the simplex.
    fused_graph_ : sparse array (n_samples, n_anchors)
        ``P``.
    n_anchors_ : int
        Number of anchors that were used.
    """

    alpha: float = 0.01
    label_strength: float = 999.0
    n_anchors: int | Literal["auto"] = "auto"
    n_neighbors: int = 7
    max_iter: int = 100
    tol: float = 1e-5
    imputer: ViewImputer | None = None
    view_sizes: Sequence[int] | None = None
    random_state: int | np.random.Generator | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "alpha": Real(0, low_open=True),
        "label_strength": Real(0, low_open=True),
        "n_anchors": AnyOf(Integer(2), OneOf("auto")),
        **ROUND_RULES,
    }
    grid: ClassVar[Grid] = {"alpha": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)}
    script_grid: ClassVar[Grid] = {"alpha": (1e-4, 1e-2, 1.0, 100.0)}

    def _solve(self, data: MultiViewData, labels: Labels, rng: np.random.Generator) -> Solution:
        m, k = self._graph_size(data.n_samples)
        B = corresponding_graphs(data.views, m, k, rng)
        gram = np.array([[inner(B_u, B_v) for B_v in B] for B_u in B])
        Y, U = labels.one_hot(), self.label_strength * labels.labelled
        d, F, G = np.full(len(B), 1 / len(B)), np.zeros_like(Y), np.zeros((m, labels.n_classes))
        history: list[float] = []
        for _ in range(self.max_iter):
            P = learn_graph(weighted_sum(d, B), F, 2 * self.alpha, G)
            F, G = propagate(P, Y, U, self.alpha)
            d = simplex_qp(gram, np.array([inner(B_v, P) for B_v in B]))
            fit = float(((P - weighted_sum(d, B)) ** 2).sum())
            misfit = float(U @ np.sum((F - Y) ** 2, axis=1))
            history.append(fit + self.alpha * float(P.data @ label_gaps(P, F, G)) + misfit)
            if len(history) >= LEAST_ROUNDS and abs(history[-2] - history[-1]) < self.tol:
                break
        # Entries that the projection set to zero are no edges.
        P.eliminate_zeros()
        reachable = reachable_samples(P, labels.labelled)
        return Solution(F, reachable, tuple(history), d, {"fused_graph_": P, "n_anchors_": m})

    def _graph_size(self, n_samples: int) -> tuple[int, int]:
        asked = self.n_anchors
        if asked != "auto" and asked != (lower := largest_power_of_two(asked)):
            msg = (
                f"n_anchors of FMSSLClassifier must be a power of two, got {asked}; take {lower} "
                f"or {2 * lower}"
            )
            raise InvalidParameterError(msg)
        auto_most = MANY_ANCHORS if n_samples >= MANY_SAMPLES else FEW_ANCHORS
        return graph_size(asked, self.n_neighbors, n_samples, auto_most)


def corresponding_graphs(
    views: Sequence[np.ndarray], n_anchors: int, k: int, rng: np.random.Generator
) -> list[csr_array]:
    """Bipartite graphs (n_samples, n_anchors) of all views to the same anchors."""
    centres = balanced_hierarchical(np.hstack(views), n_anchors, rng)
    ends = np.cumsum([X_v.shape[1] for X_v in views])
    slices = np.split(centres, ends[:-1], axis=1)
    return [csr_array(anchor_graph(X_v, a_v, k)) for X_v, a_v in zip(views, slices, strict=True)]


def inner(A: csr_array, B: csr_array) -> float:
    """``<A, B> = sum_ij a_ij b_ij``."""
    return float((A * B).sum())


def propagate(
    P: csr_array, Y: np.ndarray, U: np.ndarray, alpha: float
) -> tuple[np.ndarray, np.ndarray]:
    """Argmin over ``F, G`` of ``alpha sum_ij p_ij |f_i - g_j|^2 + sum_i u_i |f_i - y_i|^2``.

    Anchors take the mean of their samples, ``G = diag(P^T 1)^{-1} P^T F``, which leaves
    ``(alpha I + U - alpha P diag(P^T 1)^{-1} P^T) F = U Y``. Rows of ``P`` (n_samples, n_anchors)
    sum to one; ``U`` (n_samples,) is positive on labelled rows and zero on the others. ``G``
    (n_anchors, n_classes) has zero rows for anchors without any sample.
    """
    scale = anchor_scale(P.sum(axis=0)[None, :])
    S = csr_array(P @ diags_array(scale))
    F = solve_anchored(alpha + U, np.sqrt(alpha) * S, U[:, None] * Y)
    return F, scale[:, None] * (S.T @ F)
