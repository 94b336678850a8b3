"""Rounds over blocks that go on after a stop."""

import dask
import dask.array as da
import numpy as np
import pytest

from viewmend import AGFTIClassifier, MendClassifier
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.distributed import BlockCheckpoint, CheckpointError
from viewmend.distributed.blocks import pack, packed_arrays, unpack, unpacked_arrays
from viewmend.exceptions import InvalidParameterError

pytestmark = pytest.mark.filterwarnings(
    "ignore:AGFTIClassifier stopped at max_iter:sklearn.exceptions.ConvergenceWarning"
)

BLOBS = make_multiview_blobs(130, noise=3.0, random_state=4)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.2, random_state=4)
SETTINGS = {"n_anchors": 8, "random_state": 0, "max_iter": 5, "tol": 0.0}


@pytest.fixture(autouse=True)
def one_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def views(rows=50):
    return [da.from_array(view, chunks=(rows, -1)) for view in TASK.data.views]


class Crash:
    """Fails after some round, as a client that dies would."""

    def __init__(self, after):
        self.after = after
        self.seen = []
        self.resumed = None

    def on_resume(self, history):
        self.resumed = len(history)

    def __call__(self, round_, _state):
        self.seen.append(round_.iteration)
        if round_.iteration == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("imputation", ["graph", "fourier"])
def test_a_client_that_died_goes_on_to_the_same_result(tmp_path, imputation):
    settings = SETTINGS | {"imputation": imputation}
    expected = AGFTIClassifier(**settings).fit(views(), TASK.y)
    model = AGFTIClassifier(**settings)
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(BlockCheckpoint(tmp_path, every=2), Crash(4)).fit(views(), TASK.y)
    watcher = Crash(None)
    model.set_callbacks(BlockCheckpoint(tmp_path, every=2), watcher).fit(views(), TASK.y)
    assert watcher.resumed == 2
    assert watcher.seen == [3, 4, 5]
    np.testing.assert_array_equal(model.label_distributions_, expected.label_distributions_)
    np.testing.assert_array_equal(model.fused_graph_, expected.fused_graph_)
    np.testing.assert_array_equal(model.view_graphs_, expected.view_graphs_)
    assert [r.objective for r in model.history_] == [r.objective for r in expected.history_]


def test_keeping_rounds_changes_none(tmp_path):
    expected = AGFTIClassifier(**SETTINGS).fit(views(), TASK.y)
    model = AGFTIClassifier(**SETTINGS).set_callbacks(BlockCheckpoint(tmp_path, every=1))
    model.fit(views(), TASK.y)
    np.testing.assert_array_equal(model.label_distributions_, expected.label_distributions_)
    # One round is kept, and none beside it.
    assert [path.name for path in tmp_path.glob("round-*")] == ["round-00004"]


def test_more_rounds_can_be_added(tmp_path):
    few = AGFTIClassifier(**SETTINGS | {"max_iter": 3})
    few.set_callbacks(BlockCheckpoint(tmp_path, every=1)).fit(views(), TASK.y)
    more = AGFTIClassifier(**SETTINGS).set_callbacks(BlockCheckpoint(tmp_path, every=1))
    more.fit(views(), TASK.y)
    expected = AGFTIClassifier(**SETTINGS).fit(views(), TASK.y)
    np.testing.assert_array_equal(more.label_distributions_, expected.label_distributions_)


def test_rounds_that_were_kept_may_suffice(tmp_path):
    """Where the rounds of the folder meet a new tolerance, none is added to them."""
    model = AGFTIClassifier(**SETTINGS).set_callbacks(BlockCheckpoint(tmp_path, every=1))
    model.fit(views(), TASK.y)
    again = AGFTIClassifier(**SETTINGS | {"tol": 1e6})
    again.set_callbacks(BlockCheckpoint(tmp_path), lambda *_: pytest.fail("a round"))
    again.fit(views(), TASK.y)
    assert (again.status_, again.n_iter_) == ("converged", 4)
    expected = AGFTIClassifier(**SETTINGS | {"max_iter": 4}).fit(views(), TASK.y)
    np.testing.assert_array_equal(again.label_distributions_, expected.label_distributions_)
    np.testing.assert_array_equal(again.fused_graph_, expected.fused_graph_)


def test_fewer_rounds_than_were_kept_are_refused(tmp_path):
    model = AGFTIClassifier(**SETTINGS).set_callbacks(BlockCheckpoint(tmp_path, every=1))
    model.fit(views(), TASK.y)
    model.set_params(max_iter=2)
    with pytest.raises(CheckpointError, match="holds 4 rounds, but with max_iter=2 there are 2"):
        model.fit(views(), TASK.y)


def test_another_fit_is_refused(tmp_path):
    model = AGFTIClassifier(**SETTINGS).set_callbacks(BlockCheckpoint(tmp_path, every=1))
    model.fit(views(), TASK.y)
    other_labels = np.where(np.arange(130) == np.flatnonzero(TASK.labelled)[0], -1, TASK.y)
    turned = [view[::-1].rechunk((50, -1)) for view in views()]
    cases = [
        ("labels", model, views(), other_labels),
        ("chunks", model, views(60), TASK.y),
        ("parameters", AGFTIClassifier(**SETTINGS | {"low_rank_weight": 1.0}), views(), TASK.y),
        ("views", model, [views()[0] + 1, views()[1]], TASK.y),
        ("views", model, turned, TASK.y),
    ]
    for what, estimator, X, y in cases:
        estimator.set_callbacks(BlockCheckpoint(tmp_path))
        with pytest.raises(CheckpointError, match=f"another fit: {what} differ"):
            estimator.fit(X, y)


@pytest.mark.parametrize("every", [0, 1.5, "often"])
def test_every_is_a_number_of_rounds(every, tmp_path):
    with pytest.raises(InvalidParameterError, match="every must be an integer >= 1"):
        BlockCheckpoint(tmp_path, every=every)


@pytest.mark.parametrize("model", [AGFTIClassifier(**SETTINGS), MendClassifier()])
def test_fits_in_memory_keep_no_blocks(model, tmp_path):
    model.set_callbacks(BlockCheckpoint(tmp_path / "rounds"))
    with pytest.raises(InvalidParameterError, match=r"use viewmend\.callbacks\.Checkpoint"):
        model.fit(TASK.data, TASK.y)
    assert not (tmp_path / "rounds").exists()


def test_a_lost_file_is_named(tmp_path):
    model = AGFTIClassifier(**SETTINGS).set_callbacks(BlockCheckpoint(tmp_path, every=1))
    model.fit(views(), TASK.y)
    next(tmp_path.glob("round-*/block-000001.npz")).unlink()
    with pytest.raises(CheckpointError, match=r"lacks .*block-000001.npz"):
        model.fit(views(), TASK.y)


@pytest.mark.parametrize("density", [0.0, 0.1, 0.9])
def test_packed_graphs_come_back_as_they_were(density):
    rng = np.random.default_rng(0)
    array = rng.random((2, 7, 5)) * (rng.random((2, 7, 5)) < density)
    packed = pack(array)
    assert isinstance(packed[0], np.ndarray) == (density > 0.5)
    for back in (packed, unpacked_arrays("Z", packed_arrays("Z", packed))):
        np.testing.assert_array_equal(unpack(back), array)
