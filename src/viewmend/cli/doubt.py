"""``viewmend doubt``: given labels that the rest of the data contradicts."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from viewmend.cli import options
from viewmend.cli.advisor import (
    DataOfFit,
    Table,
    check_output,
    load_advisor,
    names_of_fit,
    records,
    show_advice,
    write_advice,
)
from viewmend.cli.console import refusals, short_warnings, write_json


def doubt(
    model: options.ModelFile,
    data: DataOfFit = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Largest number of suspects to show.")] = 10,
    output: Table = None,
    id_column: options.IdColumn = None,
    unreadable_as_missing: options.UnreadableAsMissing = False,
    as_json: options.AsJson = False,
) -> None:
    """Show the given labels that the rest of the data contradicts, most suspect first.

    The score is the probability of all other classes together, by the neighbours of the sample and
    by regressions that leave it out. The file of --output has every given label.

    `viewmend doubt model.vm -o suspects.csv`
    """
    with refusals(), short_warnings(Console(stderr=True)) as notes:
        check_output(output, model, data)
        known = load_advisor(model)
        request = options.request_for(id_column, unreadable_as_missing=unreadable_as_missing)
        names = names_of_fit(known, model, data, request)
        found = known.suspect_labels()
        columns = {"given": found.given, "suggested": found.suggested, "score": found.scores}
        table = names.table(found.samples, columns)
        files = write_advice(table, output)
    # A high score alone may mean that the sample is like those of several classes.
    contradicted = found.suggested != found.given
    rows = records(table[contradicted])
    if as_json:
        summary = {
            "n_labels": len(table),
            "n_suspects": found.n_suspects,
            "noise_rate": float(found.noise_rate),
            "suspects": rows[:n],
        }
        write_json(summary | {"files": files, "notes": notes})
        return
    line = (
        f"estimated number of wrong labels: {found.n_suspects} of {len(table)} "
        f"({found.noise_rate:.1%}); the rest of the data contradicts {len(rows)}"
    )
    show_advice(rows, n, [line], files)
