"""Tables say what the records say, in every format."""

import csv
import io
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewmend.bench.catalogue import TABLES
from viewmend.bench.paper_values import Footprint, Look, PaperTables, PaperValue
from viewmend.bench.runs import Record, RunKey, setting_of
from viewmend.bench.summaries import scores, settings_vary
from viewmend.bench.tables.table import (
    FORMATS,
    Entry,
    Line,
    Table,
    to_csv,
    to_latex,
    to_markdown,
    write_table,
)
from viewmend.exceptions import InvalidParameterError

# Percent by method and data set, four runs each; C beats nobody, A beats all on Birds.
RUNS = {
    ("A", "Birds"): (80, 81, 81, 82),
    ("B", "Birds"): (70, 71, 71, 72),
    ("C", "Birds"): (60, 61, 61, 62),
    ("A", "Digits"): (90, 91, 91, 92),
    ("B", "Digits"): (93, 94, 94, 95),
    ("C", "Digits"): (90, 91, 92, 95),
}
LOOK = Look(subject="A")


def run(method, data, repetition, score, *, protocol="honest", rate=0.3, setting=None, **extra):
    key = RunKey("fit", protocol, data, rate, 0.05, method, setting_of(setting or {}), repetition)
    share = score / 100
    result = {
        "accuracy": share,
        "macro_precision": share / 2,
        "macro_recall": share / 4,
        "macro_f1": share / 5,
        "n_samples": 100,
        "n_labelled": 5,
        "observed_pairs": 0.68 + repetition / 100,
        "complete_samples": 0.5,
    }
    return Record(key, "done", result, {"fit": 2.0, "imputation": 1.0, **extra})


@pytest.fixture
def records():
    return [
        run(method, data, i, score)
        for (method, data), values in RUNS.items()
        for i, score in enumerate(values)
    ]


def entries_of(table, column):
    place = table.columns.index(column)
    return [line.entries[place] for line in table.lines if not line.summary]


def summary_of(table, start):
    return next(line for line in table.lines if line.summary and line.heads[0].startswith(start))


def test_scores_are_means_and_the_best_two_are_marked(records):
    table = TABLES.build("scores", records, LOOK)
    assert [line.heads for line in table.lines[:2]] == [
        ("Birds", "30%", "5%"),
        ("Digits", "30%", "5%"),
    ]
    for line in table.lines[:2]:
        values = np.array([entry.value for entry in line.entries])
        expected = [np.mean(RUNS[method, line.heads[0]]) for method in table.columns]
        np.testing.assert_allclose(values, expected)
        order = np.argsort(-values)
        places = [entry.place for entry in line.entries]
        assert [places[i] for i in order] == [1, 2, 0]
    assert table.lines[0].entries[0].text == f"81.00 ± {np.sqrt(1 / 2):.2f}"


def test_equal_means_share_their_place():
    records = [
        run(method, "Birds", 0, score) for method, score in zip("ABC", (5, 5, 4), strict=True)
    ]
    places = [entry.place for entry in TABLES.build("scores", records, LOOK).lines[0].entries]
    assert places == [1, 1, 2]


def test_verdicts_of_the_subject_are_counted_by_method(records):
    table = TABLES.build("scores", records, LOOK)
    assert [entry.verdict for entry in entries_of(table, "A")] == ["", ""]
    assert [entry.verdict for entry in entries_of(table, "B")] == ["better", "worse"]
    assert [entry.verdict for entry in entries_of(table, "C")] == ["better", "tied"]
    counts = [entry.text for entry in summary_of(table, "A wins").entries]
    assert counts == ["-", "1/0/1", "1/1/0"]


def test_too_few_runs_are_said_to_be_too_few(records):
    few = [one for one in records if one.key.repetition < 3]
    table = TABLES.build("scores", few, LOOK)
    assert {entry.verdict for entry in entries_of(table, "B")} == {"untested"}
    assert any("4 of 4 pairs have too few runs" in note for note in table.notes)
    assert [entry.text for entry in summary_of(table, "A wins").entries] == ["-"] * 3
    assert "●" not in to_markdown(table).split("\n\n")[1]
    assert not any("too few runs" in note for note in TABLES.build("scores", records, LOOK).notes)


def test_a_method_that_lacks_a_cell_has_no_mean_and_no_rank(records):
    gaps = [one for one in records if (one.key.method, one.key.data) != ("C", "Digits")]
    table = TABLES.build("scores", gaps, LOOK)
    assert [entry.text for entry in entries_of(table, "C")][1] == "-"
    averages = [entry.value for entry in summary_of(table, "mean").entries]
    assert averages == [pytest.approx(86), pytest.approx(82.5), None]
    assert "ranks" not in TABLES.suitable(gaps, LOOK)
    more = gaps + [run("D", data, 0, 1.0) for data in ("Birds", "Digits")]
    assert any("without a rank: C" in note for note in TABLES.build("ranks", more, LOOK).notes)


@pytest.mark.parametrize(
    ("protocol", "share", "said"), [("paper", 0.25, True), ("honest", 0.5, False)]
)
def test_precision_is_what_the_protocol_calls_so_and_is_said(protocol, share, said):
    records = [run("A", "Birds", 0, 80, protocol=protocol)]
    table = TABLES.build("scores", records, Look("PREC", "A"))
    assert table.lines[0].entries[0].value == pytest.approx(80 * share)
    assert any("macro recall, not macro precision" in note for note in table.notes) is said


@given(st.randoms(use_true_random=False))
def test_numbers_do_not_depend_on_the_order_of_the_records(rng):
    ordered = [
        run(method, data, i, score)
        for (method, data), values in RUNS.items()
        for i, score in enumerate(values)
    ]
    shuffled = rng.sample(ordered, len(ordered))
    one, two = scores(ordered, "ACC"), scores(shuffled, "ACC")
    assert {cell: dict(own) for cell, own in two.items()} == one


def test_failed_runs_are_not_scores(records):
    failed = replace(records[0], status="error", result={}, message="broken")
    assert scores([*records[1:], failed], "ACC") == scores(records[1:], "ACC")


def test_several_settings_are_not_averaged(records):
    mixed = [*records, run("A", "Birds", 3, 10, setting={"beta": 2})]
    assert settings_vary(mixed) == ("beta",)
    with pytest.raises(InvalidParameterError, match="A has several settings at Birds, VMR 30%"):
        scores(mixed, "ACC")
    assert "scores" not in TABLES.suitable(mixed, LOOK)
    # A setting per cell is a tuned method, not a sweep.
    tuned = [run("A", data, 0, 1, setting={"beta": i}) for i, data in enumerate("XY")]
    assert settings_vary(tuned) == ()


def test_protocols_are_not_mixed(records):
    mixed = [*records, run("A", "Birds", 0, 10, protocol="paper")]
    with pytest.raises(InvalidParameterError, match="one protocol"):
        TABLES.build("scores", mixed, LOOK)


def test_ranks_average_over_data_sets_not_over_rates(records):
    # Three more rates of Birds must not outvote Digits.
    more = records + [
        run(method, "Birds", i, score, rate=rate)
        for rate in (0.5, 0.6, 0.7)
        for (method, data), values in RUNS.items()
        if data == "Birds"
        for i, score in enumerate(values)
    ]
    for own in (records, more):
        table = TABLES.build("ranks", own, LOOK)
        ranks = {line.heads[0]: line.entries[0].value for line in table.lines}
        assert ranks == {"B": 1.5, "A": 2.0, "C": 2.5}
        assert "2 data sets (Birds, Digits)" in table.notes[0]


def test_times_are_medians_of_fit_and_completion():
    records = [run("A", "Birds", i, 1, fit=s, imputation=4.0) for i, s in enumerate((1, 2, 9))]
    entry = TABLES.build("times", records, LOOK).lines[0].entries[0]
    assert entry.value == pytest.approx(6.0)
    assert entry.text == "6.00 (4.00)"


def test_completeness_counts_every_repetition_once(records):
    lopsided = [*records, run("D", "Birds", 2, 1)]
    line = TABLES.build("completeness", lopsided, LOOK).lines[0]
    assert [entry.value for entry in line.entries] == [100, 5, pytest.approx(69.5), 50]


def test_settings_behind_scores_are_listed():
    records = [run("A", "Birds", 0, 1, setting={"beta": 4.0}), run("B", "Birds", 0, 1)]
    line = TABLES.build("settings", records, LOOK).lines[0]
    assert [entry.text for entry in line.entries] == ["beta=4.0", "default"]


def test_inner_errors_end_where_the_algorithm_converged():
    history = [{"iteration": 1, "inner": [{"alpha_error": 1e-4, "P_error": 1e-2}] * 2}]
    key = RunKey("trace", "paper", "Birds", 0.5, 0.05, "AGF-TI", (), 0)
    table = TABLES.build("inner_errors", [Record(key, "done", {"history": history})], LOOK)
    texts = [entry.text for entry in table.lines[1].entries]
    assert texts == ["1.00e-02"] * 2 + ["-"] * 4


def test_footprints_are_sorted_by_size_and_scaled():
    sizes = [{"n": 100, "V": 2, "m": m} for m in (1024, 128)]
    keys = [RunKey("tnn_step", "paper", "", 0, 0, "AGF-TI", setting_of(own), 0) for own in sizes]
    costs = [{"seconds": 8.0, "peak_bytes": 2**31}, {"seconds": 1.0, "peak_bytes": 2**30}]
    records = [Record(key, "done", {}, own) for key, own in zip(keys, costs, strict=True)]
    table = TABLES.build("footprint", records, LOOK)
    assert table.columns == ("128 anchors", "1024 anchors")
    assert [[entry.value for entry in line.entries] for line in table.lines] == [[1, 8], [1, 2]]


def test_comparison_lists_every_printed_metric(records):
    values = {
        ("Birds", 0.3, 0.05, "B", "ACC"): PaperValue(70.0, "accuracy", 1.0),
        ("Birds", 0.3, 0.05, "B", "F1"): PaperValue(70.0, "macro_f1", 1.0),
    }
    look = Look(subject="A", paper=PaperTables(values))
    table = TABLES.build("paper", records, look)
    differences = {line.heads[-1]: line.entries[2].value for line in table.lines}
    assert differences == {"ACC": pytest.approx(1.0), "F1": pytest.approx(71 / 5 - 70)}
    assert "2 values are compared; 0 printed values" in table.notes[0]


def test_formats_carry_the_same_numbers(records):
    table = TABLES.build("scores", records, LOOK)
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows[0] == ["data", "VMR", "LAR", "A", "B", "C"]
    assert [float(text) for text in rows[1][3:]] == [81, 71, 61]
    markdown = to_markdown(table)
    assert "| Birds | 30% | 5% | **81.00 ± 0.71** | <u>71.00 ± 0.71</u> ● | 61.00" in markdown
    latex = to_latex(table)
    line = (
        r"Birds & 30\% & 5\% & \textbf{81.00 $\pm$ 0.71} & \underline{71.00 $\pm$ 0.71} $\bullet$"
    )
    assert line in latex
    widths = {text.count(" & ") for text in latex.splitlines() if text.endswith(r"\\")}
    assert widths == {len(rows[0]) - 1}


def test_formats_escape_what_would_break_them():
    odd = Table("50% & more_", ("a|b",), ("#1",), (Line(("x|y\nz",), (Entry("1_000"),)),))
    assert r"| x\|y z | 1_000 |" in to_markdown(odd)
    latex = to_latex(odd)
    assert r"50\% \& more\_" in latex
    assert r"1\_000" in latex


def test_latex_names_a_data_set_once(records):
    more = records + [replace(one, key=replace(one.key, missing_rate=0.7)) for one in records]
    random.Random(0).shuffle(more)
    latex = to_latex(TABLES.build("scores", more, LOOK))
    assert latex.count("Birds &") == latex.count("Digits &") == 1
    assert latex.count(r"\midrule") == 3


def test_names_that_do_not_exist_are_refused(records):
    with pytest.raises(InvalidParameterError, match="no table 'score'; it must be one of scores"):
        TABLES.build("score", records, LOOK)
    with pytest.raises(InvalidParameterError, match="do not hold what the table 'footprint'"):
        TABLES.build("footprint", records, LOOK)
    with pytest.raises(InvalidParameterError, match="one of ACC, PREC, REC, F1 but is 'auc'"):
        TABLES.build("scores", records, Look("auc"))
    with pytest.raises(InvalidParameterError, match="markdown, latex, csv"):
        write_table(TABLES.build("scores", records, LOOK), "pdf")
    assert set(FORMATS) == {"markdown", "latex", "csv"}
    assert set(TABLES.suitable(records, LOOK)) < set(TABLES)


def test_seconds_stand_beside_those_of_the_same_rates(records):
    """The paper prints them for half of the views missing, with completion."""
    halves = [
        replace(one, key=replace(one.key, missing_rate=0.5, method=method))
        for one in records
        if one.key.method == "B"
        for method in ("AGF-TI", "AGF-TI (released code)", "C")
    ]
    look = Look(paper=PaperTables(seconds={("Birds", "AGF-TI"): 6.0, ("Birds", "B"): 1.0}))
    table = TABLES.build("paper_seconds", [*records, *halves], look)
    assert [line.heads[:2] for line in table.lines] == [
        ("Birds", "AGF-TI"),
        ("Birds", "AGF-TI (released code)"),
    ]
    # Two seconds of fit and one of completion.
    assert [entry.value for entry in table.lines[0].entries] == [3.0, 1.0, 6.0, 2.0]
    assert "paper_seconds" not in TABLES.suitable(records, look)
    assert "paper_seconds" not in TABLES.suitable(halves, Look())


def test_footprints_stand_beside_those_of_the_same_sizes():
    sizes = [{"n": 100, "V": 2, "m": m} for m in (128, 256)]
    keys = [RunKey("tnn_step", "paper", "", 0, 0, "AGF-TI", setting_of(own), 0) for own in sizes]
    records = [Record(key, "done", {}, {"seconds": 4.0, "peak_bytes": 2**29}) for key in keys]
    printed = {(100, 2, 128): Footprint(8.0, 2.0), (100, 3, 128): Footprint(1.0, 1.0)}
    table = TABLES.build("paper_footprint", records, Look(paper=PaperTables(footprints=printed)))
    (line,) = table.lines
    assert line.heads == ("100", "2", "128")
    assert [entry.value for entry in line.entries] == [4.0, 8.0, 2.0, 0.5, 2.0, 4.0]
    assert "1 sizes are compared; 1 printed sizes have no run" in table.notes[0]
