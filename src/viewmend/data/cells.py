"""Fill missing cells of rows that are otherwise there, as learned from the samples of fit.

Every view is filled separately, from its own observed rows. The order of the rows does not matter,
and a new row is filled independently of other new rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import issparse

from viewmend.backend.numba_scans import column_ends, count_missing_cells
from viewmend.backend.threads import serial_blas
from viewmend.core.common.content_order import bottom_rows
from viewmend.core.common.soft_impute import SubspaceShrink, complete, fill_hidden
from viewmend.data.container import MultiViewData
from viewmend.data.input_arrays import some_of, view_title
from viewmend.exceptions import DataWarning, InvalidViewsError
from viewmend.parameters import short

# Of "low_rank": components, singular values as a share of the largest below which they count as
# noise, rounds, and the relative change that ends them. See benchmarks/missing_cells.py.
RANK, SHRINKAGE, ROUNDS, TOL = 64, 0.1, 20, 0.02
# Rows, and entries, of the sample that components are learned from.
SAMPLE_ROWS, SAMPLE_SIZE = 1000, 2**24
# Warnings come from below the estimators' private methods.
_STACKLEVEL = 5


@dataclass(frozen=True, eq=False)
class CellFill:
    """What fills the missing cells of one view.

    A cell becomes ``centre + deviation * (s C)``, for the ridge regression ``s`` of the cells that
    the row has on the components ``C``, within the values that its column had in fit. Without
    components that is the centre.

    Attributes
    ----------
    centres : array (n_features,)
        Medians of the columns or, with components, means.
    lowest, highest : array (n_features,)
        Smallest and largest observed value of every column.
    known : array (n_features,) of bool
        Columns with an observed cell. All others are zero in all samples, also in new ones.
    deviations : array (n_features,)
        Standard deviations of the columns; one where that is zero.
    components : array (rank, n_features)
        The components ``C``.
    threshold : float
        Weight of the ridge.
    """

    centres: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    known: np.ndarray
    deviations: np.ndarray
    components: np.ndarray
    threshold: float

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Rows (n_rows, n_features) without a missing cell; those that are there stay."""
        hidden = np.isnan(rows) | ~self.known
        scaled = np.where(hidden, 0.0, (rows - self.centres) / self.deviations)
        scaled = fill_hidden(scaled, hidden, self.components, self.threshold)
        bounded = np.clip(self.centres + self.deviations * scaled, self.lowest, self.highest)
        return np.where(hidden, bounded, rows).astype(rows.dtype, copy=False)


def _medians(rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Medians (n_features,) of the observed cells of these columns, zero in all others."""
    medians, seen = np.zeros(rows.shape[1]), rows[:, columns].astype(np.float64)
    # The plain one is twice as fast where it will do.
    medians[columns] = (np.nanmedian if np.isnan(seen).any() else np.median)(seen, axis=0)
    return medians


def _by_zeros(view: np.ndarray) -> CellFill:
    """Zeros, as far as the columns hold such values."""
    lowest, highest = column_ends(view)
    zeros, known = np.zeros(view.shape[1]), ~np.isnan(lowest)
    return CellFill(
        centres=zeros,
        lowest=np.where(known, lowest, 0.0).astype(np.float64),
        highest=np.where(known, highest, 0.0).astype(np.float64),
        known=known,
        deviations=zeros + 1.0,
        components=zeros[None][:0],
        threshold=0.0,
    )


def _by_medians(view: np.ndarray, seen: np.ndarray) -> CellFill:
    fill = _by_zeros(view)
    return replace(fill, centres=_medians(view[seen], fill.known))


def _by_low_rank(view: np.ndarray, seen: np.ndarray) -> CellFill:
    fill, sample = _by_zeros(view), _sample(view, seen)
    hidden = np.isnan(sample)
    n_seen = np.sum(~hidden, axis=0)
    centres = np.where(hidden, 0.0, sample).sum(axis=0) / np.maximum(n_seen, 1)
    rare = fill.known & (n_seen == 0)
    if rare.any():
        centres += _medians(view[seen], rare)
    scaled = np.where(hidden, 0.0, sample - centres)
    deviations = np.sqrt(np.sum(scaled**2, axis=0) / np.maximum(n_seen, 1))
    deviations[deviations == 0] = 1.0
    scaled /= deviations
    shrink = SubspaceShrink(scaled, RANK, SHRINKAGE)
    # With nothing hidden the first round is the last.
    found = complete(scaled, hidden, shrink, max_iter=ROUNDS if hidden.any() else 1, tol=TOL)
    fill = replace(fill, centres=centres, deviations=deviations)
    return replace(fill, components=found.components, threshold=shrink.threshold)


def _sample(view: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Some rows, drawn and put in order by their content: the same in any order of the rows."""
    most = min(SAMPLE_ROWS, max(SAMPLE_SIZE // view.shape[1], RANK))
    return view[bottom_rows(view, most, among=seen)].astype(np.float64, copy=False)


# Ways to fill missing cells: from a view (n_samples, n_features), of which rows are ``seen`` and
# others NaN, to what fills such rows.
FILLS: dict[str, Callable[[np.ndarray, np.ndarray], CellFill]] = {
    "low_rank": _by_low_rank,
    "median": _by_medians,
}
# What the parameter ``missing_cells`` can be, the default first.
MISSING_CELLS = (*FILLS, "error")
DEFAULT = MISSING_CELLS[0]
REMEDY = f"set missing_cells={DEFAULT!r} to have the cells filled, fill them first"


def learn_fills(data: MultiViewData, how: str) -> tuple[CellFill, ...]:
    """What fills missing cells, one per view, from the samples of a fit; none for "error"."""
    if how not in FILLS:
        refuse_missing_cells(data)
        return ()
    with serial_blas():
        return tuple(
            # Wide sparse views have no missing cells.
            _by_zeros(np.zeros((1, view.shape[1]))) if issparse(view) else FILLS[how](view, seen)
            for view, seen in zip(data.views, data.observed.T, strict=True)
        )


def fill_cells(data: MultiViewData, fills: Sequence[CellFill]) -> MultiViewData:
    """The data without missing cells in its observed rows; one warning counts what was filled.

    The arrays of the data stay as they are. Without ``fills`` a missing cell is an error.
    """
    if not fills:
        refuse_missing_cells(data)
        return data
    views, notes = list(data.views), []
    for v, fill in enumerate(fills):
        if issparse(views[v]):
            continue
        partly = (count_missing_cells(views[v]) > 0) | (not fill.known.all())
        changed = data.observed[:, v] & partly
        if changed.any():
            notes.append(_note(data, v, np.isnan(views[v][changed]), fill))
            views[v] = views[v].copy()
            with serial_blas():
                views[v][changed] = fill(data.views[v][changed])
    if notes:
        remedy = "missing_cells, or PerView with an imputer, fills them in another way"
        msg = f"{'; '.join(notes)}; {remedy}"
        warnings.warn(msg, DataWarning, stacklevel=_STACKLEVEL)
    return replace(data, views=tuple(views))


def _note(data: MultiViewData, v: int, gone: np.ndarray, fill: CellFill) -> str:
    """What was done to a view, whose changed rows miss the cells ``gone`` (n_rows, n_features)."""
    title, counted = view_title(data.names[v]), gone & fill.known
    how = "from the other cells of their rows" if len(fill.components) else "with column medians"
    n_rows = int(counted.any(axis=1).sum())
    told = f"{title}: {counted.sum()} missing cell(s) in {n_rows} row(s) were filled {how}"
    if fill.known.all():
        return told
    names = range(len(fill.known)) if data.columns is None else data.columns[v]
    empty = [name for name, known in zip(names, fill.known, strict=True) if not known]
    ignored = f"{len(empty)} column(s) had no value in fit and are ignored ({short(empty)})"
    return f"{told}, and {ignored}" if n_rows else f"{title}: {ignored}"


def refuse_missing_cells(data: MultiViewData, remedy: str = REMEDY) -> None:
    """Raise an `InvalidViewsError` if an observed row misses a cell."""
    for v, name in enumerate(data.names):
        if issparse(data.views[v]):
            continue
        partly = data.observed[:, v] & (count_missing_cells(data.views[v]) > 0)
        if partly.any():
            broken = np.flatnonzero(partly) if data.ids is None else data.ids[partly]
            msg = (
                f"{view_title(name)} has {len(broken)} partly NaN row(s) (rows {some_of(broken)}), "
                f"expected complete or all-NaN rows; {remedy}, or mark the rows missing in mask"
            )
            raise InvalidViewsError(msg)
