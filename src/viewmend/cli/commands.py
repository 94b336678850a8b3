"""Which commands there are."""

from __future__ import annotations

import importlib.util
from typing import Annotated

import typer

from viewmend.cli.demo import demo
from viewmend.cli.evaluate import evaluate
from viewmend.cli.fit import fit
from viewmend.cli.inspect import inspect
from viewmend.cli.methods import methods
from viewmend.cli.predict import predict
from viewmend.cli.report import report
from viewmend.version import __version__

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown")


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Learn from incomplete multi-view data with few labels."""
    if version:
        typer.echo(f"viewmend {__version__}")
        raise typer.Exit


for command in (inspect, fit, predict, evaluate, report, methods, demo):
    app.command()(command)

# The locks of its store are those of POSIX.
if importlib.util.find_spec("fcntl"):
    from viewmend.bench.commands import app as bench

    app.add_typer(bench, name="bench")
