"""The page: sections in their order, and the file they are written to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from numpy.typing import ArrayLike

from viewmend.plot.style import require_matplotlib
from viewmend.protocols import FittedClassifier, FittedSearch
from viewmend.report.advice_sections import next_section, sets_section, suspects_section
from viewmend.report.context import Case, make_case
from viewmend.report.html import page_html, write_page
from viewmend.report.model_sections import (
    convergence_section,
    data_section,
    graph_section,
    headline,
    model_section,
    weights_section,
)
from viewmend.report.prediction_sections import classes_section, confidence_section, scores_section
from viewmend.report.search import search_section

# By the id of the section. Those that would be empty for a model are left out.
SECTIONS: dict[str, tuple[str, Callable[[Case], str]]] = {
    "model": ("Model", model_section),
    "search": ("Choice of parameters", search_section),
    "data": ("Data", data_section),
    "weights": ("View weights", weights_section),
    "convergence": ("Convergence", convergence_section),
    "classes": ("Classes", classes_section),
    "confidence": ("Confidence", confidence_section),
    "sets": ("Prediction sets", sets_section),
    "graph": ("Graph", graph_section),
    "scores": ("Scores", scores_section),
    "suspects": ("Suspect labels", suspects_section),
    "next": ("What to do next", next_section),
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
    """Write a page about a fitted model: one file that needs nothing but a browser.

    Sections whose data is not given say how to get them. Nothing is fitted or changed, and the
    same arguments give the same bytes.

    Parameters
    ----------
    model : fitted classifier of this library, or LabelSearchCV
    path : str or Path
        The file, usually ``*.html``; its folder is made where there is none.
    X, y, mask : optional
        What ``fit`` got; a mask alone shows which samples have which views.
    y_true : array-like (n_samples,), optional
        True classes, with -1, None or NaN where unknown. Only samples that ``y`` leaves unlabelled
        are judged by them.
    ids : array-like (n_samples,), optional
        Names of the samples, such as ``aligned.ids``; row numbers by default.

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
