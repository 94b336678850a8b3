"""Measurements of incomplete multi-view data, without a judgement."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from viewmend.core.common.content_order import row_hashes
from viewmend.core.common.scaling import unit_rows
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.data.magnitudes import LARGEST
from viewmend.inspection.repeats import repeated_views

Severity = Literal["info", "warning", "error"]

# Expected number of columns that tell the classes by chance, above which none is suspected.
TELLING_BY_CHANCE = 1e-3


@dataclass(frozen=True)
class Order:
    """How alike neighbours in the order of the file are, against chance.

    Attributes
    ----------
    observed, expected : float
        Mean likeness of neighbours, and of all pairs, which is what a shuffled file would have.
    deviations : float
        Their difference in standard deviations over all orders of the rows, or fewer.
    """

    observed: float
    expected: float
    deviations: float

    @property
    def excess(self) -> float:
        """What neighbours have in common beyond chance."""
        return self.observed - self.expected


@dataclass(frozen=True, eq=False)
class ViewSummary:
    """One view. Rows are those of the samples, counted from 0.

    Attributes
    ----------
    name : str
        Name of the view.
    n_columns, n_observed : int
        Columns, and samples that the view has a row of.
    coverage : float
        Share of the samples that the view has.
    incomplete_rows, infinite_rows, zero_rows : array of int
        Observed rows with NaN in some cells, with infinite cells or some too large for a fit, and
        of zeros alone.
    n_missing_cells : int
        Empty cells of the observed rows.
    empty_columns : tuple
        Columns without a value in any observed row.
    n_constant_columns : int
        Columns with one value in all observed rows.
    n_duplicate_rows : int
        Observed rows that equal an earlier one, other than rows of zeros.
    conflicting_rows : array of int
        Labelled rows that equal a row of another class, other than rows of zeros.
    n_labelled : int
        Labelled samples that the view has.
    telling_columns : tuple
        Columns with one value per class in all labelled rows, and too many of these for chance.
    scale : float
        Root mean square of the values.
    order : Order or None
        Likeness of the contents of neighbouring rows, as the cosine of their directions from the
        mean; None where there are too few.
    """

    name: str
    n_columns: int
    n_observed: int
    coverage: float
    incomplete_rows: np.ndarray
    infinite_rows: np.ndarray
    zero_rows: np.ndarray
    n_missing_cells: int
    empty_columns: tuple[Any, ...]
    n_constant_columns: int
    n_duplicate_rows: int
    conflicting_rows: np.ndarray
    n_labelled: int
    telling_columns: tuple[Any, ...]
    scale: float
    order: Order | None


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing about the data.

    Attributes
    ----------
    severity : {"info", "warning", "error"}
        "error" where a fit would refuse the data, "warning" where results may suffer.
    subject : str
        What it is about: "labels", "samples", "rows", or the name of a view.
    message, remedy : str
        What was found, and what to do about it.
    """

    severity: Severity
    subject: str
    message: str
    remedy: str


@dataclass(frozen=True)
class Pattern:
    """Samples that have exactly these views.

    Attributes
    ----------
    views : tuple of str
        Names of the views.
    n_samples : int
        How many samples have these views and no others.
    """

    views: tuple[str, ...]
    n_samples: int


@dataclass(frozen=True, eq=False, repr=False)
class Inspection:
    """Measurements of multi-view data, and the findings that follow from them.

    Attributes
    ----------
    ids : array (n_samples,)
        What the samples are called; row numbers where nothing else was given.
    views : tuple of ViewSummary
        What was measured of every view.
    samples_by_views : tuple of int (n_views + 1,)
        Entry ``k`` is the number of samples that have ``k`` views.
    patterns : tuple of Pattern
        Sets of views that occur together, the most frequent first.
    unseen_samples : array of int
        Rows of the samples without any view.
    class_counts : dict of label to int
        Labelled samples of every class; empty without labels.
    unseen_classes : tuple
        Classes none of whose labelled samples has a view.
    label_order : Order or None
        How often labelled samples that follow each other in the file share their class.
    repeated_views : tuple of pairs of str
        Names of two views with the same content, up to scale and rotation.
    findings : tuple of Finding
        The most severe first.
    """

    ids: np.ndarray
    views: tuple[ViewSummary, ...]
    samples_by_views: tuple[int, ...]
    patterns: tuple[Pattern, ...]
    unseen_samples: np.ndarray
    class_counts: Mapping[Any, int]
    unseen_classes: tuple[Any, ...]
    label_order: Order | None
    repeated_views: tuple[tuple[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.ids)

    @property
    def n_labelled(self) -> int:
        """Number of samples that have a label."""
        return sum(self.class_counts.values())

    @property
    def label_rate(self) -> float:
        """Share of the samples that are labelled."""
        return self.n_labelled / self.n_samples

    def __repr__(self) -> str:
        counts = Counter(finding.severity for finding in self.findings)
        found = ", ".join(f"{n} {severity}" for severity, n in counts.items()) or "none"
        return (
            f"<Inspection of {self.n_samples} samples, {self.n_labelled} of them labelled, in "
            f"{len(self.views)} view(s); findings: {found}>"
        )


def measure(
    data: MultiViewData, labels: Labels | None, ids: np.ndarray, columns: Sequence[Sequence[Any]]
) -> Inspection:
    """All measurements, without findings; observed rows of the data may hold NaN and infinity.

    ``ids`` (n_samples,) and ``columns`` (n_features_v,) of every view are what rows and columns are
    called.
    """
    codes = np.full(data.n_samples, -1) if labels is None else labels.codes
    n_seen = data.observed.sum(axis=1)
    counts: dict[Any, int] = {}
    if labels is not None:
        counts = dict(zip(labels.classes.tolist(), labels.counts().tolist(), strict=True))
    known = codes[(codes >= 0) & (n_seen > 0)]
    n_of_class = np.bincount(known, minlength=len(counts))
    return Inspection(
        ids=ids,
        views=tuple(_summary(data, v, codes, columns[v]) for v in range(data.n_views)),
        samples_by_views=tuple(np.bincount(n_seen, minlength=data.n_views + 1).tolist()),
        patterns=_patterns(data),
        unseen_samples=np.flatnonzero(n_seen == 0),
        class_counts=counts,
        unseen_classes=tuple(c for c, n in zip(counts, n_of_class, strict=True) if n == 0),
        label_order=_label_order(codes[codes >= 0]),
        repeated_views=repeated_views(data),
    )


def _summary(data: MultiViewData, v: int, codes: np.ndarray, columns: Sequence[Any]) -> ViewSummary:
    seen = np.flatnonzero(data.observed[:, v])
    rows = data.rows_seen(v)
    gone = np.isnan(rows)
    # What a fit would refuse for its size is left out as well.
    finite = (np.abs(rows) <= LARGEST).all(axis=1)
    whole, theirs = rows[finite], seen[finite]
    zero = ~whole.any(axis=1)
    # Rows of zeros are equal without being copies.
    other, of_other = whole[~zero], theirs[~zero]
    groups = np.unique(row_hashes(other), return_inverse=True)[1]
    return ViewSummary(
        name=data.names[v],
        n_columns=rows.shape[1],
        n_observed=len(seen),
        coverage=len(seen) / data.n_samples,
        incomplete_rows=seen[gone.any(axis=1)],
        infinite_rows=seen[(np.abs(rows) > LARGEST).any(axis=1)],
        zero_rows=theirs[zero],
        n_missing_cells=int(gone.sum()),
        empty_columns=tuple(columns[c] for c in np.flatnonzero(gone.all(axis=0)).tolist()),
        n_constant_columns=int(np.sum((whole == whole[0]).all(axis=0))) if len(whole) > 1 else 0,
        n_duplicate_rows=len(groups) - (groups.max(initial=-1) + 1),
        conflicting_rows=of_other[_in_conflict(groups, codes[of_other])],
        n_labelled=int(np.sum(codes[seen] >= 0)),
        telling_columns=tuple(columns[c] for c in telling_columns(whole, codes[theirs])),
        scale=_root_mean_square(whole) if whole.size else math.nan,
        order=_content_order(whole),
    )


def _root_mean_square(rows: np.ndarray) -> float:
    largest = _largest(rows)
    return largest * float(np.sqrt(np.mean((rows / largest) ** 2)))


def _largest(rows: np.ndarray) -> float:
    """The largest magnitude, or 1 where all values are 0."""
    return float(np.abs(rows).max(initial=0.0)) or 1.0


def _in_conflict(groups: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Labelled rows whose group of equal rows holds several classes, (n_rows,) of bool."""
    labelled = codes >= 0
    pairs = np.unique(np.column_stack([groups, codes])[labelled], axis=0)
    n_classes = np.bincount(pairs[:, 0], minlength=groups.max(initial=-1) + 1)
    return labelled & (n_classes > 1)[groups]


def telling_columns(rows: np.ndarray, codes: np.ndarray) -> list[int]:
    """Columns whose values and the classes stand for each other in the labelled rows."""
    labelled, known = rows[codes >= 0], codes[codes >= 0]
    n_classes = len(np.unique(known))
    # Some column of that many would do so by chance: a value per class, guessed for each further
    # label.
    by_chance = labelled.shape[1] * float(n_classes) ** (n_classes - len(known))
    if n_classes < 2 or by_chance > TELLING_BY_CHANCE:
        return []
    return [
        c
        for c, values in enumerate(labelled.T)
        if len(np.unique(values)) == n_classes
        and len(np.unique(np.column_stack([values, known]), axis=0)) == n_classes
    ]


def _patterns(data: MultiViewData) -> tuple[Pattern, ...]:
    sets, counts = np.unique(data.observed, axis=0, return_counts=True)
    # Among equals, those of more views first.
    order = np.lexsort((-sets.sum(axis=1), -counts))
    names = np.array(data.names)
    return tuple(Pattern(tuple(names[sets[i]].tolist()), int(counts[i])) for i in order)


def _label_order(codes: np.ndarray) -> Order | None:
    """Neighbours of one class, against the moments of the number of runs (Wallis and Roberts)."""
    n = len(codes)
    sizes = np.unique(codes, return_counts=True)[1].astype(np.float64)
    squares, cubes = (sizes**2).sum(), (sizes**3).sum()
    variance = squares * (squares + n * (n + 1)) - 2 * n * cubes - n**3
    if n < 3 or variance <= 0:
        return None
    observed = float(np.mean(codes[1:] == codes[:-1]))
    expected = float((squares - n) / (n * (n - 1)))
    deviation = math.sqrt(variance / (n**2 * (n - 1))) / (n - 1)
    return Order(observed, expected, (observed - expected) / deviation)


def _content_order(rows: np.ndarray) -> Order | None:
    """Cosine of neighbouring rows from the mean.

    A mean of ``n - 1`` cosines varies by at most about ``1 / sqrt(n - 1)`` over the orders.
    """
    n = len(rows)
    if n < 3:
        return None
    # Sums of values near the largest float would overflow.
    rows = rows / _largest(rows)
    directions = unit_rows(rows - rows.mean(axis=0))
    observed = float(np.einsum("ij,ij->i", directions[1:], directions[:-1]).mean())
    squares = float((directions**2).sum())
    expected = (float((directions.sum(axis=0) ** 2).sum()) - squares) / (n * (n - 1))
    return Order(observed, expected, (observed - expected) * math.sqrt(n - 1))
