"""Rows outside the graph, such as new samples: what they receive over edges to samples of it.

A row that was no part of the graph changes nothing in it. It is joined to its nearest samples, and
gets the soft labels that spreading would give an unlabelled sample with these edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.graphs.graph import Edges
from viewmend.core.mend.homophily import Guide, guide_directed


@dataclass(frozen=True, eq=False)
class JoinedRows:
    """Edges of ``n_rows`` rows to samples of a graph, one set per neighbour graph.

    Row ``i`` of ``edges[g]`` is row ``rows[g][i]`` here; ``scales[g]`` is a factor of all weights.
    """

    n_rows: int
    edges: tuple[Edges, ...]
    rows: tuple[Array, ...]
    scales: tuple[float, ...]

    def with_edges(self, edges: Edges, rows: Array, scale: float) -> JoinedRows:
        """The same with the edges of one more graph."""
        return replace(
            self,
            edges=(*self.edges, edges),
            rows=(*self.rows, rows),
            scales=(*self.scales, scale),
        )


def received(joined: JoinedRows, S: Array) -> Array:
    """``sum_j w_ij s_j`` (n_rows, n_columns) over all edges, for ``S`` (n_samples, n_columns)."""
    xp = array_namespace(S)
    total = xp.zeros((joined.n_rows, S.shape[1]), dtype=S.dtype, device=S.device)
    for edges, rows, scale in zip(joined.edges, joined.rows, joined.scales, strict=True):
        weights = xp.astype(scale * edges.weights, S.dtype, copy=False)
        # Neighbour by neighbour: what a row receives does not depend on the rows beside it, and
        # no array has more than a row per row.
        for t in range(weights.shape[1]):
            total[rows] += weights[:, t : t + 1] * S[edges.indices[:, t]]
    return total


def guided(joined: JoinedRows, guide: Guide) -> JoinedRows:
    """Edges times the agreement of the classes around their ends, as those of the graph were."""
    xp = array_namespace(guide.A)
    n_classes = guide.A.shape[1]
    members = guide.classes[:, None] == xp.arange(n_classes, device=guide.A.device)
    # With a column of ones the degrees come in the same pass.
    ones = xp.ones((members.shape[0], 1), dtype=guide.A.dtype, device=guide.A.device)
    votes = received(joined, xp.concat([xp.astype(members, guide.A.dtype), ones], axis=1))
    degrees = votes[:, n_classes:]
    A_rows = xp.where(degrees > 0, votes[:, :n_classes] / xp.where(degrees > 0, degrees, 1), 0.0)
    return replace(
        joined,
        edges=tuple(
            guide_directed(edges, A_rows[rows], guide.A, guide)
            for edges, rows in zip(joined.edges, joined.rows, strict=True)
        ),
    )


def spread_to(joined: JoinedRows, F: Array, degrees: Array) -> Array:
    """Soft labels (n_rows, n_classes) of the rows, up to a common factor.

    ``F`` (n_samples, n_classes) and ``degrees`` (n_samples,) are those of the graph: with weights
    ``w_ij`` to its samples, a row receives ``sum_j w_ij F_j / (d_i d_j)^{1/2}``, where ``d_i`` is
    the sum of its own weights. Rows without any edge receive nothing.
    """
    xp = array_namespace(F)
    sources = F * xp.astype(inverse_roots(degrees)[:, None], F.dtype)
    ones = xp.ones((F.shape[0], 1), dtype=F.dtype, device=F.device)
    # With a column of ones the degrees of the rows come in the same pass.
    total = received(joined, xp.concat([sources, ones], axis=1))
    return total[:, :-1] * inverse_roots(total[:, -1])[:, None]


def inverse_roots(degrees: Array) -> Array:
    """Degrees (n,) to the power -1/2; zero where they are zero."""
    xp = array_namespace(degrees)
    some = degrees > 0
    return xp.where(some, 1 / xp.sqrt(xp.where(some, degrees, xp.ones_like(degrees))), 0.0)


def stacked(
    edges: Sequence[Edges], rows: Sequence[Array], scales: Sequence[float] | np.ndarray, n_rows: int
) -> JoinedRows:
    """Edges of several graphs, as `JoinedRows` has them."""
    return JoinedRows(n_rows, tuple(edges), tuple(rows), tuple(float(scale) for scale in scales))
