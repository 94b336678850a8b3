"""What `AGFTIClassifier` does with labels besides spreading them: count, and leave one out."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np

from viewmend.backend.threads import serial_blas
from viewmend.core.agfti.fusion import aligned_graphs
from viewmend.core.agfti.held_out import propagated_without_own, rows_without_labels
from viewmend.core.agfti.induction import Induction
from viewmend.core.common.class_shares import class_weights
from viewmend.core.common.held_out import held_out_samples
from viewmend.data.labels import Labels
from viewmend.exceptions import DataWarning
from viewmend.models.agfti_geometry import AnchorGeometry
from viewmend.models.agfti_problem import final_diagonals
from viewmend.models.base import TwoStepClassifier
from viewmend.models.cross_fit import HoldOut, cross_fitted
from viewmend.models.fitted_state import AGFTIState, FittedAGFTI

__all__ = ["held_out_scores", "hold_outs", "make_state", "reweighted", "warn_of_uneven_labels"]


# Ratio of label counts from which the favour of a class shows.
UNEVEN = 2


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


def make_state(
    labels: Labels, prior: np.ndarray | None, soft: np.ndarray, for_new: Induction
) -> AGFTIState:
    """What is kept of a fit, with classes weighted so that the soft labels meet the prior."""
    weights = 1.0 if prior is None else class_weights(soft, prior)
    return AGFTIState(labels.codes, labels.shares(), weights, for_new)


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
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of labelled samples without their own label, over the finished graph, and their codes.

    Parameters
    ----------
    model : AGFTIClassifier
        With its graphs; its state is not there yet.
    state : AGFTIState
    order : array (n_samples,) of int
        In which sums are taken.
    labels : Labels

    Returns
    -------
    scores : array (n_held_out, n_classes)
    codes : array (n_held_out,) of int
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
    return reweighted(F, growth, state.class_weights), labels.codes[samples]


def reweighted(F: np.ndarray, growth: np.ndarray, weights: np.ndarray | float) -> np.ndarray:
    """Soft labels (n_held_out, n_classes) times class weights, which follow the mass of a class.

    A class that loses a label loses mass, by which its weight grows. Without a prior to meet the
    weight is the number one, and stays so.
    """
    return F * growth * weights if np.ndim(weights) else F
