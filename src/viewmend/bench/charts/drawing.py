"""The one renderer of charts: Matplotlib axes, for files here and for pages in `charts.page`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.bench.charts.chart import (
    AnyPanel,
    Chart,
    Panel,
    RankPanel,
    Series,
    Stroke,
    SurfacePanel,
    series_names,
    strokes,
)
from viewmend.exceptions import InvalidParameterError
from viewmend.plot.style import GREY, INK, PALETTE, label_texts, name_ticks, plot_style

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


GUIDE = "#e4e4e4"
PRINTED = "printed in the paper"
# Panels side by side in a picture file.
COLUMNS = {"lines": 3, "bars": 1, "rows": 3, "dots": 2, "surface": 3, "ranks": 1}
# Letters of a tick that are shown, and inches of the mean one.
NAME_LENGTH, LETTER = 30, 0.075
# Inches of the axis of ranks.
RANK_AXIS = 2.8
# Above this share of the range a tile is so bright that its number must be black.
BRIGHT = 0.55
HOLLOW: Mapping[str, Any] = {
    "marker": "D",
    "markersize": 6,
    "markerfacecolor": "none",
    "markeredgewidth": 1.1,
    "linestyle": "none",
}


@dataclass(frozen=True)
class Meaning:
    """What an artist stands for: its series, a tip for all of it, or tips for its marks."""

    series: str = ""
    tip: str = ""
    tips: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """Axes to draw a panel into, and what the artists in them stand for, by their ``gid``."""

    ax: Axes
    strokes: Mapping[str, Stroke]
    meanings: dict[str, Meaning] = field(default_factory=dict)

    def tell(self, artist: Artist, meaning: Meaning) -> None:
        """Say what an artist stands for."""
        gid = f"part-{len(self.meanings)}"
        artist.set_gid(gid)
        self.meanings[gid] = meaning


def draw_chart(chart: Chart) -> Figure:
    """Draw all panels of a chart, at least one, into one figure with one legend for all."""
    if not chart.panels:
        msg = f"the chart {chart.title!r} has no panels; the records hold nothing it shows"
        raise InvalidParameterError(msg)
    styles = strokes(chart)
    n_columns = min(chart.columns or COLUMNS[chart.panels[0].kind], len(chart.panels))
    n_rows = ceil(len(chart.panels) / n_columns)
    sizes = np.array([panel_size(panel) for panel in chart.panels]).max(axis=0)
    # A single narrow panel would cut the title off.
    width = max(4.6, sizes[0] * n_columns)
    legend = 0.22 * ceil(len(styles) / _legend_columns(styles, width))
    with plot_style():
        from matplotlib.figure import Figure

        size = (width, sizes[1] * n_rows + legend + 0.7)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        for ax, panel in zip(grid, chart.panels, strict=False):
            draw_panel(Sheet(ax, styles), panel)
        for ax in grid[len(chart.panels) :]:
            ax.set_visible(False)
        figure.suptitle(_plain(chart.title), x=0.01, ha="left", fontsize=12)
        _add_legend(figure, chart, styles)
        return figure


def draw_panel(sheet: Sheet, panel: AnyPanel) -> None:
    """Draw a panel of any kind, and tell what its artists stand for."""
    _DRAWERS[panel.kind](sheet, panel)
    if not isinstance(panel, RankPanel):
        _name_axes(sheet.ax, panel)
    sheet.ax.set_title(_plain(panel.title))


def panel_size(panel: AnyPanel) -> tuple[float, float]:
    """Width and height in inches."""
    if isinstance(panel, RankPanel):
        return RANK_AXIS + sum(_rank_sides(panel)), 1.3 + 0.11 * len(panel.names)
    if isinstance(panel, SurfacePanel):
        return max(3.0, 1.0 + 0.52 * len(panel.x_ticks)), 1.2 + 0.32 * len(panel.y_ticks)
    names = max(map(len, label_texts(panel.y_ticks, NAME_LENGTH)), default=0)
    n_bars = len(panel.x_ticks) * (len(series_names(panel)) + 1)
    return {
        "lines": (3.4, 2.6),
        "bars": (float(np.clip(1.0 + 0.3 * n_bars, 3.4, 8.0)), 2.8),
        "rows": (2.4 + LETTER * names, 1.1 + 0.24 * len(panel.y_ticks)),
        "dots": (4.4, 4.2),
    }[panel.kind]


def _legend_columns(names: Iterable[str], width: float) -> int:
    """As many as there is room for, in inches."""
    longest = max(map(len, names), default=1)
    return max(1, int(width / (0.085 * longest + 0.6)))


def _add_legend(figure: Figure, chart: Chart, styles: Mapping[str, Stroke]) -> None:
    """Series and caption below the panels; as the legend's title the caption keeps clear of it."""
    from matplotlib.lines import Line2D

    looks = _line_looks if chart.panels[0].kind == "lines" else _dot_looks
    handles = [Line2D([], [], **looks(stroke)) for stroke in styles.values()]
    names = list(map(_plain, styles))
    if any(one.ghost for panel in chart.panels for one in getattr(panel, "series", ())):
        handles.append(Line2D([], [], color=GREY, **HOLLOW))
        names.append(PRINTED)
    width = figure.get_figwidth()
    legend = figure.legend(
        handles,
        names,
        loc="outside lower left",
        ncols=_legend_columns(names, width),
        frameon=False,
        fontsize=9,
        title=_plain("\n".join(wrap(chart.caption, int(width * 16)))),
        title_fontsize=8,
        alignment="left",
    )
    legend.get_title().set_color(GREY)


def _line_looks(stroke: Stroke) -> dict[str, Any]:
    dashes = stroke.dashes or (None, None)
    return {"color": stroke.colour, "dashes": dashes, "marker": stroke.marker}


def _dot_looks(stroke: Stroke) -> dict[str, Any]:
    return {"color": stroke.colour, "marker": stroke.marker, "linestyle": "none"}


def _looks_on_bars(_stroke: Stroke) -> dict[str, Any]:
    """In the colour of its bar a mark would not be seen."""
    return {"color": INK, "linestyle": "none", "markerfacecolor": "white"}


def _plain(text: str) -> str:
    """Text in which Matplotlib finds no mathematics."""
    return text.replace("$", r"\$")


def _draw_lines(sheet: Sheet, panel: Panel) -> None:
    from matplotlib.ticker import MaxNLocator

    for one in panel.series:
        _draw_marks(sheet, panel, one, _line_looks, capsize=2)
    if not panel.x_ticks and all(x.is_integer() for one in panel.series for x in one.x):
        sheet.ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


def _draw_rows(sheet: Sheet, panel: Panel) -> None:
    n_rows, n_series = len(panel.y_ticks), len(series_names(panel))
    for row in range(n_rows):
        sheet.ax.axhline(row, color=GUIDE, linewidth=0.8, zorder=0)
    step = min(0.24, 0.8 / max(1, n_series))
    for one in panel.series:
        _draw_marks(sheet, panel, one, _dot_looks, dodge=(0, step * _shift(panel, one)))
    sheet.ax.set_ylim(n_rows - 0.4, -0.6)


def _draw_dots(sheet: Sheet, panel: Panel) -> None:
    for one in panel.series:
        _draw_marks(sheet, panel, one, _dot_looks)
    values = [value for one in panel.series for value in (*one.x, *one.y)]
    margin = 0.05 * (max(values) - min(values)) or 1.0
    ends = min(values) - margin, max(values) + margin
    sheet.ax.plot(ends, ends, color=GREY, linewidth=0.9, linestyle="--", zorder=0)
    sheet.ax.set(xlim=ends, ylim=ends)


def _draw_bars(sheet: Sheet, panel: Panel) -> None:
    width = 0.8 / len(series_names(panel))
    for one in panel.series:
        dodge = width * _shift(panel, one)
        if not one.ghost:
            colour = sheet.strokes[one.name].colour
            bars = sheet.ax.bar(np.array(one.x) + dodge, one.y, 0.92 * width, color=colour)
            for bar, tip in zip(bars, panel.tips(one), strict=True):
                sheet.tell(bar, Meaning(one.name, tip))
        _draw_marks(sheet, panel, one, _looks_on_bars, dodge=(dodge, 0), capsize=2)


def _shift(panel: Panel, one: Series) -> float:
    """Place of a series among its neighbours, around zero."""
    names = series_names(panel)
    return names.index(one.name) - (len(names) - 1) / 2


def _draw_marks(
    sheet: Sheet,
    panel: Panel,
    one: Series,
    looks: Callable[[Stroke], dict[str, Any]],
    dodge: tuple[float, float] = (0, 0),
    capsize: float = 0,
) -> None:
    """Points with error bars, or the hollow marks of the paper."""
    style = looks(sheet.strokes[one.name])
    if one.ghost:
        style = {**HOLLOW, **{name: style[name] for name in style if "color" in name}}
    style |= {"xerr" if panel.kind == "rows" else "yerr": one.error or None}
    line, caps, bars = sheet.ax.errorbar(
        np.add(one.x, dodge[0]), np.add(one.y, dodge[1]), elinewidth=0.9, capsize=capsize, **style
    ).lines
    sheet.tell(line, Meaning(one.name, tips=panel.tips(one)))
    for part in (*caps, *bars):
        sheet.tell(part, Meaning(one.name))


def _name_axes(ax: Axes, panel: Panel | SurfacePanel) -> None:
    """Scales, labels and ticks; called after drawing, when the axes know their limits."""
    for axis in "xy":
        if getattr(panel, f"log_{axis}", False):
            _make_log(ax, axis)
        texts = label_texts(getattr(panel, f"{axis}_ticks"), NAME_LENGTH)
        if texts:
            name_ticks(ax, axis, texts)
    ax.set_xlabel(_plain(panel.x_label))
    ax.set_ylabel(_plain(panel.y_label))


def _make_log(ax: Axes, axis: str) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    getattr(ax, f"set_{axis}scale")("log", nonpositive="mask")
    low, high = getattr(ax, f"get_{axis}lim")()
    ruler = getattr(ax, f"{axis}axis")
    # Within two decades powers of ten alone would be too few, and within a half 1, 2 and 5 are.
    several = LogLocator(subs=(1, 2, 5) if high / low < 100 else (1,))
    ruler.set_major_locator(several if high / low > 5 else MaxNLocator(4))
    ruler.set_major_formatter(lambda value, _: f"{value:g}")
    ruler.set_minor_locator(NullLocator())


def _draw_surface(sheet: Sheet, panel: SurfacePanel) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    values = np.array(panel.values, dtype=float)
    shares = (values - np.nanmin(values)) / (np.ptp(values[np.isfinite(values)]) or 1.0)
    for row, column in np.argwhere(np.isfinite(values)).tolist():
        share = shares[row, column]
        corner = (column - 0.5, row - 0.5)
        tile = Rectangle(corner, 1, 1, color=colormaps["cividis"](share), linewidth=0)
        sheet.tell(sheet.ax.add_patch(tile), Meaning(tip=panel.tip(row, column)))
        colour = "black" if share > BRIGHT else "white"
        text = f"{values[row, column]:.1f}"
        number = sheet.ax.text(column, row, text, ha="center", va="center", color=colour)
        number.set_fontsize(8)
        sheet.tell(number, Meaning(tip=panel.tip(row, column)))
    n_rows, n_columns = values.shape
    sheet.ax.set(xlim=(-0.5, n_columns - 0.5), ylim=(-0.5, n_rows - 0.5))
    sheet.ax.spines[:].set_visible(False)


def _draw_ranks(sheet: Sheet, panel: RankPanel) -> None:
    """Axis of ranks on top; better half of the names hangs to the left, the others to the right."""
    ax, n = sheet.ax, len(panel.names)
    half = ceil(n / 2)
    first_name = 1.0 + 0.35 * len(panel.groups)
    names = label_texts(panel.names, NAME_LENGTH)
    for i, (name, rank) in enumerate(zip(names, panel.ranks, strict=True)):
        left = i < half
        depth = first_name + (i if left else n - 1 - i)
        end, side = (0.85, "right") if left else (n + 0.15, "left")
        ax.plot([rank, rank, end], [0, depth, depth], color=GREY, linewidth=0.9)
        text = f" {name} {rank:.2f} " if left else f" {rank:.2f} {name} "
        ax.text(end, depth, text, ha=side, va="center", fontsize=9)
    for i, (start, end) in enumerate(panel.groups):
        height = 0.45 + 0.35 * i
        ax.plot([start - 0.04, end + 0.04], [height] * 2, color=PALETTE[0], linewidth=3.5)
    _draw_rank_axis(ax, panel, first_name + half)


def _draw_rank_axis(ax: Axes, panel: RankPanel, bottom: float) -> None:
    n = len(panel.names)
    ax.plot([1, n], [0, 0], color=INK, linewidth=1.2)
    for rank in range(1, n + 1):
        ax.plot([rank, rank], [-0.15, 0], color=INK, linewidth=1)
        ax.text(rank, -0.25, str(rank), ha="center", va="bottom", fontsize=9)
    end = 1 + panel.difference
    ax.plot([1, 1, 1, end, end, end], [-1.45, -1.15, -1.3, -1.3, -1.15, -1.45], color=GREY, lw=1.2)
    text = f" critical difference {panel.difference:.2f}"
    ax.text(end, -1.3, text, va="center", fontsize=9, color=GREY)
    left, right = (inches * (n - 1) / RANK_AXIS for inches in _rank_sides(panel))
    ax.set(xlim=(1 - left, n + right), ylim=(bottom, -2.0))
    ax.set_axis_off()


def _rank_sides(panel: RankPanel) -> tuple[float, float]:
    """Inches for the names and ranks left and right of the axis."""
    lengths = [len(f"{name} 1.00") for name in label_texts(panel.names, NAME_LENGTH)]
    half = ceil(len(lengths) / 2)
    left, right = (0.35 + LETTER * max(some) for some in (lengths[:half], lengths[half:]))
    return left, right


_DRAWERS: dict[str, Callable[[Sheet, Any], None]] = {
    "lines": _draw_lines,
    "bars": _draw_bars,
    "rows": _draw_rows,
    "dots": _draw_dots,
    "surface": _draw_surface,
    "ranks": _draw_ranks,
}
