"""Whether views agree about the classes, as they do where a class is a group of samples.

Labels that spread over the graphs of one view always find classes that these graphs join: that is
how they were found. The graphs of another view join them too only if there is something to find.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.common.rows import RowsInMemory
from viewmend.core.graphs.graph import GraphUnion
from viewmend.core.graphs.spreading import spread_over
from viewmend.core.mend.homophily import homophily_of_known
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.samples import column_mass, scaled_columns


def agreement_of_views(
    graphs: GraphUnion,
    n_views: int,
    labelling: Labelling,
    shares: np.ndarray,
    spreading: float,
) -> float | None:
    """Largest homophily above chance that classes found in one view have in another.

    None where no two views can be compared: a view finds classes if it has a label of each.

    Parameters
    ----------
    graphs : GraphUnion
    n_views : int
        Each has as many of the graphs, next to each other.
    labelling : Labelling
        Of the samples of the graphs.
    shares : array (n_classes,)
        Of the classes to find.
    spreading : float
        How far labels spread.
    """
    xp = array_namespace(labelling.Y)
    found, per_view = [], len(graphs.edges) // n_views
    for view in (slice(g, g + per_view) for g in range(0, len(graphs.edges), per_view)):
        rows, Y_v = graphs.rows[view.start], xp.zeros_like(labelling.Y)
        Y_v[rows] = labelling.Y[rows]
        if not bool(xp.all(xp.any(Y_v != 0, axis=0))):
            continue
        classes = classes_of_view(graphs, view, replace(labelling, Y=Y_v), shares, spreading)
        within = homophily_of_known(graphs, classes)
        within[view] = -np.inf
        found.append(within.max())
    best = max(found, default=-np.inf)
    return float(best) if np.isfinite(best) else None


def classes_of_view(
    graphs: GraphUnion, view: slice, labelling: Labelling, shares: np.ndarray, spreading: float
) -> Array:
    """Classes (n_samples,) by labels spread over the graphs of one view; -1 where none arrives."""
    memory, weights = RowsInMemory(), np.zeros(len(graphs.edges))
    weights[view] = 1
    F = spread_over([(1.0, graphs.weighted(weights))], labelling.Y, spreading)
    P = scaled_columns(F, column_mass(F, None)["mass"])
    return labelling.assign(memory, P, shares).classes
