"""Graphs between samples as three arrays of any library, in the place of a class of SciPy."""

from __future__ import annotations

from dataclasses import dataclass

from viewmend.backend.namespace import Array


@dataclass(frozen=True, eq=False)
class Edges:
    """At most ``k`` directed edges from every row: to rows ``indices`` (n_rows, k) of int32.

    ``weights`` (n_rows, k) are of float32; an edge of weight zero is none.
    """

    indices: Array
    weights: Array
