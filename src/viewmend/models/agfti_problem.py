"""AGF-TI from words to symbols, and through its rounds to the labels that are given out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from viewmend.backend.namespace import to_numpy, torch_device
from viewmend.backend.torch_gpu import mover_to
from viewmend.callbacks.notify import starting_point
from viewmend.callbacks.protocol import Callback
from viewmend.core import Problem, Result, solve
from viewmend.core.agfti.propagation import damping_diagonals, propagate_labels
from viewmend.data.labels import Labels
from viewmend.models.agfti_geometry import AnchorGeometry
from viewmend.protocols import AGFTIParameters

__all__ = ["final_diagonals", "make_problem", "round_parameters", "solve_problem"]

# Parameters that change no round: how long, how loud, where, what comes after the last one; and
# those of which only the outcome counts, which a checkpoint compares.
WITHOUT_EFFECT_ON_ROUNDS = {
    "calibration",
    "class_prior",
    "device",
    "final_damping",
    "max_iter",
    "n_jobs",
    "random_state",
    "tol",
    "verbose",
    "view_sizes",
}


def make_problem(parameters: AGFTIParameters, geometry: AnchorGeometry, labels: Labels) -> Problem:
    """Words become symbols here, and nowhere else.

    Parameters
    ----------
    parameters : AGFTIParameters
    geometry : AnchorGeometry
    labels : Labels
        In the order of the data.
    """
    graphs, n_views = geometry.graphs, len(geometry.anchors)
    labels = Labels(labels.classes, labels.codes[geometry.order])
    weight, smoothing = parameters.fusion_weight, parameters.graph_smoothing
    lam = float(n_views**2 if weight == "auto" else weight)
    B_samples, B_anchors = damping_diagonals(
        parameters.label_strength, parameters.propagation_damping, labels.labelled, graphs
    )
    problem = Problem(
        Z=graphs,
        Y=geometry.to_device(labels.one_hot(np.dtype(parameters.dtype))),
        observed=geometry.to_device(geometry.observed),
        lam=lam,
        beta=float(lam / (2 * n_views) if smoothing == "auto" else smoothing),
        rho=float(parameters.low_rank_weight),
        B_samples=B_samples,
        B_anchors=B_anchors,
        without=_ablated(parameters.ablation),
    )
    return geometry.started(problem)


def _ablated(ablation: str | Sequence[str] | None) -> frozenset[str]:
    if ablation is None:
        return frozenset()
    return frozenset([ablation] if isinstance(ablation, str) else ablation)


def solve_problem(
    parameters: AGFTIParameters, problem: Problem, callbacks: Sequence[Callback] = ()
) -> Result:
    """Algorithm 2 and the labels to give out, where the arrays of the problem are."""
    start: Any = starting_point(callbacks, problem)
    if start is not None:
        start = start.converted(mover_to(torch_device(problem.Z)))
    result = solve(
        problem,
        max_iter=parameters.max_iter,
        tol=parameters.tol,
        compat=parameters.compat,
        callbacks=callbacks,
        start=start,
    )
    if parameters.final_damping is None:
        return result
    # Spread once more, over the finished graph.
    labelled = np.any(to_numpy(problem.Y), axis=1)
    F, Q = propagate_labels(result.P, problem.Y, *final_diagonals(parameters, labelled, problem.Z))
    return replace(result, F=F, Q=Q)


def final_diagonals(
    parameters: AGFTIParameters, labelled: np.ndarray, graphs: Any
) -> tuple[Any, Any]:
    """`damping_diagonals` of the labels that are given out."""
    final = parameters.final_damping
    damping = parameters.propagation_damping if final is None else final
    return damping_diagonals(parameters.label_strength, damping, labelled, graphs)


def round_parameters(parameters: AGFTIParameters) -> dict[str, str]:
    """Parameters that the rounds depend on, as text."""
    given = parameters.get_params(deep=False)
    names = sorted(set(given) - WITHOUT_EFFECT_ON_ROUNDS)
    return {name: repr(np.array(given[name], dtype=object).tolist()) for name in names}
