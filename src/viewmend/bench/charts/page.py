"""Charts as parts of a page: keys to switch series off and on, a tip on every mark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from viewmend.bench.charts.chart import AnyPanel, Chart, Stroke, strokes
from viewmend.bench.charts.drawing import Meaning, Sheet, draw_panel, panel_size
from viewmend.plot.style import plot_style
from viewmend.report.html import tag
from viewmend.report.pictures import inline_svg, page_colour, svg_text


def chart_html(chart: Chart, name: str) -> str:
    """A chart as a ``figure`` element: a key per series, a picture per panel, a tip per mark.

    ``name``, of letters, digits and dashes, must be unique in the page. All text is escaped.
    """
    styles = strokes(chart)
    pictures = [_panel_html(panel, styles, f"{name}-{i}") for i, panel in enumerate(chart.panels)]
    keys = [_key(series, stroke) for series, stroke in styles.items()] if len(styles) > 1 else []
    legend = tag("div", "".join(keys), class_="keys", role="group", aria_label="Series")
    title = tag("strong", f"{escape(chart.title)}.")
    caption = tag("figcaption", f"{title} {escape(chart.caption)}")
    panels = tag("div", "\n".join(pictures), class_="panels")
    return tag("figure", (legend if keys else "") + panels + caption, class_="chart")


def _panel_html(panel: AnyPanel, styles: Mapping[str, Stroke], name: str) -> str:
    with plot_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=panel_size(panel), layout="constrained")
        sheet = Sheet(figure.subplots(), styles)
        draw_panel(sheet, panel)
        svg = inline_svg(svg_text(figure), name, panel.title or "chart")
    return _with_meanings(
        svg, {f"{name}-{gid}": meaning for gid, meaning in sheet.meanings.items()}
    )


def _with_meanings(svg: str, meanings: Mapping[str, Meaning]) -> str:
    """The picture with series and tips as attributes, for the script of the page.

    Matplotlib writes an artist as a group, and the marks in it as ``use`` elements in the order of
    the points.
    """
    pending: list[str] = []

    def explained(opening: re.Match[str]) -> str:
        gid = opening[1]
        if gid is None:
            tip = escape(pending.pop(0)) if pending else ""
            return f'<use data-tip="{tip}" ' if tip else "<use "
        meaning = meanings.get(gid, Meaning())
        pending[:] = meaning.tips
        opened = tag("g", data_series=meaning.series, data_tip=meaning.tip)
        return opened.removesuffix("</g>")

    return re.sub(r'<g id="([^"]*)">|<use ', explained, svg)


def _key(series: str, stroke: Stroke) -> str:
    """A button that switches a series off and on."""
    dashes = " ".join(map(str, stroke.dashes))
    colour = page_colour(stroke.colour)
    line = tag("path", d="M0 6H22", stroke=colour, stroke_dasharray=dashes)
    dot = tag("circle", cx=11, cy=6, r=4, fill=colour)
    sample = tag("svg", line + dot, width=22, height=12, aria_hidden="true")
    looks = {"type": "button", "class_": "key", "aria_pressed": "true", "data_series": series}
    return tag("button", sample + escape(series), **looks)
