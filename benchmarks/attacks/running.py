"""Cases in processes of their own, which may crash or hang without taking the rest with them."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import numpy as np

from attacks.outcomes import Attack, Outcome, Verdict

# Seconds a new process may take to import what it needs, before its first case.
START = 120.0
SPAWN = multiprocessing.get_context("spawn")


def run_case(attack: Attack, folder: Path, seed: int, case: int) -> Outcome:
    """One case, here and now."""
    return attack.attempt(folder, np.random.default_rng([seed, case]))


def run_cases(
    attack: Attack, folder: Path, seed: int, cases: Sequence[int], jobs: int = 2
) -> Iterator[tuple[int, Outcome]]:
    """Cases with what became of them, as they end.

    A process that dies is a crash of the case it was at, one that takes longer than the time limit
    a hang; both are replaced.
    """
    left = iter(cases)
    workers = {
        worker.answers: worker for worker in (_Worker(attack, folder, seed) for _ in range(jobs))
    }
    try:
        while workers:
            for answers in _ready(workers):
                worker = workers.pop(answers)
                ended = worker.outcome()
                if ended is not None:
                    yield ended
                worker = worker if worker.alive else _Worker(attack, folder, seed)
                case = next(left, None)
                if case is None:
                    worker.stop()
                else:
                    worker.begin(case)
                    workers[worker.answers] = worker
    finally:
        for worker in workers.values():
            worker.stop()


def _ready(workers: dict[Connection, _Worker]) -> list[Connection]:
    """Those that answered, died, are idle, or are out of time."""
    idle = [answers for answers, worker in workers.items() if worker.case is None]
    if idle:
        return idle
    nearest = min(worker.deadline for worker in workers.values())
    answered = wait(list(workers), timeout=max(0.0, nearest - time.monotonic()))
    late = [a for a, worker in workers.items() if time.monotonic() > worker.deadline]
    return list({*answered, *late})  # type: ignore[arg-type]


class _Worker:
    """A process that runs one case after the other."""

    def __init__(self, attack: Attack, folder: Path, seed: int) -> None:
        self.attack = attack
        self.answers, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(
            target=_serve, args=(theirs, attack, folder, seed), daemon=False
        )
        self.process.start()
        theirs.close()
        self.case: int | None = None
        self.alive = True
        self.ready = False
        self.deadline = 0.0

    def begin(self, case: int) -> None:
        self.case = case
        if not self.ready:
            self.ready = self.answers.poll(START) and self.answers.recv()
        self.deadline = time.monotonic() + self.attack.time_limit
        self.answers.send(case)

    def outcome(self) -> tuple[int, Outcome] | None:
        """The case that was begun and its end; None if there was none."""
        case, self.case = self.case, None
        if case is None:
            return None
        if not self.answers.poll():
            self.process.kill()
            self.stop()
            return case, Outcome(Verdict.HANG, f"longer than {self.attack.time_limit} s")
        try:
            return case, self.answers.recv()
        except (EOFError, ConnectionResetError):
            self.stop()
            return case, Outcome(Verdict.CRASH, f"exit status {self.process.exitcode}")

    def stop(self) -> None:
        self.alive = False
        self.answers.close()
        self.process.join(timeout=2.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _serve(answers: Any, attack: Attack, folder: Path, seed: int) -> None:
    answers.send(True)
    # The other end is closed when there is no more to do, or no more time.
    with suppress(EOFError, BrokenPipeError):
        while True:
            answers.send(run_case(attack, folder, seed, answers.recv()))


@dataclass(frozen=True)
class Count:
    """How many cases of an attack ended how, and those that should not have ended so."""

    attack: str
    verdicts: dict[Verdict, int]
    bad: tuple[tuple[int, Outcome], ...]
    seconds: float
