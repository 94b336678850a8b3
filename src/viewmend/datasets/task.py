"""From complete, labelled data to a task with missing views and few labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from viewmend.data.container import MultiViewData
from viewmend.data.labels import UNLABELLED
from viewmend.data.validation import check_complete_data
from viewmend.datasets.labels import LABEL_PROTOCOLS
from viewmend.datasets.missing import MISSING_PROTOCOLS
from viewmend.exceptions import InvalidParameterError
from viewmend.parameters import choose


@dataclass(frozen=True, eq=False)
class Task:
    """Data with missing views and few labels, and the true classes for scoring.

    Fit on ``data``; score the prediction on the rows ``unlabelled`` against ``y_true``.

    Attributes
    ----------
    data : MultiViewData
        Float64 views; rows of missing (sample, view) pairs are NaN. Its labels are those of ``y``;
        it does not contain ``y_true``.
    y : array (n_samples,) of int
        Class of the labelled samples, -1 for all others.
    y_true : array (n_samples,) of int
        Class of every sample. For scoring only: a model must never be given it, neither to fit
        nor to choose its parameters.
    order : array (n_samples,) of int
        Row ``i`` of the task is row ``order[i]`` of the original data.
    """

    data: MultiViewData
    y: np.ndarray
    y_true: np.ndarray
    order: np.ndarray

    def __post_init__(self) -> None:
        # A model is handed the data, and must not find in it what it is to predict.
        object.__setattr__(self, "data", replace(self.data, y=self.y))

    @property
    def labelled(self) -> np.ndarray:
        """Samples whose class the model may see, (n_samples,) of bool."""
        mask: np.ndarray = self.y != UNLABELLED
        return mask

    @property
    def unlabelled(self) -> np.ndarray:
        """Samples whose class is to be predicted, (n_samples,) of bool."""
        return ~self.labelled

    def __repr__(self) -> str:
        n_classes = np.unique(self.y_true).size
        return f"Task({np.sum(self.labelled)} labelled, {n_classes} classes; {self.data!r})"


def hide(  # noqa: PLR0913 - the two rates, their protocols and the row order are one experiment
    views: MultiViewData | Sequence[ArrayLike],
    y: ArrayLike | None = None,
    *,
    missing_rate: float,
    label_rate: float,
    missing: str = "independent",
    labels: str = "random",
    order: str = "shuffled",
    random_state: int | np.random.Generator | None = None,
    view_names: Sequence[str] | None = None,
) -> Task:
    """Hide views and labels of complete data, to test methods.

    What is hidden does not depend on ``order``: for one ``random_state`` the three orders have the
    same missing views and the same labels, in different rows. In the same way, the missing views do
    not change with ``label_rate`` or ``labels``, nor the order of the rows with either rate.

    Parameters
    ----------
    views : MultiViewData, or sequence of array-like (n_samples, n_features_v)
        Complete data: finite numbers, the same samples in the same rows of every view.
    y : array-like (n_samples,) of int, optional
        True classes, non-negative integers; those of a MultiViewData if left out.
    missing_rate : float in [0, 1)
        Share of the views, or of the samples, that goes missing; see ``missing``.
    label_rate : float in (0, 1]
        Share of every class that keeps its label, rounded up.
    missing : {"independent", "samples"}
        How views go missing. "independent" drops every pair of a sample and a view with probability
        ``missing_rate``; "samples" makes this share of the samples incomplete. Every sample keeps
        at least one view. A key of `viewmend.datasets.MISSING_PROTOCOLS`.
    labels : {"random", "most_complete"}
        Which samples of every class keep their label: random ones, or those with the most views. A
        key of `viewmend.datasets.LABEL_PROTOCOLS`.
    order : {"shuffled", "file", "released"}
        Order of the rows of the task. Use ``"shuffled"`` for a fair test: most benchmark files are
        sorted by class, and a method that treats neighbouring rows alike then learns the classes
        from the row numbers. ``"file"`` keeps the rows as given. ``"released"`` puts the labelled
        rows first, as the label protocol returns them, then all others as given; this is the layout
        of the code released with AGF-TI.
    random_state : int, numpy Generator or None
        An int gives the same task every time. A Generator gives a new task on every call.
    view_names : sequence of str, optional
        One name per view; by default those of a MultiViewData, or ``view 0``, ``view 1``, ...

    Returns
    -------
    Task
    """
    complete = _complete_data(views, y, view_names)
    n_samples, n_views = complete.observed.shape
    drop = choose(MISSING_PROTOCOLS, missing, "missing")
    select = choose(LABEL_PROTOCOLS, labels, "labels")
    arrange = choose(ROW_ORDERS, order, "order")

    # One stream per choice, so that changing one leaves the others as they were.
    order_rng, missing_rng, label_rng = np.random.default_rng(random_state).spawn(3)
    observed = drop(n_samples, n_views, missing_rate, missing_rng)
    labelled = select(complete.required_labels(), label_rate, observed, label_rng)
    rows = arrange(n_samples, labelled, order_rng)
    return make_task(replace(complete, observed=observed), labelled, rows)


def _complete_data(
    views: MultiViewData | Sequence[ArrayLike],
    y: ArrayLike | None,
    view_names: Sequence[str] | None,
) -> MultiViewData:
    """All that is to be hidden from, under the names asked for."""
    if y is None and isinstance(views, MultiViewData):
        y = views.y
    complete = check_complete_data(views, y)
    if view_names is None:
        return complete
    if isinstance(view_names, str) or len(view_names) != complete.n_views:
        msg = (
            f"view_names must be a sequence of {complete.n_views} names, one per view, but is "
            f"{view_names!r}; pass that many names or None"
        )
        raise InvalidParameterError(msg)
    return replace(complete, names=tuple(view_names))


def make_task(complete: MultiViewData, labelled: np.ndarray, order: np.ndarray) -> Task:
    """Blank the unobserved rows and the labels of unlabelled samples, then reorder the rows.

    ``complete`` has views still filled where ``observed`` says they are missing, and the true
    classes; it is not modified. Rows ``labelled`` keep their label. Row ``i`` of the task is row
    ``order[i]`` of the data.
    """
    y_true = complete.required_labels()
    y = np.full_like(y_true, UNLABELLED)
    y[labelled] = y_true[labelled]
    data = complete[order]  # indexing copies, so the caller's arrays stay whole
    for view, seen in zip(data.views, data.observed.T, strict=True):
        view[~seen] = np.nan
    return Task(data=data, y=y[order], y_true=y_true[order], order=order)


def _labelled_first(n_samples: int, labelled: np.ndarray, _rng: np.random.Generator) -> np.ndarray:
    others = np.setdiff1d(np.arange(n_samples), labelled)
    return np.concatenate([labelled, others])


RowOrder = Callable[[int, np.ndarray, np.random.Generator], np.ndarray]

ROW_ORDERS: dict[str, RowOrder] = {
    "shuffled": lambda n_samples, _labelled, rng: rng.permutation(n_samples),
    "file": lambda n_samples, _labelled, _rng: np.arange(n_samples),
    "released": _labelled_first,
}
