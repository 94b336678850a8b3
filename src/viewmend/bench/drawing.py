"""Charts as Matplotlib figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.bench.charts import (
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
from viewmend.plot.style import GREY, plot_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_chart"]

GUIDE = "#e4e4e4"
PRINTED = "printed in the paper"
# Panels side by side, and width and height of one in inches; rows ask for more height each.
COLUMNS = {"lines": 3, "bars": 1, "rows": 3, "dots": 2, "surface": 3, "ranks": 1}
SIZES = {
    "lines": (3.4, 2.6),
    "bars": (8.0, 2.8),
    "rows": (3.6, 1.1),
    "dots": (4.4, 4.2),
    "surface": (3.8, 3.2),
    "ranks": (8.0, 1.3),
}
ROW_HEIGHT = {"rows": 0.24, "ranks": 0.11}
# Above this share of the range a cell is so bright that its number must be black.
BRIGHT = 0.55
HOLLOW: Mapping[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 1.1, "linestyle": "none"}


def draw_chart(chart: Chart) -> Figure:
    """Draw all panels of a chart, with one legend for all.

    Parameters
    ----------
    chart : Chart
        With at least one panel; all of one kind set the size.

    Returns
    -------
    matplotlib Figure
    """
    if not chart.panels:
        msg = f"the chart {chart.title!r} has no panels; the records hold nothing it shows"
        raise InvalidParameterError(msg)
    with plot_style():
        from matplotlib.figure import Figure

        n_rows, n_columns, size = _layout(chart)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        styles = strokes(chart)
        for ax, panel in zip(grid, chart.panels, strict=False):
            _DRAWERS[panel.kind](ax, panel, styles)
            ax.set_title(panel.title)
        for ax in grid[len(chart.panels) :]:
            ax.set_visible(False)
        figure.suptitle(chart.title, x=0.01, ha="left", fontsize=12)
        _add_legend(figure, chart, styles)
        return figure


def _layout(chart: Chart) -> tuple[int, int, tuple[float, float]]:
    """Rows and columns of panels, and the size of the figure."""
    panel = chart.panels[0]
    n_columns = min(chart.columns or COLUMNS[panel.kind], len(chart.panels))
    n_rows = ceil(len(chart.panels) / n_columns)
    width, height = SIZES[panel.kind]
    lines = max(_n_lines(one) for one in chart.panels)
    height += lines * ROW_HEIGHT.get(panel.kind, 0.0)
    # A single narrow panel would cut the title off.
    width = max(4.6, width * n_columns)
    names = series_names(chart)
    legend = 0.22 * ceil(len(names) / _legend_columns(names, width))
    return n_rows, n_columns, (width, height * n_rows + legend + 0.7)


def _legend_columns(names: Sequence[str], width: float) -> int:
    """As many as there is room for, in inches."""
    longest = max((len(name) for name in names), default=1)
    return max(1, int(width / (0.085 * longest + 0.6)))


def _n_lines(panel: Panel | SurfacePanel | RankPanel) -> int:
    if isinstance(panel, RankPanel):
        return len(panel.names)
    return len(panel.y_ticks)


def _add_legend(figure: Figure, chart: Chart, styles: Mapping[str, Stroke]) -> None:
    """Series and caption below the panels; as the legend's title the caption keeps clear of it."""
    from matplotlib.lines import Line2D

    joined = chart.panels[0].kind == "lines"
    handles = [Line2D([], [], **_line_looks(stroke)) for stroke in styles.values()]
    for handle in handles if not joined else ():
        handle.set_linestyle("none")
    names = list(styles)
    if any(one.ghost for panel in chart.panels for one in getattr(panel, "series", ())):
        handles.append(Line2D([], [], color=GREY, marker="D", markersize=5, **HOLLOW))
        names.append(PRINTED)
    width = figure.get_figwidth()
    legend = figure.legend(
        handles,
        names,
        loc="outside lower left",
        ncols=_legend_columns(names, width),
        frameon=False,
        fontsize=9,
        title="\n".join(wrap(chart.caption, int(width * 16))),
        title_fontsize=8,
        alignment="left",
    )
    legend.get_title().set_color(GREY)


def _draw_lines(ax: Axes, panel: Panel, styles: Mapping[str, Stroke]) -> None:
    for one in panel.series:
        looks = _ghost_looks(styles[one.name]) if one.ghost else _line_looks(styles[one.name])
        ax.errorbar(one.x, one.y, yerr=one.error or None, elinewidth=0.9, capsize=2, **looks)
    _name_axes(ax, panel)


def _line_looks(stroke: Stroke) -> dict[str, Any]:
    dashes = stroke.dashes or (None, None)
    return {"color": stroke.colour, "dashes": dashes, "marker": stroke.marker}


def _dot_looks(stroke: Stroke) -> dict[str, Any]:
    return {"color": stroke.colour, "marker": stroke.marker, "linestyle": "none"}


def _ghost_looks(stroke: Stroke) -> dict[str, Any]:
    return {"color": stroke.colour, "marker": "D", "markersize": 6, **HOLLOW}


def _draw_bars(ax: Axes, panel: Panel, styles: Mapping[str, Stroke]) -> None:
    names = list(dict.fromkeys(one.name for one in panel.series))
    width = 0.8 / len(names)
    for one in panel.series:
        x = np.array(one.x) + (names.index(one.name) - (len(names) - 1) / 2) * width
        if one.ghost:
            looks = {**HOLLOW, "color": "black", "marker": "D", "markersize": 5}
            ax.plot(x, one.y, **looks)
        else:
            ax.bar(x, one.y, width * 0.92, color=styles[one.name].colour)
            ax.errorbar(
                x, one.y, yerr=one.error or None, fmt="none", ecolor="#333333", lw=0.9, capsize=2
            )
    _name_axes(ax, panel)


def _draw_rows(ax: Axes, panel: Panel, styles: Mapping[str, Stroke]) -> None:
    names = list(dict.fromkeys(one.name for one in panel.series))
    for row in range(len(panel.y_ticks)):
        ax.axhline(row, color=GUIDE, linewidth=0.8, zorder=0)
    step = min(0.24, 0.8 / max(1, len(names)))
    for one in panel.series:
        y = np.array(one.y) + (names.index(one.name) - (len(names) - 1) / 2) * step
        stroke = styles[one.name]
        looks = _ghost_looks(stroke) if one.ghost else _dot_looks(stroke)
        ax.errorbar(one.x, y, xerr=one.error or None, elinewidth=0.9, **looks)
    _name_axes(ax, panel)
    ax.set_ylim(len(panel.y_ticks) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def _draw_dots(ax: Axes, panel: Panel, styles: Mapping[str, Stroke]) -> None:
    for one in panel.series:
        looks = _dot_looks(styles[one.name])
        ax.errorbar(one.x, one.y, yerr=one.error or None, elinewidth=0.7, **looks)
    low, high = _square_limits(panel.series)
    ax.plot([low, high], [low, high], color=GREY, linewidth=0.9, linestyle="--", zorder=0)
    ax.set(xlim=(low, high), ylim=(low, high))
    _name_axes(ax, panel)


def _square_limits(series: tuple[Series, ...]) -> tuple[float, float]:
    values = [value for one in series for value in (*one.x, *one.y)]
    margin = 0.05 * (max(values) - min(values)) or 1.0
    return min(values) - margin, max(values) + margin


def _draw_surface(ax: Axes, panel: SurfacePanel, _styles: Mapping[str, Stroke]) -> None:
    values = np.array(panel.values, dtype=float)
    ax.imshow(values, cmap="cividis", origin="lower", aspect="auto")
    low, span = np.nanmin(values), np.ptp(values[np.isfinite(values)]) or 1.0
    for row, column in np.argwhere(np.isfinite(values)):
        value = values[row, column]
        colour = "black" if (value - low) / span > BRIGHT else "white"
        text = f"{value:.1f}"
        ax.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
    ax.set_xticks(range(len(panel.x_ticks)), panel.x_ticks)
    ax.set_yticks(range(len(panel.y_ticks)), panel.y_ticks)
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)


def _draw_ranks(ax: Axes, panel: RankPanel, _styles: Mapping[str, Stroke]) -> None:
    """Axis of ranks on top; better half of the names hangs to the left, the others to the right."""
    n = len(panel.names)
    half = ceil(n / 2)
    first_name = 1.0 + 0.35 * len(panel.groups)
    for i, (name, rank) in enumerate(zip(panel.names, panel.ranks, strict=True)):
        left = i < half
        depth = first_name + (i if left else n - 1 - i)
        end, side = (0.85, "right") if left else (n + 0.15, "left")
        ax.plot([rank, rank, end], [0, depth, depth], color=GREY, linewidth=0.9)
        text = f"{name} {rank:.2f}" if left else f"{rank:.2f} {name}"
        ax.text(end, depth, f" {text} ", ha=side, va="center", fontsize=9)
    for i, (start, end) in enumerate(panel.groups):
        height = 0.45 + 0.35 * i
        ax.plot([start - 0.04, end + 0.04], [height] * 2, color="#332288", linewidth=3.5)
    _draw_rank_axis(ax, panel, first_name + half)


def _draw_rank_axis(ax: Axes, panel: RankPanel, bottom: float) -> None:
    n = len(panel.names)
    ax.plot([1, n], [0, 0], color="#333333", linewidth=1.2)
    for rank in range(1, n + 1):
        ax.plot([rank, rank], [-0.15, 0], color="#333333", linewidth=1)
        ax.text(rank, -0.25, str(rank), ha="center", va="bottom", fontsize=9)
    end = 1 + panel.difference
    ax.plot([1, 1, 1, end, end, end], [-1.45, -1.15, -1.3, -1.3, -1.15, -1.45], color=GREY, lw=1.2)
    text = f" critical difference {panel.difference:.2f}"
    ax.text(end, -1.3, text, va="center", fontsize=9, color=GREY)
    ax.set(xlim=(1 - 0.35 * n, n + 0.35 * n), ylim=(bottom, -2.0))
    ax.set_axis_off()


def _name_axes(ax: Axes, panel: Panel) -> None:
    """Scales, labels and ticks; called after drawing, when the axes know their limits."""
    if panel.log_x:
        ax.set_xscale("log", nonpositive="mask")
        ax.xaxis.set_minor_formatter("")
    if panel.log_y:
        ax.set_yscale("log", nonpositive="mask")
        ax.yaxis.set_minor_formatter("")
    ax.set_xlabel(panel.x_label)
    ax.set_ylabel(panel.y_label)
    if panel.x_ticks:
        ax.set_xticks(range(len(panel.x_ticks)), panel.x_ticks)
    if panel.y_ticks:
        ax.set_yticks(range(len(panel.y_ticks)), panel.y_ticks)


_DRAWERS: dict[str, Callable[..., None]] = {
    "lines": _draw_lines,
    "bars": _draw_bars,
    "rows": _draw_rows,
    "dots": _draw_dots,
    "surface": _draw_surface,
    "ranks": _draw_ranks,
}
