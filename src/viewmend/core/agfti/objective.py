"""The augmented Lagrangian of Algorithm 2, term by term (Eq. augmented_proposed)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.agfti.state import InnerStep, Problem


@dataclass(frozen=True, eq=False)
class RoundSums:
    """Sums over all rows for the report of a round, on the host.

    ``inner`` are the steps of Algorithm 1. ``norm_G`` () is the tensor norm of ``G``.
    ``of_samples`` (4,) is what `sample_sums` adds up, ``of_anchors`` () is `anchor_loss`;
    ``change_F`` and ``change_Q`` () are the largest changes of an entry. ``agreed`` (n_views,) are
    ``<P, Z_v T_v>``. ``gap`` (2,) are ``<W, Z - G>`` and ``|Z - G|^2``, of the multiplier before
    it rises.
    """

    inner: tuple[InnerStep, ...]
    norm_G: np.ndarray
    of_samples: np.ndarray
    of_anchors: np.ndarray
    change_F: np.ndarray
    change_Q: np.ndarray
    agreed: np.ndarray
    gap: np.ndarray


def named_terms(
    problem: Problem, alpha: np.ndarray, eta: float, sums: RoundSums
) -> dict[str, float]:
    """Every term of ``J`` by name, with its sign, so that ``J`` is their sum.

    ``propagation``: ``R(F, Q) = 2 tr(F^T P Lambda^{-1/2} Q) + 2 tr(F^T B Y) - tr((I + B) (F F^T +
    Q Q^T))``; ``fusion``: ``lam sum_v alpha_v^2 <P, Z_v T_v>``; ``smoothing``: ``-beta |P|^2``;
    ``low_rank``: ``-rho |G|_tnn``; ``multiplier``: ``-<W, Z - G>``; ``penalty``:
    ``-eta/2 |Z - G|^2``.
    """
    smooth, fit, size, squares = sums.of_samples
    along_W, squared_gap = map(float, sums.gap)
    return {
        "propagation": float(2 * smooth + fit - size) - float(sums.of_anchors),
        "fusion": problem.lam * float(alpha**2 @ sums.agreed),
        "smoothing": -problem.beta * float(squares),
        "low_rank": -problem.rho * float(sums.norm_G),
        "multiplier": -along_W,
        "penalty": -0.5 * eta * squared_gap,
    }


def sample_sums(F: Array, P: Array, scaled_Q: Array, problem: Problem) -> Array:
    """Sums (4,) over samples, on the device of the arrays; those of blocks of rows add up.

    They are ``tr(F^T P Lambda^{-1/2} Q)``, where ``scaled_Q`` is ``Lambda^{-1/2} Q``,
    ``tr(F^T B (2Y - F))``, ``|F|^2`` and ``|P|^2``.
    """
    # 2 tr(F^T B Y) - tr(F^T B F) in one pass, as <B F, 2 Y - F>.
    pulled = F * problem.B_samples[:, None], 2 * problem.Y - F
    # One kernel call on the device; the host fetches them with the other numbers of a round.
    return dispatch.inners([(F, dispatch.multiply(P, scaled_Q)), pulled, (F, F), (P, P)])


def anchor_loss(Q: Array, B_anchors: Array) -> Array:
    """The part of ``R`` that the anchors lose, ``tr((I + B) Q Q^T)``, ()."""
    return dispatch.inners([((1 + B_anchors[:, None]) * Q, Q)])[0]


def largest_change(new: Array, old: Array) -> Array:
    """Largest absolute change of an entry, (); zero where there is no row."""
    xp = array_namespace(new)
    gaps = xp.abs(new - old)
    return xp.max(gaps) if gaps.shape[0] else xp.sum(gaps)
