"""What the recipe knows of some rows without labels; all rows in memory, or one block of many."""

from __future__ import annotations

from dataclasses import dataclass

from viewmend.backend.namespace import Array
from viewmend.core.graphs.graph import Edges


@dataclass(frozen=True, eq=False)
class ViewRows:
    """The rows of a block that a view has.

    ``rows`` (n_seen,) are their positions in the block, ``Phi`` (n_seen, n_features) their kernel
    features and ``leverages`` (n_seen, n_ridges) those of these features, one column per ridge.
    """

    rows: Array
    Phi: Array
    leverages: Array


@dataclass(frozen=True, eq=False)
class MendBlock:
    """Some rows: which views they have, and how they hang on the graph sample.

    Attributes
    ----------
    observed : array (n_rows, n_views) of bool
    views : tuple of ViewRows
    place : array (n_rows,) of int or None
        The number of a row in the graph sample, -1 if it is not in it. None where the block is the
        sample, in its order.
    edges : tuple of Edges or None
        Of every graph, the edges from the rows that its view has to rows of the sample; None where
        the block is the sample.
    """

    observed: Array
    views: tuple[ViewRows, ...]
    place: Array | None = None
    edges: tuple[Edges, ...] | None = None
