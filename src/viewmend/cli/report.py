"""``viewmend report``: a page about a model and the data it was fitted on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

from viewmend.cli import options
from viewmend.cli.answers import origin_for, read_for
from viewmend.cli.console import check_writable, refusals, say, short_warnings
from viewmend.data import MultiViewData
from viewmend.data.origin import Origin, fingerprints
from viewmend.exceptions import InvalidViewsError
from viewmend.persistence import load
from viewmend.report import write_report


def report(
    model: options.ModelFile,
    data: options.Data,
    output: Annotated[Path, typer.Option("--output", "-o", dir_okay=False, help="HTML file.")],
    labels: options.Labels = None,
    id_column: options.IdColumn = None,
    unlabelled: options.Unlabelled = None,
) -> None:
    """Write a page about a model: one file that needs nothing but a browser.

    DATA is what the model was fitted on. Labels that it was not given, as in a file of true
    classes, add a section of scores.

    `viewmend report model.vm data/ -o report.html --labels truth.csv`
    """
    with refusals(), short_warnings(Console(stderr=True)):
        check_writable(output, "--output")
        known = load(model)
        aligned = read_for(known, data, options.request_for(id_column, labels, unlabelled))
        origin = origin_for(known, model)
        rows = _rows_of_fit(origin, aligned)
        labelled = known.fitted_state_.label_codes >= 0
        given = np.where(labelled, known.transduction_.astype(object), None)
        truth = None if labels is None or aligned.y is None else aligned.y[rows]
        views = aligned[rows]
        write_report(known, output, views, given, y_true=truth, ids=views.ids)
    say(Console(), f"report: {output}")


def _rows_of_fit(origin: Origin, aligned: MultiViewData) -> np.ndarray:
    """Rows of the data that hold the samples of the fit, in its order."""
    place = {name: row for row, name in enumerate(aligned.sample_ids.astype(str))}
    rows = np.array([place.get(name, -1) for name in origin.ids.tolist()])
    changed = (rows < 0) | (fingerprints(aligned)[rows] != origin.samples)
    if changed.any():
        msg = (
            f"the data must be what the model was fitted on, but {changed.sum()} of its "
            f"{len(rows)} samples, such as {str(origin.ids[changed.argmax()])!r}, are not there or "
            "have changed; pass that data, or fit again"
        )
        raise InvalidViewsError(msg)
    return rows
