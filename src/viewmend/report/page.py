"""The page: sections in their order, and the file they are written to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from numpy.typing import ArrayLike

from viewmend.plot.style import require_matplotlib
from viewmend.protocols import FittedClassifier, FittedSearch
from viewmend.report.advice_sections import next_section
from viewmend.report.context import Case, make_case
from viewmend.report.data_sections import data_section, views_section
from viewmend.report.doubt_sections import doubt_section
from viewmend.report.headline import headline
from viewmend.report.html import page_html, write_page
from viewmend.report.internal_sections import internals_section
from viewmend.report.prediction_sections import classes_section
from viewmend.report.result_sections import result_section

# By the id of the section. Those that would be empty for a model are left out.
SECTIONS: dict[str, tuple[str, Callable[[Case], str]]] = {
    "data": ("What was done to the data", data_section),
    "result": ("Result", result_section),
    "classes": ("Classes and confidence", classes_section),
    "doubt": ("What to doubt", doubt_section),
    "next": ("What to do next", next_section),
    "views": ("Views", views_section),
    "internals": ("Inside the model", internals_section),
}


def write_report(
    model: FittedClassifier | FittedSearch,
    path: str | Path,
    X: object = None,
    y: object = None,
    mask: ArrayLike | None = None,
    y_true: object = None,
    ids: ArrayLike | None = None,
) -> Path:
    """Write a page about a fitted model: one file that opens in any browser.

    It shows, in this order: what was done to the data, how accurate the model is, the classes and
    their confidence, what to doubt, what to do next, which views count, and details of the model.
    Sections whose data is not given say how to get them. Nothing is fitted or changed, and the same
    arguments give the same bytes on the same day; SOURCE_DATE_EPOCH, seconds since 1970, sets
    another day.

    Parameters
    ----------
    model : fitted classifier of this library, or LabelSearchCV
        What the page is about.
    path : str or Path
        The file, usually ``*.html``; its folder is made where there is none.
    X, y, mask : optional
        What ``fit`` got; a mask alone shows which samples have which views. The labels are by
        default those that the model or ``X`` remembers. Without any, all samples count as
        unlabelled.
    y_true : array-like (n_samples,), optional
        True classes, with -1, None or NaN where unknown. Only samples that ``y`` leaves unlabelled
        are judged by them.
    ids : array-like (n_samples,), optional
        Names of the samples, such as ``data.ids``; by default the identifiers that ``fit`` saw,
        or row numbers.

    Returns
    -------
    Path
        The file.
    """
    return write_page(path, report_html(make_case(model, X, y, mask, y_true, ids)))


def report_html(case: Case) -> str:
    """The page as text.

    Parameters
    ----------
    case : Case
        From `make_case`.
    """
    require_matplotlib()
    title = f"{type(case.model).__name__} on {case.n_samples:,} samples"
    built = {name: (heading, build(case)) for name, (heading, build) in SECTIONS.items()}
    sections = {name: section for name, section in built.items() if section[1]}
    return page_html(title, sections, headline(case))
