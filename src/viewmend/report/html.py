"""Parts of pages, also of the benchmark's; all text that comes from users is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from math import isfinite
from pathlib import Path
from string import Template

from viewmend.storage.atomic import write_text

# Letters from which on a cell may be cut off; pointing at it shows the whole.
LONG = 36


@dataclass(frozen=True)
class Cell:
    """Text of a table, and the number it sorts by; without one it sorts by the text.

    A mark stands behind the text, and pointing at it says what it means.
    """

    text: str
    value: float | None = None
    looks: str = ""
    mark: str = ""
    meaning: str = ""

    @classmethod
    def share(cls, share: float) -> Cell:
        """A share in percent; empty where it is not a number."""
        return cls(f"{share:.1%}", float(share)) if isfinite(share) else cls("")


def count_cell(number: int) -> Cell:
    """A number of things."""
    return Cell(f"{number:,}", number)


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
    return tag("p", code_marked(text), class_="advice")


def facts_html(facts: Iterable[tuple[str, str]]) -> str:
    """Names and values, one per line."""
    pairs = (tag("dt", escape(name)) + tag("dd", escape(value)) for name, value in facts)
    return tag("dl", "".join(pairs))


def listed(texts: Iterable[str]) -> str:
    """Texts as points of a list; empty where there is none."""
    points = "".join(tag("li", escape(text)) for text in texts)
    return tag("ul", points, class_="points") if points else ""


def code_marked(text: str) -> str:
    """Text as HTML, with what stands between backquotes as code."""
    pieces = escape(text).split("`")
    return "".join(tag("code", piece) if i % 2 else piece for i, piece in enumerate(pieces))


def part(title: str, *content: str) -> str:
    """Content below a smaller heading; empty where there is none."""
    inside = joined(*content)
    return joined(tag("h3", escape(title)), inside) if inside else ""


def folded(title: str, content: str, is_open: bool) -> str:
    """Content below a title that opens and closes it."""
    state = {"open": "open"} if is_open else {}
    return tag("details", tag("summary", escape(title)) + content, **state)


def table_html(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    n_heads: int = 0,
    below: Sequence[Sequence[Cell]] = (),
) -> str:
    """A table whose headers sort it, with the title as its caption.

    Columns with a number in some row are aligned to the right. The first ``n_heads`` cells of a row
    say what it is about. The rows ``below`` stay there however the others are sorted.
    """
    everything = [*rows, *below]
    numeric = [any(row[i].value is not None for row in everything) for i in range(len(columns))]
    kinds = ["number" if is_number else "" for is_number in numeric]

    def lines(some: Sequence[Sequence[Cell]]) -> str:
        return "\n".join(tag("tr", _row_html(row, kinds, n_heads)) for row in some)

    inside = joined(
        tag("caption", escape(title)),
        tag("thead", tag("tr", "".join(map(_header_html, columns, kinds)))),
        tag("tbody", lines(rows)),
        tag("tfoot", lines(below)) if below else "",
    )
    region = {"class_": "scroll", "tabindex": 0, "role": "region", "aria_label": title}
    return tag("div", tag("table", inside), **region)


def _header_html(name: str, kind: str) -> str:
    arrow = tag("span", class_="arrow", aria_hidden="true")
    button = tag("button", escape(name) + arrow, type="button")
    return tag("th", button, scope="col", aria_sort="none", class_=kind)


def _row_html(row: Sequence[Cell], kinds: Sequence[str], n_heads: int) -> str:
    return "".join(
        _cell_html(cell, kind, i < n_heads)
        for i, (cell, kind) in enumerate(zip(row, kinds, strict=True))
    )


def _cell_html(cell: Cell, kind: str, is_head: bool) -> str:
    looks = {
        "class_": " ".join(filter(None, (kind, cell.looks))),
        "data_value": "" if cell.value is None else f"{cell.value:.10g}",
        "title": cell.text if len(cell.text) > LONG and "text" not in cell.looks else "",
    }
    mark = tag("span", escape(cell.mark), class_="mark", title=cell.meaning) if cell.mark else ""
    text = escape(cell.text) + mark
    return tag("th", text, scope="row", **looks) if is_head else tag("td", text, **looks)


def page_html(title: str, sections: Mapping[str, tuple[str, str]], headline: str = "") -> str:
    """A page that needs nothing but a browser.

    ``sections`` have a title and content as HTML, by their id; ``headline`` is HTML below the
    title.
    """
    links = [
        tag("li", tag("a", escape(heading), href=f"#{name}"))
        for name, (heading, _) in sections.items()
    ]
    body = [
        tag("section", tag("h2", escape(heading)) + content, id=name)
        for name, (heading, content) in sections.items()
    ]
    return Template(_resource("page.html")).substitute(
        title=escape(title),
        style=_resource("page.css"),
        script=_resource("page.js"),
        links="".join(links),
        headline=headline,
        content="\n".join(body),
    )


def write_page(path: str | Path, page: str) -> Path:
    """Write a page to a file, whose folder is made where there is none."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Halves of characters in a name must not cost the page.
    write_text(path, page.encode(errors="backslashreplace").decode())
    return path


def _resource(name: str) -> str:
    return (files("viewmend.report") / "templates" / name).read_text(encoding="utf-8")
