"""Which commands there are."""

from __future__ import annotations

import errno
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from viewmend.bench.commands import app as bench
from viewmend.cli.compare import compare
from viewmend.cli.demo import demo
from viewmend.cli.doubt import doubt
from viewmend.cli.evaluate import evaluate
from viewmend.cli.explain import explain
from viewmend.cli.fit import fit
from viewmend.cli.inspect import inspect
from viewmend.cli.interrupts import heard_interrupts
from viewmend.cli.methods import methods
from viewmend.cli.predict import predict
from viewmend.cli.report import report
from viewmend.cli.suggest import suggest
from viewmend.text import printable
from viewmend.version import __version__

# What shells expect of a command that Ctrl-C ended: 128 and the number of the signal.
INTERRUPTED = 130


class Commands(TyperGroup):
    """All commands, which end with one line on Ctrl-C."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with heard_interrupts():
                return super().invoke(ctx)
        except KeyboardInterrupt as error:
            command = f"{ctx.info_name} {ctx.invoked_subcommand}"
            # What was kept, and how to go on, is told by whoever knew.
            told = getattr(error, "__notes__", None) or ["No file was written or changed."]
            typer.echo(f"Interrupted: you stopped {command} (Ctrl-C) before its end.", err=True)
            typer.echo(printable("\n".join(told)), err=True)
            raise typer.Exit(INTERRUPTED) from error
        except OSError as error:
            # Errors about files are told by the commands; what is left is standard output. That
            # whoever reads it has gone is no error, as Click knows.
            if error.errno == errno.EPIPE:
                raise
            typer.echo(f"Error: the result cannot be printed: {error.strerror}.", err=True)
            raise typer.Exit(1) from error


app = typer.Typer(cls=Commands, no_args_is_help=True, rich_markup_mode="markdown")


@app.callback(invoke_without_command=True)
def main(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Classify samples of several tables, where rows are missing and few samples have a label."""
    if version:
        typer.echo(f"viewmend {__version__}")
        raise typer.Exit


for command in (inspect, fit, predict, evaluate, compare, report, methods, demo):
    app.command()(command)

app.command()(doubt)
app.add_typer(suggest, name="suggest")
app.add_typer(explain, name="explain")

app.add_typer(bench, name="bench")
