"""``viewmend explain``: which columns a view is judged by, and why samples have their classes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from viewmend.cli import options
from viewmend.cli.advisor import Table, check_output, load_advisor, write_advice
from viewmend.cli.answers import read_for
from viewmend.cli.charts import write_chart
from viewmend.cli.console import (
    check_picture,
    json_label,
    refusals,
    say,
    short_warnings,
    show_table,
    write_json,
)
from viewmend.exceptions import InvalidParameterError
from viewmend.models.explanation import Explanation
from viewmend.models.view_explanation import ViewExplanation

# Numbers of rows as people write them; longer ones are no rows.
_ROW = re.compile("[0-9]{1,18}")

explain = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Show which columns of a view matter, and why samples have their classes.",
)


@explain.command("view")
def explain_view(
    model: options.ModelFile,
    view: Annotated[
        str, typer.Argument(help="Name of the view.", show_default=False, metavar="VIEW")
    ],
    label: Annotated[
        str | None,
        typer.Option(
            "--class", help="Rank the columns for this class.", show_default="all classes together"
        ),
    ] = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Largest number of columns to show.")] = 10,
    output: Table = None,
    chart: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="Picture of these columns, .png or another format.",
            show_default=False,
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show the columns of a view that its class scores come from, most important first.

    The importance of a column is the share of the variance of the scores that is lost if its
    values are swapped between samples. The file of --output has every column and class.

    `viewmend explain view model.vm rna --class tumour -o columns.csv`
    """
    with refusals(), short_warnings(Console(stderr=True)) as notes:
        check_output(output, model)
        if chart is not None:
            check_picture(chart, "--chart")
        known = load_advisor(model)
        found = known.explain_view(view)
        chosen = None if label is None else _class_called(found, label)
        files = write_advice(_columns_table(found), output) | _drawn(found, chosen, n, chart)
        rows = _shown(found, chosen, n)
    told = {
        "view": found.view,
        "n_columns": len(found.columns),
        "class": None if label is None else json_label(chosen),
    }
    if as_json:
        write_json(told | {"columns": rows, "files": files, "notes": notes})
        return
    show_table(Console(), rows)
    whose = "all classes" if chosen is None else f"class {chosen}"
    words = (
        f"{len(rows)} of {len(found.columns)} columns of {found.view}: share of the scores of "
        f"{whose} that is lost if the values of {found.n_samples} samples are swapped"
    )
    say(Console(), "", words, *(f"{kind}: {path}" for kind, path in files.items()))


@explain.command("samples")
def explain_samples(
    model: options.ModelFile,
    samples: Annotated[
        list[str],
        typer.Argument(help="Identifiers of samples.", show_default=False, metavar="SAMPLE"),
    ],
    new: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA",
            help="Data with the samples, if the model was not fitted on them.",
            show_default=False,
        ),
    ] = None,
    id_column: options.IdColumn = None,
    unreadable_as_missing: options.UnreadableAsMissing = False,
    as_json: options.AsJson = False,
) -> None:
    """Show why samples have their classes: the labels behind them, their views, and what each adds.

    Samples are those of the fit, or with --new those of other data, as predict would see them.

    `viewmend explain samples model.vm P017 P020`
    """
    with refusals(), short_warnings(Console(stderr=True)) as notes:
        known = load_advisor(model)
        if new is None:
            found = known.explain(_of_fit(known, samples))
        else:
            request = options.request_for(id_column, unreadable_as_missing=unreadable_as_missing)
            aligned = read_for(known, new, request)
            found = known.explain_new(aligned[_rows_called(aligned.sample_ids, samples, new)])
    if as_json:
        write_json({"samples": _records(found), "notes": notes})
        return
    say(Console(), *found.lines())


def _of_fit(model: Any, samples: list[str]) -> list[str] | list[int]:
    """Identifiers, or rows where the model knows no identifiers and these are numbers."""
    if hasattr(model, "sample_ids_") or not all(map(_ROW.fullmatch, samples)):
        return samples
    return [int(name) for name in samples]


def _rows_called(ids: np.ndarray, samples: list[str], data: Path) -> np.ndarray:
    places = {str(name): row for row, name in enumerate(ids.tolist())}
    unknown = [name for name in samples if name not in places]
    if unknown:
        msg = (
            f"{data} has no sample {unknown[0]!r}; its identifiers are like "
            f"{str(ids[0])!r}, name these"
        )
        raise InvalidParameterError(msg)
    return np.array([places[name] for name in samples])


def _class_called(found: ViewExplanation, label: str) -> Any:
    """The class of this name, which may be a number."""
    named = {str(each): each for each in found.classes.tolist()}
    if label not in named:
        msg = f"--class must be one of {', '.join(named)}, got {label}; name one of these"
        raise InvalidParameterError(msg)
    return named[label]


def _shown(found: ViewExplanation, label: Any, n: int) -> list[dict[str, Any]]:
    """The first columns; of all classes, with the class that each tells most of."""
    rows: list[dict[str, Any]] = []
    for j in found.ranking(label)[:n]:
        best = int(np.argmax(found.by_class[j]))
        c = best if label is None else found.classes.tolist().index(label)
        worth = found.importances[j] if label is None else found.by_class[j, c]
        row = {"column": json_label(found.columns[j]), "importance": round(float(worth), 4)}
        row |= {"most_for": json_label(found.classes[c])} if label is None else {}
        rows.append(row | {"direction": round(float(found.directions[j, c]), 2)})
    return rows


def _columns_table(found: ViewExplanation) -> Any:
    import pandas as pd

    return pd.DataFrame(found.records()).set_index("column")


def _drawn(found: ViewExplanation, label: Any, n: int, chart: Path | None) -> dict[str, str]:
    if chart is None:
        return {}
    n_bars = min(n, len(found.columns))
    write_chart(chart, n_bars, lambda ax: found.plot(label, n, ax))
    return {"chart": str(chart)}


def _records(found: Explanation) -> list[dict[str, Any]]:
    return [
        {
            "sample": json_label(found.names[i]),
            "class": json_label(found.labels[i]),
            "rival": json_label(found.rivals[i]),
            "confidence": float(found.confidence[i]),
            "log_odds": dict(zip(found.reasons, found.log_odds[i].tolist(), strict=True)),
            "views": dict(zip(found.view_names, found.view_shares[i].tolist(), strict=True)),
            "borrowed": float(found.borrowed[i]),
            "supporters": [
                {
                    "sample": json_label(found.supporter_names[j]),
                    "class": json_label(found.supporter_labels[j]),
                    "share": float(found.support[i, j]),
                }
                for j in np.argsort(-found.support[i], kind="stable")[:3]
                if found.support[i, j] > 0
            ],
        }
        for i in range(len(found.samples))
    ]
