"""The honest comparison: what methods are shown, scores, resuming, failures, tables."""

import json
import time

import contestants
import honest
import numpy as np
import pytest
import runs
from contestants import CONTESTANTS, Contestant
from joblib.externals.loky.process_executor import TerminatedWorkerError
from protocols import pose
from sklearn.metrics import f1_score, precision_score, recall_score

from viewmend.baselines import UnionGraphClassifier
from viewmend.baselines.registry import METHODS
from viewmend.datasets import make_multiview_blobs, realised_completeness

BLOBS = make_multiview_blobs(90, n_views=3, noise=2.0, random_state=0)
PROBLEM = runs.Problem("main", "blobs", 0.5, 0)
VOLATILE = ("seconds", "completion_seconds")


class Spy(UnionGraphClassifier):
    """Keeps what it is fitted on."""

    seen = None

    def fit(self, X, y, mask=None):
        type(self).seen = (X, y, mask)
        return super().fit(X, y, mask)


class Broken(UnionGraphClassifier):
    def fit(self, *_args):
        msg = "cannot be fitted"
        raise ValueError(msg)


@pytest.fixture
def folder(tmp_path):
    for name in ("blobs", "again"):
        views = {f"view_{v}": view for v, view in enumerate(BLOBS.views)}
        np.savez(tmp_path / f"{name}.npz", y=BLOBS.y, **views)
    return tmp_path


@pytest.fixture
def methods(monkeypatch):
    """Two methods that this process knows under names of their own."""
    for name, method in {"spy": Spy, "broken": Broken}.items():
        monkeypatch.setattr(contestants, method.__name__, method, raising=False)
        row = Contestant(f"contestants:{method.__name__}")
        for table in (runs.ALL_METHODS, contestants.CONTESTANTS):
            monkeypatch.setitem(table, name, row)
    runs.task_of.cache_clear()


def run(folder, out, *options, names="union graph,Poisson-MBO"):
    fixed = ["--data", folder, "--out", out, "--jobs", 1, "--methods", names]
    chosen = ["--sets", "blobs,again", "--rates", "0.3,0.6", "--seeds", 2, "--protocols", "main"]
    honest.main([str(part) for part in (*fixed, *chosen, *options)])


def results(out):
    """Rows by key, without times."""
    rows = runs.read(out)
    return {key: {f: v for f, v in row.items() if f not in VOLATILE} for key, row in rows.items()}


def test_no_method_sees_a_hidden_label_or_view(folder, methods):
    runs.attempt(folder, PROBLEM, "spy")
    data, y, mask = Spy.seen
    task = pose(BLOBS, "main", 0.5, 0)
    assert mask is None
    np.testing.assert_array_equal(y, task.y)
    assert np.all(y[task.unlabelled] == -1)
    for v, view in enumerate(data.views):
        assert np.isnan(view[~task.data.observed[:, v]]).all()


def test_scores_are_those_of_scikit_learn_on_unlabelled_rows():
    task = pose(BLOBS, "main", 0.5, 0)
    rng = np.random.default_rng(0)
    guess = rng.integers(task.y_true.max() + 1, size=task.y.size)
    found = runs.score(task, guess)
    # Labelled rows do not count.
    for wrong in (np.where(task.labelled, 0, guess), np.where(task.labelled, 1, guess)):
        assert runs.score(task, wrong) == found
    truth, guess = task.y_true[task.unlabelled], guess[task.unlabelled]
    assert found["accuracy"] == np.mean(truth == guess)
    assert found["macro_f1"] == f1_score(truth, guess, average="macro")
    assert found["macro_precision"] == precision_score(truth, guess, average="macro")
    assert found["macro_recall"] == recall_score(truth, guess, average="macro")


def test_a_row_tells_the_realised_completeness_and_versions(folder, methods):
    row = runs.attempt(folder, PROBLEM, "union graph")
    expected = realised_completeness(pose(BLOBS, "main", 0.5, 0).data.observed)
    assert row["status"] == "done"
    assert row["observed_pairs"] == expected.observed_pairs
    assert row["complete_samples"] == expected.complete_samples
    assert {"viewmend", "numpy", "python"} <= set(row["versions"])
    json.dumps(row)


def test_completing_methods_share_the_completion_the_estimator_would_make(folder, methods):
    row = runs.attempt(folder, PROBLEM, "AMGL")
    task = pose(BLOBS, "main", 0.5, 0)
    alone = METHODS["AMGL"].estimator(random_state=0).fit(task.data, task.y)
    assert row["accuracy"] == runs.score(task, alone.transduction_)["accuracy"]
    assert row["completion_seconds"] > 0
    before = runs.completion_of.cache_info().misses
    runs.attempt(folder, PROBLEM, "MLAN")
    assert runs.completion_of.cache_info().misses == before


def test_every_baseline_of_the_registry_takes_part():
    built = {type(row.build(0)) for row in CONTESTANTS.values() if "baselines" in row.path}
    expected = {m.estimator for m in METHODS.values() if "baselines" in m.path}
    assert built == expected


def test_a_killed_comparison_resumes_to_the_same_results(folder, tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    run(folder, whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    assert len(lines) == 16
    # Killed within the sixth line.
    cut.write_bytes(b"".join(lines[:5]) + lines[5][:40])
    run(folder, cut)
    assert results(cut) == results(whole)
    kept = [line for line in cut.read_bytes().splitlines(keepends=True) if line in lines]
    assert kept[:5] == lines[:5]
    assert len(cut.read_text().splitlines()) == 17


def test_finished_runs_are_not_repeated_and_failed_ones_are(folder, tmp_path, methods):
    out = tmp_path / "runs.jsonl"
    run(folder, out, names="union graph,broken")
    first = runs.read(out)
    assert (
        sorted(row["status"] for row in first.values())
        == ["done"] * 8 + ["error: ValueError: cannot be fitted"] * 8
    )
    run(folder, out, names="union graph,broken")
    methods_of_lines = [json.loads(line)["method"] for line in out.read_text().splitlines()]
    assert methods_of_lines.count("union graph") == 8
    assert methods_of_lines.count("broken") == 16


def test_another_setting_is_another_run(monkeypatch):
    before = runs.key_of(PROBLEM, "Poisson-MBO")
    changed = Contestant(CONTESTANTS["Poisson-MBO"].path, {"n_neighbors": 3})
    monkeypatch.setitem(runs.ALL_METHODS, "Poisson-MBO", changed)
    assert runs.key_of(PROBLEM, "Poisson-MBO") != before


def test_nothing_starts_after_the_time_limit(folder, tmp_path):
    out = tmp_path / "runs.jsonl"
    run(folder, out, "--time-limit", 0)
    assert not out.exists()


def test_costly_jobs_come_first_and_completing_methods_stay_together(folder):
    names = "AMGL,union graph,MLAN"
    argv = ["--data", str(folder), "--out", "x", "--sets", "blobs", "--methods", names]
    jobs = honest.plan(honest.parse([*argv, "--seeds", "1", "--protocols", "main"]), set())
    assert [job.cost for job in jobs] == sorted((job.cost for job in jobs), reverse=True)
    assert {job.methods for job in jobs} == {("AMGL", "MLAN"), ("union graph",)}


def test_a_dead_worker_costs_the_runs_it_had_and_no_others(folder, tmp_path, monkeypatch):
    out, calls = tmp_path / "runs.jsonl", []
    real = honest.run_jobs

    def dying(jobs, args, deadline):
        """Two jobs end, the third takes its process along."""
        calls.append(len(jobs))
        if len(calls) > 1:
            return real(jobs, args, deadline)
        for job in jobs[:2]:
            honest.run_job(job, args.data, args.out, time.time() + 60)
        msg = "killed"
        raise TerminatedWorkerError(msg)

    monkeypatch.setattr(honest, "run_jobs", dying)
    run(folder, out)
    statuses = [row["status"] for row in runs.read(out).values()]
    assert statuses.count("done") == 15
    assert sum("died" in status for status in statuses) == 1
    assert calls == [16, 13]


def test_group_names_stand_for_their_members():
    argv = ["--out", "x", "--table", "y", "--protocols"]
    found = honest.parse([*argv, "few_labels,main"]).protocols
    assert found == ["few_labels_1", "few_labels_2", "main"]
    with pytest.raises(SystemExit, match="no protocols 'rare'; choose from main"):
        honest.parse([*argv, "rare"])


def test_ablations_run_the_subject_and_its_variants_only():
    found = honest.parse(["--out", "x", "--table", "y", "--ablate"]).methods
    assert found == [contestants.SUBJECT, *contestants.ABLATIONS]


def row_of(method, data, seed, accuracy, status="done"):
    scores = dict.fromkeys(honest.METRICS, accuracy)
    problem = {"protocol": "main", "data": data, "rate": 0.5, "seed": seed}
    times = {"seconds": 1.0, "completion_seconds": None}
    return problem | {"method": method, "status": status} | times | scores


def test_the_report_names_what_was_lost():
    ours = [("a", 0, 0.9), ("a", 1, 0.8), ("b", 0, 0.5), ("b", 1, 0.5)]
    theirs = [("a", 0, 0.7), ("a", 1, 0.7), ("b", 0, 0.6), ("b", 1, 0.7)]
    rows = [row_of("us", *values) for values in ours] + [row_of("them", *v) for v in theirs]
    rows.append(row_of("them", "c", 0, 0.0, status="error: MemoryError: too large\nby far"))
    text = honest.report(rows, "us", "accuracy")
    # Means 85 and 50 over the cells; 70 and 65; differences 15 and -15.
    assert "| mean |  |  | 67.5 | 67.5 |" in text
    assert "| a | 50% | 2 | **85.0** ± 63.5 | 70.0 ± 0.0 |" in text
    assert "| them | +0.0 ± 190.6 | 0.750 | 1/0/1 | 2/0/2 |" in text
    assert "- b at 50%, them: -15.0 ± 63.5" in text
    assert "- a at 50%, them" not in text
    assert "- them, c, 1 runs: error: MemoryError: too large\n" in text
