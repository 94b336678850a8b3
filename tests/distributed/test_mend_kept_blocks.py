"""Blocks of Mend in files of the workers: the same wherever they go, and gone at the end."""

import pickle

import dask
import dask.array as da
import numpy as np
import pytest

from viewmend import MendClassifier
from viewmend.core.mend.blocks import MendBlock, ViewRows
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.distributed import kept_blocks
from viewmend.distributed.inputs import as_chunks
from viewmend.distributed.kept_blocks import KeptBlock, keep, opened

pytestmark = pytest.mark.usefixtures("bounded_time")

BLOBS = make_multiview_blobs(240, noise=3.0, random_state=5)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=5)
SETTINGS = {"n_rounds": 2, "n_landmarks": 40, "graph_samples": 100, "calibration": None}


def views(rows=80):
    return [da.from_array(view, chunks=(rows, -1)) for view in TASK.data.views]


@pytest.fixture(scope="module")
def expected():
    with dask.config.set(scheduler="synchronous"):
        return MendClassifier(**SETTINGS).fit(views(), TASK.y)


@pytest.fixture
def folder(tmp_path):
    """Where blocks are kept without a worker."""
    with dask.config.set({"temporary-directory": str(tmp_path)}):
        yield tmp_path


@pytest.fixture
def all_kept(monkeypatch):
    monkeypatch.setattr(kept_blocks, "LEAST_BYTES", 0)


def some_block(n_rows=40):
    rng = np.random.default_rng(0)
    Phi = rng.normal(size=(n_rows, 7)).astype(np.float16)
    rows = ViewRows(np.arange(n_rows), Phi, rng.random((n_rows, 3), dtype=np.float32))
    return MendBlock(rng.random((n_rows, 1)) < 0.5, (rows,), place=rng.permutation(n_rows))


def assert_same_block(found, block):
    np.testing.assert_array_equal(found.observed, block.observed)
    np.testing.assert_array_equal(found.place, block.place)
    np.testing.assert_array_equal(found.views[0].Phi, block.views[0].Phi)
    np.testing.assert_array_equal(found.views[0].leverages, block.views[0].leverages)


def test_a_kept_block_opens_as_it_was_and_no_task_can_change_it(folder, all_kept):
    block = some_block()
    kept = keep(block, "fit")
    assert isinstance(kept, KeptBlock)
    assert kept.path.parent == folder / "fit"
    found = opened(kept)
    assert_same_block(found, block)
    found.views[0].Phi[:] = 0
    assert_same_block(opened(kept), block)
    # Dask takes it for as large as it is.
    size = block.views[0].Phi.nbytes + block.views[0].leverages.nbytes
    assert size < dask.sizeof.sizeof(kept) < size + 4000


def test_small_blocks_stay_in_memory(folder):
    block = some_block()
    assert keep(block, "fit") is block
    assert opened(block) is block
    assert not list(folder.iterdir())


def test_another_process_needs_nothing_of_the_first(folder, all_kept):
    block = some_block()
    kept = keep(block, "fit")
    sent = [pickle.dumps(kept, protocol) for protocol in (4, 5)]
    kept.path.unlink()
    for each in sent:
        assert_same_block(opened(pickle.loads(each)), block)


def test_dask_sends_the_content_to_others_and_not_to_its_own_disk(folder, all_kept):
    protocol = pytest.importorskip("distributed.protocol")
    kept_blocks._register()
    block = some_block(4000)
    kept = keep(block, "fit")
    spilled = b"".join(protocol.serialize_bytelist(kept, on_error="raise"))
    assert len(spilled) < 4000
    assert_same_block(opened(protocol.deserialize_bytes(spilled)), block)
    header, frames = protocol.serialize(kept, context={"sender": {}, "recipient": {}})
    kept.path.unlink()
    assert_same_block(opened(protocol.deserialize(header, frames)), block)


class Files:
    """Files of the fit, as they are after every stage."""

    def __init__(self, folder, fail=False):
        self.folder, self.fail, self.seen = folder, fail, []

    def __call__(self, _record, _stage):
        self.seen.append(len(list(self.folder.glob("viewmend-*/*"))))
        if self.fail:
            raise KeyboardInterrupt


def test_a_fit_from_files_is_the_same_and_leaves_none(folder, all_kept, expected):
    files = Files(folder)
    with dask.config.set(scheduler="synchronous"):
        model = MendClassifier(**SETTINGS).set_callbacks(files).fit(views(), TASK.y)
    np.testing.assert_array_equal(model.label_distributions_, expected.label_distributions_)
    # Features and edges of three blocks.
    assert files.seen == [6] * 4
    assert not list(folder.iterdir())


def test_a_fit_that_fails_leaves_no_files(folder, all_kept):
    files = Files(folder, fail=True)
    model = MendClassifier(**SETTINGS).set_callbacks(files)
    with dask.config.set(scheduler="synchronous"), pytest.raises(KeyboardInterrupt):
        model.fit(views(), TASK.y)
    assert files.seen == [6]
    assert not list(folder.iterdir())


def test_a_fit_cuts_chunks_to_the_bytes_that_a_block_may_have(expected):
    """Blocks of 80 rows of two views, of 40 features in half precision."""
    most_bytes = 80 * 2 * (2 * 40 + 500)
    with dask.config.set({"scheduler": "synchronous", "viewmend.block-bytes": most_bytes}):
        model = MendClassifier(**SETTINGS).fit(views(240), TASK.y)
    np.testing.assert_array_equal(model.label_distributions_, expected.label_distributions_)


def test_chunks_too_large_for_a_worker_are_cut_into_equal_parts():
    chunks = as_chunks(views((150, 80, 10)), None, None, np.float64, lambda n_views: 160 // n_views)
    assert chunks.sizes == (75, 75, 80, 10)
    first = np.concatenate([dask.compute(parts)[0][0] for parts in chunks.parts])
    np.testing.assert_array_equal(first, TASK.data.views[0])


# ------------------------------------------------------------------ workers


def keep_all():
    from viewmend.distributed import kept_blocks

    kept_blocks.LEAST_BYTES = 0


def files_of_worker(dask_worker):
    from pathlib import Path

    return len(list(Path(dask_worker.local_directory).glob("viewmend-*/*")))


class FilesOfWorkers:
    def __init__(self, client):
        self.client, self.seen = client, []

    def __call__(self, _record, _stage):
        self.seen.append(sum(self.client.run(files_of_worker).values()))


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.kills
def test_a_worker_killed_with_its_files_changes_nothing(client, expected, make_killer):
    client.run(keep_all)
    killer = make_killer(client, round_=3, stage="target_sums")
    files = FilesOfWorkers(client)
    model = MendClassifier(**SETTINGS).set_callbacks(files, killer).fit(views(), TASK.y)
    assert killer.left == 0
    assert files.seen[0] >= 6
    np.testing.assert_array_equal(model.transduction_, expected.transduction_)
    np.testing.assert_allclose(model.label_distributions_, expected.label_distributions_, atol=1e-9)
    assert set(client.run(files_of_worker, on_error="ignore").values()) == {0}
