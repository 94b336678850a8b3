"""``viewmend inspect``: a summary of the data, and problems that may harm a fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from viewmend.cli import options
from viewmend.cli.console import json_label, refusals, short_warnings, show_table, write_json
from viewmend.cli.wording import for_command_line
from viewmend.data import read_view_tables
from viewmend.inspection import Finding, Inspection
from viewmend.inspection.tables import inspect_tables
from viewmend.text import printable

# Of the sets of views that occur together, the most frequent are shown.
MOST_PATTERNS = 10
STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def inspect(
    data: options.Data,
    labels: options.Labels = None,
    id_column: options.IdColumn = None,
    unlabelled: options.Unlabelled = None,
    view: options.Views = None,
    leave_out: options.LeaveOut = None,
    unreadable_as_missing: options.UnreadableAsMissing = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 1 if some finding is an error.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show which samples have which views and labels, and problems that may harm a fit.

    It finds missing cells, rows of zeros, copies, classes with one label, rows sorted by class and
    more, each with a remedy. It changes nothing.

    `viewmend inspect data/ --labels stage`
    """
    with refusals(), short_warnings(Console(stderr=True)) as notes:
        request = options.request_for(
            id_column, labels, unlabelled, view, leave_out, unreadable_as_missing
        )
        source = read_view_tables(data, request)
        found = inspect_tables(source)
    if as_json:
        write_json(_summary(found) | {"id_column": source.id_column, "notes": notes})
    else:
        _show(Console(), _summary(found))
    if strict and any(finding.severity == "error" for finding in found.findings):
        raise typer.Exit(1)


def _summary(found: Inspection) -> dict[str, Any]:
    """The inspection in numbers and words."""
    return {
        "n_samples": found.n_samples,
        "n_labelled": found.n_labelled,
        "views": [
            {
                "name": view.name,
                "n_columns": view.n_columns,
                "n_samples": view.n_observed,
                "coverage": view.coverage,
                "n_labelled": view.n_labelled,
            }
            for view in found.views
        ],
        "samples_by_views": list(found.samples_by_views),
        "patterns": [asdict(pattern) for pattern in found.patterns],
        "classes": [
            {"label": json_label(label), "n_labelled": count}
            for label, count in found.class_counts.items()
        ],
        "findings": [_finding(finding) for finding in found.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    """As the command line says it."""
    words = {"message": finding.message, "remedy": finding.remedy}
    return asdict(finding) | {key: for_command_line(text) for key, text in words.items()}


def _show(console: Console, summary: Mapping[str, Any]) -> None:
    total, labelled = summary["n_samples"], summary["n_labelled"]
    title = f"{total} samples, {labelled} labelled ({labelled / total:.1%})"
    console.print(title, highlight=False)
    show_table(console, summary["views"])
    patterns = summary["patterns"][:MOST_PATTERNS]
    shown = [
        {"n_samples": entry["n_samples"], "views": ", ".join(entry["views"]) or "none"}
        for entry in patterns
    ]
    show_table(console, shown)
    if len(patterns) < len(summary["patterns"]):
        console.print(f"... and {len(summary['patterns']) - MOST_PATTERNS} more sets of views")
    if summary["classes"]:
        show_table(console, summary["classes"])
    console.print()
    for finding in summary["findings"]:
        head = Text(f"{finding['severity']}: ", style=STYLES[finding["severity"]])
        console.print(head + Text(printable(f"{finding['subject']}: {finding['message']}")))
        remedy = Text(printable(finding["remedy"]), style="dim")
        console.print(Padding(remedy, (0, 0, 0, 2)))
    if not summary["findings"]:
        console.print("No problems found.")
