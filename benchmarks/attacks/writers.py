"""Two processes that write one file while a third reads it, and writers that are killed."""

from __future__ import annotations

import multiprocessing
import stat
import time
from dataclasses import dataclass
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import numpy as np

from attacks.outcomes import Outcome, Verdict, judged
from viewmend import MendClassifier, load, save
from viewmend.datasets import hide, make_multiview_blobs

MODELS = ("first.vm", "second.vm")
SAVES = 50
# A writer needs what is imported here, which takes a hundred times as long as a case.
FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class TwoWriters:
    """Two processes save different models to one path, while this one loads it.

    No writer and no reader may raise, every load must be one of the two models, permissions must
    stay, a planted link must not be written through, and no draft may be left.
    """

    name: str = "two writers"
    n_cases: int = 40
    time_limit: float = 300.0

    def prepare(self, folder: Path) -> None:
        _prepare_models(folder)

    def attempt(self, folder: Path, rng: np.random.Generator) -> Outcome:
        place = folder / f"round-{rng.integers(2**62)}"
        place.mkdir()
        target = _target(place, rng)
        target.write_bytes((folder / MODELS[0]).read_bytes())
        mode = [0o600, 0o640, 0o644, 0o660][rng.integers(4)]
        target.chmod(mode)
        return judged(lambda: _write_at_once(folder, place / "model.vm", target, mode))


def _prepare_models(folder: Path) -> None:
    """Two models of different size."""
    for name, n_samples in zip(MODELS, (30, 60), strict=True):
        blobs = make_multiview_blobs(n_samples, n_features=(3, 2), random_state=0)
        task = hide(blobs.views, blobs.y, missing_rate=0.2, label_rate=0.3, random_state=0)
        model = MendClassifier(n_rounds=0, n_landmarks=9, representations=("unit",))
        save(model.fit(task.data, task.y), folder / name)


def _target(place: Path, rng: np.random.Generator) -> Path:
    """Where the bytes are to go: the path itself, or a file that a link of that name leads to.

    Beside it lies a link of the name that drafts had in version 0.1.
    """
    (place / "victim").write_text("untouched")
    (place / "model.vm.partial").symlink_to(place / "victim")
    if rng.integers(2):
        return place / "model.vm"
    (place / "elsewhere").mkdir()
    (place / "model.vm").symlink_to(place / "elsewhere" / "model.vm")
    return place / "elsewhere" / "model.vm"


def _write_at_once(folder: Path, path: Path, target: Path, mode: int) -> Outcome | None:
    known = {(folder / name).read_bytes() for name in MODELS}
    writers = [_start_writer(folder / name, path, SAVES) for name in MODELS]
    strange = 0
    try:
        while any(writer.is_alive() for writer in writers):
            load(path)
            strange += path.read_bytes() not in known
    finally:
        for writer in writers:
            writer.join()
    found = {
        "a writer raised": any(writer.exitcode for writer in writers),
        "another model": strange or path.read_bytes() not in known,
        "other permissions": stat.S_IMODE(target.stat().st_mode) != mode,
        "a link that is gone": path != target and not path.is_symlink(),
        "a link written through": (path.parent / "victim").read_text() != "untouched",
        "litter": [entry for entry in target.parent.glob("*.partial") if not entry.is_symlink()],
    }
    bad = [what for what, is_so in found.items() if is_so]
    return Outcome(Verdict.SILENT, str(bad)) if bad else None


def _start_writer(model: Path, path: Path, n_saves: int) -> ForkProcess:
    """A process that saves a model again and again."""
    writer = FORK.Process(target=_save_often, args=(load(model), path, n_saves))
    writer.start()
    return writer


def _save_often(model: Any, path: Path, n_saves: int) -> None:
    for _ in range(n_saves):
        save(model, path)


@dataclass(frozen=True)
class KilledWriters:
    """A process that saves is killed at a random moment; the file is the old or the new one."""

    name: str = "kills during save"
    n_cases: int = 100
    time_limit: float = 120.0

    def prepare(self, folder: Path) -> None:
        _prepare_models(folder)

    def attempt(self, folder: Path, rng: np.random.Generator) -> Outcome:
        place = folder / f"round-{rng.integers(2**62)}"
        place.mkdir()
        (place / "model.vm").write_bytes((folder / MODELS[0]).read_bytes())
        return judged(lambda: _kill(folder, place / "model.vm", float(rng.uniform(0, 0.2))))


def _kill(folder: Path, path: Path, seconds: float) -> Outcome | None:
    known = {(folder / name).read_bytes() for name in MODELS}
    writer = _start_writer(folder / MODELS[1], path, 10**6)
    time.sleep(seconds)
    writer.kill()
    writer.join()
    if path.read_bytes() not in known:
        return Outcome(Verdict.SILENT, "neither the old file nor the new one")
    drafts = list(path.parent.glob("*.partial"))
    # What the dead left hinders nobody.
    save(load(path), path)
    if len(drafts) > 1 or list(path.parent.glob("*.partial")) != drafts:
        return Outcome(Verdict.SILENT, f"drafts {drafts}")
    return None
