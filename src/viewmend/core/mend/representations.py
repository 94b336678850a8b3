"""Representations of a view, fitted without labels: several notions of which samples are alike.

No single scaling of the features suits every view. Each representation here is a row-wise map
``x -> u((f(x) - centre) linear)`` with ``f`` and ``u`` fixed and ``centre`` and ``linear`` read off
the observed rows, so that new samples can be mapped too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg

from viewmend.core.common.content_order import bottom_rows
from viewmend.core.common.scaling import unit_rows

# Share of the variance that principal components keep, and how many they are at least and at most.
VARIANCE = 0.95
FEWEST, MOST = 3, 64
# Entries of a representation are cut here: squares stay far below the largest float32, and a sample
# that is this many deviations away is as far from one sample of the fit as from another.
FARTHEST = 1e15
# Rows that lie closer together than this share of their distance from the origin are centred before
# they lose digits to float32; those that lie closer than the second differ by rounding alone.
CLOSE, EQUAL = 2.0**-8, 1e-13
# Rows that principal components are computed from at most: beyond, the components hardly change.
PCA_ROWS = 4096


def signed_root(X: np.ndarray) -> np.ndarray:
    """``sign(x) |x|^{1/2}``; with rows scaled to unit length, Hellinger's distance of counts."""
    return np.sign(X) * np.sqrt(np.abs(X))


FIRST: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "as given": lambda X: X,
    "unit": unit_rows,
    "root": signed_root,
    "unit root": lambda X: unit_rows(signed_root(X).astype(np.float64, copy=False)),
}


@dataclass(frozen=True, eq=False)
class Representation:
    """``u((f(x) - centre) linear)`` for every row ``x``.

    ``first`` is the row of ``FIRST`` that names ``f``, ``unit`` says whether ``u`` scales rows to
    unit length. ``centre`` is (n_features,) or (), ``linear`` (n_features, n_components), or
    (n_features,) or () for a diagonal.
    """

    first: str
    centre: np.ndarray
    linear: np.ndarray
    unit: bool

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Rows (n_rows, n_components) of float32."""
        centred = FIRST[self.first](X) - self.centre
        # In float32 a row far from those of the fit may overflow; it is cut to size below.
        with np.errstate(over="ignore"):
            mapped = centred @ self.linear if self.linear.ndim == 2 else centred * self.linear
        np.clip(mapped, -FARTHEST, FARTHEST, out=mapped)
        return (unit_rows(mapped) if self.unit else mapped).astype(np.float32)


def unit(X: np.ndarray) -> Representation:
    """Rows of unit length: only their direction counts."""
    return _moved_near_zero("unit", X)


def standard(X: np.ndarray) -> Representation:
    """Columns of mean 0 and deviation 1; constant columns become zero."""
    deviations = X.std(axis=0)
    # A deviation of rounding errors alone is none.
    varies = deviations > 1e-12 * np.abs(X).max(axis=0)
    scale = np.where(varies, 1 / np.where(varies, deviations, 1), 0)
    return Representation("as given", X.mean(axis=0), scale, unit=False)


def standard_unit(X: np.ndarray) -> Representation:
    """`standard`, then rows of unit length."""
    return replace(standard(X), unit=True)


def centred_unit(X: np.ndarray) -> Representation:
    """Rows of unit length, less their mean, and of unit length again: a correlation."""
    return Representation("unit", unit_rows(X).mean(axis=0), np.ones(()), unit=True)


def hellinger(X: np.ndarray) -> Representation:
    """Signed square roots, rows of unit length: large entries count for less."""
    return _moved_near_zero("unit root", X)


def half_whitened(X: np.ndarray) -> Representation:
    """Principal components of `centred_unit` before its last step, each over ``sd^{1/2}``.

    Between plain principal components, which the largest few rule, and whitened ones, in which
    noise counts as much as signal.
    """
    sample = X if len(X) <= PCA_ROWS else X[bottom_rows(X, PCA_ROWS)]
    rows = unit_rows(sample)
    centre = rows.mean(axis=0)
    deviations, components = _principal_components(rows - centre)
    return Representation("unit", centre, components / np.sqrt(deviations), unit=True)


REPRESENTATIONS: dict[str, Callable[[np.ndarray], Representation]] = {
    "unit": unit,
    "standard": standard,
    "standard_unit": standard_unit,
    "centred_unit": centred_unit,
    "hellinger": hellinger,
    "half_whitened": half_whitened,
}


def represent(X: np.ndarray, names: Iterable[str]) -> dict[str, Representation]:
    """Representations by name, fitted to the observed rows (n_observed, n_features) of a view."""
    return {name: REPRESENTATIONS[name](X) for name in names}


def _moved_near_zero(first: str, X: np.ndarray) -> Representation:
    """``f(x)``, less the mean of the rows if they lie close together and far from the origin.

    No distance changes by that, but float32 would round such rows to nearly the same one.
    """
    rows = FIRST[first](X)
    centre = rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)
    spread = np.abs(rows - centre).max()
    length = np.linalg.norm(centre)
    centre = centre if EQUAL * length < spread < CLOSE * length else np.zeros(())
    return Representation(first, centre, np.ones(()), unit=False)


def _principal_components(centred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Deviations (q,) and directions (n_features, q) of the components, by the smaller Gram matrix.

    ``q`` is the least number that keeps ``VARIANCE``, between ``FEWEST`` and ``MOST``, and at most
    the rank. Rows that are all the same have one component, whose direction does not matter.
    """
    n_rows, n_features = centred.shape
    # X X^T and X^T X have the same eigenvalues; the smaller one is cheaper.
    wide = n_features > n_rows
    gram = centred @ centred.T if wide else centred.T @ centred
    last = len(gram) - 1
    values, vectors = scipy.linalg.eigh(gram, subset_by_index=[max(last - MOST + 1, 0), last])
    values, vectors = values[::-1], vectors[:, ::-1]
    if values[0] <= np.finfo(float).tiny:
        return np.ones(1), np.eye(n_features, 1)
    # Components with less than 1e-8 of the largest variance count as rounding.
    rank = int((values > 1e-8 * values[0]).sum())
    enough = int(np.searchsorted(np.cumsum(values), VARIANCE * np.trace(gram))) + 1
    q = min(max(enough, FEWEST), rank)
    values, vectors = values[:q], vectors[:, :q]
    # Of X X^T = V diag(values) V^T the directions are X^T V diag(values)^{-1/2}.
    directions = centred.T @ (vectors / np.sqrt(values)) if wide else vectors
    return np.sqrt(values / n_rows), directions
