"""The share of the way to the limit, and what the page of honest accuracy refuses and shows."""

import csv

import numpy as np
import pytest
from honest import page as pages
from honest.limit import Way, limit_table, overall_share, ways
from numpy.testing import assert_allclose

from viewmend.bench.plan import Plan
from viewmend.bench.runner import open_experiment
from viewmend.bench.runs import Record, RunKey
from viewmend.bench.store import ResultStore
from viewmend.bench.tables.table import to_markdown
from viewmend.exceptions import InvalidParameterError

FIELDS = ("accuracy", "macro_precision", "macro_recall", "macro_f1")


def runs(protocol, method, *scores, data="a"):
    keys = [RunKey("fit", protocol, data, 0.3, 0.05, method, (), i) for i in range(len(scores))]
    return [
        Record(key, "done", dict.fromkeys(FIELDS, score / 100), {"fit": 1.0})
        for key, score in zip(keys, scores, strict=True)
    ]


FEW = [*runs("honest", "union graph", 50, 60), *runs("honest", "Mend", 70, 80)]
MOST = [*runs("honest-limit", "Mend", 90, 80), *runs("honest-limit", "late trees", 80, 100)]


def test_the_share_of_the_way_by_hand():
    (way,) = ways(FEW, MOST).values()
    # Mend has 85 and the trees 90 in the mean: they are the limit, 35 above the start.
    assert way.by == "late trees"
    assert_allclose((way.gain, way.room), (20, 35))
    # What is left of the gains 20, 20 after 4/7 of the room 30, 40: 20/7 and -20/7; their
    # deviation over sqrt(2) is 20/7, and t_1(0.975) = 12.7062.
    assert_allclose(way.share.mean, 400 / 7)
    assert_allclose(way.share.half_width, 12.7062 * (20 / 7) / 35 * 100, rtol=1e-4)


def test_a_method_at_the_limit_has_gone_all_the_way_and_one_at_the_start_nothing():
    rng = np.random.default_rng(0)
    start, limit = rng.uniform(50, 60, 10), rng.uniform(80, 90, 10)
    assert_allclose(Way(start, limit, limit, "x").share.mean, 100)
    assert_allclose(Way(start, limit, limit, "x").share.half_width, 0, atol=1e-9)
    assert_allclose(Way(start, start, limit, "x").share.mean, 0)
    assert Way(limit, limit, start, "x").share is None


def test_means_are_divided_and_not_shares_averaged():
    other = [*runs("honest", "union graph", 90, 90, data="b")]
    other += runs("honest", "Mend", 90, 90, data="b")
    most = [*MOST, *runs("honest-limit", "Mend", 91, 91, data="b")]
    by_cell = ways([*FEW, *other], most)
    # 20 of 35 points in one cell, 0 of 1 in the other.
    assert_allclose(overall_share(by_cell), 100 * 20 / 36)
    text = to_markdown(limit_table(by_cell))
    assert "| b | 30% | 5% | 90.0 | 90.0 | 91.0 | Mend | +1.0 | 0 ± 0 % |" in text
    assert "| mean of the lines |  |  | 72.5 | 82.5 | 90.5 |  | +8.0 | 56 % |" in text


def test_runs_of_other_masks_are_not_compared():
    with pytest.raises(InvalidParameterError, match=r"a, VMR 30%, .* \[1, 2\] repetitions"):
        ways(FEW, runs("honest-limit", "Mend", 90))


def fill(folder, files, revision=lambda _: "abc"):
    """Records of all runs of some experiments, the subject always ahead."""
    made = {"versions": {"viewmend": "1"}, "machine": {"processor": "a processor"}}
    store = ResultStore(folder)
    for file in files:
        experiment = open_experiment(pages.HERE / file, folder, folder, repetitions=2).experiment
        for key in Plan(experiment, ()).known_runs():
            ahead = 0.2 * (key.method == "Mend" and not key.setting)
            score = 0.5 + ahead + 0.2 * (key.protocol == "honest-limit") + 0.01 * key.repetition
            environment = {**made, "revision": revision(key)}
            timings = {"fit": 1.0, "imputation": 0.0}
            store.write(Record(key, "done", dict.fromkeys(FIELDS, score), timings, environment))
    return folder


ALL = ("honest.toml", "limit.toml", "other_labels.toml", "mend_ablation.toml")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("store"), ALL)


def test_the_page_says_what_the_records_hold(store, tmp_path):
    pages.main(["--results", str(store), "--out", str(tmp_path), "--repetitions", "2"])
    text = (tmp_path / "honest.md").read_text()
    assert "over 6 data sets and 3 missing rates is 70.5 %. The mean differences are +20.0" in text
    # From 50.5 to 90.5.
    assert "It covers 50 % of the way" in text
    assert "repetitions 0 to 1" in text
    assert "Revision `abc`" in text
    assert "are not done" not in text
    for section in pages.SECTIONS:
        assert f"## {section.title}\n" in text
    # 18 equal signs in a row, and the factor of Holm for seven variants.
    assert f"| Mend (uniform prior) | 50.5 | +20.0 ± 0.0 | {7 * 2.0**-18:.0e} | 18/0/0 |" in text
    assert (tmp_path / "honest.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "honest.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    # Five, four, twice four, and seven variants in 18 cells: each run once.
    assert len(rows) == 18 * 2 * (5 + 4 + 8 + 7)


def test_runs_that_lack_and_how_they_were_made_are_told(store, tmp_path):
    note = "Other work ran beside some of them."
    options = ["--repetitions", "3", "--note", note]
    pages.main(["--results", str(store), "--out", str(tmp_path), *options])
    text = (tmp_path / "honest.md").read_text()
    assert f"{note} Every run is in" in text
    assert f"*{18 * 5} runs of this section are not done.*" in text


def test_a_page_without_its_main_table_or_of_several_revisions_is_refused(tmp_path):
    with pytest.raises(InvalidParameterError, match=r"no record of honest\.toml"):
        pages.main(["--results", str(tmp_path), "--out", str(tmp_path)])
    mixed = fill(tmp_path, ALL[:1], lambda key: "abc" if key.repetition else "def")
    with pytest.raises(InvalidParameterError, match=r"several revisions \(abc, def\)"):
        pages.main(["--results", str(mixed), "--out", str(tmp_path), "--repetitions", "2"])


def test_docs_show_committed_code_alone(tmp_path):
    dirty = fill(tmp_path, ALL[:1], lambda _: "abc-dirty")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "conf.py").touch()
    out = tmp_path / "docs" / "results"
    with pytest.raises(InvalidParameterError, match="cannot be looked up"):
        pages.main(["--results", str(dirty), "--out", str(out), "--repetitions", "2"])
    assert not out.exists()
