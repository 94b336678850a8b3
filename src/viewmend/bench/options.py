"""Options that commands of the benchmark share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from viewmend.bench.summaries import METRICS

ExperimentFile = Annotated[Path, typer.Argument(help="TOML file, as in benchmarks/paper.")]
ExperimentFiles = Annotated[
    Path, typer.Argument(help="TOML file, or a folder of them, such as benchmarks/paper.")
]
Results = Annotated[Path, typer.Option(help="Folder of the records.")]
Data = Annotated[Path, typer.Option(envvar="VIEWMEND_DATA", help="Folder of the data sets.")]
Only = Annotated[
    list[str] | None,
    typer.Option(help="Protocol, data set or method to keep; may be given several times."),
]
Repetitions = Annotated[
    int | None, typer.Option(min=1, help="Runs per cell, instead of the experiment's.")
]
FirstRepetition = Annotated[
    int | None,
    typer.Option(min=0, help="Number of the first run of a cell, instead of the experiment's."),
]
Jobs = Annotated[int, typer.Option(help="Processes of one thread each; -1 for every core.")]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler to run on.")]
Paper = Annotated[
    Path | None, typer.Option(help="Folder with the paper's printed tables as CSV files.")
]
Metric = Annotated[str, typer.Option(help=f"One of {', '.join(METRICS)}.")]
Subject = Annotated[str, typer.Option(help="Method that the others are compared with.")]
TimeLimit = Annotated[float, typer.Option(min=0, help="Seconds after which no run is started.")]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust", help="Allow code that the file names and that is not part of viewmend."
    ),
]
Kind = Annotated[str | None, typer.Option(help="Which kind; by default all that suit the records.")]
