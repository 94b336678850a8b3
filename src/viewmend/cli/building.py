"""From words on the command line to a model."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from viewmend.baselines.registry import METHODS, Method, get_method
from viewmend.callbacks import Checkpoint, ProgressBar, TimeLimit
from viewmend.callbacks.protocol import Callback
from viewmend.exceptions import InvalidParameterError
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
) -> ProgressBar:
    """Show the progress of a fit that works in rounds, stop it in time, and keep it."""
    bar = ProgressBar(console)
    asked: dict[str, Callback] = {}
    if checkpoint is not None:
        asked["--checkpoint"] = Checkpoint(checkpoint)
    if seconds is not None:
        asked["--time-limit"] = TimeLimit(seconds)
    if hasattr(model, "set_callbacks"):
        model.set_callbacks(bar, *asked.values())
    elif asked:
        msg = (
            f"{' and '.join(asked)} needs a method that works in rounds, got "
            f"{type(model).__name__}; choose Mend or AGF-TI with --method, or leave it out"
        )
        raise InvalidParameterError(msg)
    return bar


@contextmanager
def telling_interrupts(
    bar: ProgressBar, checkpoint: Path | None, written: list[Path]
) -> Iterator[None]:
    """After Ctrl-C, print where the fit was, what was saved, and how to resume.

    ``written`` is filled by the caller with the files that are whole.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        stage = f"It was at: {bar.stage}. " if bar.stage else ""
        error.add_note(stage + _what_is_kept(checkpoint, written))
        raise


def _what_is_kept(checkpoint: Path | None, written: Sequence[Path]) -> str:
    if written:
        return f"Already written: {', '.join(map(str, written))}; no other file was changed."
    if checkpoint is None:
        return (
            "Nothing was kept, and no file was changed; with --checkpoint FILE the same command "
            "resumes where it was stopped, --time-limit SECONDS ends a fit with a usable model."
        )
    parts = [path for path in (checkpoint, Checkpoint(checkpoint).geometry_path) if path.exists()]
    if not parts:
        return f"Nothing was saved in {checkpoint} yet; the same command starts from the beginning."
    return f"The fit so far is saved in {', '.join(map(str, parts))}; the same command resumes it."
