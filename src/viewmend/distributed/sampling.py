"""One look at every chunk, and a bounded sample that depends on contents alone."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from viewmend.core.common.content_order import canonical_order, sample_hashes
from viewmend.data.container import MultiViewData
from viewmend.data.input_arrays import as_matrix, view_title
from viewmend.data.magnitudes import check_seen, kept_dtype
from viewmend.distributed.inputs import ChunkLayout, Chunks, Number, read_chunk
from viewmend.distributed.rows import DaskRows
from viewmend.exceptions import DataWarning, InvalidViewsError

# Notes of the chunks that are passed on as warnings.
MOST_NOTES = 3


@dataclass(frozen=True, eq=False)
class Survey:
    """What is known of all rows after one pass."""

    observed: np.ndarray  # samples (n_views,) that every view observed
    content: int  # hash of all that was observed, and of its order
    keys: np.ndarray  # the smallest hashes of samples, each once: at most sample_rows, of uint64
    notes: list[str]  # what there is to warn of
    ends: list[np.ndarray]  # smallest and largest of every column (2, n_features_v), as given


@dataclass(frozen=True, eq=False)
class Sample:
    """Samples in memory: all of them, in their order, or some, in that of their content."""

    data: MultiViewData
    codes: np.ndarray  # (n_rows,)
    complete: bool  # whether these are all
    labelled_hashes: np.ndarray  # (n_labelled,): content of all labelled samples, in their order


def survey_chunks(chunks: Chunks, sample_rows: int, runner: DaskRows) -> Survey:
    """Read and check every chunk once; warn of what its rows give cause to.

    Errors name the chunk that cannot be used, or the view that no sample has.
    """
    shared = chunks.layout, sample_rows
    columns, merge = (chunks.parts, chunks.numbers), partial(merged, sample_rows)
    try:
        survey: Survey = runner.sums(surveyed, *columns, shared=shared, combine=merge)
    except InvalidViewsError:
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
    chunks: Chunks, codes: np.ndarray, survey: Survey, sample_rows: int, runner: DaskRows
) -> Sample:
    """All samples where they are at most ``sample_rows``, else those of the smallest hashes."""
    complete = chunks.n_samples <= sample_rows
    last = np.uint64(2**64 - 1) if complete else survey.keys[-1]
    columns = chunks.parts, chunks.split(codes), chunks.numbers
    gathered = runner.gather(sampled, *columns, shared=(chunks.layout, last, complete))
    views = tuple(np.concatenate(rows) for rows in zip(*(p[0] for p in gathered), strict=True))
    observed, codes, labelled = (np.concatenate([part[i] for part in gathered]) for i in (1, 2, 3))
    if complete:
        data = MultiViewData(views, observed, chunks.layout.names)
        return Sample(data, codes, complete, labelled)
    # Contents that several chunks have count once, and come in an order of their own.
    order = canonical_order(views, observed, codes)
    _, first = np.unique(sample_hashes(views, observed)[order], return_index=True)
    rows = order[first]
    data = MultiViewData(tuple(view[rows] for view in views), observed[rows], chunks.layout.names)
    return Sample(data, codes[rows], complete, labelled)


def surveyed(parts: Any, number: Number, shared: tuple[ChunkLayout, int]) -> Survey:
    """`Survey` of one chunk."""
    layout, sample_rows = shared
    data, notes = read_chunk(parts, number, layout)
    hashes = sample_hashes(data.views, data.observed)
    places = 2 * (number[1] + np.arange(len(hashes), dtype=np.uint64)) + np.uint64(1)
    content = int((hashes * places).sum(dtype=np.uint64))
    keys = np.unique(hashes)[:sample_rows]
    ends = [_ends(part, seen) for part, seen in zip(parts, data.observed.T, strict=False)]
    return Survey(data.observed.sum(axis=0), content, keys, notes, ends)


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


def merged(sample_rows: int, parts: Sequence[Survey]) -> Survey:
    """`Survey` of several chunks."""
    keys = np.unique(np.concatenate([part.keys for part in parts]))[:sample_rows]
    return Survey(
        observed=np.sum([part.observed for part in parts], axis=0),
        content=sum(part.content for part in parts) % 2**64,
        keys=keys,
        notes=[note for part in parts for note in part.notes],
        ends=[
            np.stack([np.fmin.reduce(ends)[0], np.fmax.reduce(ends)[1]])
            for ends in zip(*(part.ends for part in parts), strict=True)
        ],
    )


def sampled(
    parts: Any, codes: np.ndarray, number: Number, shared: tuple[ChunkLayout, np.uint64, bool]
) -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray, np.ndarray]:
    """Views, ``observed`` and codes of rows of a chunk that are in the sample; labelled hashes."""
    layout, last, complete = shared
    data, _ = read_chunk(parts, number, layout)
    hashes = sample_hashes(data.views, data.observed)
    rows = np.arange(len(hashes)) if complete else np.unique(hashes, return_index=True)[1]
    rows = rows[hashes[rows] <= last]
    views = tuple(view[rows] for view in data.views)
    return views, data.observed[rows], codes[rows], hashes[codes >= 0]


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
