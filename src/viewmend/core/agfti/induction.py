"""Labels of new samples: anchor rows, aligned and fused, then the anchors' soft labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from viewmend.backend.namespace import Array, array_namespace, to_numpy
from viewmend.core.agfti.bipartite import anchor_graph
from viewmend.core.agfti.fusion import Game, best_response
from viewmend.core.agfti.propagation import anchor_scale
from viewmend.core.agfti.state import Problem, Result


@dataclass(frozen=True, eq=False)
class Induction:
    """All that new samples need of a fit; nothing in it grows with the number of samples.

    ``anchors`` are one array (n_anchors, n_features_v) per view, ``anchor_labels`` are
    ``Lambda^{-1/2} Q`` (n_anchors, n_classes); the others as in `Problem` and `Result`.
    """

    anchors: tuple[Array, ...]
    k: int
    lam: float
    beta: float
    alpha: np.ndarray
    T: Array
    anchor_labels: Array

    def converted(self, convert: Callable[[Array], Array]) -> Induction:
        """The same with arrays of another library or on another device."""
        return replace(
            self,
            anchors=tuple(convert(anchors_v) for anchors_v in self.anchors),
            T=convert(self.T),
            anchor_labels=convert(self.anchor_labels),
        )


def induction(problem: Problem, result: Result, anchors: Sequence[Array], k: int) -> Induction:
    """Keep of a solved problem what new samples need."""
    anchor_labels = anchor_scale(result.P)[:, None] * result.Q
    return Induction(
        tuple(anchors), k, problem.lam, problem.beta, result.alpha, result.T, anchor_labels
    )


def induce_labels(fit: Induction, views: Sequence[Array], observed: Array) -> Array:
    """``f = p Lambda^{-1/2} Q``: what propagation gives an unlabelled sample, up to its scale.

    Takes ``views`` (n_new, n_features_v each) and ``observed`` (n_new, n_views). Returns
    (n_new, n_classes).
    """
    return fused_rows(fit, views, observed) @ fit.anchor_labels


def fused_rows(fit: Induction, views: Sequence[Array], observed: Array) -> Array:
    """Rows ``p`` of the fused graph: projection of ``lam sum_v alpha_v^2 z_v T_v / (2 beta)``.

    The sum runs over the views a sample has, scaled up so that their weights add up to those of
    all views. This is the start of ``P`` in Algorithm 2, where no soft label is known yet.
    """
    xp = array_namespace(*views)
    weights = fit.alpha**2
    # (n_new,): the total weight of the views that a sample has.
    seen_weight = to_numpy(observed) @ weights
    like = {"dtype": fit.T.dtype, "device": fit.T.device}
    fused = xp.zeros((views[0].shape[0], fit.T.shape[1]), **like)
    for v, (X_v, anchors_v) in enumerate(zip(views, fit.anchors, strict=True)):
        seen = observed[:, v]
        z = xp.astype(anchor_graph(X_v[seen], anchors_v, fit.k), fit.T.dtype, copy=False)
        share = weights[v] * weights.sum() / seen_weight[to_numpy(seen)]
        fused[seen] += xp.asarray(share, **like)[:, None] * (z @ fit.T[v, ...])
    # A game of one view with weight one: the sum above already holds the weights.
    game = Game(fused[None, ...], xp.zeros_like(fused), fit.lam, fit.beta)
    return best_response(game, np.ones(1))
