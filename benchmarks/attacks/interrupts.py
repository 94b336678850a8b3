"""Ctrl-C at any moment of a fit: one line or KeyboardInterrupt, and a process that can go on.

Run as a script this module is the process that is interrupted:

    python benchmarks/attacks/interrupts.py FOLDER WAY METHOD
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attacks.fitting import blas_threads, digest, make_model, make_task
from attacks.outcomes import Outcome, Verdict
from viewmend.cli import app
from viewmend.models.base import TwoStepClassifier

METHODS = ("Mend", "AGF-TI")
# What a process writes when its fit begins, and what it writes at the end.
BEGUN, SAME, DIFFERENT, SETTINGS = "fit begun", "same bits", "different bits", "other threads"


@dataclass(frozen=True)
class Interrupts:
    """A fit on two threads, by Python or by the command line, that gets SIGINT somewhere.

    After KeyboardInterrupt a second fit in the same process must give the bits of a fit that
    nothing disturbed, and linear algebra must have its threads back.
    """

    name: str = "interrupts"
    n_cases: int = 100
    time_limit: float = 120.0
    n_samples: int = 1500

    def write_data(self, folder: Path) -> None:
        task = make_task(self.n_samples, seed=0, n_features=(15, 18))
        views = {f"view_{v}": view for v, view in enumerate(task.data.views)}
        np.savez(folder / "data.npz", **views, y=task.y)

    def prepare(self, folder: Path) -> None:
        self.write_data(folder)
        expected = {}
        for method in METHODS:
            # Twice, because the first fit also compiles.
            fits = [_timed_fit(method, folder) for _ in range(2)]
            expected[method] = {"digest": fits[-1][0], "seconds": fits[-1][1]}
        (folder / "expected.json").write_text(json.dumps(expected))

    def attempt(self, folder: Path, rng: np.random.Generator) -> Outcome:
        way, method = str(rng.choice(list(WAYS))), str(rng.choice(METHODS))
        seconds = json.loads((folder / "expected.json").read_text())[method]["seconds"]
        delay = float(rng.uniform(0, 1.2 * seconds))
        command = [sys.executable, __file__, str(folder), way, method]
        paths = [str(Path(__file__).parents[1]), *sys.path]
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(delay)
        child.send_signal(signal.SIGINT)
        try:
            out, err = child.communicate(timeout=self.time_limit - 10)
        except subprocess.TimeoutExpired:
            child.kill()
            return Outcome(Verdict.HANG, f"{way} {method} after {delay:.3f} s")
        return judge(child.returncode, out, err, f"{way} {method} after {delay:.3f} s")


def judge(code: int, out: str, err: str, case: str) -> Outcome:
    """What the end of an interrupted process means."""
    told = f"{case}: exit status {code}\n{out[-500:]}\n{err[-2000:]}"
    if code < 0 and code != -signal.SIGINT:
        return Outcome(Verdict.CRASH, told)
    if "Traceback" in err or "Exception ignored" in err:
        return Outcome(Verdict.FOREIGN, told)
    if DIFFERENT in out or SETTINGS in out:
        return Outcome(Verdict.SILENT, told)
    if code == 130 and err.count("Interrupted:") == 1:
        return Outcome(Verdict.REFUSED, told)
    # Also a fit that had ended before the signal came.
    return Outcome(Verdict.RIGHT if code == 0 else Verdict.FOREIGN, told)


def _timed_fit(method: str, folder: Path) -> tuple[str, float]:
    data, y = _read(folder)
    begin = time.perf_counter()
    model = make_model(method, n_jobs=2).fit(data, y)
    return digest(model), time.perf_counter() - begin


def _read(folder: Path) -> tuple[list[np.ndarray], np.ndarray]:
    with np.load(folder / "data.npz") as arrays:
        return [arrays["view_0"], arrays["view_1"]], arrays["y"]


def _fit_again(folder: Path, method: str) -> None:
    """Fit, be interrupted, and fit again."""
    expected = json.loads((folder / "expected.json").read_text())[method]["digest"]
    data, y = _read(folder)
    threads = blas_threads()
    model = make_model(method, n_jobs=2)
    try:
        model.fit(data, y)
        # The signal may still come, but not into what follows.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert not hasattr(model, "classes_")
        model.fit(data, y)
    print(SAME if digest(model) == expected else DIFFERENT)
    if blas_threads() != threads:
        print(SETTINGS)


def _command_line(folder: Path, method: str) -> None:
    data, out = folder / "data.npz", folder / f"{os.getpid()}.vm"
    arguments = ["fit", data, "-l", "y", "-o", out, "--method", method, "--set", "n_jobs=2"]
    app([str(argument) for argument in arguments])


# How a fit is begun.
WAYS: dict[str, Callable[[Path, str], None]] = {
    "Python": _fit_again,
    "command line": _command_line,
}


def _announce(fit: Callable[..., Any]) -> Callable[..., Any]:
    def announced(*arguments: Any, **named: Any) -> Any:
        print(BEGUN, flush=True)
        return fit(*arguments, **named)

    return announced


if __name__ == "__main__":
    # A shell lets what it starts in the background ignore Ctrl-C, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    TwoStepClassifier.fit = _announce(TwoStepClassifier.fit)  # type: ignore[method-assign]
    WAYS[sys.argv[2]](Path(sys.argv[1]), sys.argv[3])
