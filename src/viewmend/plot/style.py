"""The style of all plots. Nothing here changes Matplotlib's global settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from viewmend.extras import how_to_install

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
INK = "#333333"

SETTINGS: dict[Any, Any] = {
    "font.size": 10,
    "text.color": INK,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#999999",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "lines.linewidth": 1.8,
    "lines.markersize": 4,
    "figure.dpi": 150,
    "figure.facecolor": "white",
}

# Least distance of two labels, as a share of the height of the axes.
LABEL_GAP = 0.07
# Letters of a name that are shown, and the mean width of one as a share of the font size.
NAME_LENGTH = 24
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
LETTER = 0.6
# Largest font of names at axes, in points.
NAME_SIZE = 9.0

Drawing = TypeVar("Drawing", bound=Callable[..., Any])


def require_matplotlib() -> None:
    """Raise an ImportError that names the remedy unless Matplotlib can be imported."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        msg = f"drawing needs Matplotlib, which is not installed; {how_to_install('plot')}"
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


def axes_or_new(ax: Axes | None, size: tuple[float, float] = (5.4, 4.0)) -> Axes:
    """The axes given, or those of a new figure of pyplot, ``size`` inches wide and high."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")[1]


def label_texts(names: Iterable[object], length: int = NAME_LENGTH) -> list[str]:
    """Names as a picture shows them: on one line each, no mathematics, none too long.

    They are shortened in the middle. Where this would make two of them equal, what all of them
    begin with is left out instead.
    """
    texts = [" ".join(str(name).split()) for name in names]
    if len({_shortened(text, length) for text in texts}) < len(set(texts)):
        same = takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False))
        n_common = len(list(same))
        texts = [ELLIPSIS + text[n_common:] for text in texts]
    return [_shortened(text, length).replace("$", r"\$") for text in texts]


def _shortened(text: str, length: int) -> str:
    tail = (length - 1) // 2
    return text if len(text) <= length else text[: length - 1 - tail] + ELLIPSIS + text[-tail:]


def name_ticks(ax: Axes, axis: str, texts: Sequence[str]) -> None:
    """Name the places 0, 1, ... of an axis, in letters as small and as few names as must be.

    Names below the axes are turned where they would touch. The axes have their final limits; the
    texts are from `label_texts` where users gave the names.
    """
    room = points_per_unit(ax)["xy".index(axis)]
    size = float(np.clip(0.95 * room, 6.0, NAME_SIZE))
    every = max(1, int(np.ceil(1.05 * size / room)))
    looks: dict[str, Any] = {"fontsize": size}
    longest = max((len(text) for text in texts), default=0)
    if axis == "x" and LETTER * size * (longest + 1) > room:
        turned = 90 if room < 2 * size or longest > NAME_LENGTH / 2 else 40
        looks |= {"rotation": turned, "ha": "right", "rotation_mode": "anchor"}
        looks |= {"va": "center"} if turned == 90 else {}
    getattr(ax, f"set_{axis}ticks")(range(0, len(texts), every), labels=texts[::every], **looks)
    ax.tick_params(axis=axis, length=0)  # type: ignore[arg-type]


def label_inches(texts: Iterable[str]) -> float:
    """How long the longest name at an axis is."""
    return LETTER * NAME_SIZE * max(map(len, texts), default=0) / 72


def points_per_unit(ax: Axes, beside: tuple[float, float] = (0.0, 0.0)) -> tuple[float, float]:
    """Width and height of one unit of the data, in points, before the layout is settled.

    So many inches ``beside`` the axes, and below them, will be taken from them.
    """
    box, dots = ax.get_window_extent(), ax.figure.dpi
    spans = [abs(end - start) for start, end in (ax.get_xlim(), ax.get_ylim())]
    width, height = (
        72 * max(side / dots - taken, 0.0)
        for side, taken in zip((box.width, box.height), beside, strict=True)
    )
    if ax.get_aspect() != "auto":
        return (min(width, height) / max(spans),) * 2
    return width / spans[0], height / spans[1]


def label_line_ends(
    ax: Axes, heights: Sequence[float], texts: Sequence[str], colors: Sequence[str]
) -> None:
    """Write each text right of the axes beside the end of its line, pushed apart where too close.

    The axes have their final limits; ``heights`` are the last values of the lines.
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
