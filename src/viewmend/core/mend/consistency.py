"""Whether a geometry and a stage that come from a file fit together.

Compiled kernels do not look at bounds, so shapes and indices that a file claims are compared with
each other before anything is computed from them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from viewmend.core.mend.evidence import Evidence
from viewmend.core.mend.geometry import MendGeometry, MendView
from viewmend.core.mend.recipe import Stage
from viewmend.core.mend.representations import FIRST, Representation
from viewmend.storage.errors import expect, expect_indices, expect_shape


def check_geometry(geometry: MendGeometry, n_samples: int, n_columns: Sequence[int]) -> None:
    """Raise a ModelFileError unless it is one of that many samples and columns of the views."""
    views, observed = geometry.views, geometry.observed
    expect_shape("observed", observed, n_samples, len(n_columns), kinds="b")
    expect(len(views) == len(n_columns), "views", f"{len(n_columns)}", len(views))
    for view, seen, columns in zip(views, observed.T, n_columns, strict=True):
        _check_view(view, np.flatnonzero(seen), columns)


def check_stage(stage: Stage, geometry: MendGeometry, n_classes: int) -> None:
    """Raise a ModelFileError unless it is a stage on that geometry, with that many classes."""
    n, views = len(geometry.observed), geometry.views
    expect_shape("P", stage.P, n, n_classes)
    expect_shape("F", stage.F, n, n_classes)
    expect_shape("classes", stage.classes, n, kinds="i")
    expect_indices("classes", stage.classes, -1, n_classes)
    expect_shape("graph_weights", stage.graph_weights, sum(len(v.representations) for v in views))
    expect_shape("shares", stage.shares, n_classes)
    expect(stage.W.shape == (n, n), "shape of W", str((n, n)), stage.W.shape)
    if stage.A is not None:
        expect_shape("A", stage.A, n, n_classes)
    if stage.evidence is not None:
        _check_evidence(stage.evidence, views, n, n_classes)


def _check_view(view: MendView, rows: np.ndarray, n_columns: int) -> None:
    expect_shape("X", view.X, len(rows), n_columns)
    expect_shape("rows", view.rows, len(rows), kinds="i")
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
        expect_shape("landmarks", features.map.landmarks[name], n_landmarks, width)
        near = view.neighbours[name]
        expect_indices("neighbours", near.indices, 0, len(rows))
        expect_shape("squared_distances", near.squared_distances, *near.indices.shape)
        expect(len(near.indices) == len(rows), "neighbours", f"of {len(rows)}", len(near.indices))
    expect_shape("centre", features.map.centre, n_landmarks)
    expect_shape("linear", features.map.linear, n_landmarks, n_features)
    expect_shape("spectrum", features.spectrum, n_features)
    expect_shape("Phi", features.Phi, len(rows), n_features)


def _check_representation(representation: Representation, n_columns: int) -> int:
    """Number of components that it maps ``n_columns`` to."""
    centre, linear = representation.centre, representation.linear
    expect(representation.first in FIRST, "first", f"one of {list(FIRST)}", representation.first)
    expect(centre.shape in ((), (n_columns,)), "shape of centre", "that of a row", centre.shape)
    if linear.ndim == 2:
        expect_shape("linear", linear, n_columns, linear.shape[1])
        return int(linear.shape[1])
    expect(linear.shape in ((), (n_columns,)), "shape of linear", "that of a row", linear.shape)
    return n_columns


def _check_evidence(
    evidence: Evidence, views: tuple[MendView, ...], n_samples: int, n_classes: int
) -> None:
    size = len(views) * n_classes
    expect_shape("P of the evidence", evidence.P, n_samples, n_classes)
    expect(len(evidence.fits) == len(views), "fits", f"of {len(views)} views", len(evidence.fits))
    for fit, view in zip(evidence.fits, views, strict=True):
        expect_shape("scores", fit.scores, len(view.rows), n_classes)
        expect_shape("coefficients", fit.coefficients, len(view.features.spectrum), n_classes)
        expect_shape("intercept", fit.intercept, n_classes)
    expect_shape("means", evidence.gaussian.means, n_classes, size)
    expect_shape("covariance", evidence.gaussian.covariance, size, size)
    expect_shape("prior", evidence.gaussian.prior, n_classes)
