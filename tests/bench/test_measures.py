"""A run is decided by its key, and a method sees what it may see and no more."""

import json
import pickle
import re
import warnings
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator

from viewmend.bench.measures import MEASURES, RunFolders, hidden_error, measure
from viewmend.bench.methods import CONTESTANTS, Contestant
from viewmend.bench.protocols import PROTOCOLS, altered, pose
from viewmend.bench.runs import RunKey, derived_seed, setting_of
from viewmend.core.agfti.tensor_nuclear import prox_tnn, tnn
from viewmend.data.container import MultiViewData
from viewmend.datasets import make_multiview_blobs
from viewmend.datasets.catalogue import load
from viewmend.exceptions import DataWarning
from viewmend.models.agfti import AGFTIClassifier

N, N_CLASSES, N_VIEWS = 90, 3, 3


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """Blobs whose first column tells the class, sorted or not; and a cache of completions."""
    folder = tmp_path_factory.mktemp("bench")
    blobs = make_multiview_blobs(N, n_views=N_VIEWS, n_classes=N_CLASSES, noise=2.0, random_state=3)
    views = {f"view_{v}": np.c_[view, 10.0 + blobs.y] for v, view in enumerate(blobs.views)}
    np.savez(folder / "marked.npz", y=blobs.y, **views)
    np.savez(
        folder / "blobs.npz",
        y=blobs.y,
        **{f"view_{v}": view for v, view in enumerate(blobs.views)},
    )
    return RunFolders(folder, folder / "cache")


def key_of(method="union graph", *, data="blobs", setting=None, **fields):
    defaults = {"measure": "fit", "protocol": "honest", "repetition": 0}
    return RunKey(
        **{**defaults, **fields},
        data=data,
        missing_rate=0.5,
        label_rate=0.1,
        method=method,
        setting=setting_of(setting or {}),
    )


def done(key, context):
    record = measure(key, context)
    assert record.status == "done", record.message
    return record


class Spy(BaseEstimator):
    """Looks up the class in the last column of a view that a sample has."""

    seen: ClassVar = []
    n_anchors_seen: ClassVar = None

    def __init__(self, n_anchors=None):
        self.n_anchors = n_anchors

    def fit(self, data, y):
        Spy.seen.append((data, y))
        Spy.n_anchors_seen = self.n_anchors
        columns = np.stack([view[:, -1] for view in data.views])
        self.transduction_ = np.nanmax(columns, axis=0).astype(int) - 10
        return self


class Always(BaseEstimator):
    """Says the same of all."""

    def fit(self, data, _y):
        warnings.warn("no idea", DataWarning, stacklevel=1)
        warnings.warn("no idea", RuntimeWarning, stacklevel=1)
        self.transduction_ = np.ones(data.n_samples, dtype=int)
        return self


class Raises(BaseEstimator):
    """Fails in a way that its parameter says."""

    def __init__(self, error=ValueError):
        self.error = error

    def fit(self, _data, _y):
        raise self.error("cannot be fitted")


@pytest.fixture(autouse=True)
def own_methods(monkeypatch):
    Spy.seen = []
    for kind in (Spy, Always, Raises):
        monkeypatch.setitem(CONTESTANTS, kind.__name__, Contestant(kind))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_method_gets_the_task_and_no_hidden_label(context, protocol):
    key = key_of("Spy", data="marked", protocol=protocol)
    record = done(key, context)
    data, y = Spy.seen[-1]
    source = load("marked", context.data_dir)
    task = pose(source, protocol, 0.5, 0.1, derived_seed(key, "mask"))
    assert_array_equal(y, task.y)
    assert_array_equal(y[task.unlabelled], -1)
    for given, expected in zip(data.views, task.data.views, strict=True):
        assert_array_equal(given, expected)
    # Its guesses are right, so they were judged against the samples they were made for; noise in
    # place of the only view that a sample has tells nothing.
    useless = PROTOCOLS[protocol].alteration == "one view replaced by noise"
    assert useless or record.result["accuracy"] == record.result["macro_f1"] == 1.0


def test_a_method_that_knows_nothing_scores_what_it_must(context):
    result = done(key_of("Always"), context).result
    source = load("blobs", context.data_dir)
    task = pose(source, "honest", 0.5, 0.1, result["seeds"]["mask"])
    share = np.mean(task.y_true[task.unlabelled] == 1)
    assert result["accuracy"] == pytest.approx(share)
    assert result["macro_recall"] == pytest.approx(1 / N_CLASSES)
    assert result["macro_precision"] == pytest.approx(share / N_CLASSES)
    assert result["macro_f1"] == pytest.approx(2 * share / (1 + share) / N_CLASSES)
    assert result["n_labelled"] == np.sum(task.labelled)
    assert result["observed_pairs"] == task.data.observed.mean()
    assert result["complete_samples"] == task.data.observed.all(axis=1).mean()
    assert result["n_iter"] is None


def test_warnings_are_kept_by_name(context):
    assert done(key_of("Always"), context).result["warned"] == ["DataWarning", "RuntimeWarning"]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (key_of("Raises"), "ValueError: cannot be fitted"),
        (key_of("Raises", setting={"error": MemoryError}), "MemoryError: cannot be fitted"),
        (key_of(data="AwA"), "DataAbsentError: the data 'AwA' is not in"),
        (key_of("best"), "InvalidParameterError: method='best' is not known"),
        (key_of(measure="guess"), "InvalidParameterError: measure='guess' is not known"),
        (key_of(measure="tnn_step", setting={"n": 4}), "InvalidParameterError: .* gives n;"),
    ],
)
def test_what_goes_wrong_is_a_result(context, key, message):
    record = measure(key, context)
    assert record.status == "error"
    assert record.result == {}
    assert re.match(message, record.message)
    assert record.environment["versions"]["viewmend"]


def test_an_interrupt_is_not(context):
    with pytest.raises(KeyboardInterrupt):
        measure(key_of("Raises", setting={"error": KeyboardInterrupt}), context)


@pytest.mark.parametrize("method", ["AGF-TI", "Mend", "AMSC", "FMSSL", "AMGL"])
def test_a_key_has_one_result_with_or_without_the_cache(context, method):
    first = done(key_of(method), context)
    again = done(key_of(method), replace(context, cache_dir=context.cache_dir / method))
    assert first.result == again.result
    assert json.loads(json.dumps(first.to_dict())) == json.loads(
        json.dumps({**again.to_dict(), "timings": first.to_dict()["timings"]})
    )


def test_methods_and_settings_share_the_problem_and_repetitions_do_not(context):
    keys = [key_of("AMGL"), key_of("AMUSE"), key_of("AMUSE", setting={"lam": 1.0})]
    records = [done(key, context) for key in keys]
    assert len({record.result["seeds"]["mask"] for record in records}) == 1
    # One completion for all: its time is that of its making.
    assert len({record.timings["imputation"] for record in records}) == 1
    assert records[0].timings["imputation"] > 0
    other = done(key_of("AMGL", repetition=1), context)
    assert other.result["seeds"] != records[0].result["seeds"]
    assert other.timings["imputation"] != records[0].timings["imputation"]


@pytest.mark.parametrize(("protocol", "n_anchors"), [("paper", 7), ("honest", 3)])
def test_what_the_paper_sets_by_data_is_for_its_protocol_alone(
    context, monkeypatch, protocol, n_anchors
):
    row = Contestant(Spy, {"n_anchors": 3}, by_data={"marked": {"n_anchors": 7}})
    monkeypatch.setitem(CONTESTANTS, "Spy", row)
    done(key_of("Spy", data="marked", protocol=protocol), context)
    assert Spy.n_anchors_seen == n_anchors


@pytest.mark.parametrize("protocol", ["honest-imbalanced", "honest-two-views"])
def test_a_completion_is_of_the_data_as_the_protocol_alters_it(context, protocol):
    key = key_of("AMGL", protocol=protocol)
    result = done(key, context).result
    source = altered(load("blobs", context.data_dir), protocol, derived_seed(key, "mask"))
    assert result["n_samples"] == source.y.size
    # Rows of other samples would be labelled by chance.
    assert result["macro_recall"] > 1 / N_CLASSES + 0.2
    error = done(replace(key, measure="completion"), context).result["hidden_error"]
    assert 0 < error < 1


def test_methods_that_need_no_completion_wait_for_none(context):
    assert done(key_of("union graph"), context).timings["imputation"] == 0.0


@pytest.mark.parametrize("method", ["union graph", "Mend", "AGF-TI (order-free)", "AMGL"])
def test_shuffling_the_rows_changes_nothing_for_a_method_without_order(context, method):
    """Same missing pairs, same labels, other rows: only the paper's tensor step can tell."""
    paper, shuffled = (
        done(replace(key_of(method), protocol=protocol), context).result
        for protocol in ("paper", "paper-shuffled")
    )
    for name in ("accuracy", "macro_f1", "n_labelled", "observed_pairs"):
        assert_allclose(paper[name], shuffled[name], atol=1e-12)


def test_the_papers_method_reads_the_classes_off_the_rows(context):
    gains = []
    for repetition in range(3):
        sorted_rows, shuffled = (
            done(key_of("AGF-TI", protocol=protocol, repetition=repetition), context).result
            for protocol in ("paper", "paper-shuffled")
        )
        gains.append(sorted_rows["accuracy"] - shuffled["accuracy"])
    assert np.mean(gains) > 0.02


def test_the_trace_of_agfti_is_its_history(context):
    key = key_of("AGF-TI", measure="trace", protocol="paper")
    result = done(key, context).result
    assert result["accuracy"] == done(replace(key, measure="fit"), context).result["accuracy"]
    history = result["history"]
    assert [entry["iteration"] for entry in history] == list(range(1, result["n_iter"] + 1))
    assert json.loads(json.dumps(history)) == history
    for entry in history:
        assert sum(entry["alpha"]) == pytest.approx(1)
        assert set(entry["objective"]) >= {"propagation", "fusion", "low_rank"}
        assert all(set(step) == {"alpha_error", "P_error", "cost"} for step in entry["inner"])
    # Stopped because nothing moved any more, or because it may go no further.
    change = max(history[-1][name] for name in ("change_F", "change_Q", "change_alpha"))
    tol, max_iter = AGFTIClassifier().tol, AGFTIClassifier().max_iter
    assert (change < tol) or result["n_iter"] == max_iter
    assert history[-1]["primal_residual"] < history[0]["primal_residual"]


@pytest.mark.parametrize(
    ("method", "protocol"), [("AGF-TI", "paper"), ("AGF-TI (order-free)", "honest")]
)
def test_the_accuracy_of_a_round_is_that_of_a_fit_that_stops_there(context, method, protocol):
    """Also where labels are spread once more at the end and rows are taken in another order."""
    key = key_of(method, measure="trace", protocol=protocol, setting={"max_iter": 4, "tol": 0.0})
    history = done(key, context).result["history"]
    for n_rounds in (1, 2, 4):
        setting = setting_of({"max_iter": n_rounds, "tol": 0.0})
        stopped = done(replace(key, measure="fit", setting=setting), context)
        assert history[n_rounds - 1]["accuracy"] == stopped.result["accuracy"]


def test_the_trace_of_cfmsc_is_that_of_shorter_fits(context):
    key = key_of("CFMSC", measure="trace", setting={"max_iter": 4, "tol": 0.0})
    history = done(key, context).result["history"]
    assert len(history) == 4
    totals = [entry["objective"]["total"] for entry in history]
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(totals))
    for entry in history:
        assert sum(entry["alpha"]) == pytest.approx(1)
        assert min(entry["alpha"]) >= 0
    stopped = done(replace(key, setting=setting_of({"max_iter": 2, "tol": 0.0})), context)
    assert stopped.result["history"] == history[:2]
    assert stopped.result["accuracy"] == history[1]["accuracy"]


def test_the_tensor_step_is_measured_at_its_sizes(context):
    sizes = {"n": 60, "V": 3, "m": 16}
    key = key_of("AGF-TI", data="-", protocol="-", measure="tnn_step", setting=sizes)
    record = done(key, context)
    rng = np.random.default_rng(derived_seed(key, "method"))
    Y = rng.random((3, 60, 16))
    shrunk, norm = prox_tnn(Y, 1.0)
    assert record.result["norm"] == pytest.approx(norm, rel=1e-12)
    assert norm == pytest.approx(tnn(shrunk), rel=1e-9)
    assert record.result["input_bytes"] == Y.nbytes
    # What the step returns is as large as what it is given.
    assert record.timings["peak_bytes"] >= Y.nbytes
    assert done(key, context).result == record.result


def test_the_completion_is_measured_against_what_was_hidden(context):
    record = done(key_of("AMGL", measure="completion"), context)
    # Zeros in place of the hidden rows would have an error of exactly 1.
    assert 0 < record.result["hidden_error"] < 1
    assert record.timings == {"imputation": done(key_of("AMGL"), context).timings["imputation"]}


def test_the_error_of_a_completion_worked_out_by_hand():
    truth = MultiViewData((np.array([[3.0, 4.0], [0.0, 2.0]]),), np.ones((2, 1), bool), ("a",))
    guess = replace(truth, views=(np.array([[0.0, 0.0], [1.0, 1.0]]),))
    hidden = np.array([[True], [False]])
    assert hidden_error(truth, hidden, guess) == pytest.approx(1)
    # Unit rows (.6, .8) and (0, 1): squared gaps 1 and 1, squared lengths 1 and 1.
    assert hidden_error(truth, ~np.zeros((2, 1), bool), guess) == pytest.approx(1)
    assert hidden_error(truth, ~hidden, replace(truth, views=(np.eye(2),))) == pytest.approx(0)
    assert np.isnan(hidden_error(truth, np.zeros((2, 1), bool), guess))


def test_the_context_can_be_sent_to_another_process(context):
    assert pickle.loads(pickle.dumps(context)) == context
    assert set(MEASURES) == {"fit", "trace", "completion", "tnn_step"}
