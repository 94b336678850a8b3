"""The graph of the samples before there is a model: from the views alone, without labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.base import clone

from viewmend.backend.threads import limited_threads
from viewmend.core.mend.geometry import MendView, view_graphs
from viewmend.core.mend.outside import graph_alone, rows_in_graph
from viewmend.data.cells import fill_cells, learn_fills
from viewmend.data.given_labels import labels_for
from viewmend.data.labels import Labels, as_label_array, find_unlabelled
from viewmend.data.sparse import DENSE_COLUMNS
from viewmend.data.validation import check_views
from viewmend.distributed.lazy import is_lazy
from viewmend.exceptions import InvalidViewsError
from viewmend.models.apart import comparable_samples
from viewmend.models.devices import on_host
from viewmend.models.mend_problem import make_settings

# The fewest classes there can be; more would ask for fewer neighbours.
FEWEST_CLASSES = 2
# The kernels of the regressions are not needed here.
FEWEST_LANDMARKS = 2


@dataclass(frozen=True, eq=False)
class FirstGraph:
    """The sum of all neighbour graphs, as the first stage of a fit has it.

    Its samples are ``rows`` (n_graph,) of those given, which have ``names`` (n_samples,). Their
    ``codes`` (n_graph,) are 0 where one has a label, -1 elsewhere. ``views`` have the rows that
    were compared.
    """

    graph: csr_array
    spreading: float
    rows: np.ndarray
    codes: np.ndarray
    views: tuple[MendView, ...]
    names: np.ndarray


def first_graph(model: Any, X: Any, y: Any, mask: ArrayLike | None) -> FirstGraph:
    """The graph that a `MendClassifier` with these parameters would begin with.

    ``y`` (n_samples,) may have labels, of any number of classes, or be None.
    """
    if is_lazy(X):
        msg = (
            "suggest_first_labels needs views in memory, got Dask collections; pass some thousand "
            "rows of them, computed"
        )
        raise InvalidViewsError(msg)
    # A copy: what was fitted stays as it is.
    fresh = clone(model).set_params(n_landmarks=FEWEST_LANDMARKS)
    fresh.validate_parameters()
    X, _ = on_host(X)
    data = check_views(
        X,
        mask=on_host(mask)[0],
        view_sizes=fresh.view_sizes,
        dtype=fresh.dtype,
        dense_columns=DENSE_COLUMNS,
    )
    data = fill_cells(data, learn_fills(data, fresh.missing_cells))
    codes = _given(X, on_host(y)[0], data.n_samples)
    none = Labels(np.empty(0), np.full(data.n_samples, -1))
    part = comparable_samples(data, none).part
    with limited_threads(fresh.n_jobs):
        labels = Labels(np.zeros(1), codes[part.rows])
        order, geometry = fresh.build_geometry(part.data, labels)
        rows, settings = part.rows[order[rows_in_graph(geometry)]], make_settings(fresh)
        geometry = graph_alone(geometry)
        views = geometry.views
        ks = [settings.neighbours(view.rows.shape[0], FEWEST_CLASSES) for view in views]
        graphs = view_graphs(geometry, ks)
        graph = graphs.weighted(np.ones(len(graphs.edges))).to_scipy()
    return FirstGraph(graph, settings.spreading, rows, codes[rows], views, data.sample_ids)


def _given(X: Any, y: Any, n_samples: int) -> np.ndarray:
    """0 (n_samples,) where there is a label, -1 elsewhere."""
    given = labels_for(X, y)
    if given is None:
        return np.full(n_samples, -1)
    return np.where(find_unlabelled(as_label_array(given, n_samples)), -1, 0)
