"""Folds, scorers and cross-validation for data in which most samples have no label.

Plain splitters put unlabelled samples into test parts, and plain scorers count -1, the mark of an
unlabelled sample, as one more class. Here only labelled samples are held out and scored. Pass the
labelled samples alone to what counts the classes before the fit, or -1 becomes one of them:
scikit-learn's ``cross_val_predict`` for probabilities, and estimators that contain others, such as
``CalibratedClassifierCV`` and ``StackingClassifier``.

The data must be a `MultiViewData`, which `viewmend.check_views` makes from lists and dicts, or one
stacked array with ``view_sizes``. To split a ``mask`` together with a stacked array, enable
metadata routing and request it::

    model = MendClassifier(view_sizes=(76, 216))
    model = model.set_fit_request(mask=True).set_score_request(mask=True)
    cross_validate(model, X, y, cv=LabelledStratifiedKFold(), params={"mask": mask})
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import get_routing_for_object

from viewmend.data.given_labels import labels_for, values_for
from viewmend.data.groups import with_groups
from viewmend.data.labels import Labels, check_labels, check_length, labelled_part
from viewmend.exceptions import InvalidLabelsError, InvalidParameterError, InvalidViewsError
from viewmend.models.label_folds import label_folds
from viewmend.parameters import HasParameters, Integer, RandomSeed, short

__all__ = ["LabelledScorer", "LabelledStratifiedKFold", "cross_val_transduce", "labelled_scorer"]

FOLD_COUNT, SEED = Integer(2), RandomSeed()


class LabelledStratifiedKFold(BaseCrossValidator):
    """Folds of the labelled samples; unlabelled samples are always in the training part.

    Labelled samples are split into folds class by class, as in `LabelSearchCV`. A class with a
    single label is never held out, because the fit would not know it. If ``split`` is given
    ``groups``, such as the patients of samples, the samples of a group are in one fold, or in none
    if they have all labels of a class.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    shuffle : bool, default=False
        Whether to shuffle the samples before they are split.
    random_state : int, numpy Generator or None, default=None
        Seed for shuffling; only with ``shuffle=True``.

    Examples
    --------
    >>> import numpy as np
    >>> from viewmend.model_selection import LabelledStratifiedKFold
    >>> y = np.array([0, -1, 1, 0, -1, 1])
    >>> for train, test in LabelledStratifiedKFold(2).split(np.zeros((6, 1)), y):
    ...     print(train, test)
    [1 3 4 5] [0 2]
    [0 1 2 4] [3 5]
    """

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: int | None = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: ARG002
        """Number of folds, whatever the arguments."""
        return self.n_splits

    def _iter_test_indices(
        self,
        X: Any = None,
        y: Any = None,
        groups: Any = None,
    ) -> Iterator[np.ndarray]:
        self._check_parameters()
        labels = with_groups(_labels(labels_for(X, y)), X, groups)
        order = np.arange(len(labels.codes))
        if self.shuffle:
            order = np.random.default_rng(self.random_state).permutation(order)
        folds = label_folds(labels.codes, order, self.n_splits, labels.groups)
        if len(folds) < self.n_splits:
            units = "labels" if groups is None else "groups of labels"
            msg = (
                f"n_splits={self.n_splits} must be at most the number of {units} that can be held "
                f"out, got {len(folds)} in classes of two or more; lower n_splits or label more "
                f"samples"
            )
            raise InvalidLabelsError(msg)
        yield from folds

    def _check_parameters(self) -> None:
        if not FOLD_COUNT.accepts(self.n_splits):
            msg = (
                f"n_splits must be {FOLD_COUNT.expected}, got {short(self.n_splits)}; pass the "
                f"number of folds"
            )
            raise InvalidParameterError(msg)
        if not SEED.accepts(self.random_state):
            msg = (
                f"random_state must be {SEED.expected}, got {short(self.random_state)}; pass 0, or "
                f"another number"
            )
            raise InvalidParameterError(msg)
        if self.random_state is not None and not self.shuffle:
            msg = (
                f"random_state must be None where shuffle=False, got {short(self.random_state)}, "
                f"which would have no effect; set shuffle=True or leave random_state out"
            )
            raise InvalidParameterError(msg)


class LabelledScorer:
    """A scorer that uses the labelled samples only; see `labelled_scorer`.

    Parameters
    ----------
    scorer : callable
        Called as ``scorer(estimator, X, y)`` with the labelled samples.
    """

    def __init__(self, scorer: Callable[..., float]):
        self.scorer = scorer

    def __call__(self, estimator: object, X: Any, y: Any, **metadata: Any) -> float:
        y = labels_for(X, y)
        rows, classes = labelled_part(y)
        _check_rows(X, len(y))
        told = {
            name: values_for(X, each, name) for name, each in metadata.items() if each is not None
        }
        for name, each in told.items():
            _check_one_each(each, len(y), name)
        of_labelled = {name: _safe_indexing(each, rows) for name, each in told.items()}
        return self.scorer(estimator, _safe_indexing(X, rows), classes, **of_labelled)

    def __repr__(self) -> str:
        return f"labelled_scorer({self.scorer!r})"

    def get_metadata_routing(self) -> Any:
        """Metadata that the inner scorer requests, such as ``sample_weight``."""
        return get_routing_for_object(self.scorer)


def labelled_scorer(scoring: str | Callable[..., float] = "accuracy") -> LabelledScorer:
    """Make a scorer that leaves out unlabelled samples, for any splitter and search.

    You need it for metrics by name and for classifiers of other libraries. ``score`` of the
    classifiers here, which searches use by default, already leaves out unlabelled samples.

    Parameters
    ----------
    scoring : str or callable
        Name of a scorer of scikit-learn, or ``scorer(estimator, X, y)`` such as `make_scorer`
        makes.

    Returns
    -------
    LabelledScorer
        Called as ``scorer(estimator, X, y)``, where -1, None and NaN in ``y`` mean unlabelled.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from viewmend import MendClassifier
    >>> from viewmend.model_selection import LabelledStratifiedKFold, labelled_scorer
    >>> search = GridSearchCV(
    ...     MendClassifier(),
    ...     {"spreading": [0.9, 0.99]},
    ...     cv=LabelledStratifiedKFold(3),
    ...     scoring=labelled_scorer("balanced_accuracy"),
    ... )
    """
    return LabelledScorer(get_scorer(scoring))


def cross_val_transduce(
    estimator: HasParameters, X: Any, y: ArrayLike, *, cv: Any = None, mask: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Classes of labelled samples, fold by fold, from fits that do not see their labels.

    This is cross-validation for methods that classify only the samples of ``fit``: held-out samples
    stay in the fit, their labels do not.

    Parameters
    ----------
    estimator : classifier with ``transduction_``
        The classifier to test; it is cloned for every fold.
    X : views, in any form that ``fit`` takes
        The views.
    y : array-like (n_samples,)
        -1, None or NaN for unlabelled samples.
    cv : int, splitter or iterable of (train, test), default=LabelledStratifiedKFold()
        Number of folds, or what makes them; only the test parts are used.
    mask : array (n_samples, n_views) of bool, optional
        False where a sample does not have a view; replaces rows of NaN.

    Returns
    -------
    rows : array (n_held_out,) of int
        Samples that were held out, fold after fold.
    classes : array (n_held_out,)
        Their predicted classes; compare them with ``y[rows]``.
    """
    labels = _labels(labels_for(X, y))
    if isinstance(cv, Integral):
        cv = LabelledStratifiedKFold(int(cv))
    cv = LabelledStratifiedKFold() if cv is None else cv
    splits = cv.split(labels.codes, labels.codes) if hasattr(cv, "split") else cv
    rows = [test[labels.labelled[test]] for _, test in splits]
    classes = [_transduced_without(estimator, X, labels, held_out, mask) for held_out in rows]
    return np.concatenate(rows), np.concatenate(classes)


def _labels(y: Any) -> Labels:
    return check_labels(y, 0 if y is None else len(y))


def _n_rows(values: Any) -> int:
    # Sparse matrices have no length.
    return int(values.shape[0] if hasattr(values, "shape") else len(values))


def _check_one_each(values: Any, n_samples: int, what: str) -> None:
    """Refuse what is told of more or fewer samples; scikit-learn would take the first ones."""
    n_values = _n_rows(values)
    if n_values != n_samples:
        msg = (
            f"{what} must have one entry for each of the {n_samples} samples, but has {n_values}; "
            f"pass those of all samples, unlabelled ones too"
        )
        raise InvalidParameterError(msg)


def _check_rows(X: Any, n_labels: int) -> None:
    """Refuse data without a row for each label, such as views in a list or dict."""
    n_samples = _n_rows(X)
    in_views = isinstance(X, (list, tuple)) and n_samples != n_labels
    if in_views or isinstance(X, Mapping):
        msg = (
            f"X must have a row for each of the {n_labels} labels, as a MultiViewData or a stacked "
            f"array has, but is a {type(X).__name__} of {n_samples}; pass check_views(X)"
        )
        raise InvalidViewsError(msg)
    check_length(n_labels, n_samples)


def _transduced_without(
    estimator: HasParameters, X: Any, labels: Labels, held_out: np.ndarray, mask: ArrayLike | None
) -> np.ndarray:
    """Classes of some samples in a fit that does not know their labels."""
    known = labels.classes.astype(object)[labels.codes]
    known[~labels.labelled] = None
    known[held_out] = None
    metadata = {} if mask is None else {"mask": mask}
    return clone(estimator).fit(X, known, **metadata).transduction_[held_out]
