"""The interface between loops and their callbacks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

# Called after each round with what it did and its live state. A true answer stops the loop, and a
# string is the status with which it stops.
Callback = Callable[..., bool | str | None]


class StepRecord(Protocol):
    """The record of one step: a round, a stage or a comparison."""

    @property
    def iteration(self) -> int:
        """Counted from 1."""

    def summary(self) -> str:
        """One line."""


class RoundRecord(StepRecord, Protocol):
    """What one round, or stage, of a loop did."""

    @property
    def change(self) -> float:
        """How much the round changed, in the loop's own measure."""


class LoopProgress(Protocol):
    """The progress of a loop: a data class with everything it needs to resume.

    That is ``state``, a data class of arrays and numbers after the last round, and the rounds.
    """

    @property
    def state(self) -> Any: ...

    @property
    def history(self) -> tuple[Any, ...]: ...

    def converted(self, convert: Callable[[Any], Any]) -> LoopProgress:
        """The same with arrays of another library or on another device."""


class ResumableProblem(Protocol):
    """A data class of everything that a result in a checkpoint depends on.

    The result of a loop is how far it has come, a `LoopProgress`.
    """

    @property
    def saved_type(self) -> type:
        """The data class of the result."""

    @property
    def saved_records(self) -> tuple[type, ...]:
        """All data classes that the result is made of."""

    @property
    def given_by_user(self) -> Mapping[str, str]:
        """Words for the fields that come from the user; all others follow from parameters."""

    def check_saved(self, saved: Any) -> None:
        """Raise a ModelFileError unless a result from a file fits this problem.

        Compiled code does not look at bounds.
        """


@dataclass(frozen=True, eq=False)
class Fit:
    """Information about a fit when it begins.

    Attributes
    ----------
    estimator : estimator
        The one that is being fitted.
    max_rounds : int
        Largest number of rounds or stages.
    round_parameters : dict of str, or None
        Parameters that the rounds depend on, as text; None if a fit cannot be resumed.
    """

    estimator: object
    max_rounds: int
    round_parameters: Mapping[str, str] | None = None

    @property
    def name(self) -> str:
        """Name of the class of the estimator."""
        return type(self.estimator).__name__
