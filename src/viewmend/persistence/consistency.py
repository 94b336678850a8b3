"""Whether the parts of a model fit together.

Compiled kernels do not check bounds, so shapes and indices in a file are compared with each other
before a model is returned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from viewmend.core.advice.set_levels import MISS_RATES, SetLevels
from viewmend.core.common.calibration import COLDEST, HOTTEST, Calibration
from viewmend.core.mend.consistency import check_graph, check_induction
from viewmend.core.mend.stage import MendSettings
from viewmend.data.column_names import columns_of_fit
from viewmend.data.origin import Origin
from viewmend.exceptions import InvalidParameterError
from viewmend.models.agfti import AGFTIClassifier
from viewmend.models.mend import MendClassifier
from viewmend.models.mend_problem import make_settings
from viewmend.storage.errors import (
    DAMAGED,
    ModelFileError,
    expect,
    expect_float,
    expect_floats,
    expect_indices,
    expect_shape,
)

# Shares are rounded.
SHARE: dict[str, float] = {"low": 0, "high": 1 + 1e-6}
# A logarithm of shares, of which those of all views are added.
MOST_EVIDENCE = 50.0
# Of class weights and of the weights in an objective.
WEIGHTS = 1e100
DATA = 1e140
SavedModel = AGFTIClassifier | MendClassifier


def check_model(model: SavedModel) -> None:
    """Raise unless all that prediction reads has the shapes that belong together."""
    _check_layout(model)
    _CHECKS[type(model)](model)


def _check_layout(model: SavedModel) -> None:
    n_classes, n_views = len(np.atleast_1d(model.classes_)), len(model.view_names_)
    n_samples = len(np.atleast_1d(model.transduction_))
    expect(n_classes >= 2, "classes_", "of two or more", n_classes)
    expect(n_views >= 1, "view_names_", "of one or more", n_views)
    expect(len(set(model.view_names_)) == n_views, "view_names_", "distinct", model.view_names_)
    columns = model.view_n_features_
    fits = len(columns) == n_views and min(columns) >= 1 and sum(columns) == model.n_features_in_
    expect(fits, "view_n_features_", f"{n_views} counts, of sum n_features_in_", columns)
    for name, names in columns_of_fit(model).items():
        expect(name in model.view_names_, "view_feature_names_", f"of {model.view_names_}", name)
        width = columns[model.view_names_.index(name)]
        expect_shape("view_feature_names_", names, width, kinds="O")
        expect(all(type(n) is str for n in names), "view_feature_names_", "text", names)
    state, kind = model.fitted_state_, model.classes_.dtype.kind
    expect_shape("classes_", model.classes_, n_classes, kinds=kind)
    expect_shape("transduction_", model.transduction_, n_samples, kinds=kind)
    if hasattr(model, "sample_ids_"):
        expect_shape("sample_ids_", model.sample_ids_, n_samples, kinds="U")
    expect_floats("label_distributions_", model.label_distributions_, n_samples, n_classes, **SHARE)
    expect_floats("confidence_", model.confidence_, n_samples, **SHARE)
    decisions = model.decision_weights_
    expect_floats("decision_weights_", decisions, n_classes, low=1 / WEIGHTS, high=WEIGHTS)
    expect_shape("label_codes", state.label_codes, n_samples, kinds="i")
    expect_indices("label_codes", state.label_codes, -1, n_classes)
    _check_calibration(model.calibration_, n_classes)
    expect_shape("unreachable_", model.unreachable_, n_samples, kinds="b")
    expect_shape("observed_", model.observed_, n_samples, n_views, kinds="b")
    if model.zero_row_evidence_ is not None:
        limits = {"low": -MOST_EVIDENCE, "high": MOST_EVIDENCE}
        expect_floats("zero_row_evidence_", model.zero_row_evidence_, n_views, n_classes, **limits)
    if state.zero_rows is not None:
        expect_shape("zero_rows", state.zero_rows, n_samples, n_views, kinds="b")
    expect_floats("labelled_shares", state.labelled_shares, n_classes, **SHARE)
    total = float(state.labelled_shares.sum())
    expect(abs(total - 1) < 1e-6, "labelled_shares", "of sum one", total)
    if isinstance(state.class_weights, np.ndarray):
        weights = state.class_weights
        expect_floats("class_weights", weights, n_classes, low=1 / WEIGHTS, high=WEIGHTS)
    else:
        expect_float("class_weights", state.class_weights, 1 / WEIGHTS, WEIGHTS)
    _check_fills(model)
    if hasattr(model, "view_weights_"):
        expect_floats("view_weights_", model.view_weights_, n_views, **SHARE)
    if state.origin is not None:
        _check_origin(state.origin, model)


def _check_origin(origin: Origin, model: SavedModel) -> None:
    n_samples = len(model.transduction_)
    expect_shape("samples", origin.samples, n_samples, kinds="u")
    expect_shape("ids", origin.ids, n_samples, kinds="U")
    names = model.view_names_
    expect(tuple(origin.columns) == names, "columns", f"of {names}", list(origin.columns))
    for view, learnt in origin.categories.items():
        expect(view in origin.columns, "categories", f"of {model.view_names_}", view)
        for column, found in learnt.items():
            expect_shape("kept", found.kept, len(np.atleast_1d(found.kept)), kinds="U")
            made = set(found.names(column)) <= set(origin.columns[view].tolist())
            expect(made, "categories", "those that became columns", column)
    for name, n_columns in zip(names, model.view_n_features_, strict=True):
        expect_shape("columns", origin.columns[name], n_columns, kinds="U")


def _check_fills(model: SavedModel) -> None:
    fills, n_views = model.cell_fills_, len(model.view_names_)
    expected = 0 if model.missing_cells == "error" else n_views
    expect(len(fills) == expected, "cell_fills_", f"of {expected} views", len(fills))
    for fill, n_columns in zip(fills, model.view_n_features_, strict=False):
        for what in ("centres", "lowest", "highest"):
            expect_floats(what, getattr(fill, what), n_columns, low=-DATA, high=DATA)
        expect_shape("known", fill.known, n_columns, kinds="b")
        expect_floats("deviations", fill.deviations, n_columns, low=1 / DATA**2, high=DATA)
        rank = len(np.atleast_2d(fill.components))
        expect_floats("components", fill.components, rank, n_columns)
        expect_float("threshold", fill.threshold, 0)


def _check_calibration(calibration: Calibration, n_classes: int) -> None:
    expect_float("temperature", calibration.temperature, COLDEST, HOTTEST)
    n_held_out = len(np.atleast_1d(calibration.codes))
    expect_floats("shares", calibration.shares, n_held_out, n_classes, **SHARE)
    expect_shape("codes", calibration.codes, n_held_out, kinds="i")
    expect_indices("codes", calibration.codes, 0, n_classes)
    if calibration.n_groups is not None:
        expect_float("n_groups", float(calibration.n_groups), 1, max(n_held_out, 1))
    if calibration.class_groups is not None:
        expect_shape("class_groups", calibration.class_groups, n_classes, kinds="i")
        expect_indices("class_groups", calibration.class_groups, 0, n_held_out + 1)


def _check_agfti(model: AGFTIClassifier) -> None:
    fit = model.fitted_state_.induction
    n_samples, n_classes = model.label_distributions_.shape
    n_views, m = len(model.view_names_), fit.anchor_labels.shape[0]
    for what, anchors in (("anchors_", model.anchors_), ("anchors", fit.anchors)):
        expect(len(anchors) == n_views, what, f"of {n_views} views", len(anchors))
        for array, columns in zip(anchors, model.view_n_features_, strict=True):
            expect_shape(what, array, m, columns)
            # Squares must not overflow.
            limit = float(np.sqrt(np.finfo(array.dtype).max)) / 1000
            expect_floats(what, array, m, columns, low=-limit, high=limit)
    expect(1 <= fit.k < m, "k", f"between 1 and {m - 1}", fit.k)
    for what, weight in (("lam", fit.lam), ("beta", fit.beta)):
        expect_float(what, weight, 1 / WEIGHTS, WEIGHTS)
    expect_floats("alpha", fit.alpha, n_views, low=1e-150, high=SHARE["high"])
    expect_floats("T", fit.T, n_views, m, m)
    expect_floats("anchor_labels", fit.anchor_labels, m, n_classes)
    expect_floats("fused_graph_", model.fused_graph_, n_samples, m)
    expect_floats("view_graphs_", model.view_graphs_, n_views, n_samples, m)
    expect_floats("anchor_alignments_", model.anchor_alignments_, n_views, m, m)


def _check_mend(model: MendClassifier) -> None:
    fit, order = model.fitted_state_.induction, model.fitted_state_.order
    n, n_classes = model.label_distributions_.shape
    # Samples that were set apart are not in the induction, nor are those that the graph leaves out.
    # A model for predictions has forgotten which samples are there.
    n_fitted = len(np.atleast_2d(fit.observed))
    check_induction(fit, n_fitted, model.view_n_features_, n_classes)
    _check_settings(fit.settings)
    expect_floats("class_prior_", model.class_prior_, n_classes, **SHARE)
    expect_float("label_noise_", model.label_noise_, 0, 1)
    n_known = n_fitted if n else 0
    expect_shape("order", order, n_known, kinds="i")
    expect_indices("order", order, 0, n)
    expect(len(np.unique(order)) == n_known, "order", "of different samples", n_known)
    expect_shape("off_graph_", model.off_graph_, n, kinds="b")
    check_graph("graph_", model.graph_, n)
    if model.fitted_state_.labelled is not None:
        _check_labelled(model.fitted_state_.labelled, model.fitted_state_.label_groups, n_fitted)
    if model.fitted_state_.levels is not None:
        _check_levels(model.fitted_state_.levels, len(model.classes_))


def _check_labelled(labelled: np.ndarray, groups: np.ndarray | None, n_fitted: int) -> None:
    n_labelled = len(np.atleast_1d(labelled))
    expect(n_labelled >= 1, "labelled", "of one sample or more", n_labelled)
    expect_shape("labelled", labelled, n_labelled, kinds="i")
    expect_indices("labelled", labelled, 0, n_fitted)
    if groups is not None:
        expect_shape("label_groups", groups, n_labelled, kinds="i")


def _check_levels(levels: SetLevels, n_classes: int) -> None:
    n_levels = len(MISS_RATES)
    expect_float("temperature", levels.temperature, COLDEST, HOTTEST)
    expect_floats("held_out", levels.held_out, n_levels, **SHARE)
    expect_floats("fit", levels.fit, n_levels, **SHARE)
    expect_floats("misses", levels.misses, n_classes, n_levels, **SHARE)


def _check_settings(settings: MendSettings) -> None:
    """Raise unless there are parameters that make these settings, and powers stay finite."""
    rule, names = settings.neighbours, [each.name for each in fields(MendSettings)]
    same = {name: getattr(settings, name) for name in names if name not in ("neighbours", "weigh")}
    model = MendClassifier(n_neighbors=(rule.fewest, rule.most), **same)
    try:
        model.validate_parameters()
        expect(make_settings(model) == settings, "settings", "those of parameters", settings)
    except InvalidParameterError as error:
        msg = f"settings of a model file must be valid, got {error}; {DAMAGED}"
        raise ModelFileError(msg) from error
    # An edge is multiplied by at most (floor + 1)^power.
    growth = settings.edge_power * math.log10(settings.edge_floor + 1)
    expect_float("edge_power", growth, 0, 100)


_CHECKS: dict[type, Callable[[Any], None]] = {
    AGFTIClassifier: _check_agfti,
    MendClassifier: _check_mend,
}
