"""How all pictures look. Nothing here changes Matplotlib's global settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GREY", "PALETTE", "label_line_ends", "plot_style", "require_matplotlib", "styled"]

# Paul Tol's "muted" scheme, told apart by colour-blind readers; ordered so that neighbours differ
# in lightness too, and with a darker grey than his, which vanishes as a thin line.
PALETTE = (
    "#332288",
    "#CC6677",
    "#117733",
    "#88CCEE",
    "#882255",
    "#999933",
    "#44AA99",
    "#DDAA33",
    "#AA4499",
    "#777777",
)
GREY = "#666666"

SETTINGS: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.labelcolor": "#333333",
    "axes.edgecolor": "#999999",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
    "figure.dpi": 150,
    "figure.facecolor": "white",
}

# Least distance of two labels, as a share of the height of the axes.
LABEL_GAP = 0.07

Drawing = TypeVar("Drawing", bound=Callable[..., Any])


def require_matplotlib() -> None:
    """Raise an ImportError that names the remedy unless Matplotlib can be imported."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        msg = "drawing needs Matplotlib, which is not installed; run: pip install viewmend[plot]"
        raise ImportError(msg) from error


def plot_style() -> AbstractContextManager[None]:
    """Matplotlib's settings of this package for the length of a ``with`` block."""
    require_matplotlib()
    import matplotlib

    return matplotlib.rc_context(SETTINGS)


def styled(draw: Drawing) -> Drawing:
    """Run a drawing function under `plot_style`."""

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        with plot_style():
            return draw(*args, **kwargs)

    return drawn  # type: ignore[return-value]


def label_line_ends(
    ax: Axes, heights: Sequence[float], texts: Sequence[str], colors: Sequence[str]
) -> None:
    """Write each text right of the axes beside the end of its line, pushed apart where too close.

    Parameters
    ----------
    ax : matplotlib Axes
        With its final limits.
    heights : sequence of float
        Last value of each line, in data coordinates.
    texts, colors : sequence of str
    """
    ends = ax.transData.transform([(0.0, height) for height in heights])
    places = _pushed_apart(ax.transAxes.inverted().transform(ends)[:, 1], LABEL_GAP)
    for place, text, color in zip(places, texts, colors, strict=True):
        ax.text(1.02, place, text, color=color, transform=ax.transAxes, va="center", fontsize=9)


def _pushed_apart(places: np.ndarray, gap: float) -> np.ndarray:
    """Places at least ``gap`` apart in the same order, around the same mean."""
    order = np.argsort(places, kind="stable")
    steps = np.arange(len(places)) * gap
    apart = np.maximum.accumulate(places[order] - steps) + steps
    result = np.empty(len(places))
    result[order] = apart - apart.mean() + places.mean()
    return result
