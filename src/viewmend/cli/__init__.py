"""The command line: one module per command, and what they share. Commands call and print."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from viewmend.extras import how_to_install

__all__ = ["app"]

app: Callable[..., Any]
try:
    from viewmend.cli.commands import app
except ImportError as error:
    MISSING = str(error.name).partition(".")[0]
    if MISSING not in {"typer", "rich"}:
        raise

    def app() -> NoReturn:
        """The entry point where Typer or Rich is missing."""
        msg = (
            f"the command viewmend needs {MISSING}, which is not installed; {how_to_install('cli')}"
        )
        raise SystemExit(msg)
