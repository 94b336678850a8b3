"""Printed tables are read as printed, and compared with the right conditions."""

import math

import pytest

from viewmend.bench.paper_values import (
    compare_with_paper,
    not_run,
    paper_method,
    read_paper_tables,
)
from viewmend.bench.runs import Condition, Record, RunKey
from viewmend.exceptions import InvalidParameterError

MAIN = """\
dataset,vmr_percent,lar_percent,method,metric,mean,std,agfti_vs_method_wilcoxon
Birds,30,5,Other,acc,60.00,3.00,better
Birds,30,5,Other,prec,50.00,3.00,tie
Birds,30,5,AGF-TI,acc,70.00,0.00,
Birds,70,5,AGF-TI,acc,65.00,2.00,
"""
ABLATION = """\
dataset,vmr_percent,lar_percent,variant,metric,mean,std
Birds,30,5,full,acc,71.11,1.00
Birds,30,5,w/o T,acc,40.00,4.00
"""
DEEP = """\
dataset,vmr_percent,lar_percent,method,metric,mean
Birds,30,5,AGF-TI,acc,70.1
Birds,30,5,Deep,acc,55.5
Birds,30,5,Deep,prec,44.4
"""
TIMES = "dataset,method,seconds\nBirds,AGF-TI,1.06\n"
FOOTPRINT = "n_samples,n_views,n_anchors,seconds,memory_gib\n10000,2,128,0.35,0.095\n"
FILES = {
    "main_results.csv": MAIN,
    "ablation.csv": ABLATION,
    "deep_baselines.csv": DEEP,
    "running_time.csv": TIMES,
    "tnn_footprint.csv": FOOTPRINT,
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(method, repetition, accuracy, recall=0.5, protocol="paper", rate=0.3):
    key = RunKey("fit", protocol, "Birds", rate, 0.05, method, (), repetition)
    result = {
        "accuracy": accuracy,
        "macro_precision": 0.9,
        "macro_recall": recall,
        "macro_f1": 0.4,
    }
    return Record(key, "done", result)


def test_every_file_is_read_and_the_first_one_counts(folder):
    paper = read_paper_tables(folder)
    condition = Condition("paper", "Birds", 0.3, 0.05)
    # Printed as 70.00 in the main table, 71.11 among the ablations and 70.1 among the deep ones.
    assert paper.value(condition, "AGF-TI", "ACC").mean == 70.0
    assert paper.value(condition, "Deep", "ACC").mean == 55.5
    assert paper.value(condition, "Deep", "ACC").std is None
    assert paper.value(condition, "Other", "PREC").verdict == "tied"
    assert paper.value(condition, "Other", "F1") is None
    assert paper.seconds["Birds", "AGF-TI"] == 1.06
    assert paper.footprints[10000, 2, 128].gibibytes == 0.095
    assert paper.absent == ()


def test_variants_meet_the_paper_under_its_names(folder):
    assert paper_method("AGF-TI without alignment") == "AGF-TI w/o T"
    condition = Condition("honest", "Birds", 0.3, 0.05)
    assert (
        read_paper_tables(folder).value(condition, "AGF-TI without alignment", "ACC").mean == 40.0
    )


def test_rates_meet_whatever_their_last_bits(folder):
    paper = read_paper_tables(folder)
    assert paper.value(Condition("paper", "Birds", 0.1 + 0.2, 0.05), "AGF-TI", "ACC").mean == 70.0


def test_differences_are_ours_less_the_papers_in_standard_errors(folder):
    records = [run("Other", i, accuracy) for i, accuracy in enumerate((0.62, 0.64, 0.66))]
    (found,) = compare_with_paper(records, read_paper_tables(folder), ("ACC",))
    assert found.difference == pytest.approx(64 - 60)
    # Unbiased variances of the two means: 9 * 10/9 / 10 and (8/3) * 3/2 / 3.
    assert found.standard_errors == pytest.approx(4 / math.sqrt(1 + 4 / 3))
    assert found.verdict == ""


@pytest.mark.parametrize("protocol", ["paper", "honest"])
def test_precision_is_compared_with_what_the_paper_measures_under_that_name(folder, protocol):
    records = [run(method, 0, 0.6, 0.5, protocol) for method in ("Other", "Deep")]
    found = compare_with_paper(records, read_paper_tables(folder), ("PREC",))
    ours = {one.method: one.ours.mean for one in found}
    # Macro recall in the main table, macro precision among the deep baselines.
    assert ours == {"Other": pytest.approx(50), "Deep": pytest.approx(90)}


def test_the_released_code_stands_beside_the_same_printed_values(folder):
    """They were made with it; the method as stated is another row."""
    records = [run(name, i, 0.7) for name in ("AGF-TI", "AGF-TI (released code)") for i in (0, 1)]
    found = compare_with_paper(records, read_paper_tables(folder), ("ACC",))
    printed = {one.method: one.paper.mean for one in found}
    assert printed["AGF-TI (released code)"] == printed["AGF-TI"]


def test_verdicts_are_of_the_papers_method_against_the_others(folder):
    records = [run("Other", i, 0.5 + i / 100) for i in range(4)]
    records += [run("AGF-TI", i, 0.7 + i / 100) for i in range(4)]
    found = compare_with_paper(records, read_paper_tables(folder), ("ACC",))
    assert {one.method: one.verdict for one in found} == {"Other": "better", "AGF-TI": ""}
    exact = next(one for one in found if one.method == "AGF-TI")
    assert exact.standard_errors == pytest.approx(exact.difference / math.sqrt(5 / 12))


def test_what_was_not_run_is_listed(folder):
    paper = read_paper_tables(folder)
    found = compare_with_paper([run("AGF-TI", 0, 0.7)], paper, ("ACC",))
    left = {(place[3], place[1]) for place in not_run(found, paper)}
    assert left == {("Other", 0.3), ("AGF-TI", 0.7), ("AGF-TI w/o T", 0.3), ("Deep", 0.3)}


def test_one_run_has_no_standard_error(folder):
    (found,) = compare_with_paper([run("Other", 0, 0.7)], read_paper_tables(folder), ("ACC",))
    assert found.standard_errors is None


def test_absent_files_are_named(tmp_path):
    (tmp_path / "main_results.csv").write_text(MAIN)
    paper = read_paper_tables(tmp_path)
    assert set(paper.absent) == set(FILES) - {"main_results.csv"}
    with pytest.raises(InvalidParameterError, match="holds none of the paper's tables"):
        read_paper_tables(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TIMES, "has no column vmr_percent, lar_percent, metric, mean, std"),
        (MAIN.replace("prec", "auc"), "'auc'"),
    ],
)
def test_wrong_files_are_refused(tmp_path, text, message):
    (tmp_path / "main_results.csv").write_text(text)
    with pytest.raises(InvalidParameterError, match=message):
        read_paper_tables(tmp_path)
