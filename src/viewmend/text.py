"""Names that came from files, made safe for where they are shown: terminals, tables, documents."""

from __future__ import annotations

import re
from typing import Any

# Control characters, which a terminal obeys; halves of characters, which no encoding can write;
# marks that turn the direction of what follows.
_UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_HALVES = re.compile("[\ud800-\udfff]")
# What a spreadsheet takes for a formula, and what it would, were it not for apostrophes.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_GUARDED = re.compile(r"'+[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf", re.ASCII)
# Signs that mean something inside a line of Markdown, and an underscore that is inside no word.
_MARKDOWN = re.compile(r"[\\`*\[\]<>|&~$]|(?<![^\W_])_|_(?![^\W_])")


def printable(text: object) -> str:
    r"""Text in one line without characters that a terminal obeys or cannot show.

    >>> printable("red \x1b[31m and\na new line")
    'red \\x1b[31m and\\na new line'
    """
    return _UNPRINTABLE.sub(lambda sign: sign[0].encode("unicode_escape").decode(), str(text))


def counted(number: int, noun: str) -> str:
    """A number of things, in words that agree.

    >>> counted(1, "column"), counted(2, "column")
    ('1 column', '2 columns')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def json_printable(text: str) -> str:
    """JSON whose texts hold no character that a terminal obeys, and mean the same."""
    return _UNPRINTABLE.sub(
        lambda sign: sign[0] if sign[0] == "\n" else f"\\u{ord(sign[0]):04x}", text
    )


def has_halves(text: str) -> bool:
    """Whether a text holds halves of characters (lone surrogates), which cannot be written."""
    return _HALVES.search(text) is not None


def csv_cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula: such text has an apostrophe before it.

    Numbers stay as they are, also as text; `from_csv_cell` takes the apostrophe away again.

    >>> [csv_cell(value) for value in ("=1+1", "-0.5", -0.5, "-x", "'=1+1", "it's")]
    ["'=1+1", '-0.5', -0.5, "'-x", "''=1+1", "it's"]
    """
    if not isinstance(value, str) or not _FORMULA.match(value) or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


def from_csv_cell(value: Any) -> Any:
    """What `csv_cell` was given.

    >>> [from_csv_cell(csv_cell(value)) for value in ("=1+1", "'=1+1", "-0.5", "it's")]
    ['=1+1', "'=1+1", '-0.5', "it's"]
    """
    guarded = isinstance(value, str) and _GUARDED.match(value)
    return value[1:] if guarded else value


def without_formulas(frame: Any) -> Any:
    """A pandas frame whose cells, index and headers are those of `csv_cell`."""
    safe = frame.rename(index=csv_cell, columns=csv_cell).rename_axis(
        index=csv_cell(frame.index.name)
    )
    for place, dtype in enumerate(frame.dtypes):
        if dtype.kind == "O":
            safe.isetitem(place, safe.iloc[:, place].map(csv_cell))
    return safe


def markdown_text(text: object) -> str:
    r"""Text as it stands, in one line of Markdown, also inside a table.

    >>> markdown_text("a|b <i> *c* n_rounds")
    'a\\|b \\<i\\> \\*c\\* n_rounds'
    """
    return _MARKDOWN.sub(r"\\\g<0>", printable(" ".join(str(text).split())))


def markdown_paragraph(text: object) -> str:
    """`markdown_text` on a line of its own, which is no heading, list or rule."""
    escaped = markdown_text(text)
    return f"\\{escaped}" if re.match(r"[#+=-]", escaped) else escaped
