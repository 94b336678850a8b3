"""Plot of several methods beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from viewmend.plot.style import GREY, PALETTE, axes_or_new, label_texts, name_ticks, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@styled
def plot_comparison(
    names: Sequence[str],
    accuracies: ArrayLike,
    intervals: ArrayLike,
    *,
    guessing: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the accuracy of every method as a dot, with its 95 % interval as a line.

    Parameters
    ----------
    names : sequence of str (n_methods,)
        The first on top.
    accuracies : array-like (n_methods,)
        Accuracy of every method, between 0 and 1.
    intervals : array-like (n_methods, 2)
        Lower and upper ends.
    guessing : float, optional
        Accuracy of always predicting the most frequent class, drawn as a dashed line.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    places = np.arange(len(names))
    values = np.asarray(accuracies, dtype=float)
    ends = np.asarray(intervals, dtype=float).reshape(len(names), 2)
    ax = axes_or_new(ax, (5.4, 0.36 * len(names) + 1.2))
    ax.hlines(places, ends[:, 0], ends[:, 1], color=PALETTE[0], linewidth=1.8)
    ax.plot(values, places, "o", color=PALETTE[0], markersize=6)
    for place, value in zip(places, values, strict=True):
        ax.annotate(
            f"{value:.2f}", (value, place), (0, 5), textcoords="offset points", ha="center", size=8
        )
    if guessing is not None:
        ax.axvline(guessing, color=GREY, linestyle="--", linewidth=1)
    ax.set_xlim(min([*ends[:, 0], 1.0 if guessing is None else guessing]) - 0.05, 1.02)
    ax.set_ylim(len(names) - 0.4, -0.6)
    name_ticks(ax, "y", label_texts(names))
    dashed = "" if guessing is None else " (dashed: guessing)"
    ax.set_xlabel(f"accuracy on held-out labels{dashed}")
    return ax
