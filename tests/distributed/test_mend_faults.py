"""Stages of Mend over blocks: kept in a folder, and the same where workers are lost."""

import io
import os
import re
import signal
from contextlib import nullcontext
from types import SimpleNamespace

import dask
import dask.array as da
import numpy as np
import pytest

from viewmend import MendClassifier
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.distributed import BlockCheckpoint, CheckpointError, LogBlocks, LostFitError

distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.usefixtures("bounded_time"),
    # Of processes that die, and of sockets that nobody closes then.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

BLOBS = make_multiview_blobs(240, noise=3.0, random_state=5)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=5)
PRIOR = np.array([0.3, 0.4, 0.3])
# Stages are called neighbours, homophily, and three times evidence.
SETTINGS = {"n_rounds": 3, "n_landmarks": 40, "graph_samples": 100, "calibration": None}


def views(rows=80):
    return [da.from_array(view, chunks=(rows, -1)) for view in TASK.data.views]


@pytest.fixture(scope="module")
def expected():
    with dask.config.set(scheduler="synchronous"):
        return MendClassifier(**SETTINGS).fit(views(), TASK.y)


@pytest.fixture
def one_process():
    with dask.config.set(scheduler="synchronous"):
        yield


class Crash:
    """Fails after some stage, as a client that dies would."""

    def __init__(self, after):
        self.after, self.seen, self.resumed = after, [], None

    def on_resume(self, history):
        self.resumed = [record.name for record in history]

    def __call__(self, record, _stage):
        self.seen.append(record.iteration)
        if record.iteration == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize(("every", "after"), [(1, 1), (2, 3), (1, 4)])
def test_a_client_that_died_goes_on_to_the_same_result(
    one_process, tmp_path, expected, every, after
):
    model = MendClassifier(**SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(BlockCheckpoint(tmp_path, every), Crash(after)).fit(views(), TASK.y)
    watcher, kept = Crash(None), after // every * every
    model.set_callbacks(BlockCheckpoint(tmp_path, every), watcher).fit(views(), TASK.y)
    names = ["neighbours", "homophily", "evidence", "evidence", "evidence"]
    assert watcher.resumed == names[:kept]
    assert watcher.seen == list(range(kept + 1, 6))
    np.testing.assert_array_equal(model.label_distributions_, expected.label_distributions_)
    assert model.history_ == expected.history_


@pytest.mark.parametrize("noise", [0.1, "auto"])
def test_labels_in_doubt_are_as_doubtful_when_a_fit_goes_on(one_process, tmp_path, noise):
    """Before there is evidence, no label is in doubt yet, also where the noise is known."""
    wrong = np.where(TASK.labelled & (np.arange(240) % 3 == 0), (TASK.y + 1) % 3, TASK.y)
    settings = SETTINGS | {"label_noise": noise, "edge_power": 1.0}
    expected = MendClassifier(**settings).fit(views(), wrong)
    assert expected.label_noise_ > 0
    evidence = [record.name for record in expected.history_].index("evidence")
    for after in (1, evidence, evidence + 1):
        model, folder = MendClassifier(**settings), tmp_path / str(after)
        with pytest.raises(KeyboardInterrupt):
            model.set_callbacks(BlockCheckpoint(folder, every=1), Crash(after)).fit(views(), wrong)
        model.set_callbacks(BlockCheckpoint(folder, every=1)).fit(views(), wrong)
        np.testing.assert_array_equal(model.label_distributions_, expected.label_distributions_)
        assert model.history_ == expected.history_


def test_rounds_are_counted_from_where_a_fit_begins_or_goes_on(one_process, tmp_path):
    class Blocks:
        """As a cluster tells of them, one at the end of every stage."""

        def __call__(self, _record, _stage):
            log.on_blocks("sums", 1, 1)

    stream = io.StringIO()
    log = LogBlocks(stream)
    model = MendClassifier(**SETTINGS)
    for after, first in ((2, 1), (None, 3), (None, 1)):
        stream.truncate(0)
        checkpoint = BlockCheckpoint(tmp_path / str(first == 1 and after is None), every=1)
        model.set_callbacks(checkpoint, Blocks(), log, Crash(after))
        with nullcontext() if after is None else pytest.raises(KeyboardInterrupt):
            model.fit(views(), TASK.y)
        told = [int(number) for number in re.findall(r"\rround +(\d+)", stream.getvalue())]
        assert told == list(range(first, 6 if after is None else after + 1))


def test_more_rounds_can_be_added_and_fewer_are_refused(one_process, tmp_path, expected):
    few = MendClassifier(**SETTINGS | {"n_rounds": 1})
    few.set_callbacks(BlockCheckpoint(tmp_path, every=1)).fit(views(), TASK.y)
    more = MendClassifier(**SETTINGS).set_callbacks(BlockCheckpoint(tmp_path, every=1))
    more.fit(views(), TASK.y)
    np.testing.assert_array_equal(more.label_distributions_, expected.label_distributions_)
    with pytest.raises(CheckpointError, match="holds 4 stages, but with n_rounds=1 there are 3"):
        few.fit(views(), TASK.y)


def test_another_fit_is_refused(one_process, tmp_path):
    given = SETTINGS | {"class_prior": PRIOR}
    model = MendClassifier(**given).set_callbacks(BlockCheckpoint(tmp_path, every=1))
    model.fit(views(), TASK.y)
    other_labels = np.where(np.arange(240) == np.flatnonzero(TASK.labelled)[0], -1, TASK.y)
    cases = [
        ("labels", {}, views(), other_labels),
        ("chunks", {}, views(60), TASK.y),
        ("parameters", {"spreading": 0.9}, views(), TASK.y),
        ("parameters", {"graph_samples": 110}, views(), TASK.y),
        # In the tenth digit, which NumPy does not show.
        ("parameters", {"class_prior": np.array([0.3 + 1e-10, 0.4 - 1e-10, 0.3])}, views(), TASK.y),
        ("views", {}, [views()[0] + 1, views()[1]], TASK.y),
        # Weights of graphs would go to those of the other view.
        ("views", {}, views()[::-1], TASK.y),
    ]
    for what, changes, X, y in cases:
        other = MendClassifier(**given | changes).set_callbacks(BlockCheckpoint(tmp_path))
        with pytest.raises(CheckpointError, match=f"another fit: {what} differ"):
            other.fit(X, y)


@pytest.mark.parametrize("seed", [None, np.random.default_rng(0)])
def test_other_landmarks_are_refused_where_no_seed_tells_them(one_process, tmp_path, seed):
    model = MendClassifier(**SETTINGS, random_state=seed)
    model.set_callbacks(BlockCheckpoint(tmp_path, every=1)).fit(views(), TASK.y)
    with pytest.raises(CheckpointError, match="another fit: random_state differ"):
        model.fit(views(), TASK.y)


def test_a_folder_has_one_fit_at_a_time(one_process, tmp_path, expected):
    refused = []

    def fit_again(record, _stage):
        if record.iteration == 2:
            other = MendClassifier(**SETTINGS).set_callbacks(BlockCheckpoint(tmp_path, every=1))
            with pytest.raises(CheckpointError, match="another fit is using the checkpoint"):
                other.fit(views(), TASK.y)
            refused.append(record.iteration)

    checkpoint = BlockCheckpoint(tmp_path, every=1)
    model = MendClassifier(**SETTINGS).set_callbacks(checkpoint, fit_again).fit(views(), TASK.y)
    assert refused == [2]
    np.testing.assert_array_equal(model.label_distributions_, expected.label_distributions_)
    # It is free again, also after a fit that failed.
    again = MendClassifier(**SETTINGS).set_callbacks(checkpoint, Crash(5))
    with pytest.raises(KeyboardInterrupt):
        again.fit(views(), TASK.y)
    again.set_callbacks(checkpoint).fit(views(), TASK.y)
    np.testing.assert_array_equal(again.label_distributions_, expected.label_distributions_)


@pytest.mark.parametrize("name", ["block-000001.npz", "client.npz"])
def test_a_broken_file_is_named(one_process, tmp_path, name):
    model = MendClassifier(**SETTINGS).set_callbacks(BlockCheckpoint(tmp_path, every=1))
    model.fit(views(), TASK.y)
    path = next(tmp_path.glob(f"round-*/{name}"))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=name):
        model.fit(views(), TASK.y)


# ------------------------------------------------------------------ workers


@pytest.fixture
def client_of_threads(tmp_path):
    """Of a worker in this process that may hold next to nothing."""
    limits = {
        "distributed.worker.memory.target": 1e-6,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
    }
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with (
        dask.config.set(limits),
        distributed.LocalCluster(
            **options, dashboard_address=":0", memory_limit="1GB", local_directory=str(tmp_path)
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


class Leave:
    """Cancels what the client waits for, as a scheduler that goes away does."""

    def __init__(self, client):
        self.client, self.n_stages = client, 0

    def __call__(self, record, _stage):
        self.n_stages = record.iteration

    def on_blocks(self, name, done, _total):
        if self.n_stages == 3 and name == "target_sums" and done == 1:
            held = [distributed.Future(key, self.client) for key in list(self.client.futures)]
            self.client.cancel(held, force=True)


def test_a_fit_that_cannot_go_on_says_so(client_of_threads):
    model = MendClassifier(**SETTINGS).set_callbacks(Leave(client_of_threads))
    with pytest.raises(LostFitError, match=r"(?s)lost in stage '\w+' of round 4 .*checkpoint"):
        model.fit(views(), TASK.y)
    assert not hasattr(model, "transduction_")


def test_lost_workers_are_no_bad_chunk(client_of_threads):
    """To find a chunk that is to blame, all chunks would be read once more."""
    reads = []

    def lost(block, block_info=None):
        reads.append(block_info[0]["chunk-location"])
        raise distributed.KilledWorker("a task", SimpleNamespace(address="its address"), 4)

    first, second = views()
    second = second.map_blocks(lost, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(LostFitError, match=r"(?s)lost in stage 'surveyed'.*smaller chunks"):
        MendClassifier(**SETTINGS).fit([first, second], TASK.y)
    assert len(reads) <= 3


def test_a_cluster_that_is_closed_during_a_fit_is_told(tmp_path):
    cluster = distributed.LocalCluster(
        n_workers=1, processes=False, dashboard_address=":0", local_directory=str(tmp_path)
    )

    def close(record, _stage):
        if record.iteration == 2:
            cluster.close()

    with distributed.Client(cluster):
        model = MendClassifier(**SETTINGS).set_callbacks(close)
        with pytest.raises(LostFitError, match=r"(?s)lost in stage .* of round"):
            model.fit(views(), TASK.y)


def test_blocks_that_do_not_fit_wait_on_disk_and_stages_are_told(client_of_threads, expected):
    stream = io.StringIO()
    model = MendClassifier(**SETTINGS).set_callbacks(LogBlocks(stream)).fit(views(), TASK.y)
    (written,) = client_of_threads.run(
        lambda dask_worker: dask_worker.data.cumulative_metrics["disk-write", "bytes"]
    ).values()
    # Features of both views, at least: 240 rows, a good half of them seen, of some ten numbers.
    assert written > 240 * 10 * 4
    np.testing.assert_allclose(model.label_distributions_, expected.label_distributions_, atol=1e-9)
    text = stream.getvalue()
    assert "round   5  target_sums" in text
    assert text.count("explained") == SETTINGS["n_rounds"]


class KillHolder:
    """Kills a worker that has scores of the latest stage, when the next one has begun."""

    def __init__(self, client, after):
        self.client, self.after, self.n_stages, self.killed = client, after, 0, False

    def __call__(self, record, stage):
        self.n_stages = record.iteration
        self.held = self.client.who_has(distributed.futures_of(stage.P))

    def on_blocks(self, name, _done, _total):
        if self.n_stages == self.after and name == "target_sums" and not self.killed:
            self.killed, ((holder, *_), *_) = True, self.held.values()
            os.kill(self.client.run(os.getpid)[holder], signal.SIGKILL)


@pytest.mark.kills
def test_a_worker_killed_in_a_fit_that_went_on_changes_nothing(client, expected, tmp_path):
    """Its blocks follow from the files that the fit went on from, not from the latest ones."""
    checkpoint, model = BlockCheckpoint(tmp_path / "stages", every=1), MendClassifier(**SETTINGS)
    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(checkpoint, Crash(2)).fit(views(), TASK.y)
    killer = KillHolder(client, after=4)
    model.set_callbacks(checkpoint, killer).fit(views(), TASK.y)
    assert killer.killed
    np.testing.assert_allclose(model.label_distributions_, expected.label_distributions_, atol=1e-9)


def test_files_that_a_fit_goes_on_from_are_there_to_its_end(one_process, tmp_path):
    checkpoint, model = BlockCheckpoint(tmp_path, every=1), MendClassifier(**SETTINGS)
    seen = []

    def look(_record, _stage):
        seen.append(sorted(path.name for path in tmp_path.glob("round-*")))

    with pytest.raises(KeyboardInterrupt):
        model.set_callbacks(checkpoint, Crash(2)).fit(views(), TASK.y)
    model.set_callbacks(checkpoint, look).fit(views(), TASK.y)
    # The last stage is not kept.
    first, *later = (f"round-{number:05d}" for number in (2, 3, 4))
    assert seen == [[first, later[0]], [first, later[1]], [first, later[1]]]
    look(None, None)
    assert seen[-1] == [later[1]]
