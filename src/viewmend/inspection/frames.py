"""Frames with columns that are no numbers: what a fit says to them, column by column."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from viewmend.data.categories import read_columns
from viewmend.data.input_arrays import as_matrix, view_title
from viewmend.exceptions import DataWarning, InvalidViewsError
from viewmend.inspection.measures import Finding


def of_fault(fault: Any) -> Finding:
    """The finding that tells a `viewmend.data.categories.Fault`."""
    return Finding("error", fault.view, fault.message, fault.remedy)


def numeric_frames(views: Any) -> tuple[Any, list[Finding]]:
    """Views, pandas frames among them with their columns of numbers alone, and what is told of it.

    Everything else, and frames without any column of numbers, is returned as it is.
    """
    if _is_frame(views):
        return _numeric_frame(views, "view 0")
    if isinstance(views, Mapping):
        parts = {name: _numeric_frame(view, str(name)) for name, view in views.items()}
        findings = [finding for _, found in parts.values() for finding in found]
        return {name: view for name, (view, _) in parts.items()}, findings
    if isinstance(views, (list, tuple)) and any(map(_is_frame, views)):
        given = [_numeric_frame(view, f"view {v}") for v, view in enumerate(views)]
        return [view for view, _ in given], [finding for _, found in given for finding in found]
    return views, []


def _is_frame(view: Any) -> bool:
    return hasattr(view, "dtypes") and hasattr(view, "reindex") and hasattr(view, "columns")


def _numeric_frame(view: Any, name: str) -> tuple[Any, list[Finding]]:
    if not _is_frame(view) or all(dtype.kind in "biuf" for dtype in view.dtypes):
        return view, []
    try:
        as_matrix(view, view_title(name))
    except InvalidViewsError as error:
        refusal = error
    else:
        return view, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        read = read_columns(view, name)
    findings = [of_fault(fault) for fault in read.faults]
    numbers = [column for column in view if column in read.table]
    known = {*numbers, *(fault.column for fault in read.faults)}
    if text := [column for column in view if column not in known]:
        remedy = "join the frames with from_frames, which makes columns of 0 and 1 of categories"
        findings.append(Finding("error", name, f"column(s) {text} hold text", remedy))
    if not findings:
        message, _, remedy = str(refusal).partition("; ")
        findings = [Finding("error", name, message, remedy)]
    return (read.table[numbers], findings) if numbers else (view, [])
