"""``viewmend suggest``: which samples to label, and which views to measure."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from viewmend.cli import options
from viewmend.cli.advisor import (
    DataOfFit,
    Names,
    Table,
    check_output,
    load_advisor,
    names_of_fit,
    records,
    show_advice,
    write_advice,
)
from viewmend.cli.console import refusals, short_warnings, write_json
from viewmend.cli.costs import LabelCosts, costs_by_view, label_costs
from viewmend.data import Request, read_view_tables
from viewmend.data.io.contents import READERS, place_of
from viewmend.exceptions import DataWarning, InvalidParameterError
from viewmend.models.mend import MendClassifier
from viewmend.models.suggestions import NO_LABELS, NO_VIEWS, LabelSuggestions

# Suggestions that are shown; the file has all.
MOST_SHOWN = 20
# Strategies that need no model.
COLD = ("auto", "coverage")

suggest = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Suggest what to do next: which samples to label, which views to measure.",
)

Source = Annotated[
    Path,
    typer.Argument(
        help="Model file, from `viewmend fit -o`; or DATA, before there is a model.",
        show_default=False,
        metavar="MODEL|DATA",
    ),
]


@suggest.command("labels")
def suggest_labels(
    source: Source,
    data: DataOfFit = None,
    n: Annotated[int, typer.Option("-n", min=1, help="How many samples.")] = 10,
    strategy: Annotated[
        str, typer.Option(help="auto, coverage, margin, entropy or change.")
    ] = "auto",
    costs: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of DATA with the cost of a label of each sample; or a file, as in "
            "costs.csv or costs.csv:minutes. Samples without a cost are not suggested.",
            show_default=False,
        ),
    ] = None,
    output: Table = None,
    labels: options.Labels = None,
    id_column: options.IdColumn = None,
    unlabelled: options.Unlabelled = None,
    view: options.Views = None,
    leave_out: options.LeaveOut = None,
    unreadable_as_missing: options.UnreadableAsMissing = False,
    as_json: options.AsJson = False,
) -> None:
    """Suggest samples whose labels would help most, as one batch, with a reason for each.

    Label these, fit again, and ask again. Before there is a model, pass the data alone: samples
    that are similar to many others come first. Options about labels and columns are for DATA.

    `viewmend suggest labels model.vm -n 10 -o next.csv`
    """
    with refusals(), short_warnings(Console(stderr=True)) as notes:
        request = options.request_for(
            id_column, labels, unlabelled, view, leave_out, unreadable_as_missing
        )
        check_output(output, source, data, place_of(costs)[0], *options.files_of(request))
        asked = _Asked(n, strategy, costs)
        ask = _first_labels if _is_data(source) else _labels_by_model
        names, found = ask(source, data, request, asked)
        columns = {"score": found.scores, "reason": np.array(found.reasons, dtype=object)}
        table = names.table(found.samples, columns)
        files = write_advice(table, output)
    rows = records(table)
    if as_json:
        told = {"strategy": found.strategy, "n_suggested": len(rows), "suggestions": rows}
        write_json(told | {"files": files, "notes": notes})
        return
    counted = f"{len(rows)} of {len(names.ids)} samples to label, best first, by {found.strategy}"
    show_advice(rows, MOST_SHOWN, [counted if rows else NO_LABELS], files)


@suggest.command("views")
def suggest_views(
    model: options.ModelFile,
    data: DataOfFit = None,
    n: Annotated[
        int | None,
        typer.Option(
            "-n", min=1, help="How many pairs of a sample and a view.", show_default="all"
        ),
    ] = None,
    cost: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VIEW=COST",
            help="Cost of measuring a view, 1 by default; may be repeated.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="Largest total cost of the measurements.", show_default="none"),
    ] = None,
    output: Table = None,
    id_column: options.IdColumn = None,
    unreadable_as_missing: options.UnreadableAsMissing = False,
    as_json: options.AsJson = False,
) -> None:
    """Suggest which missing views to measure, for which samples, with a reason for each.

    The gain is the expected increase of the probability that the class of the sample is right.
    Every sample is suggested once: measure one view, fit again, and ask again.

    `viewmend suggest views model.vm -n 40 --cost scan=3 -o measure.csv`
    """
    with refusals(), short_warnings(Console(stderr=True)) as notes:
        check_output(output, model, data)
        known = load_advisor(model)
        request = options.request_for(id_column, unreadable_as_missing=unreadable_as_missing)
        names = names_of_fit(known, model, data, request)
        found = known.suggest_views(n, costs_by_view(cost or ()), budget)
        columns = {"view": found.views.astype(object), "gain": found.gains, "cost": found.costs}
        columns |= {"reason": np.array(found.reasons, dtype=object)}
        table = names.table(found.samples, columns)
        files = write_advice(table, output)
    rows = records(table)
    if as_json:
        told = {"n_suggested": len(rows), "suggestions": rows}
        write_json(told | {"by_view": _worths(found), "files": files, "notes": notes})
        return
    lines = [str(worth) for worth in found.by_view] or [NO_VIEWS]
    show_advice(rows, MOST_SHOWN, lines, files)


@dataclass(frozen=True)
class _Asked:
    """How many samples, how they are chosen, and where the costs of their labels stand."""

    n: int
    strategy: str
    costs: str | None


def _is_data(source: Path) -> bool:
    return source.is_dir() or source.suffix.lower() in READERS


def _labels_by_model(
    source: Path, data: Path | None, request: Request, asked: _Asked
) -> tuple[Names, LabelSuggestions]:
    model = load_advisor(source)
    names = names_of_fit(model, source, data, request)
    origin = model.fitted_state_.origin
    # Costs stand beside the identifiers by which the fit joined its tables.
    id_column = request.id_column or (origin and origin.id_column)
    paid = _costs(asked, names, data, replace(request, id_column=id_column))
    return names, model.suggest_labels(asked.n, asked.strategy, paid.costs, paid.without)


def _first_labels(
    source: Path, data: Path | None, request: Request, asked: _Asked
) -> tuple[Names, LabelSuggestions]:
    """Samples to label before there is a model."""
    if data is not None:
        msg = f"{source} is data and no model, so that {data} is too much; pass one of them"
        raise InvalidParameterError(msg)
    if asked.strategy not in COLD:
        msg = (
            f"--strategy {asked.strategy} needs a model, but {source} is data; fit it first with "
            "viewmend fit -o, or leave --strategy out"
        )
        raise InvalidParameterError(msg)
    tables = read_view_tables(source, _without_costs(request, asked.costs))
    aligned = tables.aligned()
    names = Names(aligned.sample_ids, tables.id_column or "row")
    paid = _costs(asked, names, source, request)
    if tables.labels is not None and tables.labels.nunique() > 1:
        msg = (
            "the data has labels of several classes; suggestions that know them come from a "
            "model: fit one with viewmend fit -o, and pass it instead"
        )
        warnings.warn(msg, DataWarning, stacklevel=2)
    cold = MendClassifier()
    found = cold.suggest_first_labels(
        aligned, asked.n, aligned.y, costs=paid.costs, exclude=paid.without
    )
    return names, found


def _without_costs(request: Request, costs: str | None) -> Request:
    """A cost is no feature of a sample, and a file of costs no view."""
    file, column = place_of(costs)
    if file is not None:
        return replace(request, not_views=(*request.not_views, file))
    return request if column is None else replace(request, leave_out=(*request.leave_out, column))


def _costs(asked: _Asked, names: Names, data: Path | None, request: Request) -> LabelCosts:
    if asked.costs is None:
        return LabelCosts(None, None)
    return label_costs(asked.costs, names.ids, data, request.id_column)


def _worths(found: Any) -> list[dict[str, Any]]:
    return [
        {
            "view": worth.view,
            "n_pairs": worth.n_pairs,
            "gain": worth.gain,
            "cost": worth.cost,
            "n_labels": worth.n_labels,
        }
        for worth in found.by_view
    ]
