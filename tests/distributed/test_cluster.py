"""Fits on a cluster: workers, memory, and what becomes of a fit that loses some."""

import io
import os
import signal
from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
import pytest

from viewmend import AGFTIClassifier
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.distributed import BlockCheckpoint, LogBlocks, LostFitError
from viewmend.distributed.rows import DaskRows

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.usefixtures("bounded_time"),
    pytest.mark.filterwarnings(
        "ignore:AGFTIClassifier stopped at max_iter:sklearn.exceptions.ConvergenceWarning"
    ),
    # Of processes that die, and of sockets that nobody closes then.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

BLOBS = make_multiview_blobs(300, noise=3.0, random_state=5)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=5)
SETTINGS = {"n_anchors": 16, "random_state": 0, "max_iter": 4, "tol": 0.0}


def views(rows=60):
    return [da.from_array(view, chunks=(rows, -1)) for view in TASK.data.views]


@pytest.fixture(scope="module")
def expected():
    found = {}
    for imputation in ("graph", "fourier"):
        model = AGFTIClassifier(imputation=imputation, **SETTINGS)
        found[imputation] = model.fit(TASK.data, TASK.y)
    return found


@contextmanager
def client_of_one_worker(folder):
    """Of a worker in this process: without ports and without the memory of other tests."""
    limits = {
        "distributed.worker.memory.target": 1e-6,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
    }
    with (
        dask.config.set(limits),
        distributed.LocalCluster(
            n_workers=1,
            threads_per_worker=1,
            processes=False,
            dashboard_address=":0",
            memory_limit="1GB",
            local_directory=str(folder),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def client_of_threads(tmp_path):
    with client_of_one_worker(tmp_path) as client:
        yield client


@pytest.mark.parametrize(("imputation", "checkpoint"), [("graph", True)])
@pytest.mark.kills
def test_a_worker_killed_in_a_round_changes_nothing(
    client, make_killer, expected, imputation, checkpoint, tmp_path
):
    killer = make_killer(client)
    watchers = [killer, BlockCheckpoint(tmp_path / "rounds", every=1)][: 1 + checkpoint]
    model = AGFTIClassifier(imputation=imputation, **SETTINGS)
    model.set_callbacks(*watchers).fit(views(), TASK.y)
    assert killer.left == 0
    wanted = expected[imputation]
    np.testing.assert_allclose(model.label_distributions_, wanted.label_distributions_, atol=1e-9)
    np.testing.assert_allclose(model.view_weights_, wanted.view_weights_, atol=1e-9)


@pytest.mark.kills
def test_graphs_of_a_lost_worker_are_computed_again(client, expected):
    model = AGFTIClassifier(**SETTINGS).fit(views(), TASK.y)
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    np.testing.assert_allclose(
        model.fused_graph_.compute(), expected["graph"].fused_graph_, atol=1e-9
    )


def test_a_fit_that_cannot_go_on_says_so_and_continues_from_its_checkpoint(expected, tmp_path):
    model = AGFTIClassifier(**SETTINGS)
    checkpoint = BlockCheckpoint(tmp_path / "rounds", every=1)
    with (
        client_of_one_worker(tmp_path / "lost") as client,
        pytest.raises(LostFitError, match=r"(?s)lost in stage '\w+' of round 3 .*checkpoint"),
    ):
        model.set_callbacks(checkpoint, Leave(client)).fit(views(), TASK.y)
    assert not hasattr(model, "transduction_")
    # Another scheduler, which knows nothing of what was cancelled: blocks have the same names.
    with client_of_one_worker(tmp_path / "found"):
        model.set_callbacks(checkpoint).fit(views(), TASK.y)
    np.testing.assert_allclose(
        model.label_distributions_, expected["graph"].label_distributions_, atol=1e-9
    )


class Leave:
    """Cancels what the client waits for, as a scheduler that goes away does."""

    def __init__(self, client):
        self.client, self.n_rounds = client, 0

    def __call__(self, round_, _state):
        self.n_rounds = round_.iteration

    def on_blocks(self, stage, done, _total):
        if self.n_rounds == 2 and stage == "settle" and done == 1:
            held = [distributed.Future(key, self.client) for key in list(self.client.futures)]
            self.client.cancel(held, force=True)


def test_a_block_that_kills_its_workers_ends_the_fit_with_words(client):
    """As one that does not fit into memory does."""
    client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
    try:
        with pytest.raises(LostFitError, match=r"KilledWorker: .*; give the workers more memory"):
            DaskRows().sums(lambda _block, _shared: os._exit(1), [1], shared=None)
    finally:
        client.run_on_scheduler(
            lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3)
        )


def test_blocks_and_rounds_are_told(client_of_threads):
    stream = io.StringIO()
    AGFTIClassifier(**SETTINGS).set_callbacks(LogBlocks(stream)).fit(views(), TASK.y)
    text = stream.getvalue()
    assert "round   4  advance" in text
    assert text.count("|Z - G|") == SETTINGS["max_iter"]
    # Five blocks of both results and their sum.
    assert "11 / 11\n" in text
    # What the dashboard shows.
    prefixes = client_of_threads.run_on_scheduler(
        lambda dask_scheduler: set(dask_scheduler.task_prefixes)
    )
    assert {"round 1 settle", "round 4 advance"} <= prefixes


def test_blocks_that_do_not_fit_wait_on_disk(client_of_threads, expected):
    """Workers that may hold next to nothing spill, and the result is the same."""
    model = AGFTIClassifier(**SETTINGS).fit(views(), TASK.y)
    (written,) = client_of_threads.run(written_to_disk).values()
    W = 300 * 2 * SETTINGS["n_anchors"] * 8
    assert written > SETTINGS["max_iter"] * W
    np.testing.assert_allclose(
        model.label_distributions_, expected["graph"].label_distributions_, atol=1e-9
    )


def written_to_disk(dask_worker):
    return dask_worker.data.cumulative_metrics["disk-write", "bytes"]
