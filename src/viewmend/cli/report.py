"""``viewmend report``: a page about a model and the data it was fitted on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from viewmend.cli import options
from viewmend.cli.answers import origin_for, read_for, rows_of_fit
from viewmend.cli.console import check_files, check_writable, refusals, say, short_warnings
from viewmend.persistence import load
from viewmend.report import report_html
from viewmend.report.context import Provenance, make_case
from viewmend.report.html import write_page


def report(
    model: options.FitFile,
    data: options.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", dir_okay=False, help="HTML file to write.")
    ],
    labels: options.Labels = None,
    id_column: options.IdColumn = None,
    unlabelled: options.Unlabelled = None,
    unreadable_as_missing: options.UnreadableAsMissing = False,
) -> None:
    """Write a report on a model: one HTML file that opens in any browser.

    DATA is the data that the model was fitted on. Pass labels that the model was not given, such as
    a file of true classes, to add a section of scores.

    `viewmend report model.vm data/ -o report.html --labels truth.csv`
    """
    with refusals(), short_warnings(Console(stderr=True)):
        request = options.request_for(
            id_column, labels, unlabelled, unreadable_as_missing=unreadable_as_missing
        )
        check_writable(output, "--output")
        check_files({"--output": output}, data, [model, *options.files_of(request)])
        known = load(model)
        aligned = read_for(known, data, request)
        origin = origin_for(known, model)
        rows = rows_of_fit(origin, aligned)
        truth = None if labels is None or aligned.y is None else aligned.y[rows]
        views, about = aligned[rows], Provenance(data.name)
        case = make_case(known, views, y_true=truth, ids=views.ids, provenance=about)
        write_page(output, report_html(case))
    say(Console(), f"report: {output}")
