"""Columns of a view by their importance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from viewmend.plot.style import PALETTE, axes_or_new, label_texts, name_ticks, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# What larger values do to the score of a class, with the colours; unclear ones are grey.
_CLEAR = 0.5
_MEANINGS = {
    "larger values raise the score of the class": PALETTE[0],
    "larger values lower it": PALETTE[1],
    "larger values raise or lower it": PALETTE[9],
}
# Distance in points of their legend from the axes, which leaves room for ticks and label.
_BELOW = 38


@styled
def plot_columns(
    columns: ArrayLike,
    importances: ArrayLike,
    directions: ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the importance of columns as bars.

    Parameters
    ----------
    columns : array-like (n_columns,)
        Names or numbers; the first on top.
    importances : array-like (n_columns,)
        Shares, as in `viewmend.models.view_explanation.ViewExplanation`.
    directions : array-like (n_columns,), optional
        From -1 if larger values lower the score of a class to 1 if they raise it: colours.
    ax : matplotlib Axes, optional
        A new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    lengths = 100 * np.asarray(importances, dtype=float)
    ax = axes_or_new(ax, (5.4, 0.28 * len(lengths) + 1.2))
    places = np.arange(len(lengths))
    if directions is None:
        ax.barh(places, lengths, 0.7, color=PALETTE[0])
    else:
        signs = np.asarray(directions, dtype=float)
        kinds = (signs >= _CLEAR, signs <= -_CLEAR, np.abs(signs) < _CLEAR)
        for (meaning, color), those in zip(_MEANINGS.items(), kinds, strict=True):
            if those.any():
                ax.barh(places[those], lengths[those], 0.7, color=color, label=meaning)
        _draw_legend(ax)
    ax.set_ylim(len(lengths) - 0.4, -0.6)
    name_ticks(ax, "y", label_texts(np.asarray(columns).tolist()))
    ax.set_xlabel("variance of the scores that is lost without the column, %")
    return ax


def _draw_legend(ax: Axes) -> None:
    """A legend below the axes, where it hides no bar however long they are."""
    from matplotlib.transforms import ScaledTranslation

    below = ScaledTranslation(0, -_BELOW / 72, ax.figure.dpi_scale_trans)
    ax.legend(
        frameon=False,
        fontsize=9,
        loc="upper left",
        borderaxespad=0,
        bbox_to_anchor=(0, 0),
        bbox_transform=ax.transAxes + below,
    )
