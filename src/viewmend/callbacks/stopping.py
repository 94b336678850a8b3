"""Callbacks that end a fit before it would end by itself."""

from __future__ import annotations

import math
import signal
import threading
import time
import warnings
from collections.abc import Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from viewmend.callbacks.protocol import Fit, RoundRecord
from viewmend.exceptions import InvalidParameterError
from viewmend.parameters import AnyOf, Integer, OneOf, Real, Rule, short

_SECONDS = AnyOf(Real(0), OneOf(math.inf))
_PATIENCE, _MIN_CHANGE = Integer(1), Real(0, low_open=True)


class TimeLimit:
    """Stop after the first round that ends ``seconds`` or more after the fit began.

    Input checks, anchors and graphs count. A fit that resumes an earlier one has the whole time
    again. In `viewmend.core.solve`, where there is no fit around the rounds, the time starts with
    the first round.

    Parameters
    ----------
    seconds : float
        Time limit in seconds.
    """

    def __init__(self, seconds: float) -> None:
        _check(self, "seconds", seconds, _SECONDS)
        self.seconds = seconds
        self._start: float | None = None

    def on_fit_begin(self, _fit: Fit) -> None:
        self._start = time.monotonic()

    def __call__(self, _round: RoundRecord, _state: Any) -> bool:
        now = time.monotonic()
        if self._start is None:
            self._start = now
        return now - self._start >= self.seconds

    def on_fit_end(self, _fit: Fit, _error: BaseException | None) -> None:
        self._start = None


class EarlyStop:
    """Stop after ``patience`` rounds in a row that changed less than ``min_change``.

    Parameters
    ----------
    patience : int, default=2
        Number of such rounds in a row.
    min_change : float, default=1e-3
        Least ``round.change`` that counts as a change: the largest change of a soft label or weight
        in a round of AGF-TI, or the share of samples that changed their class in a stage of
        `MendClassifier`.
    """

    def __init__(self, patience: int = 2, min_change: float = 1e-3) -> None:
        _check(self, "patience", patience, _PATIENCE)
        _check(self, "min_change", min_change, _MIN_CHANGE)
        self.patience = patience
        self.min_change = min_change
        self._calm_rounds = 0

    def on_fit_begin(self, _fit: Fit) -> None:
        self._calm_rounds = 0

    def on_resume(self, history: Sequence[Any]) -> None:
        for round_ in history:
            self(round_, None)

    def __call__(self, round_: RoundRecord, _state: Any) -> bool:
        self._calm_rounds = self._calm_rounds + 1 if round_.change < self.min_change else 0
        return self._calm_rounds >= self.patience


class StopOnInterrupt:
    """Let the first Ctrl-C (SIGINT) end the fit after the current round, with a usable model.

    Its ``status_`` is "interrupted", and a warning says how many rounds were done. A second Ctrl-C
    raises KeyboardInterrupt at once. So does the first one before any round has ended, because
    there is nothing to keep. A Ctrl-C that comes after the last round raises KeyboardInterrupt at
    the end of the fit. Without this callback, and in threads other than the main one, which get no
    signals, KeyboardInterrupt is raised as usual and the estimator is left unfitted.

    In a loop over fits, Ctrl-C then ends the current fit and not the loop.
    """

    def __init__(self) -> None:
        self._before: Any = None
        self._n_rounds = 0
        self._pressed = self._heeded = False

    def on_fit_begin(self, _fit: Fit) -> None:
        self._pressed = self._heeded = False

    def __call__(self, round_: RoundRecord, _state: Any) -> str | None:
        self._n_rounds = round_.iteration
        if self._pressed:
            self._heeded = True
            return "interrupted"
        if self._before is None and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._remember)
        return None

    def on_fit_end(self, fit: Fit, error: BaseException | None) -> None:
        self._restore()
        if error is not None:
            return
        if self._heeded:
            msg = (
                f"{fit.name} was interrupted after {self._n_rounds} of at most {fit.max_rounds} "
                f"rounds; the model is usable, fit again for the other rounds"
            )
            warnings.warn(msg, ConvergenceWarning, stacklevel=2)
        elif self._pressed:
            signal.raise_signal(signal.SIGINT)

    def _remember(self, _signal: int, _frame: Any) -> None:
        self._pressed = True
        self._restore()

    def _restore(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None


def _check(callback: object, name: str, value: object, rule: Rule) -> None:
    """Refuse an argument now: when the first round has ended, its work would be lost."""
    if not rule.accepts(value):
        owner = type(callback).__name__
        msg = (
            f"{name} of {owner} must be {rule.expected}, got {short(value)}; leave {owner} out to "
            f"let a fit run to its end"
        )
        raise InvalidParameterError(msg)
