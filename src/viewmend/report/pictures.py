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
    from matplotlib.axes import Axes

__all__ = ["WIDE", "picture", "side_by_side"]

# Width and height in inches.
USUAL = (5.4, 3.9)
WIDE = (9.6, 5.3)

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
    """A drawing as a ``figure`` element.

    Parameters
    ----------
    draw : callable
        Takes the axes to draw into: one, or an array of ``n_axes`` side by side.
    caption : str
        What is to be seen.
    name : str
        Of letters; unique in the page.
    size : (float, float)
        Inches.
    n_axes : int

    Returns
    -------
    str
        HTML, the same for the same drawing.
    """
    inside = _inline(_svg(draw, size, n_axes), name, caption, size)
    looks = "wide" if size[0] > USUAL[0] else ""
    return tag("figure", inside + tag("figcaption", escape(caption)), class_=looks)


def side_by_side(*figures: str) -> str:
    """Figures in a row, as far as the window is wide enough."""
    return tag("div", "\n".join(figures), class_="figures")


def _svg(draw: Callable[..., object], size: tuple[float, float], n_axes: int) -> str:
    with plot_style():
        import matplotlib
        from matplotlib.figure import Figure

        with matplotlib.rc_context(VECTORS):
            figure = Figure(figsize=size, layout="constrained")
            axes: Axes | Any = figure.subplots(1, n_axes)
            draw(axes)
            written = StringIO()
            figure.savefig(written, format="svg", transparent=True, metadata=NO_METADATA)
    return written.getvalue()


def _inline(svg: str, name: str, caption: str, size: tuple[float, float]) -> str:
    """The element alone, with ids and colours that suit the page."""
    body = svg[svg.index("<svg") :]
    body = body[body.index(">") + 1 : body.rindex("</svg>")]
    # Ids are unique in a picture, and must be so in a page of many.
    body = re.sub(r'(\bid="|url\(#|href="#)', rf"\1{name}-", body)
    body = re.sub(r"#[0-9a-f]{6}\b", lambda found: COLOURS.get(found[0], found[0]), body)
    body = re.sub(r"font: ((?:bold |italic )?)([\d.]+px)[^;\"]*", r"font: \1\2 var(--font)", body)
    width, height = (72 * inches for inches in size)
    frame = {"viewBox": f"0 0 {width:g} {height:g}", "style": f"max-width: {1.35 * width:.0f}px"}
    return tag("svg", body, role="img", aria_label=caption, **frame)
