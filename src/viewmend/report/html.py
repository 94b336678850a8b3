"""Pieces of HTML; all text that comes from users is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Cell", "advice", "facts_html", "joined", "paragraph", "table_html", "tag"]

# Letters from which on a cell may be cut off; pointing at it shows the whole.
LONG = 36


@dataclass(frozen=True)
class Cell:
    """Text of a table, and the number it sorts by; without one it sorts by the text."""

    text: str
    value: float | None = None
    looks: str = ""


def tag(name: str, content: str = "", **attributes: object) -> str:
    """An element around HTML; underscores of attribute names stand for dashes."""
    texts = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value != ""
    ]
    return f"<{name}{''.join(texts)}>{content}</{name}>"


def joined(*parts: str) -> str:
    """Parts on lines of their own."""
    return "\n".join(part for part in parts if part)


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return tag("p", escape(text))


def advice(text: str) -> str:
    """What to do to see what is not shown here; backquotes mark code."""
    pieces = escape(text).split("`")
    marked = [tag("code", piece) if i % 2 else piece for i, piece in enumerate(pieces)]
    return tag("p", "".join(marked), class_="advice")


def facts_html(facts: Iterable[tuple[str, str]]) -> str:
    """Names and values, one per line."""
    pairs = (tag("dt", escape(name)) + tag("dd", escape(value)) for name, value in facts)
    return tag("dl", "".join(pairs))


def table_html(title: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A table whose headers sort it.

    Parameters
    ----------
    title : str
        Its caption.
    columns : sequence of str
    rows : sequence of sequence of Cell
        Columns with a number in the first row are aligned to the right.
    """
    numeric = [cell.value is not None for cell in rows[0]] if rows else [False] * len(columns)
    kinds = ["number" if is_number else "" for is_number in numeric]
    arrow = tag("span", class_="arrow", aria_hidden="true")
    heads = [
        tag(
            "th",
            tag("button", escape(name) + arrow, type="button"),
            scope="col",
            aria_sort="none",
            class_=kind,
        )
        for name, kind in zip(columns, kinds, strict=True)
    ]
    lines = [tag("tr", "".join(map(_cell_html, row, kinds))) for row in rows]
    inside = joined(
        tag("caption", escape(title)),
        tag("thead", tag("tr", "".join(heads))),
        tag("tbody", "\n".join(lines)),
    )
    region = {"class_": "scroll", "tabindex": 0, "role": "region", "aria_label": title}
    return tag("div", tag("table", inside), **region)


def _cell_html(cell: Cell, kind: str) -> str:
    looks = " ".join(filter(None, (kind, cell.looks)))
    value = "" if cell.value is None else f"{cell.value:.10g}"
    whole = cell.text if len(cell.text) > LONG and cell.looks != "text" else ""
    return tag("td", escape(cell.text), class_=looks, data_value=value, title=whole)
