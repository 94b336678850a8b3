"""What became of a case: the answer was right, or refused in our own words, or something broke."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import numpy as np
from sklearn.exceptions import NotFittedError

# Python's and scikit-learn's own words where they say it best: a path that is not there, a model
# that is not fitted.
ACCEPTED = (FileNotFoundError, PermissionError, IsADirectoryError, NotFittedError)


class Verdict(StrEnum):
    """How a case ended; only the first two are good."""

    RIGHT = "right"
    REFUSED = "refused"
    FOREIGN = "foreign exception"
    SILENT = "silent difference"
    CRASH = "crash"
    HANG = "hang"


GOOD = (Verdict.RIGHT, Verdict.REFUSED)


@dataclass(frozen=True)
class Outcome:
    """A verdict, and what to tell somebody who wants to see it again."""

    verdict: Verdict
    detail: str = ""


class Attack(Protocol):
    """Cases of one kind, each drawn from a generator of its own: case 17 is always the same.

    ``n_cases`` is how many a full run makes, ``time_limit`` how many seconds one may take before it
    counts as a hang. Instances are pickled to the processes that run the cases.
    """

    name: str
    n_cases: int
    time_limit: float

    def prepare(self, folder: Path) -> None:
        """Write what all cases start from; called once, before any case."""
        ...

    def attempt(self, folder: Path, rng: np.random.Generator) -> Outcome:
        """Make one case and judge it. ``folder`` is what `prepare` filled, to be left as it is."""
        ...


def judged(call: Callable[[], Outcome | None]) -> Outcome:
    """The outcome that ``call`` returns, RIGHT for None, or what its exception means.

    A RuntimeWarning of NumPy that reaches the user counts as an exception that is not ours.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            return call() or Outcome(Verdict.RIGHT)
    except ACCEPTED as error:
        return Outcome(Verdict.REFUSED, f"{type(error).__name__}: {error}")
    except Exception as error:
        ours = type(error).__module__.split(".")[0] == "viewmend"
        if ours:
            return Outcome(Verdict.REFUSED, f"{type(error).__name__}: {error}")
        return Outcome(Verdict.FOREIGN, "".join(traceback.format_exception(error))[-2000:])
