"""Pictures of Matplotlib as parts of a page: vectors, real text, and the colours of the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

from viewmend.plot.coverage import MISSING
from viewmend.plot.style import GREY, INK, PALETTE, SETTINGS, plot_style
from viewmend.report.html import tag

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Width and height in inches.
USUAL = (4.3, 3.1)
SQUARE = (4.3, 4.1)
WIDE = (8.6, 4.7)

# Colours that the page has its own of, for light and for dark.
COLOURS = {
    **{colour.lower(): f"var(--c{i})" for i, colour in enumerate(PALETTE)},
    INK: "var(--ink)",
    GREY: "var(--soft)",
    MISSING: "var(--faint)",
    str(SETTINGS["axes.edgecolor"]): "var(--axis)",
}
# Text stays text; ids follow from the content and not from chance.
VECTORS: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "viewmend"}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def picture(
    draw: Callable[..., object],
    caption: str,
    name: str,
    size: tuple[float, float] = USUAL,
    n_axes: int = 1,
) -> str:
    """A drawing as a ``figure`` element: HTML, the same for the same drawing.

    ``draw`` takes the axes to draw into: one, or an array of ``n_axes`` side by side. The name is
    of letters, and unique in the page; the size is in inches.
    """
    with plot_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout="constrained")
        draw(figure.subplots(1, n_axes))
        inside = inline_svg(svg_text(figure), name, caption)
    looks = "wide" if size[0] > USUAL[0] else ""
    return tag("figure", inside + tag("figcaption", escape(caption)), class_=looks)


def side_by_side(*figures: str) -> str:
    """Figures in a row, as far as the window is wide enough."""
    return tag("div", "\n".join(figures), class_="figures")


def svg_text(figure: Figure) -> str:
    """What Matplotlib writes of a figure that was made under `plot_style`."""
    import matplotlib

    written = StringIO()
    with plot_style(), matplotlib.rc_context(VECTORS):
        figure.savefig(written, format="svg", transparent=True, metadata=NO_METADATA)
    return written.getvalue()


def inline_svg(svg: str, name: str, label: str) -> str:
    """An ``svg`` element with ids and colours that suit the page, from the text of `svg_text`.

    The name is of letters, digits and dashes, and unique in the page; the label is for those who do
    not see the picture.
    """
    body = svg[svg.index("<svg") :]
    width, height = map(float, re.findall(r'(?:width|height)="([\d.]+)pt"', body)[:2])
    body = re.sub(r"\n *", "\n", body[body.index(">") + 1 : body.rindex("</svg>")])
    # A hundredth of a point is enough for the places of things.
    places = r' (?:d|x|y)="[^"]*"'
    body = re.sub(places, lambda found: re.sub(r"(\.\d\d)\d+", r"\1", found[0]), body)
    # Ids are unique in a picture, and must be so in a page of many.
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{name}-", body)
    body = re.sub(r"#[0-9a-f]{6}\b", lambda found: page_colour(found[0]), body)
    body = re.sub(r"font: ((?:bold |italic )?)([\d.]+px)[^;\"]*", r"font: \1\2 var(--font)", body)
    frame = {"viewBox": f"0 0 {width:g} {height:g}", "style": f"max-width: {1.35 * width:.0f}px"}
    return tag("svg", body, role="img", aria_label=label, **frame)


def page_colour(colour: str) -> str:
    """The page's own colour, light or dark, in place of one of `COLOURS`."""
    return COLOURS.get(colour.lower(), colour)
