"""What the speed benchmark of MendClassifier makes of its measurements: cases, stages, the page."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from perf import mend, mend_cases, mend_page, mend_timing
from perf.mend_agreement import Answers, agreement, digit_changed
from perf.mend_cases import Case
from perf.records import Record

from viewmend.core.mend.kernel_features import mean_kernel
from viewmend.exceptions import InvalidParameterError

MNIST = [784, 144, 64]
MACHINE = {
    "cpu": "a processor",
    "cores": 2,
    "memory_gb": 25.0,
    "load_before": 0.0,
    "blas": ["openblas 1"],
    "blas_threads": 2,
    "kernel_threads": 2,
    "versions": {"viewmend": "1"},
    "revision": "abc",
}


def row(n_samples, seconds, columns=MNIST, n_classes=10, source="mnist", **sides):
    stages = {"neighbours": 0.5 * seconds, "rounds: a": 0.2 * seconds, "rounds: b": 0.3 * seconds}
    fit = {"seconds": seconds, "stages": stages, "peak_bytes": 2_000_000_000, "accuracy": 0.875}
    fit |= {"n_new": 5000, "predict_seconds": 0.25}
    facts = {"family": "samples", "source": source, "n_samples": n_samples, "dtype": "float64"}
    return {**facts, "columns": list(columns), "n_classes": n_classes, "fit": fit, **sides}


def record(*rows, device="cpu", graph_samples=None, **machine):
    settings = {"device": device, "repeats": 2, "graph_samples": graph_samples}
    settings |= {"workers": 2, "threads": 1, "rounds": 4}
    return Record("mend", {**MACHINE, **machine}, settings, list(rows))


def table_row(text, start):
    return next(told for told in text.splitlines() if told.startswith(start))


def test_ratios_are_seconds_of_the_fit_over_those_of_the_same_run(tmp_path):
    beside = {"spreading": {"seconds": 5.0, "accuracy": 0.5}, "brute": {"seconds": 40.0}}
    slow = {"spreading": {"beyond": 60.0, "error": "too slow"}, "brute": {"error": "KeyError"}}
    text = mend_page.page([record(row(5000, 10.0, **beside), row(20000, 50.0, **slow))], tmp_path)
    assert table_row(text, "| CPU, 2 threads | MNIST | 5 000 ").endswith("| 0.25 | 2 (50.0 %) |")
    assert table_row(text, "| CPU, 2 threads | MNIST | 20 000 ").endswith("| failed | - |")
    assert (tmp_path / mend_page.PICTURE).read_bytes().startswith(b"\x89PNG")
    assert f"]({mend_page.PICTURE})" in text


def test_growth_is_told_per_sample_and_from_end_to_end():
    generated = [row(10000, v, [64] * v, source="generated") for v in (2, 4, 8)]
    fits = mend_page.fits_of([record(row(5000, 10.0), row(70000, 210.0), *generated)])
    (told,) = mend_page.growth(fits)
    assert "14 times as many: 21 times as long, 1.50 times per sample" in told
    assert "2 to 8 views, of 64 columns each: 4.0 times as long" in told
    assert "classes" not in told


def test_the_stage_table_has_percents_of_the_largest_fit_and_one_row_of_rounds():
    fits = mend_page.fits_of([record(row(5000, 1.0), row(20000, 8.0))])
    lines = mend_page.stage_table(fits).splitlines()
    assert lines[0].endswith("CPU, 2 threads, 20 000 samples |")
    assert lines[2:4] == ["| neighbours | 50 |", "| rounds | 50 |"]


def test_engines_stand_in_one_order_and_a_failed_fit_says_why(tmp_path):
    failed = row(70000, 1.0) | {"fit": {"error": "OutOfMemoryError: 80 | 90 GB"}}
    device = row(5000, 1.0)
    device["fit"] |= {"device_bytes": 3_500_000_000}
    dask = row(250_000, 60.0, [64, 64], source="generated")
    records = [
        record(dask, device="dask"),
        record(device, failed, device="cuda", gpu="a GPU", gpu_memory_gb=80.0),
        record(row(5000, 9.0)),
    ]
    text = mend_page.page(records, tmp_path)
    opening = [told for told in text.splitlines() if told.startswith("- **")][:3]
    assert [told.split("**")[1] for told in opening] == [
        "CPU, 2 threads",
        "a GPU",
        "Dask, 2 workers of 1 thread, 4 rounds",
    ]
    assert "2.0 GB and 3.5 GB of the GPU" in opening[1]
    assert "| OutOfMemoryError: 80   90 GB |" in table_row(text, "| a GPU | MNIST | 70 000")
    table = [told for told in text.splitlines() if told.startswith(("| CPU,", "| a GPU", "| Dask"))]
    assert {told.count("|") for told in table} == {len(mend_page.TABLE_HEAD) + 1}


def test_records_of_another_kind_are_left_to_other_pages(tmp_path):
    fits = record(row(5000, 9.0))
    killed = replace(fits, benchmark="mend-killed", rows=[{"n_samples": 100_000, "restarts": 0}])
    assert mend_page.page([killed, fits], tmp_path) == mend_page.page([fits], tmp_path)


def test_the_same_fit_twice_is_refused():
    with pytest.raises(ValueError, match="5000 samples"):
        mend_page.fits_of([record(row(5000, 1.0)), record(row(5000, 2.0))])


def test_fits_on_graph_samples_are_told_apart_from_those_on_all_samples():
    records = [record(row(5000, 3.0)), record(row(5000, 1.0), graph_samples=2000)]
    engines = [fit.engine for fit in mend_page.fits_of(records)]
    assert engines == ["CPU, 2 threads", "CPU, 2 threads, graph_samples=2000"]


def test_figures_of_uncommitted_code_stay_out_of_the_documentation(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "conf.py").touch()
    found = record(row(5000, 1.0), revision="abc-dirty")
    folder = tmp_path / "records"
    mend.save(found, SimpleNamespace(out=folder, name=None))
    out = tmp_path / "docs" / "speed.md"
    with pytest.raises(InvalidParameterError, match="abc-dirty"):
        mend_page.main(["--data", str(folder), "--out", str(out)])
    clean = json.loads((folder / "mend.json").read_text())
    clean["machine"]["revision"] = "abc"
    (folder / "mend.json").write_text(json.dumps(clean))
    mend_page.main(["--data", str(folder), "--out", str(out)])
    assert "Revision abc." in out.read_text()


def test_no_case_is_fitted_twice_and_samples_scale():
    cases = mend_cases.cases_of(mend_cases.FAMILIES, [20000, 5000], 0.1)
    problems = {(case.source, case.n_samples, case.columns, case.n_classes) for case in cases}
    assert len(problems) == len(cases) == 12
    assert [case.n_samples for case in cases][:3] == [500, 2000, 1000]
    assert {c.n_samples for c in cases if c.family.startswith("million")} == {100_000}


def test_warm_ups_are_the_case_with_fewer_samples_and_never_more():
    large = Case("samples", "mnist", 70_000, (784, 144, 64))
    sizes = [case.n_samples for case in mend_cases.warm_up_cases(large)]
    assert sizes[0] < 10_000 < sizes[1] * (1 - mend_cases.MISSING_RATE)
    small = Case("samples", "mnist", 1000, (784, 144, 64))
    assert mend_cases.warm_up_cases(small) == [small]


def test_repeated_rows_are_all_rows_once_and_then_those_rows_with_noise():
    rng = np.random.default_rng(0)
    views, y = [rng.normal(size=(50, 400)), 7 * rng.normal(size=(50, 400))], np.arange(50)
    longer, classes = mend_cases.repeated_rows(views, y, 120)
    assert sorted(classes[:50]) == list(range(50))
    np.testing.assert_array_equal(classes, classes[np.arange(120) % 50])
    for view, longer_view in zip(views, longer, strict=True):
        np.testing.assert_array_equal(longer_view[:50], view[classes[:50]].astype(np.float32))
        noise = longer_view[50:] - view[classes[50:]]
        np.testing.assert_allclose(noise.std(), mend_cases.REPEAT_NOISE * view.std(), rtol=0.05)


def test_what_cannot_end_in_time_is_not_begun(monkeypatch):
    begun = []

    def apart(measure, *_):
        begun.append(measure)
        return {"seconds": 1.0}

    monkeypatch.setattr(mend, "apart", apart)
    args = mend.parser().parse_args(["--limit", "60"])
    before = [row(5000, 1.0, spreading={"seconds": 2.0}, brute={"seconds": 0.1})]
    found = mend.case_row(Case("samples", "mnist", 70_000, tuple(MNIST)), args, before)
    assert begun == ["fit", "brute"]
    # Pairs of samples grow with the square: 14 times the samples, 196 times the pairs.
    assert found["spreading"]["beyond"] == pytest.approx(392.0)


def test_a_process_that_fails_leaves_its_reason():
    args = mend.parser().parse_args(["--data", "absent.npz", "--scale", "0.01"])
    args.new = 5
    found = mend.apart("brute", Case("samples", "mnist", 50, tuple(MNIST)), args, 300.0)
    assert found["error"].startswith("FileNotFoundError: --data")


def test_seconds_of_stages_and_rounds_add_up(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(mend_timing, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    clock = mend_timing.StageClock("cpu")
    clock.on_fit_begin(None)
    spent = iter(2.0 ** np.arange(9))

    def after(call, *arguments):
        now[0] += next(spent)
        call(*arguments)

    for v in (1, 2):
        after(clock.on_stage, f"neighbours of view {v} of 2", v, 2)
    after(clock.on_stage, "graphs", 0, None)
    after(clock.on_rounds_begin)
    for name in ("homophily", "evidence"):
        after(clock, SimpleNamespace(name=name), None)
    for turn in (1, 2):
        after(clock.on_stage, f"calibration {turn} of 2", turn, 2)
    after(clock.on_fit_end, None, None)
    assert clock.seconds == {
        "input": 1,
        "neighbours": 2 + 4,
        "graphs": 8,
        "rounds: homophily": 16,
        "rounds: evidence": 32,
        "result": 64,
        "calibration": 128 + 256,
    }
    assert sum(clock.seconds.values()) == now[0]


def test_the_page_knows_every_stage_of_a_fit():
    """Fails where the library renames a stage: then add its new name to the table."""
    args = mend.parser().parse_args(["--scale", "0.01", "--repeats", "1"])
    args.new = 20
    case = Case("views", "generated", 300, (8, 8), 3, "float32")
    found = mend_timing.fit_figures(case, args)
    kinds = {stage.split(":")[0] for stage in found["stages"]}
    assert kinds <= set(mend_page.STAGES)
    assert {"neighbours", "kernel features", "rounds", "calibration"} <= kinds
    assert sum(found["stages"].values()) <= found["seconds"]
    assert found["peak_bytes"] >= (found["before_bytes"] or 0)


def test_missing_rows_get_the_mean_of_the_others():
    view = np.array([[1.0, 2.0], [np.nan, np.nan], [3.0, 6.0]])
    np.testing.assert_array_equal(mend_timing.mean_imputed(view)[1], [2.0, 4.0])
    assert np.isnan(view[1]).all()


def test_agreement_counts_classes_and_close_soft_labels():
    soft = np.array([[0.9, 0.1], [0.4, 0.6]])
    moved = np.array([[0.9, 0.1], [0.45, 0.55]])
    one = Answers(np.array([0, 1]), soft, 0.5, np.array([1, 1, 0, 0]))
    other = Answers(np.array([0, 1]), moved, 0.5, np.array([1, 0, 0, 0]))
    found = agreement(one, other)
    assert found["same_classes"] == 1
    assert found["close_soft_labels"] == 0.5
    assert found["mean_difference"] == pytest.approx(0.025)
    assert found["largest_difference"] == pytest.approx(0.05)
    assert found["same_new"] == 0.75


def test_a_changed_digit_is_the_last_one_of_a_kernel():
    points = {"unit": np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)}
    as_it_is = mean_kernel(points, points, {"unit": 10.0})
    with digit_changed():
        changed = mean_kernel(points, points, {"unit": 10.0})
    assert 0.5 < np.mean(changed != as_it_is) < 0.8
    np.testing.assert_allclose(changed, as_it_is, rtol=2.1 * np.finfo(np.float32).eps)
