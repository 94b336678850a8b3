"""Carrying out a plan: whoever does the runs, the store ends the same."""

import importlib.util
import threading
from dataclasses import replace
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest

from viewmend.bench import runner as execute
from viewmend.bench.experiment import Experiment, Row
from viewmend.bench.measures import RunFolders
from viewmend.bench.methods import CONTESTANTS, Contestant
from viewmend.bench.plan import Plan
from viewmend.bench.runner import (
    ELSEWHERE,
    Session,
    Worker,
    WorkerLostError,
    carry_out,
    in_turn,
    on_cores,
    on_dask,
    spread_over,
)
from viewmend.bench.runs import Record, derived_seed
from viewmend.bench.store import ResultStore

EXPERIMENT = Experiment(
    name="small",
    title="Small",
    measure="fit",
    protocols=("paper", "honest"),
    data=("CUB",),
    missing_rates=(0.3, 0.5),
    label_rates=(0.05,),
    rows=(Row("tuned", "tuned"),),
    repetitions=2,
)


@pytest.fixture(autouse=True)
def _methods(monkeypatch):
    tuned = Contestant("no.module:Tuned", thinned={"a": (1, 2, 3)})
    monkeypatch.setitem(CONTESTANTS, "tuned", tuned)
    monkeypatch.setattr(execute, "PATIENCE", 0.05)


def make_measure(fails=lambda _: False, before=lambda _: None):
    """A measure that is the same in every process: nested, so that it travels by value."""

    def measure(key, _context):
        before(key)
        if fails(key):
            return Record(key, "error", message="no luck")
        seed = derived_seed(key, "method") + len(key.text)
        return Record(key, "done", {"accuracy": seed % 97 / 97, "macro_f1": seed % 89 / 89})

    return measure


def worker_of(folder, **how):
    folders = RunFolders(folder / "data", folder / "cache")
    return Worker(ResultStore(folder), folders, measure=make_measure(**how))


def results(worker):
    return {r.key: (r.status, r.result, r.message) for r in worker.store.records()}


def reference(tmp_path, experiment=EXPERIMENT):
    worker = worker_of(tmp_path / "reference")
    carry_out(experiment, worker, in_turn)
    return results(worker)


def test_all_waves_are_done_and_nothing_twice(tmp_path):
    worker, watched = worker_of(tmp_path), []
    carry_out(EXPERIMENT, worker, in_turn, watched.append)
    found = results(worker)
    plan = Plan(EXPERIMENT, worker.store.records())
    assert {key for key, *_ in found.items()} == set(plan.known_runs())
    assert len(plan.final_runs()) == 2 * 2 * 2
    assert len(found) == 2 * (3 + 1) + 2 * 2
    assert sorted(outcome.key.digest for outcome in watched) == sorted(k.digest for k in found)
    carry_out(EXPERIMENT, worker, in_turn, pytest.fail)


def test_processes_leave_the_same_store_as_one(tmp_path):
    worker = worker_of(tmp_path)
    carry_out(EXPERIMENT, worker, spread_over(2, None))
    assert results(worker) == reference(tmp_path)


def test_two_that_share_a_store_share_the_work(tmp_path):
    """Each run is begun once, and all return only when all runs are done."""
    begun, lock, all_at_work = [], threading.Lock(), threading.Barrier(3)

    def note(key):
        with lock:
            begun.append(key)
            turn = len(begun)
        if turn <= 3:
            # Each of the three is at a run of its own before any ends.
            all_at_work.wait()

    ends = []

    def work():
        worker = worker_of(tmp_path / "shared", before=note)
        carry_out(EXPERIMENT, worker, in_turn)
        ends.append(results(worker))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(begun) == len(set(begun))
    assert ends == [reference(tmp_path)] * 3


def test_a_run_of_another_process_is_waited_for_and_not_done(tmp_path, monkeypatch):
    worker = worker_of(tmp_path)
    first, *_ = Plan(EXPERIMENT, worker.store.records()).known_runs()
    held = worker.store.claim(first)
    assert held.__enter__()
    assert worker(first).status == ELSEWHERE
    record = worker.measure(first, worker.folders)

    pauses = []

    def let_go_in_the_third_pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            worker.store.write(replace(record, message="by another"))
            held.__exit__(None, None, None)

    monkeypatch.setattr(execute.time, "sleep", let_go_in_the_third_pause)
    watched = []
    carry_out(EXPERIMENT, worker, in_turn, watched.append)
    assert pauses == [execute.PATIENCE] * 3
    assert worker.store.get(first).message == "by another"
    assert first not in [outcome.key for outcome in watched]
    assert len(results(worker)) == len(reference(tmp_path))


def test_nothing_is_begun_after_the_deadline_and_what_was_done_stays(tmp_path, monkeypatch):
    watched, ticks = [], count()
    monkeypatch.setattr(execute, "time", SimpleNamespace(time=lambda: next(ticks)))
    worker = replace(worker_of(tmp_path), deadline=3)
    carry_out(EXPERIMENT, worker, in_turn, watched.append)
    assert len(watched) == len(results(worker)) == 3
    carry_out(EXPERIMENT, replace(worker, deadline=0), in_turn, pytest.fail)
    carry_out(EXPERIMENT, worker_of(tmp_path), in_turn)
    assert results(worker) == reference(tmp_path)


def test_failures_stay_until_they_are_to_be_tried_again(tmp_path):
    def odd(key):
        return key.missing_rate == 0.3 and key.protocol == "honest"

    worker = worker_of(tmp_path, fails=odd)
    carry_out(EXPERIMENT, worker, in_turn)
    assert Plan(EXPERIMENT, worker.store.records()).counts()["tuned"].failed == 2
    better = replace(worker, measure=make_measure())
    carry_out(EXPERIMENT, better, in_turn, pytest.fail)
    Session(EXPERIMENT, worker.store, worker.folders, {}).forget_failures()
    again = []
    carry_out(EXPERIMENT, better, in_turn, again.append)
    assert all(odd(outcome.key) for outcome in again)
    assert len(again) == 2
    assert results(better) == reference(tmp_path)


def test_an_interrupt_passes_and_what_was_done_stays(tmp_path):
    def stop_at_paper(key):
        if key.missing_rate == 0.5:
            raise KeyboardInterrupt

    worker = worker_of(tmp_path, before=stop_at_paper)
    with pytest.raises(KeyboardInterrupt):
        carry_out(EXPERIMENT, worker, in_turn)
    found = results(worker)
    assert found
    assert {key.missing_rate for key in found} == {0.3}
    assert worker.store.running() == worker.store.interrupted() == []
    carry_out(EXPERIMENT, replace(worker, measure=make_measure()), in_turn)
    assert results(worker) == reference(tmp_path)


def test_plugins_are_loaded_where_the_runs_are(tmp_path):
    plugin = tmp_path / "plugin_of_test_execute.py"
    plugin.write_text("ANSWER = 0.42\n")

    def measure(key, _context):
        import plugin_of_test_execute

        return Record(key, "done", {"accuracy": plugin_of_test_execute.ANSWER, "macro_f1": 0})

    worker = replace(worker_of(tmp_path), plugins=(str(plugin),), measure=measure)
    carry_out(EXPERIMENT, worker, partial(on_cores, jobs=2))
    assert {r.result["accuracy"] for r in worker.store.records()} == {0.42}


def test_a_measure_that_leaves_what_cannot_be_is_an_error_and_not_done_for_ever(tmp_path):
    def measure(key, _folders):
        return Record(key, "done", {"accuracy": float("nan"), "macro_f1": 0.5})

    worker = replace(worker_of(tmp_path), measure=measure)
    carry_out(EXPERIMENT, worker, in_turn)
    records = worker.store.records()
    assert {record.status for record in records} == {"error"}
    assert "accuracy of result must be a number in [0, 1], got nan" in records[0].message


@pytest.mark.posix
def test_a_killed_worker_is_an_error_that_names_the_run_and_what_was_done_stays(tmp_path):
    def die(key):
        if key.missing_rate == 0.5:
            import os
            import signal

            os.kill(os.getpid(), signal.SIGKILL)

    worker = worker_of(tmp_path, before=die)
    with pytest.raises(WorkerLostError, match=r'Cut short: .*"missing_rate":0\.5.*fewer jobs'):
        carry_out(EXPERIMENT, worker, partial(on_cores, jobs=2))
    assert all(key.missing_rate == 0.3 for key in results(worker))
    carry_out(EXPERIMENT, replace(worker, measure=make_measure()), in_turn)
    assert results(worker) == reference(tmp_path)


@pytest.mark.parametrize(("jobs", "dask", "named"), [(2, None, "joblib"), (1, "here", "distri")])
def test_what_is_not_installed_is_named_with_the_remedy(tmp_path, monkeypatch, jobs, dask, named):
    for name in ("joblib", "distributed"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(
        ImportError, match=rf"needs {named}.*pip install .*\[.*\]', or use --jobs 1"
    ):
        carry_out(EXPERIMENT, worker_of(tmp_path), spread_over(jobs, dask))


@pytest.mark.skipif(not importlib.util.find_spec("distributed"), reason="distributed is absent")
@pytest.mark.filterwarnings("ignore")  # of the cluster's own making
def test_a_dask_cluster_leaves_the_same_store(tmp_path):
    from distributed import LocalCluster

    worker = worker_of(tmp_path)
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        carry_out(EXPERIMENT, worker, partial(on_dask, address=cluster.scheduler_address))
    assert results(worker) == reference(tmp_path)
