"""Inspection of tables from files, by the same path that a fit takes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from viewmend.data.io.loading import ViewTables
from viewmend.data.labels import read_labels
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError, TooLargeError
from viewmend.inspection import Finding, Inspection, inspect_data
from viewmend.inspection.frames import of_fault
from viewmend.inspection.measures import telling_columns
from viewmend.inspection.rules import most_severe_first, telling

if TYPE_CHECKING:
    import pandas as pd


def inspect_tables(source: ViewTables) -> Inspection:
    """Measure tables as they were read, and list what may spoil a fit.

    An error is what ``source.aligned`` or the labels refuse, and so would a fit; what is mended on
    the way, as single empty cells are, is a warning.
    """
    views, y, ids = source.unmended()
    found = inspect_data(views, y, ids=ids)
    refusal = _refusal(replace(source, faults=()))
    findings = [*map(of_fault, source.faults)]
    for finding in found.findings:
        mended = refusal is None and finding.subject != "labels" and finding.severity == "error"
        findings.append(replace(finding, severity="warning") if mended else finding)
    findings = _with_refusal(findings, refusal)
    findings += _telling_categories(source, views, y)
    return replace(found, findings=most_severe_first(findings))


def _telling_categories(
    source: ViewTables, views: Mapping[str, pd.DataFrame], y: np.ndarray | None
) -> Iterator[Finding]:
    """Columns of categories that stand for the classes; of three or more no single 0 and 1 does.

    ``views`` (n_samples, n_features_v) and ``y`` (n_samples,) are in the order of the samples.
    """
    try:
        codes = read_labels(y, len(next(iter(views.values())))).codes
    except InvalidLabelsError:
        return
    for view, learnt in source.categories.items():
        told = []
        for column, found in learnt.items():
            ones = views[view][found.names(column)].to_numpy()
            seen = ~np.isnan(ones[:, 0])
            places = ones[seen].argmax(axis=1)[:, None]
            if ones.shape[1] > 2 and telling_columns(places, codes[seen]):
                told.append(column)
        if told:
            yield telling(view, told)


def _with_refusal(findings: list[Finding], refusal: Exception | None) -> list[Finding]:
    """The findings, with what a fit would say to the tables where they do not say it."""
    if isinstance(refusal, InvalidLabelsError):
        # Labels that match no sample look as if there were none.
        findings = [f for f in findings if (f.subject, f.severity) != ("labels", "error")]
    if refusal is None or any(finding.severity == "error" for finding in findings):
        return findings
    message, _, remedy = str(refusal).partition("; ")
    subject = "labels" if isinstance(refusal, InvalidLabelsError) else "data"
    return [*findings, Finding("error", subject, message, remedy)]


def _refusal(source: ViewTables) -> Exception | None:
    """What a fit would say to the tables, apart from faults; None if it joins them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        try:
            source.aligned()
        except (InvalidViewsError, InvalidLabelsError, TooLargeError) as error:
            return error
    return None
