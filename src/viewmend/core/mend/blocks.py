"""What is computed for some rows without labels: all rows in memory, or one block of many."""

from __future__ import annotations

from dataclasses import dataclass

from viewmend.backend.namespace import Array
from viewmend.core.graphs.nearest import Neighbours


@dataclass(frozen=True, eq=False)
class ViewRows:
    """The rows of a block that a view has.

    ``rows`` (n_seen,) are their positions in the block, ``Phi`` (n_seen, n_features) their kernel
    features and ``leverages`` (n_seen, n_ridges) those of these features, one column per ridge.
    Features may be in half precision, leverages are of the type that is computed in.
    """

    rows: Array
    Phi: Array
    leverages: Array


@dataclass(frozen=True, eq=False)
class OutsideRows:
    """Rows of a block that are not in the graph sample, and their neighbours there.

    ``rows`` (n_outside,) are their positions in the block, ``views`` (n_outside_v,) each those that
    a view has. ``near`` has one entry per view and representation, those of a view next to each
    other: the neighbours among the rows of the graph sample that the view has, by their numbers in
    the graph sample.
    """

    rows: Array
    views: tuple[Array, ...]
    near: tuple[Neighbours, ...]


@dataclass(frozen=True, eq=False)
class MendBlock:
    """Some rows: which views they have, and how they are joined to the graph sample.

    Attributes
    ----------
    observed : array (n_rows, n_views) of bool
    views : tuple of ViewRows
    place : array (n_rows,) of int or None
        The number of a row in the graph sample, -1 if it is not in it. None where the block is the
        sample, in its order.
    outside : OutsideRows or None
        The rows without a place; None where the block is the sample.
    """

    observed: Array
    views: tuple[ViewRows, ...]
    place: Array | None = None
    outside: OutsideRows | None = None
