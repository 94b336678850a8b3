"""What the methods of the paper's tables share.

Every method is one file: a class whose ``_solve`` reads as its algorithm, over free functions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from viewmend.core.common.scaling import unit_rows
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.exceptions import InvalidViewsError, TooLargeError
from viewmend.impute import DeepMatrixFactorization
from viewmend.impute.base import ViewImputer
from viewmend.models.base import MultiViewClassifier
from viewmend.parameters import Rule, check_parameters

__all__ = ["BaselineClassifier", "CompleteViewClassifier", "Grid", "Solution", "check_memory"]

# Parameter values to try, by name.
Grid: TypeAlias = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Solution:
    """What a method found.

    Attributes
    ----------
    F : array (n_samples, n_classes)
        Scores; larger is likelier. Negative entries count as zero.
    reachable : array (n_samples,) of bool
        Samples that some label reaches.
    history : tuple of float
        Objective after each round; empty for a method that is solved in one go.
    weights : array (n_views,) or None
        View weights, for methods that have them.
    extras : dict
        Further fitted attributes by name, with their trailing underscore.
    """

    F: np.ndarray
    reachable: np.ndarray
    history: tuple[float, ...] = ()
    weights: np.ndarray | None = None
    extras: Mapping[str, Any] | None = None


class BaselineClassifier(MultiViewClassifier):
    """Base of the methods that take missing views as they are.

    Subclasses define `_rules`, `grid` and ``_solve(data, labels, rng)``; rows of ``data`` have
    unit length.
    """

    # One rule per parameter, see `viewmend.parameters`.
    _rules: ClassVar[dict[str, Rule]]
    # The thinner grid of the released script.
    script_grid: ClassVar[Grid] = {}

    def fit(self, X: Any, y: Any = None, mask: ArrayLike | None = None) -> Self:
        """Fit on labelled and unlabelled samples together.

        Parameters
        ----------
        X : list, tuple or dict of arrays (n_samples, n_features_v), MultiViewData, or 2-D array
            A sample missing from a view is a row of NaN there.
        y : array (n_samples,), optional
            -1, None or NaN for unlabelled samples, any hashable labels otherwise; the labels of a
            MultiViewData if left out.
        mask : array (n_samples, n_views) of bool, optional

        Returns
        -------
        self
        """
        check_parameters(self, self._rules)
        data, labels = self._check_fit(X, y, mask)
        views = tuple(unit_rows(view) for view in data.views)
        data = self._prepare(MultiViewData(views, data.observed, data.names), labels)
        rng = np.random.default_rng(getattr(self, "random_state", None))
        self._store_solution(self._solve(data, labels, rng), labels)
        return self

    def _prepare(self, data: MultiViewData, _labels: Labels) -> MultiViewData:
        return data

    def _solve(self, data: MultiViewData, labels: Labels, rng: np.random.Generator) -> Solution:
        raise NotImplementedError

    def _store_solution(self, solution: Solution, labels: Labels) -> None:
        self.history_ = solution.history
        self.n_iter_ = max(len(solution.history), 1)
        if solution.weights is not None:
            self.view_weights_ = solution.weights
        for name, value in (solution.extras or {}).items():
            setattr(self, name, value)
        self._store_transduction(solution.F, labels, solution.reachable)


class CompleteViewClassifier(BaselineClassifier):
    """Base of the methods that need every view of every sample, and so an imputer first.

    Subclasses have the parameters ``imputer`` and ``random_state``. ``imputer=None`` stands for
    deep matrix factorisation of the sizes used in the paper; any transformer of
    `viewmend.impute` can take its place. Complete data is not touched.
    """

    imputer: ViewImputer | None
    random_state: int | np.random.Generator | None

    def _prepare(self, data: MultiViewData, labels: Labels) -> MultiViewData:
        self.imputer_: ViewImputer | None = None
        if data.observed.all():
            return data
        if self.imputer is None:
            self.imputer_ = DeepMatrixFactorization(
                n_components=labels.n_classes,
                n_hidden=10 * labels.n_classes,
                random_state=self.random_state,
            )
        else:
            self.imputer_ = clone(self.imputer)
        return self.imputer_.fit_transform(data)

    def _prepare_new(self, X: Any, mask: ArrayLike | None) -> MultiViewData:
        """New samples with unit rows, completed by the imputer of fit; for ``predict_proba``."""
        data = self._check_predict(X, mask)
        views = tuple(unit_rows(view) for view in data.views)
        data = MultiViewData(views, data.observed, data.names)
        if data.observed.all():
            return data
        if self.imputer_ is None:
            msg = (
                f"{(~data.observed).sum()} (sample, view) pairs are missing, but "
                f"{type(self).__name__} was fitted on complete data and learnt no imputation; pass "
                f"complete samples, or fit with some missing"
            )
            raise InvalidViewsError(msg)
        return self.imputer_.transform(data)


def check_memory(n_bytes: float, method: object, what: str) -> None:
    """Refuse work whose arrays would fill more than the machine's memory.

    Parameters
    ----------
    n_bytes : float
        Estimate of the peak.
    method : estimator
    what : str
        What takes the room, such as "4 dense arrays of 70000 x 70000".
    """
    available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if n_bytes > 0.8 * available:
        msg = (
            f"{type(method).__name__} would need about {n_bytes / 2**30:.1f} GiB for {what}, and "
            f"this machine has {available / 2**30:.1f} GiB; take fewer samples or a method on "
            f"anchors or sparse graphs, such as UnionGraphClassifier"
        )
        raise TooLargeError(msg)
