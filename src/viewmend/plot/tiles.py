"""Matrices drawn as tiles with a number in each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from viewmend.plot.style import LETTER, label_inches, label_texts, name_ticks, points_per_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Tiles darker than this have white numbers; numbers smaller than this many points are left out.
DARK = 0.5
SMALLEST = 4.0
# Height of a line of text, as a share of the font size.
LINE_HEIGHT = 1.2


def draw_tiles(
    ax: Axes,
    values: np.ndarray,
    texts: np.ndarray,
    names: tuple[Sequence[object], Sequence[object]],
    colours: str = "Blues",
    limits: tuple[float, float] = (0.0, 1.0),
) -> None:
    """Draw a matrix, first row on top, with a text in every tile large enough to hold it.

    ``values`` (n_rows, n_columns) give the colours, of a colour map of Matplotlib between
    ``limits``; NaN leaves a tile empty. ``names`` are those of the columns, below, and of the rows,
    left.
    """
    image = ax.imshow(values, cmap=colours, vmin=limits[0], vmax=limits[1])
    columns, rows = map(label_texts, names)
    room = min(points_per_unit(ax, beside=(label_inches(rows), label_inches(columns))))
    lines = [text.splitlines() for text in texts.flat]
    longest = max((len(line) for text in lines for line in text), default=1)
    letters = max(LETTER * max(longest, 2), LINE_HEIGHT * max(map(len, lines), default=1))
    size = min(9.0, 0.9 * room / letters)
    shades = image.to_rgba(values)[..., :3] @ (0.299, 0.587, 0.114)
    for row, column in np.argwhere(np.isfinite(values)) if size >= SMALLEST else ():
        ax.text(
            column,
            row,
            texts[row, column],
            ha="center",
            va="center",
            fontsize=size,
            color="white" if shades[row, column] < DARK else "black",
        )
    ax.spines[:].set_visible(False)
    name_ticks(ax, "x", columns)
    name_ticks(ax, "y", rows)
