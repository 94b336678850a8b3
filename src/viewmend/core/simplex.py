"""Euclidean projections of rows on the probability simplex."""

from __future__ import annotations

from viewmend.backend import dispatch
from viewmend.backend.namespace import Array

__all__ = ["project_simplex"]


def project_simplex(B: Array) -> Array:
    """Row-wise argmin ``|p - b|^2`` subject to ``p >= 0, sum(p) = 1`` (Eq. subp_P).

    Parameters
    ----------
    B : array (n_samples, n_anchors)

    Returns
    -------
    array (n_samples, n_anchors)
        Rows are non-negative and sum to one.
    """
    return dispatch.project_simplex_rows(B)
