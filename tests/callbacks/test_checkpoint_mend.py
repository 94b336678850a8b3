"""Fits of Mend that are killed, and go on from their checkpoint as if nothing had happened."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import viewmend
from viewmend import MendClassifier
from viewmend.callbacks import Checkpoint, CheckpointError
from viewmend.callbacks.checkpoint_file import CheckpointFile
from viewmend.core.mend.recipe import mend
from viewmend.core.mend.resuming import GeometryProblem
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.models import mend_fit as mend_module

BLOBS = make_multiview_blobs(90, n_views=2, noise=3.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=0)

# The same task in a process that kills itself at a call of a function.
KILLED = """
import importlib, os, signal, sys
sys.path.insert(0, {folder!r})
from test_checkpoint_mend import Checkpoint, fitted

owner = importlib.import_module({module!r})
function, calls = getattr(owner, {name!r}), []

def call_or_die(*arguments, **options):
    calls.append(name)
    if len(calls) == {due}:
        os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments, **options)

name = {name!r}
setattr(owner, name, call_or_die)
fitted(Checkpoint({path!r}))
"""


def fitted(*callbacks, data=TASK.data, y=TASK.y, **parameters):
    return MendClassifier(**{"n_rounds": 3, **parameters}).set_callbacks(*callbacks).fit(data, y)


def stop_after(n_stages):
    return lambda stage, _: stage.iteration == n_stages


def assert_same(model, other):
    """Bit for bit."""
    assert model.history_ == other.history_
    np.testing.assert_array_equal(model.label_distributions_, other.label_distributions_)
    np.testing.assert_array_equal(model.graph_.toarray(), other.graph_.toarray())
    np.testing.assert_array_equal(model.predict_proba(TASK.data), other.predict_proba(TASK.data))
    assert model.calibration_.temperature == other.calibration_.temperature


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


def unexpected(*_arguments):
    pytest.fail("the geometry was built again")


@pytest.mark.parametrize(
    ("module", "name", "due", "left"),
    [
        # While kernel features are made: nothing is kept yet.
        ("viewmend.core.mend.geometry", "kernel_products", 2, [1, 2, 3, 4, 5]),
        # After the geometry, before the first stage.
        ("viewmend.models.mend_fit", "mend", 1, [1, 2, 3, 4, 5]),
        # In the second round with evidence, stage four.
        ("viewmend.core.mend.recipe", "gather_evidence", 2, [4, 5]),
        # While the file of the third stage is written; every file is followed by its folder.
        ("viewmend.callbacks.checkpoint_file", "write_archive", 4, [3, 4, 5]),
    ],
    ids=["geometry", "before stages", "round", "file"],
)
@pytest.mark.kills
def test_a_killed_fit_ends_as_if_it_had_not_been(path, module, name, due, left):
    folder = str(Path(__file__).parent)
    code = KILLED.format(path=str(path), folder=folder, module=module, name=name, due=due)
    environment = os.environ | {"PYTHONPATH": str(Path(viewmend.__file__).parents[1])}
    died = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert died.returncode == -signal.SIGKILL
    seen = []
    model = fitted(Checkpoint(path), lambda stage, _: seen.append(stage.iteration))
    assert seen == left
    assert_same(model, fitted())


@pytest.mark.parametrize("n_stages", [1, 2, 4])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"edge_power": 1.0, "n_rounds": 1}, {"class_prior": "uniform"}, {"dtype": "float32"}],
    ids=str,
)
def test_a_fit_goes_on_from_every_stage_without_building_the_geometry(
    path, monkeypatch, n_stages, parameters
):
    whole = fitted(**parameters)
    fitted(Checkpoint(path), stop_after(n_stages), **parameters)
    monkeypatch.setattr(mend_module, "build_geometry", unexpected)
    assert_same(fitted(Checkpoint(path), **parameters), whole)


def test_more_rounds_are_added_and_fewer_are_refused(path):
    fitted(Checkpoint(path), n_rounds=1)
    assert_same(fitted(Checkpoint(path), n_rounds=4), fitted(n_rounds=4))
    with pytest.raises(CheckpointError, match="keeps 6 rounds, and this fit has at most 5"):
        fitted(Checkpoint(path), n_rounds=3)


def test_rows_in_another_order_are_the_same_fit(path):
    order = np.random.default_rng(0).permutation(90)
    views, y = [view[order] for view in TASK.data.views], TASK.y[order]
    fitted(Checkpoint(path), stop_after(3))
    moved = fitted(Checkpoint(path), data=views, y=y)
    np.testing.assert_array_equal(moved.label_distributions_, fitted().label_distributions_[order])


def test_the_geometry_serves_other_settings_of_the_rounds(path, monkeypatch):
    fitted(Checkpoint(path))
    path.unlink()
    whole = fitted(spreading=0.9)
    monkeypatch.setattr(mend_module, "build_geometry", unexpected)
    assert_same(fitted(Checkpoint(path), spreading=0.9), whole)


OTHER_LABELS = np.where(np.arange(90) == np.flatnonzero(TASK.y >= 0)[0], -1, TASK.y)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"spreading": 0.9}, "spreading, which was 0.99 and is 0.9. Delete"),
        ({"y": OTHER_LABELS}, "different in the labels; the class prior. Delete"),
        ({"class_prior": "uniform"}, "different in the class prior. Delete"),
        ({"data": [TASK.data.views[0] + 1e-9, TASK.data.views[1]]}, "different in the views. "),
        ({"random_state": 1}, "kernel_width or random_state. Delete"),
        ({"n_landmarks": 20}, "n_landmarks, kernel_width or random_state. Delete"),
    ],
    ids=["spreading", "labels", "prior", "views", "seed", "landmarks"],
)
def test_a_checkpoint_of_another_fit_is_refused_and_left_alone(path, change, told):
    keeper = Checkpoint(path)
    fitted(keeper, stop_after(2))
    before = path.read_bytes(), keeper.geometry_path.read_bytes()
    with pytest.raises(CheckpointError, match=told):
        fitted(Checkpoint(path), **change)
    assert (path.read_bytes(), keeper.geometry_path.read_bytes()) == before


def test_a_neighbour_out_of_range_is_told_not_followed(path):
    """Compiled code would read past the end of an array."""
    seen = {}

    class Keep:
        def on_geometry(self, problem, geometry):
            seen.update(problem=problem, geometry=geometry)

        def __call__(self, *_):
            return None

    fitted(Keep())
    problem, geometry = seen["problem"], seen["geometry"]
    assert isinstance(problem, GeometryProblem)
    geometry.views[0].neighbours["unit"].indices[3, 2] = 10_000
    CheckpointFile(Checkpoint(path).geometry_path, "Geometry", problem).write(geometry)
    with pytest.raises(CheckpointError, match=r"neighbours must be within \[0, "):
        fitted(Checkpoint(path))


def test_a_geometry_built_outside_a_fit_is_not_kept(path):
    model = MendClassifier().set_callbacks(Checkpoint(path))
    model.build_geometry(*model.prepare(TASK.data, TASK.y))
    assert list(path.parent.iterdir()) == []


def test_the_recipe_from_the_middle_is_the_recipe_from_the_start():
    """Of core alone: `mend` takes what it has come to and goes through what is left."""
    model = MendClassifier(n_rounds=2)
    calls = []

    def watched(*arguments):
        calls.append(arguments)
        return mend(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mend_module, "mend", watched)
        model.fit(TASK.data, TASK.y)
    samples, labelling, settings, *_ = calls[0]
    whole = mend(samples, labelling, settings)
    for n_stages in range(1, 4):
        progress = {}

        def stop(record, stage, n_stages=n_stages, progress=progress):
            progress["stage"] = stage
            return record.iteration == n_stages

        part = mend(samples, labelling, settings, [stop])
        start = mend_module.MendProblem.saved_type(progress["stage"], part.history)
        rest = mend(samples, labelling, settings, (), start)
        assert rest.history == whole.history
        np.testing.assert_array_equal(rest.stage.P, whole.stage.P)
