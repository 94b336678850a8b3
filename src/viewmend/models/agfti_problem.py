"""Translates the parameters of AGF-TI to its symbols, runs its rounds, and holds out labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from viewmend.backend.namespace import to_numpy, torch_device
from viewmend.backend.threads import serial_blas
from viewmend.backend.torch_gpu import mover_to
from viewmend.callbacks.notify import starting_point
from viewmend.callbacks.protocol import Callback
from viewmend.core import Problem, Result, solve
from viewmend.core.agfti.fusion import aligned_graphs
from viewmend.core.agfti.held_out import propagated_without_own, rows_without_labels
from viewmend.core.agfti.induction import Induction
from viewmend.core.agfti.propagation import damping_diagonals, propagate_labels
from viewmend.core.common.class_shares import class_weights
from viewmend.core.common.held_out import held_out_samples
from viewmend.core.common.rows import RowsInMemory
from viewmend.data.labels import Labels, check_class_prior
from viewmend.exceptions import DataWarning
from viewmend.models.agfti_geometry import AnchorGeometry
from viewmend.models.base import TwoStepClassifier
from viewmend.models.cross_fit import HeldOut, HoldOut, cross_fitted
from viewmend.models.fitted_state import AGFTIState, FittedAGFTI
from viewmend.protocols import AGFTIParameters, ClassPrior

# Ratio of label counts from which the favour of a class shows.
UNEVEN = 2


def make_problem(parameters: AGFTIParameters, geometry: AnchorGeometry, labels: Labels) -> Problem:
    """The only place where parameters become symbols; labels are in the order of the data."""
    graphs, n_views = geometry.graphs, len(geometry.anchors)
    labels = labels.at(geometry.order)
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
    """Run Algorithm 2 and compute the final labels, on the device of the problem."""
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


def warn_of_uneven_labels(labels: Labels) -> None:
    """Soft labels scale with the number of labels of their class; see `class_prior`."""
    counts = labels.counts()
    if counts.max() >= UNEVEN * counts.min():
        msg = (
            f"the classes have between {counts.min()} and {counts.max()} labels, and without a "
            f"class_prior AGF-TI favours those with many; set class_prior='labeled' if the labels "
            f"are a fair sample, 'uniform', or the shares you know"
        )
        warnings.warn(msg, DataWarning, stacklevel=5)


def warn_unless_converged(result: Result, tol: float) -> None:
    """Warn if the rounds ended at ``max_iter`` before they converged."""
    if result.status == "max_iter":
        last = result.history[-1]
        msg = (
            f"AGFTIClassifier stopped at max_iter={result.n_iter} with a change of "
            f"{last.change:.1e} and a residual |Z - G| of {last.primal_residual:.1e}, tol being "
            f"{tol:.1e}; raise max_iter, tol or graph_smoothing"
        )
        warnings.warn(msg, ConvergenceWarning, stacklevel=5)


def make_state(
    class_prior: ClassPrior, labels: Labels, soft: np.ndarray, for_new: Induction
) -> AGFTIState:
    """What is kept of a fit, with classes weighted so that the soft labels meet the prior."""
    weights = prior_weights(class_prior, labels, soft)
    return AGFTIState(labels.codes, labels.shares(), weights, for_new)


def prior_weights(class_prior: ClassPrior, labels: Labels, soft: np.ndarray) -> np.ndarray | float:
    """Weights (n_classes,) with which the soft labels meet a prior; 1 where there is none."""
    prior = check_class_prior(class_prior, labels)
    return 1.0 if prior is None else class_weights(RowsInMemory(), soft, prior)


def hold_outs(
    model: TwoStepClassifier, state: AGFTIState, geometry: AnchorGeometry, labels: Labels
) -> dict[str, HoldOut]:
    """Ways to score labelled samples without their own label."""
    return {
        "leave_one_out": partial(held_out_scores, model, state, geometry.order, labels),
        "cross_fit": partial(cross_fitted, model, geometry, geometry.order, labels),
    }


def held_out_scores(
    model: FittedAGFTI, state: AGFTIState, order: np.ndarray, labels: Labels
) -> HeldOut:
    """Scores of labelled samples without their own label, over the finished graph.

    The model has its graphs but no state yet; sums are taken in the ``order`` (n_samples,).
    """
    P, Y = model.fused_graph_[order].astype(np.float64), labels.one_hot()[order]
    held_out, fit = held_out_samples(Y), state.induction
    samples = order[held_out]
    B = final_diagonals(model, labels.labelled[order], P[None])
    free = float(final_diagonals(model, np.zeros(1, dtype=bool), P[None])[0][0])
    with serial_blas():
        A = aligned_graphs(model.view_graphs_[:, samples].astype(np.float64), fit.T.astype(float))
        rows = rows_without_labels(A, model.observed_[samples], fit.alpha, fit.lam, fit.beta)
        F, growth = propagated_without_own(P, Y, B, held_out, rows, free)
    return HeldOut(reweighted(F, growth, state.class_weights), labels.codes[samples])


def reweighted(F: np.ndarray, growth: np.ndarray, weights: np.ndarray | float) -> np.ndarray:
    """Soft labels (n_held_out, n_classes) times class weights, which follow the mass of a class.

    A class that loses a label loses mass, by which its weight grows. Without a prior to meet the
    weight is the number one, and stays so.
    """
    return F * growth * weights if np.ndim(weights) else F
