"""A 2-D picture of one view's graph, to see where samples without that view end up.

Every class has a corner of a regular polygon. An anchor lies between the corners of the classes
it serves, a sample at the weighted mean of its anchors. Both steps are linear in the rows of the
graph, so the rows before and after imputation can be drawn by one map, under which the observed
samples stand still.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from viewmend.exceptions import InvalidParameterError
from viewmend.plot.style import GREY, PALETTE, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["anchor_class_shares", "embed_rows", "plot_graph_embedding"]

# Class names stand this much outside the outermost sample.
NAME_RADIUS = 1.1
# A picture that reaches less far than this towards the corners says how much it is magnified.
WHOLE = 0.8
# Samples nearer to each other than this are one point to the eye; the corners have radius 1.
ONE_POINT = 1e-6


def anchor_class_shares(rows: np.ndarray, labels: ArrayLike, missing: ArrayLike) -> np.ndarray:
    """Classes each anchor serves, measured on the observed samples.

    Parameters
    ----------
    rows : array (n_samples, n_anchors)
        A view's graph; rows of missing samples are not used.
    labels : array-like (n_samples,)
        Classes known to the model, ``transduction_``; never the labels it is judged on.
    missing : array-like (n_samples,) of bool

    Returns
    -------
    array (n_anchors, n_classes)
        Columns in the order of ``numpy.unique(labels)``. Rows sum to one, or to zero for an
        anchor that no observed sample uses.
    """
    labels, seen = np.asarray(labels), ~np.asarray(missing, dtype=bool)
    if not len(rows) == len(labels) == len(seen):
        msg = (
            f"rows has {len(rows)} samples, labels has {len(labels)} and missing has {len(seen)}; "
            "pass one of each per sample"
        )
        raise InvalidParameterError(msg)
    members = labels[:, None] == np.unique(labels)
    weight = rows[seen].T @ members[seen]
    total = weight.sum(axis=1, keepdims=True)
    shares: np.ndarray = np.divide(weight, total, out=np.zeros_like(weight), where=total > 0)
    return shares


def embed_rows(
    rows_before: np.ndarray, *rows_after: np.ndarray, labels: ArrayLike, missing: ArrayLike
) -> tuple[np.ndarray, ...]:
    """Place the rows of several graphs over the same anchors in the plane, all by one linear map.

    The map is made from the observed rows of ``rows_before``, see `anchor_class_shares`.

    Parameters
    ----------
    rows_before, *rows_after : array (n_samples, n_anchors)
        For example a view's graph with uniform missing rows, and with imputed ones.
    labels : array-like (n_samples,)
        Classes known to the model, ``transduction_``; never the labels it is judged on.
    missing : array-like (n_samples,) of bool
        Samples that the view misses.

    Returns
    -------
    tuple of array (n_samples, 2)
        Points of each graph, in the order given.
    """
    shares = anchor_class_shares(rows_before, labels, missing)
    places = shares @ _corners(shares.shape[1])
    return tuple(rows @ places for rows in (rows_before, *rows_after))


@styled
def plot_graph_embedding(
    points: np.ndarray, y: ArrayLike, missing: ArrayLike, ax: Axes, title: str = ""
) -> Axes:
    """Draw points of `embed_rows`: dots for observed samples, rings for missing ones.

    Parameters
    ----------
    points : array (n_samples, 2)
    y : array-like (n_samples,)
        Class that gives the colour; every class of the embedding must occur.
    missing : array-like (n_samples,) of bool
    ax : matplotlib Axes
    title : str

    Returns
    -------
    matplotlib Axes
    """
    missing = np.asarray(missing, dtype=bool)
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    colors = np.array([PALETTE[code % len(PALETTE)] for code in range(len(classes))])
    reach = float(np.linalg.norm(points, axis=1).max(initial=1e-6))
    _draw_corners(ax, [str(name) for name in classes], colors, reach)
    seen = ~missing
    ax.scatter(
        points[seen, 0], points[seen, 1], s=7, color=colors[codes[seen]], alpha=0.6, linewidths=0
    )
    edges = colors[codes[missing]]
    ax.scatter(
        points[missing, 0], points[missing, 1], s=22, facecolors="none", edgecolors=edges, lw=0.9
    )
    if missing.sum() > 1 and np.ptp(points[missing], axis=0).max() < ONE_POINT:
        _point_at_pile(ax, points[missing][0], int(missing.sum()))
    ax.set_title(title)
    ax.set_xlabel("dots: view seen    rings: view missing")
    return ax


def _point_at_pile(ax: Axes, point: np.ndarray, n_samples: int) -> None:
    """Say how many rings lie on top of each other: one ring alone looks like one sample."""
    ax.annotate(
        f"{n_samples} samples",
        (point[0], point[1]),
        (18, -34),
        textcoords="offset points",
        arrowprops={"arrowstyle": "-", "color": GREY, "shrinkB": 4},
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
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
        ax.text(x, y, name, color=color, ha="center", va="center", fontweight="bold")
    limit = reach * (NAME_RADIUS + 0.08)
    ax.set(xlim=(-limit, limit), ylim=(-limit, limit), xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_visible(False)
    if reach < WHOLE:
        text = f"magnified {1 / reach:.1f} times"
        ax.text(0, 0, text, color=GREY, fontsize=8, transform=ax.transAxes)
