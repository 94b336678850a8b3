"""``viewmend fit``: from files to a model, predictions and a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from viewmend.baselines.registry import Method
from viewmend.cli import options
from viewmend.cli.answers import prediction_table, write_sample_table
from viewmend.cli.building import (
    build_model,
    can_be_saved,
    find_method,
    telling_interrupts,
    watch,
)
from viewmend.cli.console import (
    check_files,
    check_table,
    check_writable,
    json_label,
    refusals,
    say,
    short_warnings,
    show_table,
    write_json,
)
from viewmend.core.common.accuracy import AccuracyEstimate
from viewmend.data import MultiViewData, Request, ViewTables, read_view_tables, result_frame
from viewmend.data.origin import origin_of
from viewmend.distributed.session import fitting_on
from viewmend.exceptions import InvalidLabelsError
from viewmend.inspection import inspect_data
from viewmend.models.base import TwoStepClassifier
from viewmend.persistence import save
from viewmend.report import report_html
from viewmend.report.context import Provenance, make_case
from viewmend.report.html import write_page


def fit(
    data: options.Data,
    labels: options.Labels = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            dir_okay=False,
            help="Save the model to this file, which other commands read.",
        ),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(dir_okay=False, help="Write the class of every sample to this CSV file."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, help="Write a report on the model and the data to this HTML file."
        ),
    ] = None,
    groups: options.Groups = None,
    id_column: options.IdColumn = None,
    unlabelled: options.Unlabelled = None,
    view: options.Views = None,
    leave_out: options.LeaveOut = None,
    unreadable_as_missing: options.UnreadableAsMissing = False,
    method: Annotated[
        str, typer.Option(help="Name of a method from the list of `viewmend methods`.")
    ] = "Mend",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PARAM=VALUE",
            help="Parameter of the method, as in n_rounds=4; may be repeated.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of methods that use random numbers.")] = 0,
    time_limit: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="Stop after the round that exceeds this time."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, help="Save every round in this file, and resume from it if it exists."
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Fit on the workers of this Dask scheduler; the word local starts workers on this "
            "machine.",
            show_default=False,
        ),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE", help="Memory limit of each worker of --dask local, as in 2GiB."
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Fit a model on labelled and unlabelled samples together, and find the class of every sample.

    Samples may lack some of the views, and most may have no label. Categories become columns of 0
    and 1, and missing cells are filled from the other cells of their rows; notes report this.

    `viewmend fit data/ --labels stage -o model.vm --predictions classes.csv`
    """
    console = Console(stderr=True)
    files = {"model": output, "predictions": predictions, "report": report}
    with refusals(), short_warnings(console) as notes:
        chosen = find_method(method)
        request = options.request_for(
            id_column, labels, unlabelled, view, leave_out, unreadable_as_missing, groups
        )
        _check_outputs(files, checkpoint, chosen, data, request)
        model = build_model(chosen, settings or (), seed)
        _check_groups(groups, model, chosen)
        bar, written = watch(model, console, time_limit, checkpoint), list[Path]()
        with telling_interrupts(bar, checkpoint, written):
            with fitting_on(dask, memory_limit) as fit_model:
                fitted = _fit(model, read_view_tables(data, request), fit_model)
            fitted = replace(fitted, provenance=Provenance(data.name, tuple(notes)))
            for kind, path in files.items():
                if path is not None:
                    WRITERS[kind](fitted, path)
                    written.append(path)
    summary = _summary(fitted, chosen.name)
    summary |= {"files": {kind: str(path) for kind, path in files.items() if path}, "notes": notes}
    if as_json:
        write_json(summary)
    else:
        _show(Console(), summary)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model, its data, how long the fit took, and what was said on the way."""

    model: Any
    source: ViewTables
    aligned: MultiViewData
    labels: np.ndarray
    seconds: float
    provenance: Provenance = field(default_factory=Provenance)

    @property
    def labelled(self) -> np.ndarray:
        """Samples whose labels the model was given, (n_samples,) of bool."""
        return np.array([label is not None for label in self.labels])


def _check_outputs(
    files: Mapping[str, Path | None],
    checkpoint: Path | None,
    method: Method,
    data: Path,
    request: Request,
) -> None:
    """Refuse what could not be written, is read, or would be read as a view the next time."""
    if not any(files.values()):
        msg = "nothing would be kept; pass --output, --predictions or --report"
        raise typer.BadParameter(msg)
    outputs = {OPTIONS[kind]: path for kind, path in files.items()}
    check_files(outputs | {"--checkpoint": checkpoint}, data, options.files_of(request))
    if files["predictions"] is not None:
        check_table(files["predictions"], OPTIONS["predictions"], data)
    if files["report"] is not None:
        check_writable(files["report"], OPTIONS["report"])
    if files["model"] is None:
        return
    check_writable(files["model"], OPTIONS["model"])
    if not can_be_saved(method):
        msg = (
            f"a model of {method.name} cannot be saved; leave --output out and pass --predictions, "
            "or choose Mend or AGF-TI"
        )
        raise typer.BadParameter(msg, param_hint=OPTIONS["model"])


def _fit(model: Any, source: ViewTables, fit_model: Callable[..., Any]) -> Fitted:
    aligned = source.aligned()
    if aligned.y is None:
        msg = "the data holds no labels; name their column, or a file of labels, with --labels"
        raise InvalidLabelsError(msg)
    begin = time.perf_counter()
    fit_model(model, aligned, aligned.y, source.groups_of(aligned.sample_ids))
    return Fitted(model, source, aligned, aligned.y, time.perf_counter() - begin)


def _check_groups(groups: str | None, model: Any, method: Method) -> None:
    """Refuse groups of which a method would not know what to do with them."""
    if groups is not None and not isinstance(model, TwoStepClassifier):
        msg = f"{method.name} does not hold labels out; leave --groups out, or choose Mend"
        raise typer.BadParameter(msg, param_hint="--groups")


def _write_model(fitted: Fitted, path: Path) -> None:
    origin = origin_of(fitted.source, fitted.aligned)
    fitted.model.fitted_state_ = replace(fitted.model.fitted_state_, origin=origin)
    save(fitted.model, path)


def _write_predictions(fitted: Fitted, path: Path) -> None:
    frame = result_frame(fitted.model, fitted.aligned.sample_ids)
    table = prediction_table(frame, fitted.source.id_column)
    table.insert(1, "labelled", fitted.labelled.astype(int))
    write_sample_table(table, path)


def _write_report(fitted: Fitted, path: Path) -> None:
    aligned, about = fitted.aligned, fitted.provenance
    case = make_case(fitted.model, aligned, fitted.labels, ids=aligned.ids, provenance=about)
    write_page(path, report_html(case))


NOT_ESTIMATED = (
    "accuracy not estimated: this needs Mend with its calibration, and a class with two labels, in "
    "different groups if there are groups"
)

# By what files are called in the output: the options that name them, and what writes them.
OPTIONS = {"model": "--output", "predictions": "--predictions", "report": "--report"}
WRITERS: Mapping[str, Callable[[Fitted, Path], None]] = {
    "model": _write_model,
    "predictions": _write_predictions,
    "report": _write_report,
}


def _summary(fitted: Fitted, method: str) -> dict[str, Any]:
    """The fit in numbers and words."""
    model, data = fitted.model, fitted.aligned
    weights = np.asarray(getattr(model, "view_weights_", [None] * data.n_views)).tolist()
    counts = data.observed.sum(axis=0)
    # What about the data as it was fitted may spoil the result.
    findings = inspect_data(data, fitted.labels).findings
    return {
        "method": method,
        "status": getattr(model, "status_", "done"),
        "n_iter": getattr(model, "n_iter_", None),
        "seconds": round(fitted.seconds, 3),
        "n_samples": data.n_samples,
        "n_labelled": int(fitted.labelled.sum()),
        "id_column": fitted.source.id_column,
        "views": [
            {"name": name, "n_columns": columns, "n_samples": int(count), "weight": weight}
            for name, columns, count, weight in zip(
                data.names, data.n_features, counts, weights, strict=True
            )
        ],
        "classes": [_class_summary(fitted, c) for c in range(len(model.classes_))],
        "estimated_accuracy": _estimate(getattr(model, "estimated_accuracy_", None)),
        "n_findings": sum(finding.severity != "info" for finding in findings),
    }


def _estimate(estimate: AccuracyEstimate | None) -> dict[str, Any] | None:
    """The accuracy estimated from held-out labels."""
    if estimate is None:
        return None
    low, high = estimate.interval
    return {
        "accuracy": estimate.accuracy,
        "low": low,
        "high": high,
        "n_held_out": estimate.n_held_out,
        "n_groups": estimate.n_groups,
        "chance": estimate.chance,
        "majority": estimate.majority,
        "beats_guessing": estimate.beats_guessing,
        "text": str(estimate),
    }


def _class_summary(fitted: Fitted, c: int) -> dict[str, Any]:
    """Samples of one class: given, found, and how sure the model is of those it found."""
    model = fitted.model
    told = (model.transduction_ == model.classes_[c]) & ~fitted.labelled
    given = (model.transduction_ == model.classes_[c]) & fitted.labelled
    sure = model.label_distributions_[told, c]
    return {
        "label": json_label(model.classes_[c]),
        "n_labelled": int(given.sum()),
        "n_predicted": int(told.sum()),
        "mean_confidence": float(sure.mean()) if len(sure) else None,
    }


def _show(console: Console, summary: Mapping[str, Any]) -> None:
    estimate = summary["estimated_accuracy"]
    joined = f"joined by {summary['id_column']}, " if summary["id_column"] else ""
    steps = f" after {summary['n_iter']} iterations" if summary["n_iter"] else ""
    say(
        console,
        f"{summary['n_samples']} samples, {joined}{summary['n_labelled']} labelled",
        f"{summary['method']}: {summary['status']}{steps}, {summary['seconds']:.1f} s",
        estimate["text"] if estimate else NOT_ESTIMATED,
        wrap=True,
    )
    show_table(console, summary["views"])
    show_table(console, summary["classes"])
    if summary["n_findings"]:
        count = f"{summary['n_findings']} warning(s) about the data"
        say(console, "", f"{count}; viewmend inspect lists them")
    say(console, "", *(f"{kind}: {path}" for kind, path in summary["files"].items()))
