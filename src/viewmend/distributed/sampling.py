"""One look at every chunk, and a bounded sample that depends on contents alone."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from viewmend.core.common.content_order import drawn_rows, hashes_by_view
from viewmend.data.container import MultiViewData
from viewmend.data.input_arrays import as_matrix, view_title
from viewmend.data.magnitudes import check_seen, kept_dtype
from viewmend.distributed.inputs import ChunkLayout, Chunks, Number, read_chunk
from viewmend.distributed.rows import DaskRows
from viewmend.exceptions import DataWarning, InvalidViewsError, LostFitError

# Notes of the chunks that are passed on as warnings.
MOST_NOTES = 3


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows (n_drawn,) in canonical order: their numbers, hashes, codes, and which came first."""

    rows: np.ndarray
    hashes: np.ndarray
    codes: np.ndarray
    first: np.ndarray

    def thinned(self, size: int) -> Drawn:
        """The sample of at most ``size`` of these; see `drawn_rows`."""
        kept = drawn_rows(self.hashes, self.codes, self.first, size)
        return Drawn(*(array[kept] for array in self.arrays))

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.rows, self.hashes, self.codes, self.first


@dataclass(frozen=True)
class Draw:
    """How a sample is drawn: at most ``size`` rows, of which those with labels may come first."""

    size: int
    labelled_first: bool = False


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of all rows after one pass."""

    observed: np.ndarray  # samples (n_views,) that every view observed
    content: np.ndarray  # hashes (n_views,) of all that was observed, and of its order
    drawn: Drawn  # the rows of a sample, if not all rows are one
    labelled_hashes: np.ndarray  # (n_labelled,): content of all labelled rows, in their order
    notes: list[str]  # what there is to warn of
    ends: list[np.ndarray]  # smallest and largest of every column (2, n_features_v), as given


@dataclass(frozen=True, eq=False)
class Sample:
    """Samples in memory: all of them, in their order, or some, in that of their content."""

    data: MultiViewData
    codes: np.ndarray  # (n_rows,)
    rows: np.ndarray  # (n_rows,): their numbers among all samples
    complete: bool  # whether these are all
    labelled_hashes: np.ndarray  # (n_labelled,): content of all labelled samples, in their order


def survey_chunks(chunks: Chunks, codes: np.ndarray, draw: Draw, runner: DaskRows) -> Survey:
    """Read and check every chunk once; warn of what its rows give cause to.

    ``codes`` (n_samples,) are those of the labels. Errors name the chunk that cannot be used, or
    the view that no sample has.
    """
    shared = chunks.layout, draw
    columns = chunks.parts, chunks.split(codes), chunks.numbers
    merge = partial(merged, draw.size)
    try:
        survey: Survey = runner.sums(surveyed, *columns, shared=shared, combine=merge)
    except (InvalidViewsError, LostFitError):
        # To read the chunks one by one would end the workers that are left.
        raise
    except Exception as error:
        raise _unreadable(chunks, error) from error
    for note in survey.notes[:MOST_NOTES]:
        warnings.warn(note, DataWarning, stacklevel=5)
    for name, count in zip(chunks.layout.names, survey.observed, strict=True):
        if not count:
            msg = (
                f"view {name!r} has no observed sample: expected at least one row that is neither "
                f"NaN, masked nor all zero, got {chunks.n_samples} missing rows; leave it out"
            )
            raise InvalidViewsError(msg)
    for name, ends in zip(chunks.layout.names, survey.ends, strict=True):
        _check_ends(ends, chunks.layout.dtype, view_title(name))
    return survey


def gather_sample(
    chunks: Chunks, codes: np.ndarray, survey: Survey, draw: Draw, runner: DaskRows
) -> Sample:
    """All samples where they are at most as many as are drawn, else those that were drawn."""
    complete = chunks.n_samples <= draw.size
    rows = np.arange(chunks.n_samples) if complete else survey.drawn.rows
    columns = chunks.parts, chunks.numbers, chunks.parted(np.sort(rows))
    gathered = runner.gather(taken_rows, *columns, shared=chunks.layout)
    # From the order of the chunks to that of the sample.
    back = np.argsort(np.argsort(rows))
    views = tuple(
        np.concatenate(part)[back] for part in zip(*(p[0] for p in gathered), strict=True)
    )
    observed = np.concatenate([part[1] for part in gathered])[back]
    data = MultiViewData(views, observed, chunks.layout.names)
    return Sample(data, codes[rows], rows, complete, survey.labelled_hashes)


def surveyed(
    parts: Any, codes: np.ndarray, number: Number, shared: tuple[ChunkLayout, Draw]
) -> Survey:
    """`Survey` of one chunk."""
    layout, draw = shared
    data, notes = read_chunk(parts, number, layout)
    by_view = np.stack(hashes_by_view(data.views, data.observed))
    hashes = by_view.sum(axis=0, dtype=np.uint64)
    rows = number[1] + np.arange(len(hashes))
    places = 2 * rows.astype(np.uint64) + np.uint64(1)
    labelled = codes >= 0
    everyone = Drawn(rows, hashes, codes, labelled & draw.labelled_first)
    ends = [_ends(part, seen) for part, seen in zip(parts, data.observed.T, strict=False)]
    return Survey(
        observed=data.observed.sum(axis=0),
        content=(by_view * places).sum(axis=1, dtype=np.uint64),
        drawn=everyone.thinned(draw.size),
        labelled_hashes=hashes[labelled],
        notes=notes,
        ends=ends,
    )


def _check_ends(ends: np.ndarray, dtype: DTypeLike, title: str) -> None:
    """Refuse a view whose numbers are too small, or that its number type cannot hold."""
    check_seen(ends, np.ones(2, dtype=bool), title)
    if kept_dtype(ends, dtype) != dtype:
        msg = (
            f"{title} cannot be held in {dtype}: expected columns that vary by more than a "
            f"thousandth of their values, and values between 1e-12 and 1e12; set dtype='float64', "
            f"or centre and rescale the view"
        )
        raise InvalidViewsError(msg)


def _ends(part: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Smallest and largest (2, n_features) of the observed rows; NaN where there are none."""
    rows = as_matrix(part, "a view", np.float64)[observed]
    return np.stack([extreme.reduce(rows, initial=np.nan) for extreme in (np.fmin, np.fmax)])


def merged(size: int, parts: Sequence[Survey]) -> Survey:
    """`Survey` of several chunks."""
    drawn = zip(*(part.drawn.arrays for part in parts), strict=True)
    return Survey(
        observed=np.sum([part.observed for part in parts], axis=0),
        content=np.asarray(np.sum([part.content for part in parts], axis=0, dtype=np.uint64)),
        drawn=Drawn(*map(np.concatenate, drawn)).thinned(size),
        labelled_hashes=np.concatenate([part.labelled_hashes for part in parts]),
        notes=[note for part in parts for note in part.notes],
        ends=[
            np.stack([np.fmin.reduce(ends)[0], np.fmax.reduce(ends)[1]])
            for ends in zip(*(part.ends for part in parts), strict=True)
        ],
    )


def taken_rows(
    parts: Any, number: Number, rows: np.ndarray, layout: ChunkLayout
) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Views and ``observed`` of some rows of a chunk."""
    data, _ = read_chunk(parts, number, layout)
    return tuple(view[rows] for view in data.views), data.observed[rows]


def _unreadable(chunks: Chunks, error: Exception) -> Exception:
    """The error with the chunk it came from, found by reading them one by one."""
    import dask

    for (index, start), parts, size in zip(chunks.numbers, chunks.parts, chunks.sizes, strict=True):
        try:
            dask.compute(*parts)
        except Exception as cause:
            msg = (
                f"chunk {index} (rows {start} to {start + size - 1} of the data) cannot be read: "
                f"{type(cause).__name__}: {cause}; repair its file or leave it out"
            )
            return InvalidViewsError(msg)
    return error
