"""Draw a graph in the plane, to see where samples lie, including those with missing views.

Every class is a corner of a regular polygon. In a graph of samples and anchors, an anchor lies
between the corners of the classes of its samples, and a sample at the weighted mean of its anchors.
Both steps are linear in the rows of the graph. So rows before and after imputation can be drawn by
the same map, and observed samples do not move. In a graph of samples only, a linear map of its
leading spectral coordinates brings samples as close to the corners as possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import eigsh

from viewmend.core.common.class_shares import normalise_rows
from viewmend.data.labels import classes_and_codes
from viewmend.exceptions import InvalidParameterError
from viewmend.plot.style import GREY, PALETTE, axes_or_new, label_texts, styled
from viewmend.protocols import HasImputedGraphs, HasSampleGraph

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Class names stand this much outside the outermost sample.
NAME_RADIUS = 1.1
# A picture that reaches less far than this towards the corners says how much it is magnified.
WHOLE = 0.8
# Samples nearer to each other than this are one point to the eye; the corners have radius 1.
ONE_POINT = 1e-6
# From this many samples on, a vector picture holds them as an image.
MANY = 3000
# Parts of a graph with a smaller share of the samples than this have no spectral coordinates.
SMALL_PART = 0.01


def anchor_class_shares(rows: np.ndarray, labels: ArrayLike, missing: ArrayLike) -> np.ndarray:
    """Class shares among the observed samples of each anchor.

    Parameters
    ----------
    rows : array (n_samples, n_anchors)
        A view's graph; rows of missing samples are not used.
    labels : array-like (n_samples,)
        Classes known to the model, ``transduction_``; never test labels.
    missing : array-like (n_samples,) of bool
        Samples that do not have the view.

    Returns
    -------
    array (n_anchors, n_classes)
        Columns in the order of the sorted classes. Rows sum to one, or to zero for an
        anchor that no observed sample uses.
    """
    labels, seen = np.asarray(labels), ~np.asarray(missing, dtype=bool)
    if not len(rows) == len(labels) == len(seen):
        msg = (
            f"rows has {len(rows)} samples, labels has {len(labels)} and missing has {len(seen)}; "
            "pass one of each per sample"
        )
        raise InvalidParameterError(msg)
    classes, codes = classes_and_codes(labels)
    members = codes[:, None] == np.arange(len(classes))
    return normalise_rows(rows[seen].T @ members[seen])


def embed_rows(
    rows_before: np.ndarray, *rows_after: np.ndarray, labels: ArrayLike, missing: ArrayLike
) -> tuple[np.ndarray, ...]:
    """Place the rows of several graphs over the same anchors in the plane, all by one linear map.

    The map is made from the observed rows of ``rows_before``, see `anchor_class_shares`.

    Parameters
    ----------
    rows_before, *rows_after : array (n_samples, n_anchors)
        Graphs over the same anchors, for example a view's graph with uniform missing rows, and with
        imputed ones.
    labels : array-like (n_samples,)
        Classes known to the model, ``transduction_``; never test labels.
    missing : array-like (n_samples,) of bool
        Samples that do not have the view.

    Returns
    -------
    tuple of array (n_samples, 2)
        Points of each graph, in the order given.
    """
    shares = anchor_class_shares(rows_before, labels, missing)
    places = shares @ _corners(shares.shape[1])
    return tuple(rows @ places for rows in (rows_before, *rows_after))


def embed_graph(graph: csr_array, labels: ArrayLike) -> np.ndarray:
    """Place the samples of a graph in the plane by its leading spectral coordinates.

    These are mapped linearly so that, in the least-squares sense, every sample comes nearest to
    the corner of its class: samples that the graph puts between classes lie between corners.

    Parameters
    ----------
    graph : sparse array (n_samples, n_samples)
        Non-negative, ``graph_`` of a fitted `MendClassifier`; directions do not count.
    labels : array-like (n_samples,)
        Classes known to the model, ``transduction_``; never test labels.

    Returns
    -------
    array (n_samples, 2)
        Points of the samples. Samples outside the main parts of the graph lie in the middle.
    """
    classes, codes = classes_and_codes(np.asarray(labels))
    graph = csr_array(graph + graph.T)
    _, part = connected_components(graph, directed=False)
    sizes = np.bincount(part)
    main = np.flatnonzero(sizes[part] >= max(2, SMALL_PART * len(part)))
    points = np.zeros((len(part), 2))
    if len(main) <= len(classes) + 1:
        return points
    n_coordinates = len(classes) + len(np.unique(part[main]))
    coordinates = _spectral_coordinates(graph[main][:, main], n_coordinates)
    targets = _corners(len(classes))[codes[main]]
    points[main] = coordinates @ np.linalg.lstsq(coordinates, targets, rcond=None)[0]
    return points


def _spectral_coordinates(graph: csr_array, k: int) -> np.ndarray:
    """Leading eigenvectors of the random walk on a graph without isolated samples, (n, k)."""
    root = np.sqrt(np.asarray(graph.sum(axis=1), dtype=float))
    scale = diags_array(1 / root)
    walk = scale @ graph @ scale
    _, vectors = eigsh(walk, k=min(k, len(root) - 1), which="LA", v0=root, tol=1e-6)
    return vectors / root[:, None]


def rows_before_imputation(rows: np.ndarray, missing: ArrayLike) -> np.ndarray:
    """Rows of a view's graph as they are where nothing is known: uniform for missing samples."""
    unknown = np.asarray(missing, dtype=bool)[:, None]
    return np.where(unknown, 1 / rows.shape[1], rows)


@styled
def plot_imputation(
    model: HasImputedGraphs,
    observed: ArrayLike | None = None,
    view: int | str | None = None,
    axes: Any = None,
) -> np.ndarray:
    """Draw the graph of one view before and after imputation, in two panels.

    Parameters
    ----------
    model : fitted AGFTIClassifier
        The model to draw.
    observed : array-like (n_samples, n_views) of bool, optional
        Which samples of ``fit`` have which views, as in `MultiViewData`; by default as in the fit.
    view : int or str, optional
        Index or name of the view; by default the one with the most missing rows.
    axes : sequence of two matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    array (2,) of matplotlib Axes
    """
    names = list(model.view_names_)
    seen = np.asarray(model.observed_ if observed is None else observed, dtype=bool)
    chosen = int(np.argmin(seen.sum(axis=0))) if view is None else view
    v = names.index(chosen) if isinstance(chosen, str) else chosen
    missing, after = ~seen[:, v], model.view_graphs_[v]
    before = rows_before_imputation(after, missing)
    points = embed_rows(before, after, labels=model.transduction_, missing=missing)
    panels = _two_axes() if axes is None else np.asarray(axes)
    titles = (f"{label_texts(names)[v]}: before imputation", "after imputation")
    for ax, places, title in zip(panels, points, titles, strict=True):
        plot_graph_embedding(places, model.transduction_, missing, ax, title)
    return panels


def _two_axes() -> np.ndarray:
    from matplotlib import pyplot

    return pyplot.subplots(1, 2, figsize=(9.6, 5.5), layout="constrained")[1]


@styled
def plot_sample_graph(model: HasSampleGraph, ax: Axes | None = None) -> Axes:
    """Draw the last graph of the samples that labels were spread over; see `embed_graph`.

    Parameters
    ----------
    model : fitted MendClassifier
        Or any other with ``graph_`` (n_samples, n_samples) and ``transduction_``.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    points = embed_graph(model.graph_, model.transduction_)
    return plot_graph_embedding(points, model.transduction_, None, ax)


@styled
def plot_graph_embedding(
    points: np.ndarray,
    y: ArrayLike,
    missing: ArrayLike | None,
    ax: Axes | None = None,
    title: str = "",
) -> Axes:
    """Draw points of `embed_rows`: dots for observed samples, rings for missing ones.

    Parameters
    ----------
    points : array (n_samples, 2)
        Points of the samples, from `embed_rows` or `embed_graph`.
    y : array-like (n_samples,)
        Class that gives the colour; every class of the embedding must occur.
    missing : array-like (n_samples,) of bool, or None
        Samples that do not have the view; None for graphs of all samples.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    title : str
        Title of the axes.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax, (5.2, 5.8))
    hidden = np.zeros(len(points), dtype=bool) if missing is None else np.asarray(missing, bool)
    classes, codes = classes_and_codes(np.asarray(y))
    colors = np.array([PALETTE[code % len(PALETTE)] for code in range(len(classes))])
    reach = float(np.linalg.norm(points, axis=1).max(initial=1e-6))
    _draw_corners(ax, label_texts(classes, 14 if len(classes) <= 10 else 8), colors, reach)
    x, y = points[~hidden].T
    looks: dict[str, Any] = {"alpha": 0.6, "linewidths": 0, "rasterized": len(x) > MANY}
    ax.scatter(x, y, s=7, color=colors[codes[~hidden]], **looks)
    if missing is not None:
        _draw_rings(ax, points[hidden], colors[codes[hidden]])
        ax.set_xlabel("dots: view observed, rings: view missing")
    ax.set_title(title)
    return ax


def _draw_rings(ax: Axes, points: np.ndarray, colors: np.ndarray) -> None:
    looks: dict[str, Any] = {"facecolors": "none", "edgecolors": colors, "linewidths": 0.9}
    x, y = points.T
    ax.scatter(x, y, s=22, rasterized=len(points) > MANY, **looks)
    if len(points) > 1 and np.ptp(points, axis=0).max() < ONE_POINT:
        _point_at_pile(ax, points[0], len(points))


def _point_at_pile(ax: Axes, point: np.ndarray, n_samples: int) -> None:
    """Say how many rings lie on top of each other: one ring alone looks like one sample."""
    ax.annotate(
        f"{n_samples} samples",
        (point[0], point[1]),
        (18, -34),
        textcoords="offset points",
        arrowprops={"arrowstyle": "-", "color": GREY, "shrinkB": 4},
    )


def _corners(n_classes: int) -> np.ndarray:
    """Corners of a regular polygon, clockwise from the top, (n_classes, 2)."""
    angle = 2 * np.pi * np.arange(n_classes) / n_classes
    return np.column_stack([np.sin(angle), np.cos(angle)])


def _draw_corners(ax: Axes, names: list[str], colors: np.ndarray, reach: float) -> None:
    """Spokes and class names around the middle, and how much the picture is magnified."""
    for name, color, corner in zip(names, colors, _corners(len(names)), strict=True):
        ax.plot(*np.outer(corner, [0, reach]), color="#e4e4e4", linewidth=0.8, zorder=0)
        x, y = NAME_RADIUS * reach * corner
        size = 10 if len(names) <= 12 else 8
        ax.text(x, y, name, color=color, ha="center", va="center", weight="bold", fontsize=size)
    limit = reach * (NAME_RADIUS + 0.08)
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit), xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)
    if reach < WHOLE:
        text = f"magnified {1 / reach:.1f} times"
        ax.text(0, 0, text, color=GREY, fontsize=8, transform=ax.transAxes)
