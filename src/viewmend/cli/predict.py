"""``viewmend predict``: the classes of samples by a model from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from viewmend.cli import options
from viewmend.cli.answers import answer, prediction_table, read_for, write_sample_table
from viewmend.cli.console import check_table, refusals, say, short_warnings, write_json
from viewmend.persistence import load


def predict(
    model: options.ModelFile,
    data: options.Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", dir_okay=False, help="Write the classes to this CSV file."),
    ],
    threshold: Annotated[
        float,
        typer.Option(min=0, max=1, help="Leave the class empty if confidence is below this."),
    ] = 0.0,
    id_column: options.IdColumn = None,
    view: options.Views = None,
    unreadable_as_missing: options.UnreadableAsMissing = False,
    as_json: options.AsJson = False,
) -> None:
    """Predict the class of new samples, which may have any of the views.

    The file has the columns: identifier, class, confidence, and the probability of every class.
    Samples of the fit keep the classes that the fit found.

    `viewmend predict model.vm new_data/ -o classes.csv --threshold 0.8`
    """
    console = Console(stderr=True)
    with refusals(), short_warnings(console) as notes:
        check_table(output, "--output", data)
        known = load(model)
        request = options.request_for(
            id_column, views=view, unreadable_as_missing=unreadable_as_missing
        )
        aligned = read_for(known, data, request)
        answers = answer(known, aligned)
        origin = known.fitted_state_.origin
        id_heading = None if origin is None else origin.id_column
        unsure = answers.frame["confidence"].to_numpy() < threshold
        # A label that was given is certain, however unlikely the model finds it.
        withheld = unsure & ~(answers.given & (answers.fit_rows >= 0))
        table = prediction_table(answers.frame, id_column or id_heading, withheld)
        write_sample_table(table, output)
    summary = {
        "n_samples": len(table),
        "n_of_fit": int((answers.fit_rows >= 0).sum()),
        "n_abstained": int(withheld.sum()),
        "mean_confidence": float(table["confidence"].mean()),
        "files": {"predictions": str(output)},
        "notes": notes,
    }
    if as_json:
        write_json(summary)
        return
    say(
        Console(),
        f"{summary['n_samples']} samples, {summary['n_of_fit']} of them of the fit; "
        f"{summary['n_abstained']} without class; mean confidence "
        f"{summary['mean_confidence']:.3f}",
        f"predictions: {output}",
    )
