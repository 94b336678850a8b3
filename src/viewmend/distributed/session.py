"""A cluster for one fit: found by its address, or started and ended with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from viewmend.data.cells import fill_cells, learn_fills
from viewmend.data.container import MultiViewData
from viewmend.distributed.mixin import DaskMixin, LazyGraphsMixin
from viewmend.exceptions import InvalidParameterError

# What stands for an address where the processes are to be started here.
LOCAL = "local"
BLOCK_ROWS = 25_000


@contextmanager
def fitting_on(
    address: str | None, memory_limit: str | None = None
) -> Iterator[Callable[..., Any]]:
    """A callable (model, data, y, groups) that fits data in memory, over the workers of a cluster.

    The address is that of a scheduler of Dask, or "local" for one process per core of this
    machine, each with a memory limit as in "2GiB"; None fits in this process. The model comes back
    with its graphs in memory.
    """
    if memory_limit is not None and address != LOCAL:
        msg = (
            f"memory_limit={memory_limit!r} is for workers that are started here, got the address "
            f"{address!r}; pass {LOCAL!r}, or limit the workers where they are started"
        )
        raise InvalidParameterError(msg)
    if address is None:
        yield _fit_here
        return
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "memory_limit": memory_limit or "auto"}
    if address == LOCAL:
        with LocalCluster(**options) as cluster, Client(cluster):
            yield _fit_in_blocks
    else:
        with Client(address):
            yield _fit_in_blocks


def _fit_here(model: Any, data: MultiViewData, y: Any, groups: Any = None) -> Any:
    # Methods that hold no labels out know no groups.
    return model.fit(data, y) if groups is None else model.fit(data, y, groups=groups)


def _fit_in_blocks(model: object, data: MultiViewData, y: Any, groups: Any = None) -> Any:
    import dask.array as da

    if not isinstance(model, DaskMixin):
        msg = (
            f"{type(model).__name__} cannot be fitted over workers, only MendClassifier and "
            f"AGFTIClassifier can; choose one of them, or fit without a cluster"
        )
        raise InvalidParameterError(msg)
    fills = learn_fills(data, model.missing_cells)
    data = fill_cells(data, fills)
    chunks = (min(BLOCK_ROWS, data.n_samples), -1)
    views = tuple(da.from_array(view, chunks=chunks) for view in data.views)
    # With identifiers and names of columns, which predictions and explanations go by.
    model.fit(replace(data, views=views), y, groups=groups)
    # Of all samples, which no block has.
    model.cell_fills_ = fills
    return model.load_graphs() if isinstance(model, LazyGraphsMixin) else model
