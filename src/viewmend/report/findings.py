"""What about the fit and its data may hurt the result, one rule per function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape

import numpy as np

from viewmend.data.input_arrays import some_of
from viewmend.inspection import Finding
from viewmend.inspection.rules import most_severe_first
from viewmend.report.context import THRESHOLD, Case
from viewmend.report.html import folded, joined, paragraph, tag

# Share of all weights below which a model does not rely on a view.
WEIGHTLESS = 0.01
# How a fit ends that was not cut short.
WHOLE = ("done", "converged")


def findings_html(case: Case) -> str:
    """Errors and warnings as a list, and remarks of less weight folded below."""
    found = all_findings(case)
    grave = [finding for finding in found if finding.severity != "info"]
    light = [finding for finding in found if finding.severity == "info"]
    if not found:
        known = "the data and the fit" if case.inspection is not None else "the fit"
        return paragraph(f"No check of {known} found anything that may hurt the result.")
    return joined(
        _listed(grave) or paragraph("No check found anything that is likely to hurt the result."),
        folded(f"Minor remarks ({len(light)})", _listed(light), False) if light else "",
    )


def all_findings(case: Case) -> tuple[Finding, ...]:
    """What was found in the data and in the fit, the most severe first."""
    of_data = () if case.inspection is None else case.inspection.findings
    of_fit = [finding for rule in RULES for finding in rule(case)]
    return most_severe_first([*of_fit, *of_data])


def _listed(findings: list[Finding]) -> str:
    if not findings:
        return ""
    items = [
        tag(
            "li",
            tag("b", escape(one.subject))
            + tag("span", escape(f"{_sentence(one.message)}"))
            + tag("span", escape(f"{_sentence(one.remedy)}"), class_="remedy"),
            class_=one.severity,
        )
        for one in findings
    ]
    return tag("ul", "".join(items), class_="findings")


def _sentence(text: str) -> str:
    """A message as a sentence; names keep their letters."""
    return f"{text[:1].upper()}{text[1:]}."


def _no_better_than_guessing(case: Case) -> Iterator[Finding]:
    estimate = case.estimate
    if estimate is None or estimate.beats_guessing:
        return
    guess = max(estimate.majority, estimate.chance)
    found = f"{estimate.n_right} of {estimate.n_held_out} held-out labels were predicted correctly"
    message = f"{found}, which is not shown to be better than guessing ({guess:.0%})"
    remedy = "label more samples, check the labels, or add views that say more about the classes"
    yield Finding("warning", "result", message, remedy)


def _cut_short(case: Case) -> Iterator[Finding]:
    status = getattr(case.model, "status_", WHOLE[0])
    if status not in WHOLE:
        message = f"the fit ended before it was done ({status})"
        yield Finding("warning", "fit", message, "fit again with more rounds or more time")


def _weightless_views(case: Case) -> Iterator[Finding]:
    """Views that the model does not rely on, above all where samples have no other."""
    weights = getattr(case.model, "view_weights_", None)
    if weights is None or case.observed is None or len(weights) < 2:
        return
    shares = np.asarray(weights, dtype=float) / np.sum(weights)
    alone = case.unlabelled & (case.observed.sum(axis=1) == 1)
    for v in np.flatnonzero(shares < WEIGHTLESS).tolist():
        name, rows = str(case.model.view_names_[v]), np.flatnonzero(alone & case.observed[:, v])
        if len(rows):
            message = (
                f"the model does not rely on this view (weight {shares[v]:.3f}), but it is the "
                f"only view of {len(rows)} unlabelled samples ({some_of(case.ids[rows])}): their "
                "classes are hardly more than guesses"
            )
            remedy = "measure another view of these samples, or do not use their classes"
            yield Finding("warning", name, message, remedy)
        else:
            message = f"the model does not rely on this view (weight {shares[v]:.3f})"
            yield Finding("info", name, message, "leave it out if it is expensive to measure")


def _absent_classes(case: Case) -> Iterator[Finding]:
    n_known = len(case.model.classes_)
    counts = np.bincount(case.told[case.unlabelled], minlength=n_known)[:n_known]
    if case.given is None or not case.unlabelled.any() or counts.all():
        return
    absent = some_of(case.classes[:n_known][counts == 0])
    message = f"no unlabelled sample is predicted to be of class {absent}"
    remedy = "label more samples of it if there should be some"
    yield Finding("warning", "classes", message, remedy)


def _mostly_unsure(case: Case) -> Iterator[Finding]:
    if case.calibration is None or not case.unlabelled.any():
        return
    unsure = case.confidence[case.unlabelled] < THRESHOLD
    if unsure.mean() > 0.5:
        message = (
            f"{unsure.sum():,} of the {len(unsure):,} unlabelled samples have a confidence below "
            f"{THRESHOLD:.0%}"
        )
        remedy = "withhold these classes with decide(), and label what is suggested below"
        yield Finding("warning", "result", message, remedy)


RULES: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    _no_better_than_guessing,
    _cut_short,
    _weightless_views,
    _absent_classes,
    _mostly_unsure,
)
