"""Fits that are killed, and go on from their checkpoint as if nothing had happened."""

import json
import os
import re
import signal
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import viewmend
from viewmend import AGFTIClassifier, LabelSearchCV
from viewmend.callbacks import Checkpoint, CheckpointError, EarlyStop, HistoryCSV
from viewmend.core import solve
from viewmend.core.agfti.state import Progress
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError
from viewmend.storage.archive import write_members

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

BLOBS = make_multiview_blobs(90, n_views=2, noise=3.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=0)

# The same task and settings in a process that kills itself at the 18th call of a function.
KILLED = """
import importlib, os, signal, sys
from viewmend import AGFTIClassifier
from viewmend.callbacks import Checkpoint
sys.path.insert(0, {folder!r})
from test_checkpoint import TASK, settings

owner = importlib.import_module({module!r})
function, calls = getattr(owner, {name!r}), []

def call_or_die(*arguments):
    calls.append(arguments)
    if len(calls) == 18:
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments)

setattr(owner, {name!r}, call_or_die)
model = AGFTIClassifier(**settings({mode!r})).set_callbacks(Checkpoint({path!r}))
model.fit(TASK.data, TASK.y)
"""


def settings(mode="graph", **others):
    return {"imputation": mode, "max_iter": 24, "tol": 0.0, "random_state": 0} | others


def fitted(*callbacks, data=TASK.data, y=TASK.y, **parameters):
    return AGFTIClassifier(**settings(**parameters)).set_callbacks(*callbacks).fit(data, y)


def stop_after(n_rounds):
    return lambda round_, _: round_.iteration == n_rounds


def assert_same(model, other):
    """Bit for bit."""
    assert model.history_ == other.history_
    for name in ("view_graphs_", "fused_graph_", "anchor_alignments_", "label_distributions_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(other, name))
    np.testing.assert_array_equal(model.predict_proba(TASK.data), other.predict_proba(TASK.data))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


@pytest.mark.parametrize(
    ("mode", "module", "name"),
    [
        # In round 18, when some of its arrays are new and some are not.
        ("graph", "viewmend.core.agfti.admm", "shifted_graphs"),
        ("fourier", "viewmend.core.agfti.admm", "shifted_graphs"),
        # When the file of round 18 is written and has not taken its place.
        ("graph", "os", "replace"),
    ],
    ids=["graph", "fourier", "file"],
)
@pytest.mark.kills
def test_a_killed_fit_ends_as_if_it_had_not_been(path, mode, module, name):
    folder = str(Path(__file__).parent)
    code = KILLED.format(mode=mode, path=str(path), folder=folder, module=module, name=name)
    environment = os.environ | {"PYTHONPATH": str(Path(viewmend.__file__).parents[1])}
    died = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert died.returncode == -signal.SIGKILL
    seen = []
    model = fitted(Checkpoint(path), lambda round_, _: seen.append(round_.iteration), mode=mode)
    assert seen == list(range(18, 25))
    assert_same(model, fitted(mode=mode))


@pytest.mark.parametrize(
    "parameters",
    [
        {"dtype": "float32"},
        {"ablation": "weights"},
        {"ablation": "imputation"},
        {"mode": "fourier", "compat": "released"},
        {"mode": "fourier", "ablation": ["alignment", "weights"]},
        {"device": "cpu"},
    ],
    ids=str,
)
def test_every_version_of_the_rounds_goes_on_bit_for_bit(path, parameters):
    if "device" in parameters:
        pytest.importorskip("torch")
    short = {"max_iter": 6} | parameters
    fitted(Checkpoint(path), stop_after(3), **short)
    assert_same(fitted(Checkpoint(path), **short), fitted(**short))


def _keep(seen, _round, state):
    seen["state"] = state


def test_solving_from_the_middle_is_solving_from_the_start(make_problem):
    """Of core alone, at every round, without a file."""
    problem = make_problem()
    whole = solve(problem, max_iter=6, tol=0.0)
    for n_rounds in range(1, 6):
        seen = {}
        part = solve(problem, max_iter=n_rounds, tol=0.0, callbacks=[partial(_keep, seen)])
        rest = solve(problem, max_iter=6, tol=0.0, start=Progress(seen["state"], part.history))
        assert rest.history == whole.history
        np.testing.assert_array_equal(rest.F, whole.F)
        np.testing.assert_array_equal(rest.Z, whole.Z)


def test_a_finished_fit_takes_no_further_round_and_is_the_same(path):
    first = fitted(Checkpoint(path), tol=0.05)
    assert first.status_ == "converged"
    again = fitted(Checkpoint(path), stop_after(0), lambda *_: pytest.fail("a round"), tol=0.05)
    assert again.status_ == "converged"
    assert_same(again, first)


def test_more_rounds_are_added_to_a_fit_that_had_ended(path):
    fitted(Checkpoint(path), max_iter=4)
    assert_same(fitted(Checkpoint(path), max_iter=9), fitted(max_iter=9))


def test_one_object_serves_fit_after_fit(path):
    model = AGFTIClassifier(**settings(max_iter=3)).set_callbacks(Checkpoint(path))
    model.fit(TASK.data, TASK.y)
    model.set_params(max_iter=6).fit(TASK.data, TASK.y)
    assert_same(model, fitted(max_iter=6))


def test_one_object_has_one_fit_at_a_time(path):
    """As in threads; here the second fit begins within a round of the first."""
    checkpoint, refused = Checkpoint(path), []

    def fit_again(round_, _):
        if round_.iteration == 2:
            with pytest.raises(CheckpointError, match="of another fit, which is under way"):
                fitted(checkpoint, y=np.roll(TASK.y, 1), max_iter=4)
            refused.append(round_.iteration)

    fitted(checkpoint, fit_again, max_iter=4)
    assert refused == [2]
    assert_same(fitted(checkpoint, max_iter=6), fitted(max_iter=6))


def test_two_files_hold_the_same_and_the_first_that_exists_is_gone_on_from(path, tmp_path):
    other = tmp_path / "other.checkpoint"
    fitted(Checkpoint(path), max_iter=3)
    model = fitted(Checkpoint(other), Checkpoint(path), max_iter=5)
    assert_same(model, fitted(max_iter=5))
    assert other.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(("every", "kept"), [(1, 5), (2, 4), (3, 3), (7, None)])
def test_every_says_which_rounds_outlive_an_error(path, every, kept):
    def fail(round_, _):
        if round_.iteration == 5:
            raise OSError("no power")

    with pytest.raises(OSError, match="no power"):
        fitted(Checkpoint(path, every=every), fail)
    if kept is None:
        assert not path.exists()
    else:
        seen = []
        fitted(Checkpoint(path), lambda round_, _: seen.append(round_.iteration), max_iter=6)
        assert seen == list(range(kept + 1, 7))


def test_the_last_round_is_kept_whatever_every_is(path):
    fitted(Checkpoint(path, every=4), max_iter=6)
    assert_same(fitted(Checkpoint(path), max_iter=6), fitted(max_iter=6))


def test_other_callbacks_learn_of_the_rounds_before(path, tmp_path):
    """Patience and history are those of a fit that was not interrupted."""
    whole = fitted(EarlyStop(3, 2e-3), HistoryCSV(tmp_path / "whole.csv"))
    assert whole.status_ == "stopped"
    assert whole.n_iter_ > 3
    fitted(Checkpoint(path), stop_after(whole.n_iter_ - 1))
    parts = fitted(Checkpoint(path), EarlyStop(3, 2e-3), HistoryCSV(tmp_path / "parts.csv"))
    assert_same(parts, whole)
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_fewer_rounds_than_the_file_holds_are_refused(path):
    """Going on would give the result of more rounds than were asked for."""
    fitted(Checkpoint(path), max_iter=4)
    with pytest.raises(CheckpointError, match="keeps 4 rounds, and this fit has at most 3"):
        fitted(Checkpoint(path), max_iter=3)


# ------------------------------------------------------------------ what is refused


OTHER_LABELS = np.where(np.arange(90) == np.flatnonzero(TASK.y >= 0)[0], -1, TASK.y)
OTHER_VIEWS = [TASK.data.views[0] + 1e-9, TASK.data.views[1]]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"low_rank_weight": 10.0}, "low_rank_weight, which was 100.0 and is 10.0. Delete"),
        ({"n_neighbors": 5}, "n_neighbors, which was 7 and is 5. Delete"),
        ({"y": OTHER_LABELS}, "different in the labels. Delete"),
        ({"data": OTHER_VIEWS}, "the graphs of the views, by other views or another random_state"),
        ({"random_state": 1}, "the graphs of the views, by other views or another random_state"),
        (
            {"data": [v[:80] for v in TASK.data.views], "y": TASK.y[:80]},
            "the graphs of the views, by other views or another random_state; the labels; which",
        ),
    ],
    ids=["rho", "neighbours", "labels", "views", "seed", "fewer"],
)
def test_a_checkpoint_of_another_fit_is_refused_and_left_alone(path, change, told):
    fitted(Checkpoint(path), max_iter=2)
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=re.escape(told)):
        fitted(Checkpoint(path), **change)
    assert path.read_bytes() == before


def test_parameters_that_change_no_round_may_change(path):
    fitted(Checkpoint(path), max_iter=3)
    free = {"tol": 1e-9, "verbose": 0, "n_jobs": 1, "final_damping": None, "class_prior": "uniform"}
    free["calibration"] = None
    assert_same(fitted(Checkpoint(path), max_iter=5, **free), fitted(max_iter=5, **free))


def test_rows_in_another_order_are_the_same_fit_of_the_order_free_method(path):
    order = np.random.default_rng(0).permutation(90)
    views, y = [view[order] for view in TASK.data.views], TASK.y[order]
    fitted(Checkpoint(path), max_iter=3)
    moved = fitted(Checkpoint(path), max_iter=5, data=views, y=y)
    whole = fitted(max_iter=5)
    np.testing.assert_array_equal(moved.label_distributions_, whole.label_distributions_[order])


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_a_truncated_file_is_told(path, share):
    fitted(Checkpoint(path), max_iter=1)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    message = rf"{path.name} is no checkpoint that can be read: .*Delete the file to start again"
    with pytest.raises(CheckpointError, match=message):
        fitted(Checkpoint(path))


def test_files_of_other_kinds_are_told(path):
    path.write_text("round,change\n1,0.5\n")
    with pytest.raises(CheckpointError, match=r"not begin as a file of viewmend does.*start again"):
        fitted(Checkpoint(path))
    viewmend.save(fitted(max_iter=1), path)
    with pytest.raises(CheckpointError, match="class must be 'Checkpoint', got 'AGFTIClassifier'"):
        fitted(Checkpoint(path))
    path.unlink()
    fitted(Checkpoint(path), max_iter=1)
    with pytest.raises(viewmend.persistence.ModelFileError, match="got 'Checkpoint'"):
        viewmend.load(path)


def rewritten(path, edit):
    """Change the JSON document of a checkpoint, and leave its arrays."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members["model.json"])
    edit(document)
    members["model.json"] = json.dumps(document).encode()
    with path.open("wb") as file:
        write_members(file, ((name, [content]) for name, content in members.items()))


def _progress(document):
    return document["fitted"]["result"]["record"][1]


def _state(document):
    return _progress(document)["state"]["record"][1]


def _swap_arrays(document):
    state = _state(document)
    state["Z"], state["P"] = state["P"], state["Z"]


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (_swap_arrays, "shape of Z must be"),
        (lambda document: _state(document).pop("eta"), "fields of State must be"),
        (lambda document: _state(document).update(eta="big"), "eta of State must be"),
        (lambda document: _progress(document).update(history={"tuple": []}), "counted from 1"),
        (lambda document: document.update(fitted=[]), "content must be an object"),
    ],
    ids=["shapes", "absent", "type", "no rounds", "no object"],
)
def test_a_file_that_lies_is_told(path, edit, told):
    fitted(Checkpoint(path), max_iter=1)
    rewritten(path, edit)
    with pytest.raises(CheckpointError, match=told):
        fitted(Checkpoint(path))


def test_only_fits_with_rounds_worth_keeping_are_kept(path):
    search = LabelSearchCV(AGFTIClassifier(**settings()), {"low_rank_weight": [1.0]})
    with pytest.raises(InvalidParameterError, match="got a fit of LabelSearchCV; leave it out"):
        search.set_callbacks(Checkpoint(path)).fit(TASK.data, TASK.y)
    for every in (0, 1.5, "x"):
        with pytest.raises(InvalidParameterError, match="every of Checkpoint must be an integer"):
            fitted(Checkpoint(path, every=every))
    with pytest.raises(InvalidParameterError, match="must be a file but is a folder"):
        fitted(Checkpoint(path.parent))
    with pytest.raises(InvalidParameterError, match=r"no folder '.*nowhere' for fit\.checkpoint"):
        fitted(Checkpoint(path.parent / "nowhere" / path.name))
    assert not path.exists()


def test_rounds_outside_a_fit_are_refused(path, make_problem):
    with pytest.raises(InvalidParameterError, match="outside such a fit; leave Checkpoint out"):
        solve(make_problem(), max_iter=1, callbacks=[Checkpoint(path)])


def test_a_crash_while_writing_leaves_the_file_before(path, monkeypatch):
    """What is written goes to a second file first, which never replaces the first half done."""
    fitted(Checkpoint(path), max_iter=2)
    before = path.read_bytes()

    def fail(_descriptor):
        raise OSError("disk full")

    monkeypatch.setattr("viewmend.storage.atomic.os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        fitted(Checkpoint(path), max_iter=3)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]
