"""What the speed benchmarks make of their measurements: ratios, shares, records and the page."""

import importlib
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from perf import __main__ as sets
from perf import cases, gpu, growth, hardware, page, records, rounds, tnn, whole_fit

from viewmend.datasets import hide
from viewmend.exceptions import InvalidParameterError

TINY = cases.Case(120, 2, 16, 3, paper="Tiny")
ONE = ("--threads", "1", "--repeats", "1")


@pytest.fixture(scope="module")
def paper(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    times = "dataset,method,seconds\nTiny,AMGL,3.0\nTiny,AGF-TI,6.5\n"
    (folder / "running_time.csv").write_text(times)
    steps = "n_samples,n_views,n_anchors,seconds,memory_gib\n1000,2,16,0.5,0.25\n"
    (folder / "tnn_footprint.csv").write_text(steps)
    return folder


@pytest.fixture(scope="module", autouse=True)
def tiny_cases():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(rounds.CASES, "tiny", TINY)
        yield


def rows_of(folder, name):
    return json.loads((folder / f"{name}.json").read_text())["rows"]


def run_rounds(folder, paper, *options):
    rounds.main(
        [
            *ONE,
            "--only",
            "tiny",
            "--rounds",
            "4",
            "--out",
            str(folder),
            "--paper",
            str(paper),
            *options,
        ]
    )
    return rows_of(folder, "rounds")[0]


def test_ratios_are_seconds_of_the_transcription_over_ours(tmp_path, paper):
    row = run_rounds(tmp_path, paper)
    plain = {(run["search"], run["dtype"]): run["seconds"] for run in row["plain"]}
    assert set(plain) == {(s, d) for s in ("slope", "golden", "armijo") for d in rounds.DTYPES}
    for dtype in rounds.DTYPES:
        ours = row["ours"][dtype]
        assert ours["n_iter"] == 4
        assert sum(ours["shares"].values()) == pytest.approx(1)
        expected = plain["golden", "float64"] / ours["seconds"]
        assert rounds.ratio(row, dtype, "golden") == pytest.approx(expected)
    assert row["paper_seconds"] == 6.5
    Z = cases.random_problem(TINY).Z
    assert row["ours"]["float64"]["peak_multiple"] * Z.nbytes == pytest.approx(
        row["ours"]["float64"]["peak_bytes"]
    )


def test_a_ratio_that_was_not_measured_is_none():
    row = {"ours": {"float64": {"seconds": 2.0}}, "plain": []}
    assert rounds.ratio(row, "float64", "slope") is None
    assert rounds.ratio(row, "float32", "slope") is None


def test_fewer_plain_rounds_are_scaled_by_our_own(tmp_path, paper):
    row = run_rounds(tmp_path, paper, "--plain-rounds", "1", "--dtypes", "float64")
    ours = row["ours"]["float64"]
    for run in row["plain"]:
        assert run["scaled"]
        assert run["measured_rounds"] == 1
        # The ratio of whole solves is then that of the first rounds.
        first = run["measured_seconds"] / ours["first_seconds"]
        assert rounds.ratio(row, "float64", run["search"]) == pytest.approx(first)


def test_a_transcription_that_converged_is_not_scaled(monkeypatch):
    args = SimpleNamespace(rounds=30, plain_rounds=0, tol=1e-4, repeats=1, plain_repeats=0)
    monkeypatch.setattr(rounds, "transcribed", lambda *_: {"n_iter": 21})
    monkeypatch.setattr(rounds, "best_seconds", lambda call, _: call() or 8.0)
    ours = {"n_iter": 22, "seconds": 2.0, "first_seconds": 1.0}
    found = rounds.plain_run(cases.random_problem(TINY), "slope", ours, args)
    assert (found["seconds"], found["scaled"]) == (8.0, False)


def test_the_paper_may_be_absent(tmp_path, paper):
    assert cases.paper_seconds(paper) == {"Tiny": 6.5}
    assert cases.paper_footprint(paper) == {(1, 2, 16): cases.Footprint(0.5, 0.25)}
    assert cases.paper_seconds(tmp_path) == {}
    assert cases.paper_footprint(tmp_path) == {}


def run_tnn(folder, paper, *options):
    sizes = ["--samples", "1000", "--views", "2", "--anchors", "16", "--copied", "1048576"]
    tnn.main([*ONE, *sizes, "--out", str(folder), "--paper", str(paper), *options])
    return rows_of(folder, "tnn")


def test_bandwidth_is_six_passes_against_a_copy(tmp_path, paper):
    copies, row = run_tnn(tmp_path, paper, "--dtype", "float32", "--plain")
    input_bytes = 1000 * 2 * 16 * 4
    assert row["input_bytes"] == input_bytes
    assert row["rate"] == pytest.approx(6 * input_bytes / row["seconds"])
    assert row["share"] == pytest.approx(row["rate"] / max(copies["copies"].values()))
    assert row["total_gib"] == pytest.approx((row["peak_bytes"] + input_bytes) / 2**30)
    assert (row["paper_seconds"], row["paper_gib"]) == (0.5, 0.25)
    assert row["plain_seconds"] > 0


def test_the_threshold_of_noise_shrinks_some_and_keeps_some():
    Y = np.random.default_rng(0).random((3, 60, 16))
    sigma = np.linalg.svd(np.fft.rfft(Y, axis=1).transpose(1, 2, 0), compute_uv=False)
    assert 0.1 < np.mean(sigma > tnn.threshold(60, 16)) < 0.9


def test_what_does_not_fit_is_named_and_skipped(tmp_path, paper, capsys):
    _, row = run_tnn(tmp_path, paper, "--budget-gb", "0.001")
    needed = tnn.NEEDED["cpu"] * 1000 * 2 * 16 * 8 / 1e9
    assert row["skipped"]
    assert row["needed_gb"] == pytest.approx(needed)
    assert "seconds" not in row
    sizes = ["--sizes", "100", "200", "--anchors", "16", "--rounds", "2"]
    growth.main([*ONE, *sizes, "--budget-gb", "0.0003", "--out", str(tmp_path)])
    assert [row["skipped"] for row in rows_of(tmp_path, "growth")] == [False, True]
    assert capsys.readouterr().out.count("skipped, needs") == 2


def test_growth_is_told_from_the_two_sizes_that_were_measured():
    rows = [
        {"n_samples": 8000, "skipped": False, "seconds": 2.0},
        {"n_samples": 80_000, "skipped": False, "seconds": 21.0},
    ]
    assert growth.growth_ratio(rows) == 10.5
    skipped = [rows[0], {"n_samples": 80_000, "skipped": True}]
    assert growth.growth_ratio(skipped) is None


def test_shares_are_of_the_fastest_copy_and_of_products_in_the_same_precision():
    limits = {
        "copy, 1 thread": 10.0,
        "copy, 2 threads": 20.0,
        "product, float64": 50.0,
        "product, float32": 100.0,
    }
    assert hardware.share(5.0, "copy", "float32", limits) == 0.25
    assert hardware.share(5.0, "product", "float64", limits) == 0.1
    assert hardware.share(5.0, "product", "float32", limits) == 0.05


@pytest.mark.parametrize(
    "kernel", hardware.kernels((40, 3, 16), "float64", "cpu"), ids=lambda k: k.name
)
def test_both_versions_of_a_timed_kernel_agree(kernel):
    ours, readable = kernel.ours(), kernel.readable()
    if not isinstance(ours, tuple):
        ours, readable = (ours,), (readable,)
    for a, b in zip(ours, readable, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)


@pytest.fixture(scope="module")
def task():
    views, y = whole_fit.random_views(300)
    return hide(views, y, missing_rate=0.3, label_rate=0.1, random_state=0)


@pytest.mark.parametrize("imputation", ["graph", "fourier"])
def test_stages_of_a_fit_add_up(task, imputation):
    """Fails where the library renames a function: then add its new name to the table."""
    parameters = {"imputation": imputation, "n_anchors": 16, "max_iter": 2, "random_state": 0}
    fit = whole_fit.staged_fit(task, parameters, "cpu")
    assert sum(fit["stages"].values()) == pytest.approx(fit["seconds"])
    absent = {"order", "waves"} if imputation == "fourier" else set()
    assert {stage for stage, calls in fit["calls"].items() if calls == 0} == absent
    assert fit["stages"]["rest"] >= 0


def test_a_device_says_the_same_as_numpy(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(gpu, "GPU_CASES", {"tiny": TINY})
    gpu.main([*ONE, "--device", "torch", "--rounds", "4", "--out", str(tmp_path)])
    rows = rows_of(tmp_path, "gpu-torch")
    assert [row["transform"] for row in rows] == ["fourier", "waves"]
    for row in rows:
        assert row["off_numpy"] < 1e-8
        assert row["off_float64"] < 1e-2
    text = page.page(page.grouped(records.read(tmp_path)), tmp_path)
    assert text.count(f"{100 * rows[0]['same_classes']:.2f} %") >= 1
    assert (tmp_path / "speed-gpu-torch-shares.png").is_file()


def test_a_device_that_says_something_else_fails(monkeypatch):
    monkeypatch.setattr(gpu, "GPU_CASES", {"tiny": TINY})
    zeros = np.zeros((TINY.n_samples, TINY.n_classes))
    answers = {"cpu": zeros, "torch": zeros + 1e-3}
    monkeypatch.setattr(gpu, "soft_labels", lambda _problem, device, _rounds: answers[device])
    monkeypatch.setattr(gpu, "our_run", lambda *_: {"seconds": 1.0, "peak_multiple": 1.0})
    pytest.importorskip("torch")
    with pytest.raises(SystemExit, match="tiny"):
        gpu.main([*ONE, "--device", "torch", "--transforms", "fourier"])


@pytest.fixture(scope="module")
def figures(tmp_path_factory, paper, task):
    """JSON files of every script."""
    found = tmp_path_factory.mktemp("figures")
    run_rounds(found, paper)
    run_tnn(found, paper)
    out = ["--out", str(found)]
    growth.main([*ONE, *out, "--sizes", "100", "200", "--anchors", "16", "--rounds", "2"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(hardware.TRANSFORMS, "cpu", (4, 64))
        small = ["--samples", "100", "--anchors", "16", "--copied", "65536", "--product-size", "32"]
        hardware.main([*ONE, *out, *small])
        patch.setattr(whole_fit, "_small_task", lambda: task)
        small = ["--samples", "300", "--anchors", "16", "--data", "absent.npz"]
        whole_fit.main([*ONE, *out, *small])
    return found


@pytest.fixture
def folder(figures, tmp_path):
    """A copy that tests may add to."""
    return Path(shutil.copytree(figures, tmp_path / "figures"))


def test_the_page_shows_every_figure(folder, tmp_path):
    out = tmp_path / "docs" / "speed.md"
    page.main(["--data", str(folder), "--out", str(out)])
    text = out.read_text()
    row = rows_of(folder, "rounds")[0]
    for dtype in rounds.DTYPES:
        assert f"| {rounds.ratio(row, dtype, 'golden'):.1f} |" in text
    assert "| 6.5 |" in text
    for name in ("rounds", "tnn", "growth", "hardware", "whole_fit"):
        assert page.TITLES[name] in text
    machine = json.loads((folder / "tnn.json").read_text())["machine"]
    assert text.count(machine["cpu"]) == 5
    links = [part.split(")")[0] for part in text.split("](")[1:]]
    assert len(links) == len(set(links)) == 6
    for link in links:
        assert (out.parent / link).read_bytes().startswith(b"\x89PNG")


def test_figures_of_uncommitted_code_stay_out_of_the_documentation(folder, tmp_path):
    out = tmp_path / "docs" / "speed.md"
    out.parent.mkdir()
    (out.parent / "conf.py").touch()
    for path in folder.glob("*.json"):
        figures = json.loads(path.read_text())
        figures["machine"]["revision"] = "abc-dirty" if path.stem == "tnn" else "abc"
        path.write_text(json.dumps(figures))
    with pytest.raises(InvalidParameterError, match="1 of 5 records"):
        page.main(["--data", str(folder), "--out", str(out)])
    assert [path.name for path in out.parent.iterdir()] == ["conf.py"]


def test_no_folder_of_this_machine_is_recorded(folder, tmp_path):
    for path in folder.glob("*.json"):
        assert str(tmp_path.parent) not in path.read_text()


def test_machines_do_not_share_a_table_or_a_picture(folder, tmp_path):
    figures = json.loads((folder / "growth.json").read_text())
    figures["machine"]["cpu"] = "another processor"
    (folder / "growth-there.json").write_text(json.dumps(figures))
    groups = [g for g in page.grouped(records.read(folder)) if g.benchmark == "growth"]
    assert [len(group.rows) for group in groups] == [2, 2]
    text = page.page(groups, tmp_path)
    assert "another processor" in text
    assert {path.name for path in tmp_path.glob("speed-growth*.png")} == {
        "speed-growth-float64.png",
        "speed-growth-float64-2.png",
    }


def test_files_of_one_script_and_machine_share_a_table(folder):
    text = (folder / "growth.json").read_text()
    (folder / "growth-more.json").write_text(text)
    groups = page.grouped(records.read(folder))
    assert [len(g.rows) for g in groups if g.benchmark == "growth"] == [4]


def test_an_empty_folder_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="--out"):
        records.read(tmp_path)


@pytest.mark.parametrize("command", [c for runs in sets.SETS.values() for c in runs])
def test_every_run_of_a_set_has_options_that_its_script_knows(command):
    script, *options = command.split()
    importlib.import_module(f"perf.{script}").parser().parse_args([*options, "--threads", "2"])


@pytest.mark.parametrize("name", sets.SETS)
def test_runs_of_a_set_write_different_files(name):
    files = []
    for command in sets.SETS[name]:
        script, *options = command.split()
        args = importlib.import_module(f"perf.{script}").parser().parse_args(options)
        files.append(args.name or f"{script}-{args.device}")
    assert len(set(files)) == len(files)
