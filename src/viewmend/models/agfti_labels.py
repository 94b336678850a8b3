"""What `AGFTIClassifier` does with labels besides spreading them: count, and leave one out."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from viewmend.backend.threads import serial_blas
from viewmend.core.agfti.fusion import aligned_graphs
from viewmend.core.agfti.held_out import propagated_without_own, rows_without_labels
from viewmend.core.common.held_out import held_out_samples
from viewmend.data.labels import Labels
from viewmend.exceptions import DataWarning
from viewmend.models.agfti_geometry import Geometry
from viewmend.models.cross_fit import HoldOut, cross_fitted

__all__ = ["final_damping", "held_out_scores", "hold_outs", "warn_of_uneven_labels"]

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


def hold_outs(model: Any, geometry: Geometry, labels: Labels) -> dict[str, HoldOut]:
    """Ways to score labelled samples without their own label."""
    return {
        "leave_one_out": partial(held_out_scores, model, geometry.order, labels),
        "cross_fit": partial(cross_fitted, model, geometry, geometry.order, labels),
    }


def held_out_scores(model: Any, order: np.ndarray, labels: Labels) -> tuple[np.ndarray, np.ndarray]:
    """Scores of labelled samples without their own label, over the finished graph, and their codes.

    Class weights follow the mass of their class, which loses a label.

    Parameters
    ----------
    model : AGFTIClassifier
        With its graphs and its class weights.
    order : array (n_samples,) of int
        In which sums are taken.
    labels : Labels

    Returns
    -------
    scores : array (n_held_out, n_classes)
    codes : array (n_held_out,) of int
    """
    P, Y = model.fused_graph_[order].astype(np.float64), labels.one_hot()[order]
    held_out, fit = held_out_samples(Y), model._induction
    samples = order[held_out]
    B = final_damping(model, P, labels.labelled[order])
    free = float(final_damping(model, P, np.zeros(1, dtype=bool))[0][0])
    with serial_blas():
        A = aligned_graphs(model.view_graphs_[:, samples].astype(np.float64), fit.T.astype(float))
        rows = rows_without_labels(A, model.observed_[samples], fit.alpha, fit.lam, fit.beta)
        F, growth = propagated_without_own(P, Y, B, held_out, rows, free)
    scores = F if model.class_prior is None else F * growth * model._class_weights
    return scores, labels.codes[samples]


def final_damping(model: Any, P: np.ndarray, labelled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Diagonals of ``B`` of the samples and of the anchors, for the labels that are given out."""
    final = model.propagation_damping if model.final_damping is None else model.final_damping
    B_samples, B_anchors = model._damped(final, labelled, P[None])
    return B_samples, B_anchors
