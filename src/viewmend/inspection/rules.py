"""What measurements of the data give cause to say, one rule per function."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from viewmend.data.class_names import DOUBTFUL_WORDS, how_alike, spelt_alike, written_like
from viewmend.data.input_arrays import some_of
from viewmend.data.magnitudes import LARGEST, SMALLEST
from viewmend.inspection.measures import Finding, Inspection, Order, Severity

SEVERITIES = ("error", "warning", "info")

# An order of the rows is told from chance by how sure it is, and by how strong it is: by the share
# of neighbours of one class, or by their cosine, above that of all pairs.
DEVIATIONS = 4.0
LABEL_EXCESS = 0.25
CONTENT_EXCESS = 0.1
# Labelled samples of a view below which nothing shows what it says about the classes.
FEW_LABELS = 3
# Ratio of typical values of two views from which on it is worth a word.
SCALE_RATIO = 1000.0
# Numbers that often stand for a value that is not known.
MISSING_NUMBERS = frozenset({-9, -99, -999, -9999, 99, 999, 9999})

SHUFFLE = (
    "shuffle the rows before any method that reads their order, such as "
    "AGFTIClassifier.from_paper(), which would learn the classes from it; MendClassifier does not"
)


def judge(measured: Inspection, refused: Sequence[Finding] = ()) -> tuple[Finding, ...]:
    """What all rules find, after ``refused``, the most severe first."""
    found = (finding for rule in RULES for finding in rule(measured))
    return most_severe_first([*refused, *found])


def most_severe_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Errors, then warnings, then the rest, each in the order in which they are given."""
    return tuple(sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity)))


def _unseen_samples(data: Inspection) -> Iterator[Finding]:
    if lost := len(data.unseen_samples):
        message = f"{lost} of {data.n_samples} samples have no view at all"
        names = some_of(data.ids[data.unseen_samples])
        remedy = "add what is known about them; until then they get the class shares of the labels"
        yield Finding("warning", "samples", f"{message} ({names})", remedy)


def _unseen_classes(data: Inspection) -> Iterator[Finding]:
    if data.unseen_classes:
        message = f"no labelled sample of class {some_of(data.unseen_classes)} has a view"
        remedy = "label another sample of the class, or take the class out of the labels"
        yield Finding("error", "labels", message, remedy)


def _unseen_views(data: Inspection) -> Iterator[Finding]:
    for view in data.views:
        if not view.n_observed:
            yield Finding("error", view.name, "no sample is observed", "leave the view out")


def _tiny_views(data: Inspection) -> Iterator[Finding]:
    for view in data.views:
        if view.n_observed and len(view.zero_rows) == view.n_observed:
            yield Finding("error", view.name, "it has nothing but zeros", "leave the view out")
        elif view.scale < SMALLEST:
            message = (
                f"its values are below {SMALLEST:.0e}, so that their squares are rounded to zero"
            )
            yield Finding("error", view.name, message, "multiply the view by a constant")


# Kinds of rows of a view: how severe they are, what they are like, and what to do about them.
ROWS: Mapping[str, tuple[Severity, str, str]] = {
    "incomplete_rows": (
        "info",
        "are empty in part",
        "a fit fills the empty cells from the others; missing_cells chooses how",
    ),
    "infinite_rows": (
        "error",
        f"hold values that are infinite or beyond {LARGEST:.0e}",
        "clip these values, or empty the rows, which makes the samples missing here",
    ),
    "zero_rows": (
        "info",
        "are all zero, which a fit treats as data",
        "set them to NaN if the samples are missing from the view",
    ),
    "conflicting_rows": (
        "warning",
        "equal a labelled row of another class",
        "correct the labels, or the rows if they were copied by mistake",
    ),
}


def _rows_of_a_kind(data: Inspection) -> Iterator[Finding]:
    for kind, (severity, what, remedy) in ROWS.items():
        for view in data.views:
            rows = getattr(view, kind)
            if len(rows):
                message = f"{len(rows)} row(s) {what} ({some_of(data.ids[rows])})"
                yield Finding(severity, view.name, message, remedy)


def _constant_columns(data: Inspection) -> Iterator[Finding]:
    for view in data.views:
        if n := view.n_constant_columns:
            message = f"{n} of {view.n_columns} columns have one value in all rows"
            if n == view.n_columns:
                yield Finding("warning", view.name, message, "leave the view out")
            else:
                yield Finding(
                    "info", view.name, message, "they carry no information; leave them out"
                )


def _duplicate_rows(data: Inspection) -> Iterator[Finding]:
    for view in data.views:
        if view.n_duplicate_rows:
            message = f"{view.n_duplicate_rows} of {view.n_observed} rows equal an earlier one"
            remedy = "check that no sample is there twice under different identifiers"
            yield Finding("info", view.name, message, remedy)


def _single_labels(data: Inspection) -> Iterator[Finding]:
    single = [label for label, count in data.class_counts.items() if count == 1]
    if single:
        message = (
            f"{len(single)} of {len(data.class_counts)} classes have one labelled sample "
            f"({some_of(single)})"
        )
        remedy = "label more of them: a single sample does not show what is typical of its class"
        yield Finding("warning", "labels", message, remedy)


def _doubtful_classes(data: Inspection) -> Iterator[Finding]:
    """Classes that may be marks for "no label"; those that are so for sure a fit refuses."""
    remedy = "replace them by None, or name them in --unlabelled, if they mean no label"
    kinds: tuple[tuple[Severity, list[Any]], ...] = (
        ("warning", written_like(data.class_counts, DOUBTFUL_WORDS)),
        ("info", _numbers_out_of_line(data.class_counts)),
    )
    for severity, classes in kinds:
        if classes:
            message = f"class(es) {some_of(classes)} may mean that there is no label"
            yield Finding(severity, "labels", message, remedy)


def _numbers_out_of_line(classes: Mapping[Any, int]) -> list[Any]:
    """Classes such as -9 and 999 that are at least twice as large as all others."""
    numbers = [label for label in classes if isinstance(label, int)]
    sizes = sorted(abs(label) for label in numbers)
    if len(sizes) < 2 or sizes[-1] < 2 * sizes[-2]:
        return []
    return [label for label in numbers if label in MISSING_NUMBERS and abs(label) == sizes[-1]]


def _classes_spelt_alike(data: Inspection) -> Iterator[Finding]:
    for alike in spelt_alike(data.class_counts):
        yield Finding(
            "warning", "labels", how_alike(alike), "spell them alike if they are one class"
        )


def _telling_columns(data: Inspection) -> Iterator[Finding]:
    for view in data.views:
        if view.telling_columns:
            yield telling(view.name, view.telling_columns)


def telling(view: str, columns: Sequence[Any]) -> Finding:
    """That these columns may have been made from the labels."""
    message = f"column(s) {some_of(columns)} have one value per class in all labelled rows"
    remedy = "leave them out if they were made from the labels, which they would reveal"
    return Finding("warning", view, message, remedy)


def _views_without_labels(data: Inspection) -> Iterator[Finding]:
    for view in data.views:
        if data.n_labelled and view.n_observed and not view.n_labelled:
            message = "no labelled sample has this view"
            remedy = "label some of its samples; until then a fit learns about it from other views"
            yield Finding("warning", view.name, message, remedy)


def _few_labels(data: Inspection) -> Iterator[Finding]:
    for view in data.views:
        if 0 < view.n_labelled < FEW_LABELS and len(data.views) > 1:
            message = f"{view.n_labelled} labelled sample(s) have this view"
            remedy = (
                "label more of its samples: so few do not show what the view says about the classes"
            )
            yield Finding("warning", view.name, message, remedy)


def _repeated_views(data: Inspection) -> Iterator[Finding]:
    for first, second in data.repeated_views:
        message = f"it has the same information about the samples as the view {first}"
        remedy = "leave one of them out, or this information counts twice"
        yield Finding("warning", second, message, remedy)


def _sorted_rows(data: Inspection) -> Iterator[Finding]:
    labels = data.label_order
    orders = [view.order for view in data.views if _stands_out(view.order, CONTENT_EXCESS)]
    if _stands_out(labels, LABEL_EXCESS):
        message = (
            f"labelled samples that follow each other share their class in {labels.observed:.0%} "
            f"of cases, {labels.expected:.0%} by chance: the rows are sorted by class"
        )
        yield Finding("warning", "rows", message, SHUFFLE)
    elif orders:
        strongest = max(orders, key=lambda order: order.excess)
        message = (
            f"neighbouring rows are alike in {len(orders)} of {len(data.views)} views (cosine "
            f"{strongest.observed:.2f}, {strongest.expected:.2f} by chance): the rows are in some "
            "order, of class or of time"
        )
        yield Finding("warning", "rows", message, SHUFFLE)


def _stands_out(order: Order | None, excess: float) -> TypeGuard[Order]:
    return order is not None and order.deviations >= DEVIATIONS and order.excess >= excess


def _different_scales(data: Inspection) -> Iterator[Finding]:
    views = sorted((view for view in data.views if view.scale > 0), key=lambda view: view.scale)
    if views and views[-1].scale > SCALE_RATIO * views[0].scale:
        ratio = views[-1].scale / views[0].scale
        message = f"its values are {ratio:.0f} times as large as those of {views[0].name}"
        remedy = "standardise the columns, or use MendClassifier, which does so itself"
        yield Finding("info", views[-1].name, message, remedy)


RULES: tuple[Callable[[Inspection], Iterator[Finding]], ...] = (
    _unseen_samples,
    _unseen_classes,
    _unseen_views,
    _rows_of_a_kind,
    _single_labels,
    _doubtful_classes,
    _classes_spelt_alike,
    _views_without_labels,
    _few_labels,
    _repeated_views,
    _telling_columns,
    _sorted_rows,
    _constant_columns,
    _duplicate_rows,
    _tiny_views,
    _different_scales,
)
