"""What every classifier of incomplete multi-view data shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from viewmend.backend.threads import limited_threads
from viewmend.callbacks.notify import WatchedMixin, with_callbacks
from viewmend.callbacks.progress import LogRounds
from viewmend.callbacks.protocol import Callback
from viewmend.core.common.class_shares import normalise_rows
from viewmend.data.cells import DEFAULT, fill_cells, learn_fills
from viewmend.data.column_names import ColumnNamesMixin, columns_of_data
from viewmend.data.container import MultiViewData
from viewmend.data.given_labels import labels_for
from viewmend.data.groups import with_groups
from viewmend.data.indices import as_text
from viewmend.data.labels import (
    Labels,
    check_labels,
)
from viewmend.data.validation import check_views
from viewmend.exceptions import UnusableArgumentError
from viewmend.html_repr import HTMLReprMixin
from viewmend.models.apart import FitSamples, comparable_samples
from viewmend.models.scoring import score_labelled
from viewmend.parameters import Rule, check_parameters, fresh_fit, in_full, short

Fit = TypeVar("Fit", bound=Callable[..., Any])

# Parameters that change no round: how loud, where, what comes after the last one; and those of
# which only the outcome counts, which a checkpoint compares.
WITHOUT_EFFECT = frozenset(
    {
        *("calibration", "class_prior", "class_weight", "n_jobs", "random_state", "verbose"),
        "view_sizes",
    }
)


def scaled_shares(soft: np.ndarray, labelled_shares: np.ndarray) -> np.ndarray:
    """Soft labels (n_samples, n_classes) scaled to sum one, negative ones counting as zero.

    Rows without any soft label get the ``labelled_shares`` (n_classes,).
    """
    scaled = normalise_rows(np.maximum(soft, 0))
    return np.where(scaled.any(axis=1, keepdims=True), scaled, labelled_shares)


@dataclass(frozen=True, eq=False)
class ViewLayout:
    """Names and columns of the views, and which sample has which, (n_samples, n_views) of bool.

    ``columns`` are the names of columns by view, as far as they have any.
    """

    names: tuple[str, ...]
    n_features: tuple[int, ...]
    observed: np.ndarray
    columns: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, data: MultiViewData) -> ViewLayout:
        """The layout of checked views."""
        return cls(data.names, data.n_features, data.observed, columns_of_data(data))


def without_weights(fit: Fit) -> Fit:
    """A ``fit`` that says what to do in place of ``sample_weight``.

    scikit-learn looks for that name in the signature, where it is not.
    """

    @wraps(fit)
    def checked(self: Any, *args: Any, sample_weight: object = None, **others: Any) -> Any:
        if sample_weight is not None:
            name = type(self).__name__
            msg = (
                f"sample_weight must be left out of fit of {name}, got {short(sample_weight)}: all "
                f"labels count the same; set doubtful ones to -1, or pass weights to score"
            )
            raise UnusableArgumentError(msg)
        return fit(self, *args, **others)

    return cast(Fit, checked)


class MultiViewClassifier(ColumnNamesMixin, HTMLReprMixin, ClassifierMixin, BaseEstimator):
    """Base of the classifiers: input checks, the layout seen in fit, labels of the fitted samples.

    Subclasses have the parameter ``view_sizes``; their ``fit`` begins with `samples_to_fit`, goes
    on to `_store_transduction`, and ends with ``samples.give_back(self)``.
    """

    # Columns of sparse views that are made dense at most; None for all.
    _dense_columns: ClassVar[int | None] = None
    # Parameter values tried in the paper that introduced the comparison; empty if none.
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {}
    # A row of `viewmend.data.cells.MISSING_CELLS`, which some classifiers have as a parameter.
    missing_cells: str = DEFAULT

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    fit: Callable[..., Self]

    def fit_predict(self, X: Any, y: Any = None, mask: ArrayLike | None = None) -> np.ndarray:
        """Fit and return the classes of the samples; parameters as in ``fit``.

        Returns
        -------
        array (n_samples,)
            The same as ``transduction_``.
        """
        return self.fit(X, y, mask).transduction_

    @available_if(lambda self: hasattr(self, "predict"))
    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        mask: ArrayLike | None = None,
    ) -> float:
        """Accuracy of ``predict`` on the labelled samples of ``y``.

        Only classifiers that can classify new samples have this method.

        Parameters
        ----------
        X, mask
            As in ``predict``.
        y : array (n_new,)
            True classes. Unlabelled samples, -1, None or NaN, do not count.
        sample_weight : array (n_new,), optional
            What each sample counts; 1 by default.

        Returns
        -------
        float
        """
        return score_labelled(self, X, y, sample_weight, mask)

    def report(
        self,
        path: str | Path,
        X: Any = None,
        y: Any = None,
        mask: ArrayLike | None = None,
        y_true: Any = None,
        ids: ArrayLike | None = None,
    ) -> Path:
        """Write a report about this fitted model: one HTML file that opens in any browser.

        Sections whose data is not given say how to get them.

        Parameters
        ----------
        path : str or Path
            The file, usually ``*.html``.
        X, y, mask : optional
            What ``fit`` got. The model remembers the labels.
        y_true : array (n_samples,), optional
            True classes, -1, None or NaN where unknown. They are only compared with the
            predictions of samples that ``y`` leaves unlabelled.
        ids : array (n_samples,), optional
            Names of the samples; by default the identifiers that ``fit`` saw, or row numbers.

        Returns
        -------
        Path
            The file; `viewmend.report.write_report` has more.
        """
        # Here, because Matplotlib is behind it, which not everybody has.
        from viewmend.report import write_report

        return write_report(self, path, X, y, mask, y_true, ids)

    def keeps_labels(self) -> bool:
        """Whether samples keep the labels they were given, even if their views contradict them."""
        return True

    @property
    def _coverage(self) -> np.ndarray:
        """Share of the samples (n_views,) that every view observed."""
        return self.observed_.mean(axis=0)

    def _check_fit(
        self, X: Any, y: Any, mask: Any, dtype: DTypeLike = np.float64, groups: Any = None
    ) -> tuple[MultiViewData, Labels]:
        data = check_views(
            X,
            mask=mask,
            view_sizes=self.view_sizes,
            dtype=dtype,
            dense_columns=self._dense_columns,
        )
        labels = with_groups(check_labels(labels_for(X, y), data.n_samples), X, groups)
        fills = learn_fills(data, self.missing_cells)
        data = fill_cells(data, fills)
        self._remember_layout(ViewLayout.of(data), labels)
        self.cell_fills_ = fills
        self._remember_ids(data.ids)
        # Fits on a part of the labels must not find the others beside the views.
        return replace(data, y=None), labels

    def samples_to_fit(
        self, X: Any, y: Any, mask: Any, dtype: DTypeLike = np.float64, groups: Any = None
    ) -> FitSamples:
        """The checked samples that can be compared, and what to restore after the fit."""
        samples = comparable_samples(*self._check_fit(X, y, mask, dtype, groups))
        self.observed_ = samples.data.observed
        return samples

    def _remember_layout(self, layout: ViewLayout, labels: Labels) -> None:
        self.classes_ = labels.classes
        self.view_names_ = layout.names
        self.view_n_features_ = layout.n_features
        self.observed_ = layout.observed
        self.n_features_in_ = sum(layout.n_features)
        self._remember_columns(layout.columns)

    def _remember_ids(self, ids: np.ndarray | None) -> None:
        if ids is not None:
            self.sample_ids_ = as_text(ids).astype(np.str_)

    def _store_transduction(self, soft: np.ndarray, labels: Labels, reachable: np.ndarray) -> None:
        """Distributions and classes of the samples of fit; given labels are kept.

        ``soft`` (n_samples, n_classes) is non-negative up to rounding, and of any scale.
        """
        self.labelled_shares_ = labels.shares()
        shares = self._distributions(np.where(reachable[:, None], soft, 0))
        codes = np.where(labels.labelled, labels.codes, np.argmax(shares, axis=1))
        self._store_shares(shares, codes, reachable)

    def _store_shares(self, shares: np.ndarray, codes: np.ndarray, reachable: np.ndarray) -> None:
        self.unreachable_ = ~reachable
        self.label_distributions_ = shares
        self.transduction_ = self.classes_[codes]

    def _distributions(self, soft: np.ndarray) -> np.ndarray:
        return scaled_shares(soft, self.labelled_shares_)


class TwoStepClassifier(WatchedMixin, MultiViewClassifier):
    """Base of the classifiers that first compute what needs no labels, and then fit the labels.

    Subclasses define ``build_geometry(data, labels)``, which may use labels to tell equal samples
    apart and for nothing else, ``_fit_labels(geometry, labels)``, which does the rest, and the
    names of the parameters that the first depends on. A search over the other parameters, or over
    parts of the labels, needs the first only once.
    """

    _rules: ClassVar[dict[str, Rule]]
    geometry_parameters: ClassVar[tuple[str, ...]]
    # Parameters that a checkpoint need not compare.
    _without_effect_on_rounds: ClassVar[frozenset[str]]
    # Upper limits of parameters in the shorter fits that compare settings.
    search_limits: ClassVar[Mapping[str, int]] = {}

    @without_weights
    @with_callbacks
    def fit(self, X: Any, y: Any = None, mask: ArrayLike | None = None, groups: Any = None) -> Self:
        """Fit on labelled and unlabelled samples together.

        After an error, or Ctrl-C, the estimator is not fitted, even if it was fitted before.

        Parameters
        ----------
        X : list, tuple or dict of arrays (n_samples, n_features_v), MultiViewData, or 2-D array
            The views. A row of NaN means that the sample does not have this view; NaN in other rows
            are missing cells. One 2-D array is split by ``view_sizes``, or is a single view.
            `viewmend.check_views` explains frames, AnnData and MuData. Column names are kept, and
            ``predict`` checks new data against them.
        y : array (n_samples,) or str, optional
            The labels: -1, None, NaN or empty text for unlabelled samples, any hashable values
            otherwise. If left out, the labels of a MultiViewData. For an AnnData or MuData it may
            be the name of a column of ``obs``.
        mask : array (n_samples, n_views) of bool, optional
            False where a sample does not have a view; replaces rows of NaN.
        groups : array (n_samples,) or str, optional
            Which samples belong together, such as rows of one patient, by names of any kind, or by
            the name of a column of ``obs``. Labels of one group are held out together, so that the
            estimated accuracy, the probabilities and what counts as unknown are those of samples of
            other groups. It changes no class. -1, None, NaN or empty text: a group by itself.

        Returns
        -------
        self
        """
        with fresh_fit(self):
            self.validate_parameters()
            self.check_groups(groups)
        # Inside: Ctrl-C that a callback held back until the end leaves a model that is whole.
        with self._watched(self._max_rounds()), fresh_fit(self):
            self._fit_views(X, y, mask, groups)
        return self

    def fit_predict(
        self, X: Any, y: Any = None, mask: ArrayLike | None = None, groups: Any = None
    ) -> np.ndarray:
        """Fit and return the classes of the samples; parameters as in ``fit``.

        Returns
        -------
        array (n_samples,)
            The same as ``transduction_``.
        """
        return self.fit(X, y, mask, groups).transduction_

    def validate_parameters(self) -> None:
        """Raise an `InvalidParameterError` if ``fit`` cannot use some parameter."""
        check_parameters(self, self._rules)

    def prepare(
        self, X: Any, y: Any, mask: ArrayLike | None = None, groups: Any = None
    ) -> tuple[MultiViewData, Labels]:
        """The samples that can be compared and their labels, checked, as ``fit`` reads them."""
        samples = self.samples_to_fit(X, y, mask, self.dtype, groups)
        return samples.data, samples.labels

    def build_geometry(self, data: MultiViewData, labels: Labels) -> Any:
        """Everything that can be computed without labels, for `fit_prepared`."""
        raise NotImplementedError

    def fit_prepared(self, layout: ViewLayout, geometry: Any, labels: Labels) -> None:
        """The second half of ``fit``: fit the labels, with the result of `build_geometry`."""
        self._remember_layout(layout, labels)
        with self._watched(self._max_rounds()):
            self._fit_labels(geometry, labels)

    def check_groups(self, groups: Any) -> None:
        """Raise an `InvalidParameterError` if the labels of groups cannot be held out together."""

    def _fit_views(self, X: Any, y: Any, mask: ArrayLike | None, groups: Any) -> None:
        samples = self.samples_to_fit(X, y, mask, self.dtype, groups)
        with limited_threads(self.n_jobs):
            geometry = self.build_geometry(samples.data, samples.labels)
            self._fit_labels(geometry, samples.labels)
        samples.give_back(self)

    def _fit_labels(self, geometry: Any, labels: Labels) -> None:
        raise NotImplementedError

    def _max_rounds(self) -> int:
        return int(self.max_iter)

    def _round_parameters(self) -> dict[str, str]:
        given = self.get_params(deep=False)
        names = sorted(set(given) - self._without_effect_on_rounds)
        return {name: in_full(given[name]) for name in names}

    def _new_callbacks(self) -> list[Callback]:
        return ([LogRounds()] if self.verbose else []) + super()._new_callbacks()
