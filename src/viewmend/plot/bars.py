"""Weights and counts as bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from viewmend.exceptions import InvalidParameterError
from viewmend.plot.style import GREY, PALETTE, axes_or_new, label_texts, name_ticks, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@styled
def plot_weight_bars(weights: ArrayLike, view_names: Sequence[str], ax: Axes | None = None) -> Axes:
    """Draw the weight of every view as a bar.

    Parameters
    ----------
    weights : array-like (n_views,)
        ``view_weights_`` of a fitted model.
    view_names : sequence of str (n_views,)
        Names of the views.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    lengths = np.asarray(weights, dtype=float)
    if len(lengths) != len(view_names):
        msg = (
            f"weights has {len(lengths)} entries but view_names has {len(view_names)}; pass one "
            f"name per view"
        )
        raise InvalidParameterError(msg)
    ax = axes_or_new(ax, (5.4, 0.36 * len(lengths) + 1.2))
    colours = [PALETTE[v % len(PALETTE)] for v in range(len(lengths))]
    bars = ax.barh(range(len(lengths)), lengths, 0.66, color=colours)
    ax.bar_label(bars, [f"{weight:.3f}" for weight in lengths], padding=3, fontsize=9)
    ax.axvline(lengths.mean(), color=GREY, linestyle="--", linewidth=1)
    ax.set_xlim(min(0.0, lengths.min()), 1.15 * lengths.max())
    ax.set_ylim(len(lengths) - 0.4, -0.6)
    name_ticks(ax, "y", label_texts(view_names))
    ax.set_xlabel("weight of the view (dashed: equal weights)")
    return ax


@styled
def plot_class_counts(
    counts: Mapping[str, ArrayLike], classes: Iterable[Any], ax: Axes | None = None
) -> Axes:
    """Draw numbers of samples of every class, for example given and predicted ones.

    Parameters
    ----------
    counts : dict of array-like (n_classes,)
        Counts by name of the series; each series has its own colour.
    classes : array-like (n_classes,)
        The first on top.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    names = list(classes)
    ax = axes_or_new(ax, (5.4, max(2.4, 0.3 * len(names) + 0.9)))
    height = 0.8 / len(counts)
    for i, (title, numbers) in enumerate(counts.items()):
        places = np.arange(len(names)) + (i - (len(counts) - 1) / 2) * height
        lengths = np.asarray(numbers)
        bars = ax.barh(places, lengths, 0.9 * height, color=PALETTE[i], label=title)
        if len(names) * len(counts) <= 40:
            ax.bar_label(bars, [str(number) for number in lengths], padding=3, fontsize=8)
    ax.margins(x=0.12)
    ax.set_ylim(len(names) - 0.4, -0.6)
    name_ticks(ax, "y", label_texts(names))
    ax.legend(
        frameon=False, fontsize=9, ncols=len(counts), loc="lower right", bbox_to_anchor=(1, 1)
    )
    ax.set_xlabel("samples")
    ax.set_ylabel("class")
    return ax
