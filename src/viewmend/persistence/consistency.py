"""Whether the parts of a model fit together.

Compiled kernels do not look at bounds, so shapes and indices that a file claims are compared with
each other before a model is given out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from viewmend.core.common.calibration import Calibration
from viewmend.core.mend.evidence import Evidence
from viewmend.core.mend.geometry import MendView
from viewmend.core.mend.representations import FIRST, Representation
from viewmend.models.agfti import AGFTIClassifier
from viewmend.models.mend import MendClassifier
from viewmend.storage.errors import expect

SavedModel = AGFTIClassifier | MendClassifier


def check_model(model: SavedModel) -> None:
    """Raise unless all that prediction reads has the shapes that belong together."""
    _check_layout(model)
    _CHECKS[type(model)](model)


def _shaped(what: str, array: np.ndarray, *shape: int, kinds: str = "f") -> None:
    expect(array.shape == shape, f"shape of {what}", str(shape), array.shape)
    expect(array.dtype.kind in kinds, f"dtype of {what}", f"of kind {kinds}", array.dtype.str)


def _indices(what: str, array: np.ndarray, low: int, high: int) -> None:
    """Integers from ``low`` up to, but not, ``high``."""
    expect(array.dtype.kind in "iu", f"dtype of {what}", "integers", array.dtype.str)
    inside = ((array >= low) & (array < high)).all()
    expect(inside, what, f"within [{low}, {high})", array)


def _check_layout(model: SavedModel) -> None:
    n_classes, n_views = len(np.atleast_1d(model.classes_)), len(model.view_names_)
    n_samples = len(np.atleast_1d(model.transduction_))
    expect(n_classes >= 2, "classes_", "of two or more", n_classes)
    expect(n_views >= 1, "view_names_", "of one or more", n_views)
    expect(len(set(model.view_names_)) == n_views, "view_names_", "distinct", model.view_names_)
    columns = model.view_n_features_
    fits = len(columns) == n_views and min(columns) >= 1 and sum(columns) == model.n_features_in_
    expect(fits, "view_n_features_", f"{n_views} counts, of sum n_features_in_", columns)
    state, kind = model.fitted_state_, model.classes_.dtype.kind
    _shaped("classes_", model.classes_, n_classes, kinds=kind)
    _shaped("transduction_", model.transduction_, n_samples, kinds=kind)
    _shaped("label_distributions_", model.label_distributions_, n_samples, n_classes)
    _shaped("confidence_", model.confidence_, n_samples)
    _shaped("label_codes", state.label_codes, n_samples, kinds="i")
    _indices("label_codes", state.label_codes, -1, n_classes)
    _check_calibration(model.calibration_, n_classes)
    _shaped("unreachable_", model.unreachable_, n_samples, kinds="b")
    _shaped("observed_", model.observed_, n_samples, n_views, kinds="b")
    _shaped("labelled_shares", state.labelled_shares, n_classes)
    if isinstance(state.class_weights, np.ndarray):
        _shaped("class_weights", state.class_weights, n_classes)
    if hasattr(model, "view_weights_"):
        _shaped("view_weights_", model.view_weights_, n_views)


def _check_calibration(calibration: Calibration, n_classes: int) -> None:
    expect(calibration.temperature > 0, "temperature", "above zero", calibration.temperature)
    n_held_out = len(np.atleast_1d(calibration.codes))
    _shaped("shares", calibration.shares, n_held_out, n_classes)
    _shaped("codes", calibration.codes, n_held_out, kinds="i")
    _indices("codes", calibration.codes, 0, n_classes)


def _check_agfti(model: AGFTIClassifier) -> None:
    fit = model.fitted_state_.induction
    n_samples, n_classes = model.label_distributions_.shape
    n_views, m = len(model.view_names_), fit.anchor_labels.shape[0]
    for what, anchors in (("anchors_", model.anchors_), ("anchors", fit.anchors)):
        expect(len(anchors) == n_views, what, f"of {n_views} views", len(anchors))
        for array, columns in zip(anchors, model.view_n_features_, strict=True):
            _shaped(what, array, m, columns)
    expect(1 <= fit.k < m, "k", f"between 1 and {m - 1}", fit.k)
    _shaped("alpha", fit.alpha, n_views)
    _shaped("T", fit.T, n_views, m, m)
    _shaped("anchor_labels", fit.anchor_labels, m, n_classes)
    _shaped("fused_graph_", model.fused_graph_, n_samples, m)
    _shaped("view_graphs_", model.view_graphs_, n_views, n_samples, m)
    _shaped("anchor_alignments_", model.anchor_alignments_, n_views, m, m)


def _check_mend(model: MendClassifier) -> None:
    fit, order = model.fitted_state_.induction, model.fitted_state_.order
    stage = fit.stage
    n, n_classes = model.label_distributions_.shape
    n_views, views, observed = len(model.view_names_), fit.geometry.views, fit.geometry.observed
    _shaped("observed", observed, n, n_views, kinds="b")
    expect(len(views) == n_views, "views", f"{n_views}", len(views))
    for view, seen, columns in zip(views, observed.T, model.view_n_features_, strict=True):
        _check_view(view, np.flatnonzero(seen), columns)
    n_graphs = sum(len(view.representations) for view in views)
    _shaped("P", stage.P, n, n_classes)
    _shaped("F", stage.F, n, n_classes)
    _shaped("classes", stage.classes, n, kinds="i")
    _indices("classes", stage.classes, -1, n_classes)
    _shaped("graph_weights", stage.graph_weights, n_graphs)
    for what, shares in (("prior", fit.prior), ("shares", stage.shares)):
        _shaped(what, shares, n_classes)
    _shaped("class_prior_", model.class_prior_, n_classes)
    _shaped("order", order, n, kinds="i")
    expect(np.array_equal(np.sort(order), np.arange(n)), "order", "a permutation", n)
    _shaped("off_graph_", model.off_graph_, n, kinds="b")
    for what, graph in (("W", stage.W), ("graph_", model.graph_)):
        expect(graph.shape == (n, n), f"shape of {what}", str((n, n)), graph.shape)
    if stage.A is not None:
        _shaped("A", stage.A, n, n_classes)
    if stage.evidence is not None:
        _check_evidence(stage.evidence, views, n, n_classes)


def _check_view(view: MendView, rows: np.ndarray, n_columns: int) -> None:
    _shaped("X", view.X, len(rows), n_columns)
    _shaped("rows", view.rows, len(rows), kinds="i")
    expect((view.rows == rows).all(), "rows", "those observed", view.rows)
    names, features = list(view.representations), view.features
    for what, table in (
        ("neighbours", view.neighbours),
        ("landmarks", features.map.landmarks),
        ("scales", features.map.scales),
    ):
        expect(names and list(table) == names, what, f"of {names}", list(table))
    n_landmarks, n_features = len(np.atleast_1d(features.map.centre)), len(features.spectrum)
    for name in names:
        width = _check_representation(view.representations[name], n_columns)
        _shaped("landmarks", features.map.landmarks[name], n_landmarks, width)
        near = view.neighbours[name]
        _indices("neighbours", near.indices, 0, len(rows))
        _shaped("squared_distances", near.squared_distances, *near.indices.shape)
        expect(len(near.indices) == len(rows), "neighbours", f"of {len(rows)}", len(near.indices))
    _shaped("centre", features.map.centre, n_landmarks)
    _shaped("linear", features.map.linear, n_landmarks, n_features)
    _shaped("spectrum", features.spectrum, n_features)
    _shaped("Phi", features.Phi, len(rows), n_features)


def _check_representation(representation: Representation, n_columns: int) -> int:
    """Number of components that it maps ``n_columns`` to."""
    centre, linear = representation.centre, representation.linear
    expect(representation.first in FIRST, "first", f"one of {list(FIRST)}", representation.first)
    expect(centre.shape in ((), (n_columns,)), "shape of centre", "that of a row", centre.shape)
    if linear.ndim == 2:
        _shaped("linear", linear, n_columns, linear.shape[1])
        return int(linear.shape[1])
    expect(linear.shape in ((), (n_columns,)), "shape of linear", "that of a row", linear.shape)
    return n_columns


def _check_evidence(
    evidence: Evidence, views: tuple[MendView, ...], n_samples: int, n_classes: int
) -> None:
    size = len(views) * n_classes
    _shaped("P of the evidence", evidence.P, n_samples, n_classes)
    expect(len(evidence.fits) == len(views), "fits", f"of {len(views)} views", len(evidence.fits))
    for fit, view in zip(evidence.fits, views, strict=True):
        _shaped("scores", fit.scores, len(view.rows), n_classes)
        _shaped("coefficients", fit.coefficients, len(view.features.spectrum), n_classes)
        _shaped("intercept", fit.intercept, n_classes)
    _shaped("means", evidence.gaussian.means, n_classes, size)
    _shaped("covariance", evidence.gaussian.covariance, size, size)
    _shaped("prior", evidence.gaussian.prior, n_classes)


_CHECKS: dict[type, Callable[[Any], None]] = {
    AGFTIClassifier: _check_agfti,
    MendClassifier: _check_mend,
}
