"""The few numbers that say most, on top of the page."""

from __future__ import annotations

from html import escape

from viewmend.report.context import THRESHOLD, Case
from viewmend.report.html import tag


def headline(case: Case) -> str:
    """The result first, then the size of the data, as tiles."""
    tiles = (
        tag("li", tag("b", value) + tag("span", escape(what)))
        for value, what in [*_result(case), *_size(case)]
    )
    return tag("ul", "".join(tiles), class_="tiles")


def _result(case: Case) -> list[tuple[str, str]]:
    facts = []
    if case.judged.any():
        right = case.told[case.judged] == case.true
        facts.append((f"{right.mean():.1%}", f"accuracy on {len(right):,} judged samples"))
    if case.estimate is not None:
        low, high = case.estimate.interval
        told = f"estimated accuracy ({low:.0%} to {high:.0%})"
        facts.append((f"{case.estimate.accuracy:.0%}", told))
    if case.calibration is not None and case.unlabelled.any():
        sure = (~case.abstained)[case.unlabelled].mean()
        told = f"of unlabelled samples have a confidence of {THRESHOLD:.0%} or more"
        facts.append((f"{sure:.0%}", told))
    return facts


def _size(case: Case) -> list[tuple[str, str]]:
    facts = [(f"{case.n_samples:,}", "samples")]
    if case.given is not None:
        labelled = case.given.labelled
        facts.append((f"{labelled.sum():,}", f"of them labelled ({labelled.mean():.1%})"))
    facts.append((f"{len(case.model.classes_)}", "classes"))
    facts.append((f"{len(case.model.view_names_)}", "views"))
    if case.observed is not None:
        facts.append((f"{1 - case.observed.mean():.0%}", "of the samples' views are missing"))
    return facts
