"""Labels of some samples, and class shares: from user input to checked arrays."""

from __future__ import annotations

import contextlib
import numbers
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.exceptions import DataConversionWarning

from viewmend.data.class_names import (
    DOUBTFUL_WORDS,
    MISSING_MARKS,
    how_alike,
    plain_text,
    spelt_alike,
    written_like,
)
from viewmend.data.per_sample import one_each
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidParameterError
from viewmend.parameters import short
from viewmend.text import counted

# Integer code of samples without label.
UNLABELLED = -1
_NUMBERS = (int, float, np.number, np.bool_)
# Beyond this, consecutive integers have no float of their own.
_LARGEST_EXACT = 2.0**53


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of some of the samples.

    Attributes
    ----------
    classes : array (n_classes,)
        The labels that occur, sorted.
    codes : array (n_samples,) of int64
        Position of the label in ``classes``, -1 for unlabelled samples.
    groups : array (n_samples,) of int64, optional
        Numbers of the groups of samples whose labels tell of each other: to be held out together.
    """

    classes: np.ndarray
    codes: np.ndarray
    groups: np.ndarray | None = None

    def at(self, rows: np.ndarray) -> Labels:
        """The labels of some samples, by their numbers ``rows`` (n_rows,)."""
        groups = None if self.groups is None else self.groups[rows]
        return Labels(self.classes, self.codes[rows], groups)

    def without(self, rows: np.ndarray) -> Labels:
        """The labels of all samples but those at ``rows`` (n_rows,)."""
        codes = self.codes.copy()
        codes[rows] = UNLABELLED
        return replace(self, codes=codes)

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def labelled(self) -> np.ndarray:
        """Mask of the labelled samples, (n_samples,) of bool."""
        return self.codes >= 0

    def counts(self) -> np.ndarray:
        """Labelled samples of every class, (n_classes,)."""
        return np.bincount(self.codes[self.labelled], minlength=self.n_classes)

    def group_counts(self, rows: np.ndarray) -> np.ndarray | None:
        """In how many groups every class has some of the labelled samples ``rows`` (n_rows,).

        (n_classes,), or None without groups.
        """
        if self.groups is None:
            return None
        pairs = np.unique(np.stack([self.codes[rows], self.groups[rows]]), axis=1)
        return np.bincount(pairs[0], minlength=self.n_classes)

    def shares(self) -> np.ndarray:
        """Share of every class among the labelled samples, (n_classes,)."""
        counts = self.counts()
        return np.asarray(counts / counts.sum())

    def one_hot(self, dtype: DTypeLike = np.float64) -> np.ndarray:
        """Indicator matrix (n_samples, n_classes) with zero rows for unlabelled samples."""
        return np.asarray(self.codes[:, None] == np.arange(self.n_classes), dtype=dtype)


def check_labels(y: object, n_samples: int) -> Labels:
    """Labels (n_samples,) in any accepted form, unlabelled samples marked with -1, None or NaN.

    Empty and blank text means unlabelled too; `MISSING_MARKS` among the labels are an error, and
    `DOUBTFUL_WORDS`, classes that are spelt alike, or categories that no sample has, a warning.
    Integral floats are read as
    integers; a column vector is flattened with a warning. Labels that cannot be used as they are
    raise an InvalidLabelsError.
    """
    labels = read_labels(as_label_array(y, n_samples), n_samples)
    counts = dict(zip(labels.classes.tolist(), labels.counts().tolist(), strict=True))
    for label in written_like(counts, DOUBTFUL_WORDS):
        msg = (
            f"{label!r} ({counted(counts[label], 'sample')}) is treated as a class; if it means "
            f"that there is no label, replace it by None (--unlabelled on the command line)"
        )
        warnings.warn(msg, DataWarning, stacklevel=3)
    for alike in spelt_alike(counts):
        msg = (
            f"{how_alike(alike)} and are treated as different; spell them alike if they are one "
            f"class"
        )
        warnings.warn(msg, DataWarning, stacklevel=3)
    if without := categories_without_label(y, labels):
        msg = (
            f"no sample is labelled {short(without)}, which y has among its categories, so that no "
            f"sample will be given that class; label at least one sample of it"
        )
        warnings.warn(msg, DataWarning, stacklevel=3)
    return labels


def categories_without_label(y: object, labels: Labels) -> list[Any]:
    """Categories of labels of pandas or Polars that no sample has; none of other labels."""
    categories: Any = getattr(getattr(y, "dtype", None), "categories", None)
    # Those of Polars that are not enumerated have no end.
    if not hasattr(categories, "__len__"):
        return []
    seen = labels.classes.tolist()
    return [each for each in categories if each not in seen and not _is_marker(each)]


def read_labels(y: object, n_samples: int) -> Labels:
    """`check_labels` without its warnings."""
    values = as_label_array(y, n_samples)
    unlabelled = find_unlabelled(values)
    known = _with_native_dtype(values[~unlabelled])
    classes, known_codes = classes_and_codes(known)
    _refuse_marks(classes, np.bincount(known_codes))
    if len(classes) < 2:
        seen = f"1 class ({classes.tolist()[0]!r})" if len(classes) else "no label at all"
        msg = (
            f"y must hold labels of at least 2 classes, got {seen} for {n_samples} samples; label "
            f"more samples (MendClassifier().suggest_first_labels says which), and recode y if it "
            f"calls a class -1, None or NaN, which mean unlabelled"
        )
        raise InvalidLabelsError(msg)
    codes = np.full(n_samples, -1, dtype=np.int64)
    codes[~unlabelled] = known_codes
    return Labels(classes, codes)


def labelled_part(y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n_labelled,) that have a label in ``y`` (n_samples,), and their classes.

    It is an error if there is none.
    """
    values = as_label_array(y, 0 if y is None else len(y))
    rows = np.flatnonzero(~find_unlabelled(values))
    if len(rows) == 0:
        msg = (
            f"y has no label to compare with, expected at least 1, got {len(values)} unlabelled "
            f"samples; split with LabelledStratifiedKFold, whose test samples are labelled"
        )
        raise InvalidLabelsError(msg)
    known = _with_native_dtype(values[rows])
    classes, codes = classes_and_codes(known)
    _refuse_marks(classes, np.bincount(codes))
    return rows, known


def without_marks(y: object, n_samples: int) -> np.ndarray:
    """Labels (n_samples,) with None in the place of `MISSING_MARKS`."""
    values = as_label_array(y, n_samples).astype(object)
    values[[(plain_text(value) or "") in MISSING_MARKS for value in values]] = None
    return values


def _refuse_marks(classes: np.ndarray, counts: np.ndarray) -> None:
    """Text that stands for a missing label must not become a class by accident."""
    sizes = dict(zip(classes.tolist(), counts.tolist(), strict=True))
    marks = written_like(sizes, MISSING_MARKS)
    if marks:
        told = ", ".join(f"{mark!r} ({counted(sizes[mark], 'sample')})" for mark in marks)
        msg = (
            f"labels must name classes, but {told} looks like a mark for samples without label; "
            f"if it is one, replace it by None (--unlabelled on the command line); if it is a "
            f"class, give it another name"
        )
        raise InvalidLabelsError(msg)


def as_label_array(y: object, n_samples: int) -> np.ndarray:
    """One value per sample, with a NumPy dtype only where NumPy would not change the values."""
    if y is None:
        msg = "fit requires y to be passed, but the target y is None; pass one label per sample"
        raise InvalidLabelsError(msg)
    array = one_each(y)
    if array.ndim == 2 and array.shape[1] == 1:
        msg = "A column-vector y was passed when a 1d array was expected; pass y.ravel() instead"
        warnings.warn(msg, DataConversionWarning, stacklevel=3)
        array = array.ravel()
    if array.ndim == 0:
        msg = (
            f"y must be 1-D (n_samples,), got {short(y)}, a {type(y).__name__}; pass a list or an "
            f"array with one label per sample, such as frame[y] if y is the name of a column"
        )
        raise InvalidLabelsError(msg)
    if array.ndim != 1:
        msg = (
            f"y must be 1-D (n_samples,), got {array.ndim}-D of shape {array.shape}; pass one "
            f"label per sample, for example Y.argmax(axis=1) for indicator columns"
        )
        raise InvalidLabelsError(msg)
    check_length(len(array), n_samples)
    return array


def check_length(n_labels: int, n_samples: int) -> None:
    """Refuse more or fewer labels than samples."""
    if n_labels != n_samples:
        msg = (
            f"y has {n_labels} labels but X has {n_samples} samples; pass one label per sample, "
            f"with -1 for unlabelled ones"
        )
        raise InvalidLabelsError(msg)


def find_unlabelled(values: np.ndarray) -> np.ndarray:
    """True at -1, None, NaN, ``pandas.NA`` and text that is empty or blank, (n_samples,)."""
    if values.dtype.kind == "O":
        # Not by a ufunc: NumPy 2.5 warns of an invalid value where Python compares NaN in one.
        return np.fromiter(map(_is_marker, values.flat), dtype=bool).reshape(values.shape)
    if values.dtype.kind in "US":
        return np.strings.str_len(np.strings.strip(values)) == 0
    # Only NaN and NaT differ from themselves.
    unlabelled = np.asarray(values != values)
    return unlabelled | (values == -1) if values.dtype.kind in "iuf" else unlabelled


def _is_marker(value: object) -> bool:
    # NA and NaT of pandas are told by the names of their types, so that pandas need not be there.
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(value, (str, bytes)):
        return not value.strip()
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    # NaN of any kind, and NaT of durations, which are numbers to Python, differ from themselves.
    return isinstance(value, numbers.Number) and bool(value == -1 or value != value)  # type: ignore[comparison-overlap]


def _with_native_dtype(known: np.ndarray) -> np.ndarray:
    """Labels of one type as an array of that type, integral floats as integers."""
    # Mixtures of text and numbers stay objects.
    if known.dtype.kind == "O" and any(
        all(isinstance(label, types) for label in known) for types in (str, _NUMBERS)
    ):
        known = np.array(known.tolist())
    if known.dtype.kind != "f":
        return known
    # The limit is beyond what half precision can count to.
    known = known.astype(np.promote_types(known.dtype, np.float64), copy=False)
    fractional = (known != np.floor(known)) | (np.abs(known) >= _LARGEST_EXACT)
    if fractional.any():
        msg = (
            f"Unknown label type: continuous. y must hold class labels, got "
            f"{known[fractional][0]}; bin a continuous target first, as with numpy.digitize"
        )
        raise InvalidLabelsError(msg)
    return known.astype(np.int64)


def classes_and_codes(known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct labels, and the position of every label among them."""
    if known.dtype.kind != "O":
        return np.unique(known, return_inverse=True)
    try:
        distinct = set(known)
    except TypeError as error:
        msg = f"labels must be hashable, got {error}; use numbers, strings or tuples as labels"
        raise InvalidLabelsError(msg) from error
    # An order that does not depend on the rows, for labels that < cannot compare.
    ordered = sorted(distinct, key=lambda label: (type(label).__name__, repr(label)))
    with contextlib.suppress(TypeError):
        ordered = sorted(ordered)
    position = {label: code for code, label in enumerate(ordered)}
    codes = np.fromiter((position[label] for label in known), dtype=np.int64, count=len(known))
    return np.fromiter(ordered, dtype=object, count=len(ordered)), codes


def check_class_prior(
    class_prior: str | Mapping[Any, float] | ArrayLike | None, labels: Labels
) -> np.ndarray | None:
    """Class shares to aim at, (n_classes,) in the order of ``labels.classes``.

    "labeled" takes the shares among the labelled samples, "uniform" the same for all classes.
    Shares by label, or in order, must be a distribution over exactly the classes seen.
    """
    if class_prior is None:
        return None
    if isinstance(class_prior, str):
        if class_prior == "labeled":
            return labels.shares()
        if class_prior == "uniform":
            return np.full(labels.n_classes, 1 / labels.n_classes)
        msg = (
            f"class_prior must be None, 'labeled', 'uniform', a dict or an array, got "
            f"{class_prior!r}; use 'labeled' for the shares among the labelled samples"
        )
        raise InvalidParameterError(msg)
    if isinstance(class_prior, Mapping):
        class_prior = _shares_in_order(class_prior, labels.classes.tolist())
    return _as_distribution(class_prior, labels.n_classes)


def _shares_in_order(shares: Mapping[Any, float], classes: list[Any]) -> list[float]:
    unseen = [label for label in shares if label not in classes]
    if unseen:
        msg = (
            f"class_prior names {short(unseen)}, but the labels seen are "
            f"{short(classes)}; label at least one sample of it or leave it out"
        )
        raise InvalidParameterError(msg)
    absent = [label for label in classes if label not in shares]
    if absent:
        msg = (
            f"class_prior leaves out {short(absent)}, expected a share for each of "
            f"{short(classes)}; add the missing shares"
        )
        raise InvalidParameterError(msg)
    return [shares[label] for label in classes]


def _as_distribution(class_prior: object, n_classes: int) -> np.ndarray:
    expected = f"class_prior must hold {n_classes} positive shares, one per class, that sum to 1"
    try:
        shares = np.array(class_prior, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"{expected}, got {short(class_prior)}; pass numbers"
        raise InvalidParameterError(msg) from error
    one_each = shares.shape == (n_classes,)
    if not (one_each and (shares > 0).all() and abs(shares.sum() - 1) <= 1e-6):
        msg = (
            f"{expected}, got {short(shares.tolist())}, of sum {shares.sum():.6g}; divide them by "
            f"their sum, and pass a dict to name the classes"
        )
        raise InvalidParameterError(msg)
    return shares
