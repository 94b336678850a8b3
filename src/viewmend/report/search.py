"""Section about how parameters were chosen."""

from __future__ import annotations

from functools import partial
from typing import Any

from viewmend.parameters import short
from viewmend.plot.sensitivity import plot_sensitivity, varying_parameters
from viewmend.report.context import Case
from viewmend.report.html import Cell, joined, paragraph, table_html
from viewmend.report.pictures import picture, side_by_side


def search_section(case: Case) -> str:
    """Points of the grid and their scores; empty where the model comes from no search."""
    if case.search is None:
        return ""
    results = case.search.cv_results_
    chosen = ", ".join(f"{name} {short(value)}" for name, value in case.search.best_params_.items())
    words = paragraph(
        f"Chosen among {len(results['params'])} points by cross-validation over the labelled "
        f"samples: {chosen}."
    )
    drawing = ""
    if len(varying_parameters(results)) in (1, 2):
        caption = "Share of held-out labels that were predicted correctly, by parameter values."
        drawing = side_by_side(picture(partial(plot_sensitivity, results), caption, "search"))
    return joined(words, drawing, _points(results))


def _points(results: dict[str, Any]) -> str:
    names = sorted({name for point in results["params"] for name in point})
    columns = [*names, "score", "spread", "folds", "score in longer fits"]
    scores = [
        results[name]
        for name in ("mean_test_score", "std_test_score", "n_folds", "full_test_score")
    ]
    rows = [
        [
            *(_value(point.get(name, "")) for name in names),
            *map(Cell.share, (mean, spread)),
            Cell(str(n_folds), int(n_folds)),
            Cell.share(full),
        ]
        for point, mean, spread, n_folds, full in zip(results["params"], *scores, strict=True)
    ]
    return table_html("Points of the grid", columns, rows)


def _value(value: object) -> Cell:
    number = float(value) if isinstance(value, int | float) else None
    return Cell(value if isinstance(value, str) else short(value), number)
