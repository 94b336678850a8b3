"""What all baselines share.

Every method is one file: a class whose ``_solve`` reads as its algorithm, over free functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from viewmend import memory
from viewmend.core.common.scaling import unit_rows
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.exceptions import InvalidViewsError
from viewmend.impute import DeepMatrixFactorization
from viewmend.impute.base import ViewImputer
from viewmend.models.base import MultiViewClassifier, without_weights
from viewmend.parameters import Integer, Real, Rule, check_parameters, fresh_fit

__all__ = [
    "ROUND_RULES",
    "BaselineClassifier",
    "CompleteViewClassifier",
    "Grid",
    "Solution",
    "check_memory",
    "with_unit_rows",
]

# Parameter values to try, by name.
Grid: TypeAlias = Mapping[str, Sequence[Any]]

# Of the methods that learn on neighbour graphs in rounds.
ROUND_RULES: dict[str, Rule] = {"n_neighbors": Integer(1), "max_iter": Integer(1), "tol": Real(0)}


@dataclass(frozen=True, eq=False)
class Solution:
    """The result of a method.

    Attributes
    ----------
    F : array (n_samples, n_classes)
        Scores; larger means more likely. Negative entries count as zero.
    reachable : array (n_samples,) of bool or None
        Samples that some label reaches; None for methods without a graph, which reach all samples.
    history, weights : tuple of float, array (n_views,) or None
        Stored as ``history_`` and ``view_weights_``.
    extras : dict
        Further fitted attributes by name, with their trailing underscore.
    """

    F: np.ndarray
    reachable: np.ndarray | None = None
    history: tuple[float, ...] = ()
    weights: np.ndarray | None = None
    extras: Mapping[str, Any] | None = None


class BaselineClassifier(MultiViewClassifier):
    """Base of the methods that can use missing views; every row is scaled to unit length.

    Subclasses are data classes whose fields are their parameters, and define `_rules`, `grid` and
    ``_solve(data, labels, rng)``. Parameters and attributes that several methods have mean the
    following, unless a method says otherwise:

    Parameters
    ----------
    n_neighbors : int
        Number of nearest neighbours that a sample is joined to in a graph.
    max_iter : int
        Largest number of rounds.
    tol : float
        Relative change of the objective below which the rounds end.
    random_state : int, Generator or None
        Seed for everything that is random.
    view_sizes : sequence of int, optional
        Number of columns of every view, if ``X`` is one stacked array.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_
        As in `viewmend.AGFTIClassifier`.
    history_ : tuple of float
        Objective after each round; empty for methods without rounds.
    n_iter_ : int
        Number of rounds.
    """

    # One rule per parameter, see `viewmend.parameters`.
    _rules: ClassVar[dict[str, Rule]]
    # The thinner grid of the released script.
    script_grid: ClassVar[Grid] = {}

    @without_weights
    def fit(self, X: Any, y: Any = None, mask: ArrayLike | None = None) -> Self:
        """Fit on labelled and unlabelled samples together.

        After an error, or Ctrl-C, the estimator is not fitted, even if it was fitted before.

        Parameters
        ----------
        X, y, mask
            The views, the labels, and which sample has which view, as in `MendClassifier.fit`.

        Returns
        -------
        self
        """
        with fresh_fit(self):
            check_parameters(self, self._rules)
            samples = self.samples_to_fit(X, y, mask)
            data = self._prepare(self._scaled(samples.data), samples.labels)
            rng = np.random.default_rng(getattr(self, "random_state", None))
            self._store_solution(self._solve(data, samples.labels, rng), samples.labels)
            samples.give_back(self)
        return self

    def _scaled(self, data: MultiViewData) -> MultiViewData:
        return with_unit_rows(data)

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
        everyone = np.ones(len(solution.F), dtype=bool)
        reachable = everyone if solution.reachable is None else solution.reachable
        self._store_transduction(solution.F, labels, reachable)


class CompleteViewClassifier(BaselineClassifier):
    """Base of the methods that need every view of every sample; missing views are imputed first.

    Parameters
    ----------
    n_neighbors, max_iter, tol, view_sizes
        As in `BaselineClassifier`.
    imputer : transformer of `viewmend.impute` or None
        Fills missing views; complete data is not changed. None uses `DeepMatrixFactorization` with
        the sizes of the AGF-TI paper.
    random_state : int, Generator or None
        Seed for that imputer, and for the method itself.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_, history_, n_iter_
        As in `BaselineClassifier`.
    imputer_ : transformer or None
        The fitted imputer; None if the data was complete.
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

    def _prepare_new(self, data: MultiViewData) -> MultiViewData:
        """New samples with unit rows, completed by the imputer of fit; for ``predict_proba``."""
        data = with_unit_rows(data)
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


def with_unit_rows(data: MultiViewData) -> MultiViewData:
    """The same samples, every row of every view scaled to length one."""
    return MultiViewData(tuple(map(unit_rows, data.views)), data.observed, data.names)


def check_memory(n_bytes: float, method: object, what: str) -> None:
    """`viewmend.memory.check_memory` for methods whose arrays grow with the square of the samples.

    ``what`` takes the room, such as "4 dense arrays of 70000 x 70000".
    """
    remedy = (
        "take fewer samples or a method on anchors or sparse graphs, such as UnionGraphClassifier"
    )
    memory.check_memory(n_bytes, type(method).__name__, f"for {what}", remedy)
