"""Pieces of inline SVG: elements, axes, marks with tips."""

from __future__ import annotations

from html import escape

from viewmend.bench.axes import Scale
from viewmend.bench.charts import Panel, Series, Stroke, SurfacePanel, finite

__all__ = [
    "BOTTOM",
    "LEFT",
    "LETTER",
    "RIGHT",
    "TOP",
    "Frame",
    "axes_of",
    "axis_labels",
    "marks_of",
    "path_of",
    "picture",
    "place_of",
    "tag",
    "text_of",
    "tick_of",
]

# Room around what is drawn, and the mean width of a letter.
LEFT, RIGHT, TOP, BOTTOM = 52, 10, 26, 42
LETTER = 6.2

# Scales across and up.
Frame = tuple[Scale, Scale]


def tag(name: str, content: str = "", **attributes: object) -> str:
    """An element; underscores of attribute names stand for dashes, values are escaped."""
    texts = [
        f' {key.rstrip("_").replace("_", "-")}="{text_of(v)}"' for key, v in attributes.items()
    ]
    return f"<{name}{''.join(texts)}>{content}</{name}>"


def text_of(value: object) -> str:
    """A value as it stands in an attribute: short numbers, escaped text."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else escape(str(value))


def picture(title: str, body: str, width: float, height: float) -> str:
    """An ``svg`` element with a title."""
    heading = tag("text", escape(title), x=4, y=15, class_="title")
    looks = {"viewBox": f"0 0 {text_of(width)} {text_of(height)}", "width": width, "height": height}
    return tag("svg", heading + body, role="img", aria_label=title or "chart", **looks)


def path_of(*points: tuple[float, float], class_: str = "axis") -> str:
    """A broken line through points."""
    places = "L".join(f"{text_of(float(x))} {text_of(float(y))}" for x, y in points)
    return tag("path", d=f"M{places}", class_=class_)


def tick_of(text: str, x: float, y: float, anchor: str) -> str:
    """A small text beside an axis."""
    return tag("text", escape(text), x=x, y=y, text_anchor=anchor, class_="tick")


def axes_of(panel: Panel, frame: Frame) -> str:
    """Lines, ticks and labels below and left."""
    across, up = frame
    bottom, left = max(up.start, up.end), across.start
    x_ticks, y_ticks = (
        list(enumerate(names)) if names else scale.ticks()
        for names, scale in ((panel.x_ticks, across), (panel.y_ticks, up))
    )
    parts = [path_of((left, min(up.start, up.end)), (left, bottom), (across.end, bottom))]
    parts += [tick_of(text, across.place(x), bottom + 15, "middle") for x, text in x_ticks]
    parts += [tick_of(text, left - 5, up.place(y) + 4, "end") for y, text in y_ticks]
    return "".join(parts) + axis_labels(panel, (left + across.end) / 2, bottom + BOTTOM)


def axis_labels(panel: Panel | SurfacePanel, middle: float, height: float) -> str:
    """Names of the axes: below the middle, and upright at the left edge."""
    below = tag("text", escape(panel.x_label), x=middle, y=height - 9, class_="label")
    turned = f"translate(12 {text_of((TOP + height - BOTTOM) / 2)}) rotate(-90)"
    return below + tag("text", escape(panel.y_label), transform=turned, class_="label")


def place_of(x: float, y: float, frame: Frame) -> tuple[float, float] | None:
    """Where a point stands, None where an axis has no place for it."""
    kept = [finite([value], positive=scale.log) for value, scale in zip((x, y), frame, strict=True)]
    return (frame[0].place(x), frame[1].place(y)) if all(kept) else None


def marks_of(
    one: Series, stroke: Stroke, panel: Panel, frame: Frame, dodge: tuple[float, float] = (0, 0)
) -> str:
    """Dots with error bars and tips, or the hollow marks of the paper."""
    parts = []
    across = panel.kind == "rows"
    for i, (x, y) in enumerate(zip(one.x, one.y, strict=True)):
        place = place_of(x, y, frame)
        if place is None:
            continue
        at = place[0] + dodge[0], place[1] + dodge[1]
        if one.error:
            scale, value = (frame[0], x) if across else (frame[1], y)
            ends = value - one.error[i], value + one.error[i]
            parts.append(_whisker(at, scale, ends, across))
        parts.append(_mark(at, _tip(one, panel, i), one.ghost))
    colours = {"stroke": stroke.colour, "fill": stroke.colour}
    return tag("g", "".join(parts), data_series=one.name, **colours)


def _tip(one: Series, panel: Panel, i: int) -> str:
    """What a mark stands for: series, place, value."""
    x, y = one.x[i], one.y[i]
    value, place = (x, panel.y_ticks[int(y)]) if panel.kind == "rows" else (y, _where(panel, x))
    spread = f" ± {_number(one.error[i])}" if one.error else ""
    note = one.notes[i] if one.notes else place
    return f"{one.name}, {note}: {_number(value)}{spread}"


def _where(panel: Panel, x: float) -> str:
    return panel.x_ticks[int(x)] if panel.x_ticks else f"{panel.x_label} {_number(x)}"


def _whisker(at: tuple[float, float], scale: Scale, ends: tuple[float, float], across: bool) -> str:
    # On a log axis an error bar may reach below zero; it then ends with the axis.
    low, high = (scale.place(max(end, scale.low) if scale.log else end) for end in ends)
    line = f"M{low:.1f} {at[1]:.1f}H{high:.1f}" if across else f"M{at[0]:.1f} {low:.1f}V{high:.1f}"
    return tag("path", d=line, class_="whisker")


def _mark(at: tuple[float, float], tip: str, ghost: bool) -> str:
    x, y = at
    if ghost:
        diamond = f"M{x:.1f} {y - 5:.1f}l5 5l-5 5l-5 -5z"
        return tag("path", d=diamond, class_="ghost", data_tip=f"{tip} (printed in the paper)")
    return tag("circle", cx=x, cy=y, r=3.4, class_="mark", data_tip=tip)


def _number(value: float) -> str:
    if float(value).is_integer() and abs(value) < 1e6:
        return f"{value:g}"
    return f"{value:.2f}" if 0.1 <= abs(value) < 1e5 else f"{value:.3g}"
