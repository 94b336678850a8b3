"""The harness itself notices what it is there to notice."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from attacks.outcomes import Outcome, Verdict, judged
from attacks.running import run_cases

from viewmend.exceptions import InvalidViewsError


@dataclass(frozen=True)
class Misbehaving:
    """Case by case: fine, refused, a foreign exception, a warning, a crash, a hang."""

    name: str = "misbehaving"
    n_cases: int = 6
    time_limit: float = 5.0

    def attempt(self, _folder: Path, rng: np.random.Generator) -> Outcome:
        case = self._draws().index(rng.integers(2**32))
        return judged([lambda: None, _refuse, _stumble, _divide, os.abort, _sleep][case])

    def _draws(self) -> list[int]:
        return [np.random.default_rng([0, case]).integers(2**32) for case in range(self.n_cases)]


def _refuse() -> None:
    raise InvalidViewsError("no views")


def _stumble() -> None:
    raise KeyError("X")


def _divide() -> None:
    np.zeros(1) / np.zeros(1)


def _sleep() -> None:
    time.sleep(600)


@pytest.mark.kills
def test_every_ending_is_told_from_the_others_and_later_cases_go_on(tmp_path):
    attack = Misbehaving()
    outcomes = dict(run_cases(attack, tmp_path, 0, range(6), jobs=1))
    assert [outcomes[case].verdict for case in range(6)] == [
        Verdict.RIGHT,
        Verdict.REFUSED,
        Verdict.FOREIGN,
        Verdict.FOREIGN,
        Verdict.CRASH,
        Verdict.HANG,
    ]
