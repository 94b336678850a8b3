"""Which columns of a view its scores come from, told in numbers and in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from viewmend.backend.threads import limited_threads, serial_blas
from viewmend.core.mend.column_effects import ColumnEffects, column_effects
from viewmend.data.column_names import columns_of_fit
from viewmend.data.container import MultiViewData
from viewmend.distributed.lazy import is_lazy
from viewmend.exceptions import InvalidParameterError
from viewmend.models.fitted_state import MendState
from viewmend.parameters import AnyOf, Integer, OneOf, short
from viewmend.plot.columns import plot_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ViewColumnsMixin", "ViewExplanation"]

_ROWS, _NUMBER = AnyOf(OneOf(None), Integer(2)), Integer(0)
# Samples whose values are swapped by default: at least so many, and of every class about as many.
SWAPPED, PER_CLASS = 128, 10


@dataclass(frozen=True, eq=False, repr=False)
class ViewExplanation:
    """What the columns of a view have to do with the class scores of its regression.

    Attributes
    ----------
    view : str
        Name of the view.
    columns : array (n_columns,)
        Their names, or their numbers where ``fit`` saw no names; in the order of the view.
    importances : array (n_columns,)
        Share of the variance of the scores, of all classes together, that is lost if the values of
        the column are swapped between samples. All columns swapped at once lose all of it, and one
        by one they lose less than that or more: less where columns repeat each other.
    by_class : array (n_columns, n_classes)
        The same for the score of each class.
    directions : array (n_columns, n_classes)
        Between -1 and 1: near 1 where a larger value always raises the score of the class, near -1
        where it always lowers it, near 0 where it depends.
    classes : array (n_classes,)
        The classes, in the order of the scores.
    n_samples : int
        Samples whose values were swapped.
    """

    view: str
    columns: np.ndarray
    importances: np.ndarray
    by_class: np.ndarray
    directions: np.ndarray
    classes: np.ndarray
    n_samples: int

    def ranking(self, label: Any = None) -> np.ndarray:
        """Numbers (n_columns,) of the columns, most important first.

        Parameters
        ----------
        label : one of ``classes``, optional
            For the score of this class; for all of them if None.
        """
        return np.argsort(-self._worth(label), kind="stable")

    def summary(self, most: int = 10) -> str:
        """The first columns, at most ``most``, and the class that each tells most of."""
        listed = self.ranking()[:most]
        head = (
            f"{self.view}: what the class scores of this view lose if the values of a column are "
            f"swapped between {self.n_samples} samples"
        )
        lines = [self._told(column) for column in listed[self.importances[listed] > 0]]
        if not self.importances.any():
            lines = ["  no column makes a difference"]
        return "\n".join([head, *lines])

    def records(self) -> list[dict[str, Any]]:
        """A row per column and class, most important columns first, for a frame or a file."""
        return [
            {
                "column": self.columns[j],
                "importance": float(self.importances[j]),
                "class": self.classes[c],
                "importance_for_class": float(self.by_class[j, c]),
                "direction": float(self.directions[j, c]),
            }
            for j in self.ranking()
            for c in range(len(self.classes))
        ]

    def plot(self, label: Any = None, most: int = 15, ax: Axes | None = None) -> Axes:
        """Draw the most important columns; see `viewmend.plot.plot_columns`.

        Parameters
        ----------
        label : one of ``classes``, optional
            For the score of this class, with colours for larger values that raise or lower it; for
            all classes if None.
        most : int, default=15
            How many columns to draw.
        ax : matplotlib Axes, optional
            A new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        first = self.ranking(label)[:most]
        signs = None if label is None else self.directions[first, self._code(label)]
        return plot_columns(self.columns[first], self._worth(label)[first], signs, ax)

    def __repr__(self) -> str:
        return (
            f"<ViewExplanation of {len(self.columns)} columns of {self.view}; print its summary()>"
        )

    def _told(self, column: int) -> str:
        best = int(np.argmax(self.by_class[column]))
        kind = "column " if np.issubdtype(self.columns.dtype, np.integer) else ""
        return (
            f"  {kind}{self.columns[column]}: {self.importances[column]:.1%}; most for class "
            f"{self.classes[best]}, {self.by_class[column, best]:.1%}, "
            f"{_direction(self.directions[column, best])}"
        )

    def _worth(self, label: Any) -> np.ndarray:
        return self.importances if label is None else self.by_class[:, self._code(label)]

    def _code(self, label: Any) -> int:
        names = self.classes.tolist()
        if label not in names:
            msg = f"label must be one of the classes {short(names)}, got {short(label)}; name one"
            raise InvalidParameterError(msg)
        return int(names.index(label))


def _direction(value: float) -> str:
    """What a larger value of a column does, in words."""
    if abs(value) < 0.5:
        return "which larger values raise or lower"
    return f"which larger values {'raise' if value > 0 else 'lower'}"


class ViewColumnsMixin:
    """``explain_view`` of a `viewmend.MendClassifier`."""

    # Of MendClassifier.
    classes_: np.ndarray
    view_names_: tuple[str, ...]
    fitted_state_: MendState
    n_jobs: int | None
    _check_predict: Callable[[Any, Any], MultiViewData]

    def explain_view(
        self,
        view: str | int,
        X: Any = None,
        mask: ArrayLike | None = None,
        n_samples: int | None = None,
    ) -> ViewExplanation:
        """Columns of a view that the class scores of its regression come from.

        In one column, every sample gets the value of another sample. The change of the scores is
        compared with that of swapping all columns. Nothing is refitted, and labels and classes of
        the samples do not matter. This explains the regression on this view only, not the graph
        or the other views.

        Parameters
        ----------
        view : str or int
            Name of the view, or its number.
        X : views of new samples, in any form that ``fit`` takes but Dask collections, optional
            Samples to swap values of; None for the samples of ``fit``.
        mask : array (n_new, n_views) of bool, optional
            False where a new sample does not have a view; replaces rows of NaN.
        n_samples : int, optional
            Largest number of samples whose values are swapped; they are chosen by their content.
            The time grows with this number and with the number of columns. By default 128, or 10
            times the number of classes if that is more: the score of a class varies little among
            samples of which none is of this class.

        Returns
        -------
        ViewExplanation
        """
        check_is_fitted(self)
        v = self._number_of_view(view)
        if not _ROWS.accepts(n_samples):
            msg = f"n_samples must be {_ROWS.expected}, got {short(n_samples)}; leave it out"
            raise InvalidParameterError(msg)
        fitted = self.fitted_state_.induction.views[v]
        if fitted.regression is None:
            msg = (
                "explain_view needs the regressions on the views, which n_rounds=0 leaves out; fit "
                "with n_rounds=1 or more"
            )
            raise InvalidParameterError(msg)
        rows = None if X is None else self._new_rows(v, X, mask)
        most = max(SWAPPED, PER_CLASS * len(self.classes_)) if n_samples is None else n_samples
        with limited_threads(self.n_jobs), serial_blas():
            effects = column_effects(fitted, rows, most)
        return told_columns(self, v, effects)

    def _number_of_view(self, view: object) -> int:
        names = self.view_names_
        if isinstance(view, str) and view in names:
            return names.index(view)
        if _NUMBER.accepts(view) and int(view) < len(names):  # type: ignore[call-overload]
            return int(view)  # type: ignore[call-overload]
        msg = (
            f"view must be one of {short(list(names))}, or its number, got {short(view)}; name one"
        )
        raise InvalidParameterError(msg)

    def _new_rows(self, v: int, X: Any, mask: ArrayLike | None) -> Any:
        """Rows of new samples that a view has, two at least."""
        if is_lazy(X):
            msg = (
                "explain_view takes views in memory, got Dask collections; pass some of the "
                "samples as arrays, or leave X out for samples of fit"
            )
            raise InvalidParameterError(msg)
        data = self._check_predict(X, mask)
        seen = np.flatnonzero(data.observed[:, v])
        if len(seen) < 2:
            msg = (
                f"explain_view needs two samples or more that have view {self.view_names_[v]!r}, "
                f"got {len(seen)}; pass more samples, or leave X out for samples of fit"
            )
            raise InvalidParameterError(msg)
        return data.views[v][seen]


def told_columns(model: Any, v: int, effects: ColumnEffects) -> ViewExplanation:
    """Effects of the columns of view ``v`` as shares, with names."""
    name, n_columns = model.view_names_[v], len(effects.lost)
    columns = columns_of_fit(model).get(name)
    total = float(effects.variances.sum())
    some = effects.variances > 0
    by_class = effects.lost / np.where(some, effects.variances, 1) * some
    return ViewExplanation(
        view=name,
        columns=np.arange(n_columns) if columns is None else columns,
        importances=effects.lost.sum(axis=1) / (total if total > 0 else 1),
        by_class=by_class,
        directions=effects.directions,
        classes=model.classes_,
        n_samples=effects.n_samples,
    )
