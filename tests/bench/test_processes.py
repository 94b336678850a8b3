"""Whatever ends a benchmark on several processes, none of them is left."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import viewmend

# A benchmark on two processes, each of which says that it is at a run and never ends it.
BENCHMARK = """
import sys
from functools import partial
from pathlib import Path

from viewmend.bench.experiment import Experiment, Row
from viewmend.bench.measures import RunFolders
from viewmend.bench.runner import Worker, carry_out, on_cores
from viewmend.bench.store import ResultStore


def make_measure():
    def measure(key, _folders):
        import os, signal

        os.write(1, b"begun\\n")
        while True:
            signal.pause()

    return measure


if __name__ == "__main__":
    rates, rows = ((0.1, 0.2), (0.5,)), (Row("Mend", "Mend"),)
    experiment = Experiment("endless", "", "fit", ("honest",), ("CUB",), *rates, rows, 1)
    folders = RunFolders(Path(sys.argv[1]), Path(sys.argv[1]))
    worker = Worker(ResultStore(sys.argv[1]), folders, measure=make_measure())
    carry_out(experiment, worker, partial(on_cores, jobs=2))
"""


@pytest.mark.parametrize("ending", ["SIGKILL", "SIGINT"])
@pytest.mark.kills
def test_no_process_outlives_the_benchmark(tmp_path, ending):
    pytest.importorskip("joblib")
    (tmp_path / "endless.py").write_text(BENCHMARK)
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "endless.py"), str(tmp_path / "results")],
        env=os.environ | {"PYTHONPATH": str(Path(viewmend.__file__).parents[1])},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    # The only way out of a test that would wait for ever.
    rescue = threading.Timer(120, os.killpg, (process.pid, signal.SIGKILL))
    rescue.start()
    try:
        assert [process.stdout.readline() for _ in range(2)] == [b"begun\n"] * 2
        os.kill(process.pid, getattr(signal, ending))
        # All of them hold the other end of this pipe: it ends with the last one.
        assert process.stdout.read() == b""
        assert rescue.is_alive()
    finally:
        rescue.cancel()
        process.kill()
        process.communicate()
