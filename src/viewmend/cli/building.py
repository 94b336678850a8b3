"""From words on the command line to a model."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from viewmend.baselines.registry import METHODS, Method, get_method
from viewmend.callbacks import Checkpoint, ProgressBar, TimeLimit
from viewmend.callbacks.protocol import Callback
from viewmend.exceptions import InvalidParameterError
from viewmend.parameters import short
from viewmend.persistence.registry import LAYOUTS


def find_method(name: str) -> Method:
    """A method by its name or class, whatever the capitals."""
    for method in METHODS.values():
        if name.lower() in {method.name.lower(), method.path.rsplit(".", 1)[1].lower()}:
            return method
    return get_method(name)


def can_be_saved(method: Method) -> bool:
    """Whether `viewmend.save` knows the class."""
    return method.path.rsplit(".", 1)[1] in LAYOUTS


def build_model(method: Method, settings: Sequence[str], seed: int) -> Any:
    """The estimator with its parameters, as in ``n_rounds=4``, and a seed if it takes one.

    Values are Python literals, and text where they are none.
    """
    model = method.estimator()
    known = model.get_params(deep=False)
    values = dict(_setting(text, method.name, sorted(known)) for text in settings)
    if "random_state" in known:
        values.setdefault("random_state", seed)
    return model.set_params(**values)


def _setting(text: str, method: str, known: Sequence[str]) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or name not in known:
        msg = (
            f"--set must be PARAMETER=VALUE with a parameter of {method}, got {text!r}; "
            f"choose one of {', '.join(known)}"
        )
        raise InvalidParameterError(msg)
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def watch(
    model: Any, console: Console, seconds: float | None, checkpoint: Path | None = None
) -> None:
    """Show the progress of a fit that works in rounds, stop it in time, and keep it."""
    asked: dict[str, Callback] = {}
    if checkpoint is not None:
        asked["--checkpoint"] = Checkpoint(checkpoint)
    if seconds is not None:
        asked["--time-limit"] = TimeLimit(seconds)
    if hasattr(model, "set_callbacks"):
        model.set_callbacks(ProgressBar(console), *asked.values())
    elif asked:
        msg = (
            f"{' and '.join(asked)} needs a method that works in rounds, got "
            f"{type(model).__name__}; choose one of {short(sorted(LAYOUTS))}, or leave it out"
        )
        raise InvalidParameterError(msg)
