"""Whether a geometry and a stage, or what is kept of them, come from a file that fits together.

Compiled kernels do not look at bounds, so shapes and indices that a file claims are compared with
each other before anything is computed from them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.graphs.graph import Graph
from viewmend.core.mend.blocks import MendBlock, ViewRows
from viewmend.core.mend.components import SparseComponents
from viewmend.core.mend.evidence import Evidence
from viewmend.core.mend.geometry import MendGeometry, MendView
from viewmend.core.mend.induction import FittedView, MendInduction, ViewRegression
from viewmend.core.mend.loo_ridge import LEAST_R2, RIDGES
from viewmend.core.mend.representations import FIRST, Representation
from viewmend.core.mend.stage import Stage, SummedGraph
from viewmend.core.mend.view_gaussian import ViewGaussian
from viewmend.storage.errors import (
    expect,
    expect_float,
    expect_floats,
    expect_indices,
    expect_shape,
)

TINY, SINGLE = np.finfo(np.float64).tiny, float(np.finfo(np.float32).max)
# Squares of the data must not overflow, nor its products with the scales that are read off it.
MOST_OF_DATA, MOST_OF_SCALES = 1e140, 1e160
KERNEL_SCALES = (1e-38, SINGLE)
# Those that classes guide are multiplied by up to 1e100.
MOST_OF_EDGES = 1e120
# Of columns in components, and of views.
MOST_OF_WEIGHTS = 1e20
# Shares are rounded.
MOST_SHARE = 1 + 1e-6


def check_geometry(geometry: MendGeometry, n_samples: int, n_columns: Sequence[int]) -> None:
    """Raise a ModelFileError unless it is one of that many samples and columns of the views."""
    views, observed, block = geometry.views, geometry.observed, geometry.blocks
    expect_shape("observed", observed, n_samples, len(n_columns), kinds="b")
    expect(isinstance(block, MendBlock), "blocks", "one block", type(block).__name__)
    expect(block.place is None and block.outside is None, "blocks", "all samples", block.place)
    same = np.array_equal(block.observed, observed)
    expect(same, "observed of the block", "that of the samples", block.observed)
    for what, parts in (("views", views), ("views of the block", block.views)):
        expect(len(parts) == len(n_columns), what, f"{len(n_columns)}", len(parts))
    for v, columns in enumerate(n_columns):
        rows = np.flatnonzero(observed[:, v])
        _check_view(views[v], rows, columns)
        _check_features(block.views[v], rows, len(views[v].kernel.spectrum))


def check_stage(stage: Stage, geometry: MendGeometry, n_samples: int, n_classes: int) -> None:
    """Raise a ModelFileError unless it is a stage on that geometry, of that many samples.

    Those of the geometry are in the graph.
    """
    n, views = len(geometry.observed), geometry.views
    expect_floats("P", stage.P, n_samples, n_classes, low=0)
    expect_floats("F", stage.F, n, n_classes, low=0)
    expect_floats("mass", stage.mass, n_classes, low=0)
    expect_shape("classes", stage.classes, n_samples, kinds="i")
    expect_indices("classes", stage.classes, -1, n_classes)
    expect_floats("shares", stage.shares, n_classes, low=TINY, high=MOST_SHARE)
    expect_floats("class_weights", stage.class_weights, n_classes, low=TINY, high=1 / TINY)
    expect_float("noise", stage.noise, 0, 1)
    if stage.doubted is not None:
        expect_floats("doubted", stage.doubted, n_samples, n_classes, low=0, high=MOST_SHARE)
    _check_summed(stage.graph, views, n, n_classes)
    if stage.evidence is not None:
        _check_evidence(stage.evidence, views, n_samples, n_classes)
    if stage.guide is not None:
        expect_floats("A", stage.guide.A, n, n_classes, low=0)
        expect_shape("classes of the guide", stage.guide.classes, n, kinds="i")
        expect_indices("classes of the guide", stage.guide.classes, -1, n_classes)


def _check_summed(
    graph: SummedGraph, views: tuple[MendView, ...], n_samples: int, n_classes: int
) -> None:
    n_graphs = sum(len(view.representations) for view in views)
    expect_floats("weights", graph.weights, n_graphs, low=0)
    _check_edges("trusted", graph.trusted, n_samples)
    known = (graph.evidence is None) == (graph.consensus is None)
    expect(known, "consensus", "one where there is evidence", graph.consensus)
    expect_float("consensus_scale", graph.consensus_scale, 0)
    if graph.consensus is not None:
        _check_edges("consensus", graph.consensus.graph, n_samples)
        expect_floats("points", graph.consensus.points, n_samples, n_classes)


def _check_edges(what: str, graph: Graph, n_samples: int) -> None:
    """Raise unless compiled code can go through the edges of a graph between that many samples."""
    n_edges = len(np.atleast_1d(graph.indices))
    expect_shape("indptr", graph.indptr, n_samples + 1, kinds="i")
    rises = graph.indptr[0] == 0 and graph.indptr[-1] == n_edges
    expect(rises and (np.diff(graph.indptr) >= 0).all(), "indptr", "rising to the edges", n_edges)
    expect(graph.n_columns == n_samples, f"columns of {what}", str(n_samples), graph.n_columns)
    expect_shape("indices", graph.indices, n_edges, kinds="i")
    expect_indices("indices", graph.indices, 0, n_samples)
    expect_floats(what, graph.data, n_edges, low=0, high=MOST_OF_EDGES)


def check_induction(
    fit: MendInduction, n_samples: int, n_columns: Sequence[int], n_classes: int
) -> None:
    """Raise a ModelFileError unless it is one of that many samples, columns and classes."""
    views, n_views = fit.views, len(n_columns)
    expect_shape("observed", fit.observed, n_samples, n_views, kinds="b")
    expect(len(views) == n_views, "views", f"{n_views}", len(views))
    for view, seen, columns in zip(views, fit.observed.T, n_columns, strict=True):
        widths = _check_rows(view, np.flatnonzero(seen), columns)
        known = (view.regression is None) == (fit.evidence is None)
        expect(known, "regression", "one where there is evidence", view.regression)
        if view.regression is not None:
            _check_regression(view.regression, list(widths), len(view.rows), n_classes)
            read = fit.evidence is not None and fit.evidence.label_intercept is not None
            _check_reading(view.regression, view.X, n_classes, read)
    expect_floats("F", fit.F, n_samples, n_classes, low=0)
    expect_floats("mass", fit.mass, n_classes, low=0)
    expect_shape("classes", fit.classes, n_samples, kinds="i")
    expect_indices("classes", fit.classes, -1, n_classes)
    n_graphs = sum(len(view.representations) for view in views)
    expect_floats("graph_weights", fit.graph_weights, n_graphs, low=0)
    expect_floats("prior", fit.prior, n_classes, low=TINY, high=MOST_SHARE)
    expect_floats("degrees", fit.degrees, n_samples, low=0)
    expect_floats("view_degrees", fit.view_degrees, n_samples, n_views, low=0)
    if fit.A is not None:
        expect_floats("A", fit.A, n_samples, n_classes, low=0)
    if fit.evidence is not None:
        P = fit.evidence.P
        expect_floats("P of the evidence", P, n_samples, n_classes, low=0, high=MOST_SHARE)
        expect_float("consensus_scale", fit.evidence.consensus_scale, 0)
        _check_gaussian(fit.evidence.gaussian, n_views, n_classes)
        if fit.evidence.label_intercept is not None:
            expect_floats("label_intercept", fit.evidence.label_intercept, n_classes)


def check_graph(what: str, graph: csr_array, n_samples: int) -> None:
    """Raise a ModelFileError unless it is a graph between that many samples."""
    shape = (n_samples, n_samples)
    expect(graph.shape == shape, f"shape of {what}", str(shape), graph.shape)
    expect_floats(what, graph.data, graph.nnz, low=0, high=MOST_OF_EDGES)


def _check_rows(view: MendView | FittedView, rows: np.ndarray, n_columns: int) -> dict[str, int]:
    """Number of components of every representation of the ``rows`` that a view observed."""
    if view.components is not None:
        n_columns = _check_components(view.components, n_columns)
    expect_floats("X", view.X, len(rows), n_columns, low=-MOST_OF_DATA, high=MOST_OF_DATA)
    expect_shape("rows", view.rows, len(rows), kinds="i")
    expect((view.rows == rows).all(), "rows", "those observed", view.rows)
    return {name: _check_representation(r, view.X) for name, r in view.representations.items()}


def _check_components(components: SparseComponents, n_columns: int) -> int:
    """Number of components that a view of that many columns has."""
    n_rows, width = np.atleast_2d(components.loadings).shape
    shape = (n_rows, n_columns)
    expect(components.rows.shape == shape, "shape of rows", str(shape), components.rows.shape)
    # Signed roots of the data, times these, are squared.
    expect_floats("weights", components.weights, n_columns, low=0, high=MOST_OF_WEIGHTS)
    data, limit = components.rows.data, MOST_OF_WEIGHTS
    expect_floats("rows", data, len(data), low=-MOST_SHARE, high=MOST_SHARE)
    expect_floats("loadings", components.loadings, n_rows, width, low=-limit, high=limit)
    expect_floats("offset", components.offset, width, low=-limit, high=limit)
    return width


def _check_regression(
    regression: ViewRegression, names: list[str], n_rows: int, n_classes: int
) -> None:
    n_landmarks = len(np.atleast_1d(regression.landmarks))
    expect_shape("landmarks", regression.landmarks, n_landmarks, kinds="i")
    expect_indices("landmarks", regression.landmarks, 0, n_rows)
    expect(names and list(regression.scales) == names, "scales", f"of {names}", regression.scales)
    for scale in regression.scales.values():
        expect_float("scales", scale, *KERNEL_SCALES)
    expect_floats("centre", regression.centre, n_landmarks)
    expect_floats("coefficients", regression.coefficients, n_landmarks, n_classes)
    expect_floats("intercept", regression.intercept, n_classes)
    expect_floats("scores", regression.scores, n_rows, n_classes)
    expect_float("weight", regression.weight, TINY, MOST_OF_WEIGHTS)


def _check_reading(regression: ViewRegression, X: np.ndarray, n_classes: int, wanted: bool) -> None:
    """Raise unless a regression has a reading of given labels where that is ``wanted``."""
    read = regression.by_labels
    expect((read is not None) == wanted, "by_labels", "one where labels are read", read)
    if read is not None:
        n_columns = _check_representation(read.columns, X)
        expect_floats("coefficients of labels", read.coefficients, n_columns, n_classes)
        expect_floats("scores of labels", read.scores, len(X), n_classes)


def _check_view(view: MendView, rows: np.ndarray, n_columns: int) -> None:
    widths = _check_rows(view, rows, n_columns)
    names, kernel = list(widths), view.kernel
    for what, table in (
        ("neighbours", view.neighbours),
        ("landmarks", kernel.landmarks),
        ("scales", kernel.scales),
    ):
        expect(names and list(table) == names, what, f"of {names}", list(table))
    n_landmarks, n_features = len(np.atleast_1d(kernel.centre)), np.size(kernel.spectrum)
    expect_shape("rows of landmarks", view.landmarks, n_landmarks, kinds="i")
    expect_indices("rows of landmarks", view.landmarks, 0, len(rows))
    for name in names:
        expect_floats("landmarks", kernel.landmarks[name], n_landmarks, widths[name])
        expect_float("scales", kernel.scales[name], *KERNEL_SCALES)
        near = view.neighbours[name]
        n_near = near.indices.shape[-1] if near.indices.ndim else 0
        expect_shape("neighbours", near.indices, len(rows), n_near, kinds="i")
        expect_indices("neighbours", near.indices, 0, len(rows))
        expect_floats(
            "squared_distances", near.squared_distances, len(rows), n_near, low=0, high=SINGLE
        )
    expect_floats("centre", kernel.centre, n_landmarks)
    expect_floats("linear", kernel.linear, n_landmarks, n_features)
    expect_floats("spectrum", kernel.spectrum, n_features, low=0)


def _check_features(view: ViewRows, rows: np.ndarray, n_features: int) -> None:
    expect_shape("rows", view.rows, len(rows), kinds="i")
    expect((view.rows == rows).all(), "rows of the block", "those observed", view.rows)
    expect_floats("Phi", view.Phi, len(rows), n_features)
    expect_floats("leverages", view.leverages, len(rows), len(RIDGES), low=0)


def _check_representation(representation: Representation, X: np.ndarray) -> int:
    """Number of components that it maps the columns of ``X`` to, which must not overflow."""
    centre, linear, n_columns = representation.centre, representation.linear, X.shape[1]
    expect(representation.first in FIRST, "first", f"one of {list(FIRST)}", representation.first)
    expect(centre.shape in ((), (n_columns,)), "shape of centre", "that of a row", centre.shape)
    expect_floats("centre", centre, *centre.shape, low=-MOST_OF_DATA, high=MOST_OF_DATA)
    expect_floats("linear", linear, *linear.shape, low=-MOST_OF_SCALES, high=MOST_OF_SCALES)
    fits = linear.shape in ((), (n_columns,)) or linear.shape[:-1] == (n_columns,)
    expect(fits, "shape of linear", "that of a row, or of as many rows", linear.shape)
    # Unit rows reach one, all others no further than the data.
    peaks = np.maximum(X.max(axis=0, initial=1), -X.min(axis=0, initial=0))
    reach = peaks + np.abs(centre)
    scales = np.abs(linear).astype(np.float64)
    mapped = reach @ scales if linear.ndim == 2 else reach * scales
    limit = float(np.finfo(np.result_type(X, centre, linear)).max) / 1024
    expect_floats("mapped rows", mapped, *mapped.shape, high=limit)
    return len(mapped)


def _check_evidence(
    evidence: Evidence, views: tuple[MendView, ...], n_samples: int, n_classes: int
) -> None:
    expect_floats("P of the evidence", evidence.P, n_samples, n_classes, low=0, high=MOST_SHARE)
    expect_floats("Z", evidence.Z, n_samples, len(views), n_classes)
    expect(len(evidence.fits) == len(views), "fits", f"of {len(views)} views", len(evidence.fits))
    for fit, view in zip(evidence.fits, views, strict=True):
        expect_floats("coefficients", fit.coefficients, len(view.kernel.spectrum), n_classes)
        expect_floats("intercept", fit.intercept, n_classes)
        expect_float("r2", fit.r2, LEAST_R2, 1)
    _check_gaussian(evidence.gaussian, len(views), n_classes)
    reading = evidence.by_labels
    if reading is None:
        return
    for what, parts in (("coefficients", reading.coefficients), ("columns", reading.columns)):
        expect(len(parts) == len(views), f"{what} of labels", f"of {len(views)} views", len(parts))
    for columns, coefficients, view in zip(
        reading.columns, reading.coefficients, views, strict=True
    ):
        n_columns = _check_representation(columns, view.X)
        expect_floats("coefficients of labels", coefficients, n_columns, n_classes)
    expect_floats("intercept of labels", reading.intercept, n_classes)
    expect_floats("Z of labels", reading.Z, n_samples, len(views), n_classes)


def _check_gaussian(gaussian: ViewGaussian, n_views: int, n_classes: int) -> None:
    size = n_views * n_classes
    expect_floats("means", gaussian.means, n_classes, size)
    expect_floats("covariance", gaussian.covariance, size, size)
    expect_float("floor", gaussian.floor, TINY)
    expect_floats("prior", gaussian.prior, n_classes, low=TINY, high=MOST_SHARE)
