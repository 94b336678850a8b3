"""``viewmend bench``: experiments from the command line."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from viewmend.bench.catalogue import BESIDE_PAPER, FIGURES, TABLES
from viewmend.bench.charts.drawing import draw_chart
from viewmend.bench.environment import check_publishable, environment
from viewmend.bench.experiment import InvalidExperimentError, NotInExperimentError
from viewmend.bench.options import (
    Dask,
    Data,
    ExperimentFile,
    ExperimentFiles,
    FirstRepetition,
    Jobs,
    Kind,
    Metric,
    Only,
    Paper,
    Repetitions,
    Results,
    Subject,
    TimeLimit,
    Trust,
)
from viewmend.bench.paper_values import Look, read_paper_tables
from viewmend.bench.plan import Count
from viewmend.bench.printing import not_loaded, print_status, print_verdict, shown_progress
from viewmend.bench.report import ReportContents, write_report
from viewmend.bench.runner import (
    WITHOUT_DATA,
    Session,
    WorkerLostError,
    done_again,
    experiment_files,
    open_experiment,
    spread_over,
)
from viewmend.bench.runs import InvalidRecordError, Record, RunKey, environments_of
from viewmend.bench.store import ResultStore, export_records
from viewmend.bench.summaries import by_protocol
from viewmend.bench.tables.table import FORMATS, write_table
from viewmend.bench.verifying import claims_of, drawn, read_claims
from viewmend.datasets.catalogue import DATA_VARIABLE, EMBEDDED, absent
from viewmend.exceptions import InvalidParameterError
from viewmend.storage.atomic import replacing, write_text
from viewmend.text import printable

# What users can put right themselves: told in a sentence, without a traceback.
USER_ERRORS = (InvalidExperimentError, InvalidParameterError, InvalidRecordError, ImportError)

app = typer.Typer(no_args_is_help=True, help="Run experiments, and make tables of the results.")


@app.command("resume", help="Resume an experiment that was stopped; the same as run.")
@app.command()
def run(  # noqa: PLR0913 - one argument per option of the command line
    experiment: ExperimentFiles,
    results: Results = Path("results"),
    data: Data = Path("data"),
    only: Only = None,
    repetitions: Repetitions = None,
    first_repetition: FirstRepetition = None,
    jobs: Jobs = 1,
    dask: Dask = None,
    time_limit: TimeLimit = math.inf,
    trust: Trust = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Repeat runs that failed.")
    ] = False,
) -> None:
    """Do all runs of an experiment that are not done yet. Stop it at any time, and run it again.

    For a folder, this means all its experiments; files without the names of --only are skipped.
    """
    with _short_errors():
        sessions = _sessions(
            experiment, (results, data, only or (), repetitions, trust, first_repetition)
        )
        for session in sessions:
            session.experiment.check_trusted()
            if retry_failed:
                session.forget_failures()
        possible = [one for one in sessions if not one.absent or _counted(one) != Count()]
        if not possible:
            names = ", ".join(repr(one.experiment.name) for one in sessions)
            msg = f"no run of {names} can be done. {_absent(sessions[0])}"
            raise InvalidParameterError(msg)
        console, deadline, failed = Console(), time.time() + time_limit, 0
        for session in possible:
            with shown_progress(console, _counted(session)) as watch:
                session.carry_out(spread_over(jobs, dask), watch, deadline - time.time())
            failed += print_status(console, session).failed
        if failed:
            raise typer.Exit(1)


@app.command()
def status(
    experiment: ExperimentFiles,
    results: Results = Path("results"),
    data: Data = Path("data"),
    only: Only = None,
    repetitions: Repetitions = None,
    first_repetition: FirstRepetition = None,
    trust: Trust = False,
) -> None:
    """Show what is done, what failed, what is left out, what is to do, and what data is absent."""
    with _short_errors():
        console = Console()
        for session in _sessions(
            experiment, (results, data, only or (), repetitions, trust, first_repetition)
        ):
            print_status(console, session)


@app.command()
def table(  # noqa: PLR0913 - one argument per option of the command line
    experiment: ExperimentFile,
    results: Results = Path("results"),
    data: Data = Path("data"),
    only: Only = None,
    repetitions: Repetitions = None,
    first_repetition: FirstRepetition = None,
    kind: Kind = None,
    metric: Metric = "ACC",
    form: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")] = (
        "markdown"
    ),
    paper: Paper = None,
    subject: Subject = Look.subject,
    output: Annotated[
        Path | None, typer.Option(help="File to write, instead of the terminal.")
    ] = None,
    trust: Trust = False,
) -> None:
    """Print tables of the results, one per protocol."""
    with _short_errors():
        look = _look(metric, paper, subject)
        session = open_experiment(
            experiment, results, data, only or (), repetitions, trust, first_repetition
        )
        _tell_untrusted(session)
        protocols = _by_protocol(session)
        text = "\n".join(
            write_table(TABLES.build(name, records, look), form)
            for records in protocols
            for name in ([kind] if kind else TABLES.suitable(records, look))
        )
        if output is None:
            typer.echo("\n".join(map(printable, text.split("\n"))))
            return
        for records in protocols:
            check_publishable(environments_of(records), output)
        write_text(output, text)
        typer.echo(f"Tables: {output}")


@app.command()
def plot(  # noqa: PLR0913 - one argument per option of the command line
    experiment: ExperimentFile,
    results: Results = Path("results"),
    data: Data = Path("data"),
    only: Only = None,
    kind: Kind = None,
    metric: Metric = "ACC",
    output: Annotated[Path, typer.Option(help="Folder of the figures.", file_okay=False)] = Path(
        "figures"
    ),
    paper: Paper = None,
    subject: Subject = Look.subject,
    trust: Trust = False,
) -> None:
    """Draw figures of the results, one per protocol."""
    with _short_errors():
        look = _look(metric, paper, subject)
        for records in _by_protocol(_session(experiment, results, data, only, trust)):
            check_publishable(environments_of(records), output)
            output.mkdir(parents=True, exist_ok=True)
            for name in [kind] if kind else FIGURES.suitable(records, look):
                suffix = f"_{metric}" if name in FIGURES and FIGURES[name].by_metric else ""
                path = output / f"{experiment.stem}_{records[0].key.protocol}_{name}{suffix}.png"
                with replacing(path) as stream:
                    draw_chart(FIGURES.build(name, records, look)).savefig(stream)
                typer.echo(f"Figure: {path}")


@app.command()
def report(  # noqa: PLR0913 - one argument per option of the command line
    experiment: ExperimentFile,
    results: Results = Path("results"),
    data: Data = Path("data"),
    only: Only = None,
    output: Annotated[
        Path | None, typer.Option(help="HTML file, named after the experiment by default.")
    ] = None,
    paper: Paper = None,
    subject: Subject = Look.subject,
    trust: Trust = False,
) -> None:
    """Write everything about the results into one HTML file that needs nothing but a browser."""
    with _short_errors():
        session = _session(experiment, results, data, only, trust)
        contents = ReportContents(session.experiment.title, _look("ACC", paper, subject))
        path = write_report(
            output or Path(f"{session.experiment.name}.html"), _final(session), contents
        )
        typer.echo(f"Report: {path}")


@app.command("compare-with-paper")
def compare_with_paper(
    experiment: ExperimentFile,
    paper: Annotated[Path, typer.Option(help="Folder with the paper's tables as CSV files.")],
    results: Results = Path("results"),
    data: Data = Path("data"),
    only: Only = None,
    kind: Annotated[
        str | None,
        typer.Option(help=f"One of {', '.join(BESIDE_PAPER)}; all that there are by default."),
    ] = None,
    trust: Trust = False,
) -> None:
    """Compare scores, seconds, and memory of the tensor step with those printed in the paper."""
    with _short_errors():
        look = _look("ACC", paper, Look.subject)
        for records in _by_protocol(_session(experiment, results, data, only, trust)):
            suitable = [name for name in TABLES.suitable(records, look) if name in BESIDE_PAPER]
            # Where there is none, the first says what is lacking.
            for name in [kind] if kind else suitable or BESIDE_PAPER[:1]:
                typer.echo(write_table(TABLES.build(name, records, look), "markdown"))


@app.command()
def export(
    output: Annotated[Path, typer.Argument(help="File to write, .csv or .parquet.")],
    results: Results = Path("results"),
    data: Data = Path("data"),
    experiment: Annotated[
        Path | None, typer.Option(help="Only the records of this experiment.")
    ] = None,
    only: Only = None,
    trust: Trust = False,
) -> None:
    """Write records as one flat table."""
    with _short_errors():
        if experiment is not None:
            records = _session(experiment, results, data, only, trust).final_records()
        elif only:
            msg = f"--only {only[0]} keeps a part of an experiment; pass --experiment too"
            raise InvalidParameterError(msg)
        else:
            records = ResultStore(results).records()
        export_records(records, output)
        typer.echo(f"{len(records)} records: {output}")


@app.command()
def verify(  # noqa: PLR0913 - one argument per option of the command line
    source: Annotated[
        Path, typer.Argument(help="CSV file that export wrote, or TOML file of an experiment.")
    ],
    results: Results = Path("results"),
    data: Data = Path("data"),
    n: Annotated[int, typer.Option("--n", min=1, help="Number of runs to repeat.")] = 30,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draw.")] = 0,
    tolerance: Annotated[
        float, typer.Option(min=0, help="Largest difference of a share that counts as equal.")
    ] = 1e-9,
    jobs: Jobs = 1,
    trust: Trust = False,
) -> None:
    """Repeat runs of a table, drawn at random, and say whether they give the same numbers.

    Nothing is read but the table and the data, nothing is kept. Exits with 1 if a number differs.
    """
    with _short_errors():
        if source.suffix == ".csv":
            claims = read_claims(source)
        else:
            claims = claims_of(_final(_session(source, results, data, None, trust)))
        console = Console()
        possible = [one for one in claims if not _lacks_data(one.key, data)]
        if not possible:
            msg = f"no run of {source} can be done again: its data is not in {data}"
            raise InvalidParameterError(msg)
        chosen = drawn(possible, n, seed)
        verdicts = []
        for verdict in done_again(chosen, data, spread_over(jobs, None), tolerance):
            print_verdict(console, verdict)
            verdicts.append(verdict)
        equal = sum(one.equal for one in verdicts)
        typer.echo(
            f"{equal} of {len(verdicts)} runs equal within {tolerance:g}, drawn with seed {seed} "
            f"from {len(possible)} of {len(claims)} whose data is there; revision "
            f"{environment()['revision']}"
        )
        if equal < len(verdicts):
            raise typer.Exit(1)


def _lacks_data(key: RunKey, data: Path) -> bool:
    return key.measure not in WITHOUT_DATA and bool(absent((key.data,), data))


def _sessions(experiment: Path, options: tuple[Any, ...]) -> list[Session]:
    """An experiment, or those of a folder that have all the names that were asked for."""
    sessions, lacking = [], []
    for file in experiment_files(experiment):
        try:
            sessions.append(open_experiment(file, *options))
        except NotInExperimentError as error:
            lacking.append(error)
    if not sessions:
        raise lacking[0]
    return sessions


def _counted(session: Session) -> Count:
    return sum(session.counts().values(), Count())


def _session(
    experiment: Path, results: Path, data: Path, only: list[str] | None, trust: bool
) -> Session:
    """For commands that read results."""
    session = open_experiment(experiment, results, data, only or (), trust=trust)
    _tell_untrusted(session)
    return session


def _tell_untrusted(session: Session) -> None:
    if session.experiment.untrusted:
        typer.echo(f"Note: {not_loaded(session.experiment)}", err=True)


def _by_protocol(session: Session) -> list[list[Record]]:
    """The final records, apart by protocol."""
    return list(by_protocol(_final(session)).values())


def _final(session: Session) -> list[Record]:
    """The final records, among which there must be one that is done."""
    records = session.final_records()
    if not any(record.status == "done" for record in records):
        name, folder = session.experiment.name, session.store.folder
        msg = (
            f"no run of the experiment {name!r} is done in {folder}; do it with viewmend bench run"
        )
        if session.absent:
            msg += f". {_absent(session)}"
        raise InvalidParameterError(msg)
    return records


def _absent(session: Session) -> str:
    """Which data is not there, and how to have it."""
    names, there = list(session.absent), ", ".join(map(repr, EMBEDDED))
    return (
        f"Data sets that are absent in {session.folders.data_dir}: {', '.join(names)}. They do "
        f"not come with viewmend: put their files there (viewmend bench status tells the names), "
        f"or name their folder with --data DIR or {DATA_VARIABLE}. Always there: {there}"
    )


def _look(metric: str, paper: Path | None, subject: str) -> Look:
    return Look(metric, subject, None if paper is None else read_paper_tables(paper))


@contextmanager
def _short_errors() -> Iterator[None]:
    """Mistakes of the user in one paragraph with exit code 2, a lost process with exit code 1."""
    try:
        yield
    except (
        InvalidExperimentError,
        InvalidParameterError,
        InvalidRecordError,
        ImportError,
    ) as error:
        raise typer.BadParameter(printable(error)) from error
    except WorkerLostError as error:
        typer.echo(printable(f"Error: {error}"), err=True)
        raise typer.Exit(1) from error
