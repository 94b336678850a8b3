"""Between rows and what follows from sums of them: small arrays to and from where the rows are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from viewmend.backend.namespace import Array, array_namespace, fetched
from viewmend.backend.threads import blocks_for, for_each


def on_host(sums: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Sums by name as NumPy arrays of float64; those of a GPU in one transfer."""
    arrays = fetched(list(sums.values()))
    return {
        name: np.asarray(array, dtype=np.float64) for name, array in zip(sums, arrays, strict=True)
    }


def beside(values: Any, rows: Array) -> Array:
    """Small ``values`` as an array of the library, the device and the type of ``rows``."""
    return array_namespace(rows).asarray(values, dtype=rows.dtype, device=rows.device)


def total(X: Array, axis: int | tuple[int, ...] | None = 0) -> Array:
    """Sum in double precision."""
    xp = array_namespace(X)
    return xp.sum(X, axis=axis, dtype=xp.float64)


def summed_in_pieces(
    work: Callable[[slice], Mapping[str, Any]], rows: Array, parts: Sequence[slice] | None = None
) -> dict[str, Any]:
    """Sums over ``parts`` of the rows of the numbers that ``work`` answers by name, on all threads.

    The order in which they are added is the same whatever the number of threads. The parts are
    such that a cache holds their rows, unless they are given.
    """
    xp = array_namespace(rows)
    if parts is None:
        parts = blocks_for(rows.shape[0], int(np.prod(rows.shape[1:])), xp)
    pieces = for_each(work, parts, xp)
    return {name: sum(piece[name] for piece in pieces) for name in pieces[0]}
