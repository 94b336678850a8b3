"""Clusters of processes, and what kills one of them."""

import os
import signal
import time

import dask
import pytest


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two processes; whoever kills one, the next has it again."""
    distributed = pytest.importorskip("distributed")
    patience = {f"distributed.comm.timeouts.{kind}": "300s" for kind in ("connect", "tcp")}
    with (
        dask.config.set(patience),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            local_directory=str(tmp_path_factory.mktemp("spill")),
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    """Of a cluster whose workers answer: one that was killed counts until it is missed."""
    from distributed import Client

    with Client(cluster, timeout=300) as client:
        while n_workers_that_answer(client) != 2:
            time.sleep(0.05)
        yield client


@pytest.fixture
def bounded_time():
    """No test waits for ever for workers that do not come back; Windows has no such alarm."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def give_up(_signal, _frame):
        msg = "a test on the cluster took more than fifteen minutes"
        raise TimeoutError(msg)

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(900)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def n_workers_that_answer(client):
    pids = client.run(os.getpid, on_error="return").values()
    return sum(isinstance(pid, int) for pid in pids)


class Killer:
    """Kills workers, without a word, when a stage of a round is half way."""

    def __init__(self, client, round_=2, stage="advance", times=1):
        self.client, self.round, self.stage, self.left = client, round_, stage, times
        self.n_rounds = 0

    def __call__(self, round_, _state):
        self.n_rounds = round_.iteration

    def on_blocks(self, stage, done, total):
        due = self.n_rounds + 1 >= self.round and stage == self.stage and done >= total // 2
        if due and self.left:
            self.left -= 1
            pids = self.client.run(os.getpid)
            os.kill(next(iter(pids.values())), signal.SIGKILL)


@pytest.fixture(scope="session")
def make_killer():
    """The class, which test modules cannot import from here."""
    return Killer
