"""The steps of Algorithm 2, on all rows or on some of them, and which version of each is taken.

Steps that need sums over all rows are in two parts, what is summed and what follows from the sums:
see `propagation`, `graph_fourier`, `alignment` and `fusion`. All others are here, and take a
`State` and a `Problem` of the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace
from viewmend.backend.threads import for_each
from viewmend.core.agfti import released
from viewmend.core.agfti.alignment import align_products
from viewmend.core.agfti.fusion import (
    Fusion,
    Game,
    agreements,
    aligned_graphs,
    best_response,
    fuse,
)
from viewmend.core.agfti.graph_fourier import prox_graph_norm
from viewmend.core.agfti.propagation import label_distances
from viewmend.core.agfti.state import Problem, State
from viewmend.core.agfti.tensor_nuclear import prox_tnn


@dataclass(frozen=True)
class Steps:
    """The updates of Algorithm 2 that have more than one version.

    Attributes
    ----------
    imputed : (Z_v, aim) -> rows on the simplex
        For the missing rows of ``Z_v``; ``aim`` are the arguments of `dispatch.aim_rows`.
    fuse : (game, state, problem) -> Fusion
    shrink : (Y, tau, out) -> (G, norm of G)
    products : (Z, P) -> what is summed over rows for ``align``
    align : (products, T) -> (T, <P, Z_v T_v> of every view)
    rotate : (Z, T, out) -> A
        Graphs over the fused anchors, ``Z_v T_v``.
    rotate_back : (P, T_v) -> rows
        Rows of ``P`` over the anchors of a view, ``P T_v^T``.
    impute : bool
        Whether missing rows of ``Z`` are updated at all.
    residual_counts : bool
        Whether a run that has converged has ``Z = G``, see `residual_scale`.
    """

    imputed: Callable[[Array, tuple[Any, ...]], Array]
    fuse: Callable[[Game, State, Problem], Fusion]
    shrink: Callable[[Array, float, Array], tuple[Array, Array]]
    products: Callable[[Array, Array], Array]
    align: Callable[[Array, Array], tuple[Array, Array]]
    rotate: Callable[[Array, Array, Array], Array]
    rotate_back: Callable[[Array, Array], Array]
    impute: bool = True
    residual_counts: bool = True

    def residual_scale(self, n_views: int, n_samples: int) -> float:
        """What ``|Z - G|`` is measured by in the stopping test; infinite where it does not count.

        Rows of ``Z`` sum to one, so that the root of their number makes the residual one of a
        typical row, whatever the sizes of the data.
        """
        return float(n_views * n_samples) ** 0.5 if self.residual_counts else math.inf


def first_graph(Z: Array, alpha: np.ndarray, problem: Problem) -> Array:
    """``P`` at the start: with ``H = 0``, for no label is known, and ``T_v = I``."""
    no_H = array_namespace(Z).zeros_like(Z[0, ...])
    return best_response(Game(Z, no_H, problem.lam, problem.beta), alpha)


def impute_graphs(state: State, problem: Problem, steps: Steps) -> None:
    """Missing rows of ``Z_v``: projection of ``G_v - (W_v - lam alpha_v^2 P T_v^T) / eta``.

    The transpose stands in Eq. (Z_v2) and is lost in Eq. (update_Z_v).
    """

    # Observed rows are data and never change; the missing ones are written in place.
    def impute(missing: tuple[int, Array]) -> None:
        v, rows = missing
        Z_v, G_v, W_v, T_v = (array[v, ...] for array in (state.Z, state.G, state.W, state.T))
        weight = problem.lam * float(state.alpha[v]) ** 2
        pull = steps.rotate_back(state.P[rows], T_v)
        Z_v[rows] = steps.imputed(Z_v, (G_v, W_v, rows, pull, weight, state.eta))

    if steps.impute:
        for_each(impute, problem.missing_rows, array_namespace(state.Z))


def fusion_game(state: State, scaled_Q: Array, problem: Problem, steps: Steps) -> Game:
    """What Algorithm 1 plays for: aligned graphs, and distances between soft labels.

    ``scaled_Q`` is ``Lambda^{-1/2} Q``. The aligned graphs take the memory of ``G``, if there is
    one: nothing reads ``G`` until the tensor step writes it anew.
    """
    A = steps.rotate(state.Z, state.T, state.G if steps.impute else None)
    return Game(A, label_distances(state.F, scaled_Q), problem.lam, problem.beta)


def shifted_graphs(state: State) -> Array:
    """``Z + W / eta``, where the tensor step starts (Eq. update_G1), in the memory of ``G``."""
    return dispatch.shifted(state.Z, state.W, 1 / state.eta, out=state.G)


def ascend_multiplier(state: State, problem: Problem, steps: Steps, out: Array = None) -> Array:
    """``W += eta (Z - G)``, then ``eta`` grows; ``<W, Z - G>`` of the old ``W``, ``|Z - G|^2``.

    ``out``, if given, is memory for the new ``W`` and may be that of the old one.
    """
    # Without imputation Z stays as it is, and there is no constraint Z = G to enforce.
    eta = state.eta if steps.impute else 0.0
    state.W, gap = dispatch.ascend(state.W, state.Z, state.G, eta, out=out)
    if steps.impute:
        state.eta = problem.later_eta(state.eta)
    return gap


def fuse_adversarially(game: Game, state: State, problem: Problem) -> Fusion:
    """Algorithm 1 from the weights of the last round."""
    # The old P is needed no more; its memory is free from here.
    state.P = None
    return fuse(game, state.alpha, problem.inner_tol, problem.inner_max_iter)


def fuse_with_fixed_weights(game: Game, state: State, _problem: Problem) -> Fusion:
    """The ablation "without alpha": only ``P`` moves."""
    return Fusion(best_response(game, state.alpha), state.alpha, ())


PAPER = Steps(
    imputed=lambda _Z_v, aim: dispatch.imputed_rows(*aim),
    fuse=fuse_adversarially,
    shrink=prox_tnn,
    products=dispatch.cross_products,
    align=lambda products, _T: align_products(products),
    rotate=aligned_graphs,
    rotate_back=lambda P, T_v: P @ T_v.T,
)
RELEASED = replace(
    PAPER,
    imputed=released.imputed_rows,
    fuse=released.fuse,
    shrink=released.prox_tnn,
    residual_counts=False,
)
COMPATIBILITY: dict[str | None, Steps] = {None: PAPER, "released": RELEASED}

_ABLATED: dict[str, dict[str, object]] = {
    "alignment": {
        # T_v = I: it stays, and what is told of it are the sums themselves.
        "products": agreements,
        "align": lambda agreed, T: (T, agreed),
        "rotate": lambda Z, _T, _out: Z,
        "rotate_back": lambda P, _T_v: P,
    },
    "weights": {"fuse": fuse_with_fixed_weights},
    # Without imputation Z stays as it is, and nothing draws it to G.
    "imputation": {"impute": False, "residual_counts": False},
}


def steps_for(problem: Problem, compat: str | None = None) -> Steps:
    """The versions of the updates that a problem asks for."""
    steps = COMPATIBILITY[compat]
    if problem.U is not None:
        if compat is not None:
            msg = f"compat={compat!r} has no graph Fourier basis, got U; pass U=None"
            raise ValueError(msg)
        steps = replace(steps, shrink=partial(prox_graph_norm, problem.U))
    for part in problem.without:
        steps = replace(steps, **_ABLATED[part])  # type: ignore[arg-type]
    return steps
