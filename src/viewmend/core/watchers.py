"""How the loops of this package tell callbacks what they did."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["reason_to_stop"]


def reason_to_stop(
    callbacks: Iterable[Callable[..., bool | str | None]], record: Any, state: Any
) -> str | None:
    """Call every callback; the status with which the first of those that stop does so.

    Parameters
    ----------
    callbacks : iterable of callable
        Each is called as ``callback(record, state)``. A true answer stops; a string is the status.
    record
        What the round did.
    state
        The live variables.

    Returns
    -------
    str or None
        "stopped" unless a callback had a word of its own; None to go on.
    """
    answers = [callback(record, state) for callback in callbacks]
    return next((_status(answer) for answer in answers if answer), None)


def _status(answer: bool | str) -> str:
    return answer if isinstance(answer, str) else "stopped"
