"""What a model answers to a question, or why it does not; and how a page calls its samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from viewmend.exceptions import DataWarning, InvalidParameterError
from viewmend.report.context import Case
from viewmend.report.html import Cell, advice


def answer_of(ask: Callable[[], str], without: str) -> str:
    """What a model answers, as HTML; in its place, why it does not answer, or what it warns of.

    ``without`` says what the page then lacks.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        try:
            return ask()
        except (DataWarning, InvalidParameterError) as reason:
            return advice(f"{without}: {reason}.")


def id_cell(case: Case, row: int) -> Cell:
    """The name of a sample, which sorts by its number if it is one."""
    return Cell(str(case.ids[row]), row if case.ids.dtype.kind in "iu" else None)
