"""Charts as inline SVG with keys to switch series on and off and tips on every mark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from html import escape

from viewmend.bench.axes import Scale, scale_of
from viewmend.bench.charts import Chart, Panel, Series, Stroke, finite, strokes
from viewmend.bench.svg_parts import (
    BOTTOM,
    LEFT,
    LETTER,
    RIGHT,
    TOP,
    Frame,
    axes_of,
    marks_of,
    picture,
    place_of,
    tag,
    text_of,
)
from viewmend.bench.svg_special import ranks_picture, surface_picture

__all__ = ["chart_html"]

WIDTH, HEIGHT = 340, 250
INK = "#222222"
# Height of a row, and of the largest step by which its series keep clear of each other.
ROW, STEP = 22, 7.0


def chart_html(chart: Chart) -> str:
    """A chart as a ``figure`` element, to be made alive by the report's script.

    Parameters
    ----------
    chart : Chart

    Returns
    -------
    str
        HTML; all text is escaped.
    """
    styles = strokes(chart)
    pictures = [_PICTURES[panel.kind](panel, styles) for panel in chart.panels]
    keys = "".join(_key(name, stroke) for name, stroke in styles.items()) if len(styles) > 1 else ""
    legend = f'<div class="keys" role="group" aria-label="Series">{keys}</div>' if keys else ""
    caption = f"<figcaption><strong>{escape(chart.title)}.</strong> {escape(chart.caption)}"
    return (
        f'<figure class="chart">{legend}<div class="panels">{"".join(pictures)}</div>'
        f"{caption}</figcaption></figure>"
    )


def _key(name: str, stroke: Stroke) -> str:
    line = tag("path", d="M0 6H22", stroke=stroke.colour, stroke_dasharray=_dashes(stroke))
    dot = tag("circle", cx=11, cy=6, r=4, fill=stroke.colour)
    sample = tag("svg", line + dot, width=22, height=12, aria_hidden="true")
    looks = {"type": "button", "class_": "key", "aria_pressed": "true", "data_series": name}
    return tag("button", sample + escape(name), **looks)


def _dashes(stroke: Stroke) -> str:
    return " ".join(map(str, stroke.dashes)) or "none"


def _lines_picture(panel: Panel, styles: Mapping[str, Stroke]) -> str:
    frame = _frame(panel)
    lines = (_line(one, styles[one.name], panel, frame) for one in panel.series)
    body = axes_of(panel, frame) + "".join(lines)
    return picture(panel.title, body, WIDTH, HEIGHT)


def _line(one: Series, stroke: Stroke, panel: Panel, frame: Frame) -> str:
    marks = marks_of(one, stroke, panel, frame)
    if one.ghost:
        return marks
    places = [place_of(x, y, frame) for x, y in zip(one.x, one.y, strict=True)]
    pieces = "".join(_pieces(places))
    looks = {"stroke": stroke.colour, "stroke_dasharray": _dashes(stroke), "class_": "line"}
    return tag("g", tag("path", d=pieces, **looks), data_series=one.name) + marks


def _pieces(places: Sequence[tuple[float, float] | None]) -> list[str]:
    """Commands of a path that is broken where there is no place."""
    pieces = []
    for before, place in zip([None, *places], places, strict=False):
        if place is not None:
            pieces.append(f"{'M' if before is None else 'L'}{place[0]:.1f} {place[1]:.1f}")
    return pieces


def _frame(panel: Panel) -> Frame:
    """Scales of a panel of lines; named ticks stand at whole numbers."""
    xs = [x for one in panel.series for x in one.x]
    if panel.x_ticks:
        xs += [0.0, len(panel.x_ticks) - 1.0]
    across = scale_of(xs, LEFT, WIDTH - RIGHT, panel.log_x)
    return across, scale_of(_reach(panel.series), HEIGHT - BOTTOM, TOP, panel.log_y)


def _reach(series: Sequence[Series], across: bool = False) -> list[float]:
    """What is measured, along y or across, with the ends of its error bars."""
    found = []
    for one in series:
        values = one.x if across else one.y
        errors = one.error or (0.0,) * len(values)
        found += [v + sign * e for v, e in zip(values, errors, strict=True) for sign in (-1, 1)]
    return found


def _dots_picture(panel: Panel, styles: Mapping[str, Stroke]) -> str:
    size = 420
    values = [value for one in panel.series for value in (*one.x, *one.y)]
    frame = (scale_of(values, LEFT, size - RIGHT), scale_of(values, size - BOTTOM, TOP))
    ends = [frame[i].place(value) for value in (frame[0].low, frame[0].high) for i in (0, 1)]
    diagonal = tag("path", d="M{} {}L{} {}".format(*map(text_of, ends)), class_="diagonal")
    marks = "".join(marks_of(one, styles[one.name], panel, frame) for one in panel.series)
    return picture(panel.title, axes_of(panel, frame) + diagonal + marks, size, size)


def _rows_picture(panel: Panel, styles: Mapping[str, Stroke]) -> str:
    left = 12 + LETTER * max(map(len, panel.y_ticks))
    width, height = WIDTH - LEFT + left, TOP + BOTTOM + ROW * len(panel.y_ticks)
    across = scale_of(_reach(panel.series, across=True), left, width - RIGHT, panel.log_x)
    frame = (across, Scale(-0.5, len(panel.y_ticks) - 0.5, TOP, height - BOTTOM))
    guides = "".join(
        tag("path", d=f"M{text_of(left)} {text_of(y)}H{text_of(width - RIGHT)}", class_="guide")
        for y in (frame[1].place(row) for row in range(len(panel.y_ticks)))
    )
    names = list(dict.fromkeys(one.name for one in panel.series))
    step = min(STEP, 0.8 * ROW / max(1, len(names)))
    marks = [
        marks_of(one, styles[one.name], panel, frame, (0, step * _shift(names, one.name)))
        for one in panel.series
    ]
    return picture(panel.title, guides + axes_of(panel, frame) + "".join(marks), width, height)


def _shift(names: Sequence[str], name: str) -> float:
    """Place of a name among its neighbours, around zero."""
    return names.index(name) - (len(names) - 1) / 2


def _bars_picture(panel: Panel, styles: Mapping[str, Stroke]) -> str:
    names = list(dict.fromkeys(one.name for one in panel.series))
    width = LEFT + RIGHT + len(panel.x_ticks) * max(90, 22 * (len(names) + 1))
    top = max(finite([y for one in panel.series for y in one.y]), default=1.0)
    across = Scale(-0.5, len(panel.x_ticks) - 0.5, LEFT, width - RIGHT)
    frame = (across, Scale(0, top * 1.1, HEIGHT - BOTTOM, TOP))
    wide = 0.8 / len(names) * (across.place(1) - across.place(0))
    parts = []
    for one in panel.series:
        dodge = wide * _shift(names, one.name)
        bars = "" if one.ghost else _bars(one, styles[one.name], frame, dodge, wide)
        # In the colour of the bar its mark would not be seen.
        dark = replace(styles[one.name], colour=INK)
        parts.append(bars + marks_of(one, dark, panel, frame, (dodge, 0)))
    return picture(panel.title, axes_of(panel, frame) + "".join(parts), width, HEIGHT)


def _bars(one: Series, stroke: Stroke, frame: Frame, dodge: float, wide: float) -> str:
    floor = frame[1].place(0)
    bars = [
        tag(
            "rect",
            x=frame[0].place(x) + dodge - 0.46 * wide,
            y=frame[1].place(y),
            width=0.92 * wide,
            height=floor - frame[1].place(y),
        )
        for x, y in zip(one.x, one.y, strict=True)
    ]
    return tag("g", "".join(bars), data_series=one.name, fill=stroke.colour)


_PICTURES: dict[str, Callable[..., str]] = {
    "lines": _lines_picture,
    "bars": _bars_picture,
    "rows": _rows_picture,
    "dots": _dots_picture,
    "surface": surface_picture,
    "ranks": ranks_picture,
}
