"""What AGF-TI computes from the views alone: anchors, graphs, and the graph Fourier basis."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from viewmend.backend.namespace import Array, array_namespace
from viewmend.core import Problem, Result
from viewmend.core.agfti.anchor_count import graph_size, largest_power_of_two
from viewmend.core.agfti.anchors import ANCHOR_METHODS, corresponding_anchors
from viewmend.core.agfti.bipartite import anchor_graphs
from viewmend.core.agfti.graph_fourier import graph_spectrum, summed_graph
from viewmend.core.common.content_order import canonical_order, row_hashes
from viewmend.data.container import MultiViewData
from viewmend.data.validation import without_zero_rows
from viewmend.exceptions import DataWarning, InvalidParameterError
from viewmend.memory import check_memory
from viewmend.protocols import AGFTIParameters, Seed

# Penalty at which a good start of the missing rows is left: the fused graph then pulls at a row
# with a tenth of its weight, where the paper's penalty would let it replace the row at once.
WARM_PENALTY = 10.0

# Arrays of the size of the graphs of all views that a round works on at once.
N_GRAPHS = 4

Normalize = Callable[[np.ndarray], np.ndarray]
ToDevice = Callable[[np.ndarray], Array]


@dataclass(frozen=True)
class GraphSize:
    """Anchors per view, neighbours per sample, how anchors are drawn, number type of the graphs."""

    n_anchors: int
    n_neighbors: int
    anchor_method: str
    dtype: str


def check_graph_size(p: AGFTIParameters, data: MultiViewData) -> GraphSize:
    """Anchors per view and neighbours per sample, limited by the smallest view and the memory."""
    m, k = _possible_size(data, p.n_anchors, p.n_neighbors, p.anchor_method)
    n_rows = data.observed.size
    what = f"for {N_GRAPHS} graphs of {n_rows} rows and {m} anchors"
    n_bytes = N_GRAPHS * np.dtype(p.dtype).itemsize * n_rows * m
    check_memory(n_bytes, type(p).__name__, what, "lower n_anchors, or pass Dask arrays")
    return GraphSize(m, k, p.anchor_method, p.dtype)


def _possible_size(
    data: MultiViewData, n_anchors: int | Literal["auto"], n_neighbors: int, anchor_method: str
) -> tuple[int, int]:
    """Anchors and neighbours; an error if the method cannot draw as many, or fewer than two."""
    poorest = int(np.argmin(data.observed.sum(axis=0)))
    name, n_rows = data.names[poorest], int(data.observed[:, poorest].sum())
    m, k = graph_size(n_anchors, n_neighbors, n_rows)
    balanced = anchor_method == "bkhk"
    lowered = n_anchors not in ("auto", m)
    if balanced and m != (below := largest_power_of_two(m)):
        msg = (
            f"n_anchors of BKHK must be a power of two, got {m}; take {below} or "
            f"{2 * below}, or anchor_method='kmeans'"
        )
        raise InvalidParameterError(msg)
    if m < 2 or (lowered and not balanced):
        msg = (
            f"n_anchors is {n_anchors!r} but {name} has {n_rows} observed samples, and at "
            f"least 2 anchors are needed; lower n_anchors or leave out that view"
        )
        raise InvalidParameterError(msg)
    if lowered:
        msg = (
            f"n_anchors lowered from {n_anchors} to {m}: {name} has only {n_rows} observed samples"
        )
        warnings.warn(msg, DataWarning, stacklevel=5)
    return m, k


@dataclass(frozen=True, eq=False)
class AnchorGeometry:
    """The samples without their labels."""

    # (n_samples,): row i of all that follows is row order[i] of the data.
    order: np.ndarray
    observed: np.ndarray  # (n_samples, n_views) of bool
    anchors: tuple[Array, ...]  # (n_anchors, n_features_v)
    # (n_views, n_samples, n_anchors): rows of missing samples hold the start of their imputation.
    graphs: Array
    # Graph Fourier basis (n_samples, n_frequencies) of the tensor step; None for the Fourier
    # transform along the rows.
    waves: Array | None
    n_neighbors: int
    # Copies NumPy arrays, as order and mask are, to the device of anchors and graphs.
    to_device: ToDevice

    def started(self, problem: Problem) -> Problem:
        """The problem with what corresponding anchors give: no rotation, and a good start."""
        if self.waves is None:
            return problem
        without = problem.without | {"alignment"}
        return replace(problem, U=self.waves, G=problem.Z, eta=WARM_PENALTY, without=without)

    def restored(self, result: Result) -> Result:
        """The result with its samples in the order of the data."""
        xp, inverse_order = array_namespace(result.Z), self.to_device(np.argsort(self.order))
        F, P = (xp.take(array, inverse_order, axis=0) for array in (result.F, result.P))
        return replace(result, F=F, P=P, Z=xp.take(result.Z, inverse_order, axis=1))


def graph_geometry(
    data: MultiViewData,
    codes: np.ndarray,
    normalize: Normalize,
    size: GraphSize,
    seed: Seed,
    to_device: ToDevice,
) -> AnchorGeometry:
    """Corresponding anchors and the graph Fourier basis; neither depends on an order of rows.

    Samples are sorted by their content, and views are taken in the order of theirs, so that
    draws fall alike however the data came. ``codes`` (n_samples,) tell samples of equal content
    apart, and nothing else.
    """
    order = canonical_order(data.views, data.observed, codes)
    contents = _view_contents(data)
    view_order = np.argsort(contents, kind="stable")
    views = [to_device(normalize(data.views[v][order])) for v in view_order]
    seen = data.observed[np.ix_(order, view_order)]
    xp, observed = array_namespace(*views), to_device(seen)
    inverse_view_order = np.argsort(view_order)
    anchors, common = _drawn_anchors(views, observed, contents[view_order], size, seed)
    graphs = anchor_graphs(views, observed, anchors, size.n_neighbors)
    graphs = xp.where(observed.T[:, :, None], graphs, common)
    graphs = xp.astype(graphs, getattr(xp, size.dtype), copy=False)
    waves = graph_spectrum(summed_graph(graphs, observed), size.n_anchors).U
    return AnchorGeometry(
        order=order,
        observed=seen[:, inverse_view_order],
        anchors=tuple(anchors[v] for v in inverse_view_order),
        graphs=xp.take(graphs, to_device(inverse_view_order), axis=0),
        waves=xp.astype(waves, graphs.dtype, copy=False),
        n_neighbors=size.n_neighbors,
        to_device=to_device,
    )


def fourier_geometry(
    data: MultiViewData,
    _codes: np.ndarray,
    normalize: Normalize,
    size: GraphSize,
    seed: Seed,
    to_device: ToDevice,
) -> AnchorGeometry:
    """The paper's: every view draws its own anchors, missing rows start uniform, rows as given."""
    rng, select = np.random.default_rng(seed), ANCHOR_METHODS[size.anchor_method]
    views = [to_device(normalize(view)) for view in data.views]
    observed = to_device(data.observed)
    seen = [view[observed[:, v]] for v, view in enumerate(views)]
    anchors = tuple(select(rows, size.n_anchors, rng) for rows in seen)
    xp, graphs = array_namespace(*views), anchor_graphs(views, observed, anchors, size.n_neighbors)
    graphs = xp.astype(graphs, getattr(xp, size.dtype), copy=False)
    rows = np.arange(data.n_samples)
    return AnchorGeometry(rows, data.observed, anchors, graphs, None, size.n_neighbors, to_device)


IMPUTATIONS: dict[str, Callable[..., AnchorGeometry]] = {
    "graph": graph_geometry,
    "fourier": fourier_geometry,
}


# How rows are read, by what the parameter ``compat`` may be. To the authors' code a row of zeros is
# a missing one.
COMPATIBLE_ROWS: dict[str | None, Callable[[MultiViewData], MultiViewData]] = {
    None: lambda data: data,
    "released": lambda data: without_zero_rows(data, "to the released code"),
}


def _drawn_anchors(
    views: Sequence[Array], observed: Array, contents: np.ndarray, size: GraphSize, seed: Seed
) -> tuple[list[Array], Array]:
    """`corresponding_anchors`, every draw seeded by the seed and by what is drawn from."""
    entropy = int(np.random.default_rng(seed).integers(2**32))
    select = ANCHOR_METHODS[size.anchor_method]
    of_views = [
        select(X_v[observed[:, v]], size.n_anchors, np.random.default_rng([entropy, content]))
        for v, (X_v, content) in enumerate(zip(views, contents, strict=True))
    ]
    rng = np.random.default_rng([entropy, contents.sum()])
    return corresponding_anchors(views, observed, of_views, size.n_neighbors, select, rng)


def _view_contents(data: MultiViewData) -> np.ndarray:
    """Hash (n_views,) of what every view observed, whatever the order of its rows."""
    hashes = [row_hashes(data.rows_seen(v)).sum() for v in range(data.n_views)]
    return np.array(hashes, dtype=np.uint64)
