"""Plots of which samples have which views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from viewmend.exceptions import InvalidParameterError
from viewmend.plot.style import (
    GREY,
    PALETTE,
    axes_or_new,
    label_inches,
    label_texts,
    name_ticks,
    styled,
)
from viewmend.plot.tiles import draw_tiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MISSING = "#e4e4e4"
# Length of the longest bar of counts, as a share of the width of the matrix.
BAR = 0.7
# Combinations of views that are drawn one by one.
MOST_PATTERNS = 12
# Inches that a line of the matrix of combinations needs, a tile of the overlaps, and what is around
# them beside the names; and the widest picture.
LINE, TILE, AROUND, WIDEST = 0.17, 0.33, 0.6, 8.6


def view_patterns(observed: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Combinations of views that samples have, the most frequent first.

    Parameters
    ----------
    observed : array-like (n_samples, n_views) of bool
        Which sample has which view, as in `MultiViewData`.

    Returns
    -------
    patterns : array (n_patterns, n_views) of bool
    counts : array (n_patterns,) of int
    """
    patterns, counts = np.unique(np.asarray(observed, dtype=bool), axis=0, return_counts=True)
    # Among equally frequent ones those with more views come first.
    order = np.lexsort((-patterns.sum(axis=1), -counts))
    return patterns[order], counts[order]


def coverage_size(
    observed: ArrayLike,
    view_names: Sequence[str],
    least: tuple[float, float] = (5.4, 4.0),
    n_patterns: int = MOST_PATTERNS,
) -> tuple[float, float]:
    """Inches (width, height) that `plot_coverage` can be read in: ``least``, higher if need be."""
    n_lines = min(n_patterns, len(view_patterns(observed)[0]))
    below = label_inches([f"{name} 100%" for name in label_texts(view_names)])
    return least[0], max(least[1], n_lines * LINE + below + AROUND)


def overlap_size(
    view_names: Sequence[str], least: tuple[float, float] = (5.4, 4.0)
) -> tuple[float, float]:
    """Inches (width, height) that `plot_overlap` can be read in: ``least``, larger if need be."""
    side = len(view_names) * TILE + label_inches(label_texts(view_names)) + AROUND
    side = min(side, WIDEST)
    return max(least[0], side), max(least[1], side)


@styled
def plot_coverage(
    observed: ArrayLike,
    view_names: Sequence[str],
    ax: Axes | None = None,
    n_patterns: int = MOST_PATTERNS,
) -> Axes:
    """Draw which views the samples have: one row per combination, with its number of samples.

    Parameters
    ----------
    observed : array-like (n_samples, n_views) of bool
        As in `MultiViewData`.
    view_names : sequence of str (n_views,)
        Names of the views, written below with the share of the samples that have the view.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    n_patterns : int
        Number of combinations to draw; rarer ones are summed up in a line below.

    Returns
    -------
    matplotlib Axes
    """
    seen = _checked(observed, view_names)
    ax = axes_or_new(ax, coverage_size(seen, view_names, n_patterns=n_patterns))
    patterns, counts = view_patterns(seen)
    shown = patterns[:n_patterns]
    for v, column in enumerate(shown.T):
        colours = np.where(column, PALETTE[v % len(PALETTE)], MISSING)
        ax.barh(range(len(shown)), 0.92, 0.86, v - 0.46, color=colours)
    _draw_counts(ax, counts, len(shown), len(view_names))
    ax.spines[:].set_visible(False)
    ax.set_xlim(-0.5, len(view_names) * (1 + BAR) + 1.0)
    ax.set_ylim(max(len(shown), 3) - 0.4, -0.6)
    ax.set_yticks([])
    shares = zip(label_texts(view_names), seen.mean(axis=0), strict=True)
    name_ticks(ax, "x", [f"{name} {share:.0%}" for name, share in shares])
    ax.set_xlabel("view, and its share of all samples", loc="left")
    ax.set_ylabel("sets of views")
    return ax


def _draw_counts(ax: Axes, counts: np.ndarray, n_shown: int, n_views: int) -> None:
    """Bars right of the matrix, and what the rarer sets hold together."""
    start, unit = n_views - 0.3, BAR * n_views / counts.max()
    shown = counts[:n_shown]
    bars = ax.barh(range(n_shown), shown * unit, 0.5, start, color=GREY)
    texts = [
        f"{count} ({share:.0%})" for count, share in zip(shown, shown / counts.sum(), strict=True)
    ]
    ax.bar_label(bars, texts, padding=4, fontsize=9)
    if n_shown < len(counts):
        text = f"{len(counts) - n_shown} rarer sets: {counts[n_shown:].sum()} samples"
        ax.text(start, n_shown - 0.3, text, va="top", fontsize=9, color=GREY)


@styled
def plot_overlap(observed: ArrayLike, view_names: Sequence[str], ax: Axes | None = None) -> Axes:
    """Draw how many samples every two views share; the diagonal has the samples of each view.

    Parameters
    ----------
    observed : array-like (n_samples, n_views) of bool
        Which sample has which view, as in `MultiViewData`.
    view_names : sequence of str (n_views,)
        Names of the views.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    seen = _checked(observed, view_names).astype(np.int64)
    ax = axes_or_new(ax, overlap_size(view_names))
    common = seen.T @ seen
    shares = common / len(seen)
    texts = np.array([[f"{n}\n{n / len(seen):.0%}" for n in row] for row in common.tolist()])
    draw_tiles(ax, shares, texts, (view_names, view_names))
    ax.set_xlabel("samples that have both views")
    return ax


def _checked(observed: ArrayLike, view_names: Sequence[str]) -> np.ndarray:
    seen = np.asarray(observed, dtype=bool)
    if seen.ndim != 2 or seen.shape[1] != len(view_names) or not len(seen):
        msg = (
            f"observed must be (n_samples, {len(view_names)}) like the {len(view_names)} view "
            f"names, got shape {seen.shape}; pass data.observed and data.names"
        )
        raise InvalidParameterError(msg)
    return seen
