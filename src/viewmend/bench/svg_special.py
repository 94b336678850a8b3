"""Surfaces and rank diagrams as inline SVG."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, isfinite

from viewmend.bench.axes import Scale
from viewmend.bench.charts import RankPanel, Stroke, SurfacePanel
from viewmend.bench.svg_parts import (
    BOTTOM,
    LETTER,
    RIGHT,
    TOP,
    axis_labels,
    path_of,
    picture,
    tag,
    tick_of,
)

__all__ = ["ranks_picture", "surface_picture"]

# Dark to bright, told apart by colour-blind readers.
SHADES = ((0, 34, 78), (124, 123, 120), (254, 232, 56))
TILE_WIDTH, TILE_HEIGHT = 44, 26
NAME_HEIGHT, GROUP_HEIGHT = 18, 9


def surface_picture(panel: SurfacePanel, _styles: Mapping[str, Stroke]) -> str:
    """Tiles coloured by value, with the value in them."""
    n_rows, n_columns = len(panel.y_ticks), len(panel.x_ticks)
    left = 34 + LETTER * max(map(len, panel.y_ticks))
    width, bottom = left + TILE_WIDTH * n_columns, TOP + TILE_HEIGHT * n_rows
    parts = [
        _tile(panel, row, column, left + TILE_WIDTH * column, bottom - TILE_HEIGHT * (row + 1))
        for row in range(n_rows)
        for column in range(n_columns)
    ]
    for row, text in enumerate(panel.y_ticks):
        parts.append(tick_of(text, left - 5, bottom - TILE_HEIGHT * (row + 0.5) + 4, "end"))
    for column, text in enumerate(panel.x_ticks):
        parts.append(tick_of(text, left + TILE_WIDTH * (column + 0.5), bottom + 15, "middle"))
    labels = axis_labels(panel, (left + width) / 2, bottom + BOTTOM)
    return picture(panel.title, "".join(parts) + labels, width + RIGHT, bottom + BOTTOM)


def _tile(panel: SurfacePanel, row: int, column: int, x: float, y: float) -> str:
    value = panel.values[row][column]
    if not isfinite(value):
        return ""
    share = _share(panel, value)
    where = f"{panel.x_label} {panel.x_ticks[column]}, {panel.y_label} {panel.y_ticks[row]}"
    looks = {"class_": "mark", "data_tip": f"{where}: {value:.2f}", "fill": _shade(share)}
    middle = {"x": x + TILE_WIDTH / 2, "y": y + TILE_HEIGHT / 2 + 4}
    ink = "#000" if share > 0.55 else "#fff"
    number = tag("text", f"{value:.1f}", **middle, fill=ink, class_="number")
    return tag("rect", x=x, y=y, width=TILE_WIDTH, height=TILE_HEIGHT, **looks) + number


def _share(panel: SurfacePanel, value: float) -> float:
    """Where a value lies between the smallest and the largest, in [0, 1]."""
    known = [one for row in panel.values for one in row if isfinite(one)]
    return (value - min(known)) / ((max(known) - min(known)) or 1.0)


def _shade(share: float) -> str:
    """Colour between the `SHADES`."""
    at = share * (len(SHADES) - 1)
    i = min(int(at), len(SHADES) - 2)
    mixed = (a + (b - a) * (at - i) for a, b in zip(SHADES[i], SHADES[i + 1], strict=True))
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def ranks_picture(panel: RankPanel, _styles: Mapping[str, Stroke]) -> str:
    """Axis of ranks; the better half of the names hangs to the left, the others to the right."""
    n, half = len(panel.names), ceil(len(panel.names) / 2)
    side = 60 + LETTER * max(map(len, panel.names))
    scale = Scale(1, n, side, side + 360)
    axis = TOP + 48.0
    first = axis + 18.0 + GROUP_HEIGHT * len(panel.groups)
    parts = [_rank_axis(panel, scale, axis)]
    for i in range(n):
        depth = i if i < half else n - 1 - i
        parts.append(_hanging_name(panel, i, i < half, scale, (axis, first + NAME_HEIGHT * depth)))
    for i, ends in enumerate(panel.groups):
        places = [(scale.place(rank), axis + 8 + GROUP_HEIGHT * i) for rank in ends]
        parts.append(path_of(*places, class_="group"))
    return picture(panel.title, "".join(parts), 2 * side + 360, first + NAME_HEIGHT * half)


def _rank_axis(panel: RankPanel, scale: Scale, y: float) -> str:
    """Numbers above a line, and the critical difference above these."""
    parts = [path_of((scale.start, y), (scale.end, y))]
    for rank in range(1, len(panel.names) + 1):
        x = scale.place(rank)
        parts += [path_of((x, y - 5), (x, y)), tick_of(str(rank), x, y - 9, "middle")]
    span = scale.place(1), scale.place(1 + panel.difference)
    parts += [path_of((x, TOP + 8.0), (x, TOP + 16.0)) for x in span]
    parts.append(path_of(*((x, TOP + 12.0) for x in span)))
    text = f"critical difference {panel.difference:.2f}"
    return "".join(parts) + tick_of(text, span[1] + 6, TOP + 16, "start")


def _hanging_name(
    panel: RankPanel, i: int, left: bool, scale: Scale, heights: tuple[float, float]
) -> str:
    axis, y = heights
    name, x = panel.names[i], scale.place(panel.ranks[i])
    rank = f"{panel.ranks[i]:.2f}"
    end, anchor, step = (scale.start - 12, "end", -5) if left else (scale.end + 12, "start", 5)
    text = f"{name} {rank}" if left else f"{rank} {name}"
    line = path_of((x, axis), (x, y), (end, y), class_="hair")
    return line + tick_of(text, end + step, y + 4, anchor)
