"""The script behind the theory page: its exact figures are those committed."""

import csv
from pathlib import Path

import numpy as np
import pytest
import theory

RECORD = Path(__file__).parents[2] / "docs" / "results" / "theory.csv"


def test_parts_of_a_class_are_counted_inside_it():
    """Two classes on a line; the first in two heaps, between which the second lies."""
    heaps = [np.linspace(start, start + 1, 20) for start in (0, 10, 20)]
    X, y = np.concatenate(heaps)[:, None], np.repeat([0, 1, 0], 20)
    assert theory.pieces_per_class(X, y, k=3) == 1.5


@pytest.mark.skipif(not RECORD.is_file(), reason="the documentation is not here")
def test_exact_figures_are_those_of_the_record():
    with RECORD.open(newline="") as file:
        shown = {row["quantity"]: row["shown"] for row in csv.DictReader(file)}
    for one in (*theory.fusion_figures(), *theory.tensor_figures()):
        assert shown[one.quantity] == one.shown


def test_a_figure_is_a_line_with_its_revision():
    text = theory.to_csv([theory.Figure("k", 1.25, "1.2", "what")], "abc")
    assert text.splitlines() == ["quantity,value,shown,what,revision", "k,1.25,1.2,what,abc"]
