"""The benchmark of narrow tables: what is cut is the whole table, and the page shows its runs."""

from pathlib import Path

import narrow_views
import numpy as np
from csv_rows import read_rows
from numpy.testing import assert_array_equal
from sklearn.datasets import load_wine

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def test_views_are_neighbouring_columns_of_the_table():
    task = narrow_views.TASKS["wine, 2 views of 6 columns"](0)
    X, y = load_wine(return_X_y=True)
    for start, view, observed in zip((0, 6), task.data.views, task.data.observed.T, strict=True):
        assert 0.15 < 1 - observed.mean() < 0.25
        told = {(*row, label) for row, label in zip(X[:, start : start + 6], y, strict=True)}
        found = zip(view[observed], task.y_true[observed], strict=True)
        assert {(*row, label) for row, label in found} <= told


def test_exponentials_keep_the_order_of_a_column_and_have_a_few_large_values():
    name = "breast cancer, {}3 views of 10 columns"
    plain = narrow_views.TASKS[name.format("")](0)
    large = narrow_views.TASKS[name.format("exponentials, ")](0)
    assert_array_equal(plain.data.observed, large.data.observed)
    for before, after, observed in zip(
        plain.data.views, large.data.views, plain.data.observed.T, strict=True
    ):
        for i in range(before.shape[1]):
            order = np.argsort(before[observed, i], kind="stable")
            assert np.all(np.diff(after[observed, i][order]) >= 0)
        columns = after[observed]
        assert np.all(columns.max(axis=0) > 5 * np.median(columns, axis=0))


def test_the_page_shows_the_runs():
    rows = read_rows(RESULTS / "narrow_views.csv")
    told = (RESULTS / "narrow_views.md").read_text(encoding="utf-8")
    assert told == narrow_views.page(rows)
    one = [dict(row, accuracy="0.5") for row in rows]
    assert " 50.0 ± 0.0 |" in narrow_views.page(one)
