"""Representations of a view, fitted without labels: several notions of which samples are alike.

No single scaling of the features suits every view. Each representation here is a row-wise map
``x -> u((f(x) - centre) linear)`` with ``f`` and ``u`` fixed and ``centre`` and ``linear`` read off
the observed rows, so that new samples can be mapped too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from viewmend.backend.namespace import Array, array_namespace, is_numpy
from viewmend.backend.numba_representations import scaled_rows
from viewmend.backend.threads import for_each, row_blocks, serial_blas
from viewmend.core.common.content_order import bottom_rows
from viewmend.core.common.rows import Column, Rows, Sums
from viewmend.core.common.scaling import unit_rows as unit_rows_in_numpy
from viewmend.core.common.small_sums import beside, on_host, summed_in_pieces, total

# Share of the variance that principal components keep, and how many they are at least and at most.
VARIANCE = 0.95
FEWEST, MOST = 3, 64
# Entries of a representation are cut here: squares stay far below the largest float32, and a sample
# that is this many deviations away is as far from one sample of the fit as from another.
FARTHEST = 1e15
# Rows that lie closer together than this share of their distance from the origin are centred before
# they lose digits to float32; those that lie closer than the second differ by rounding alone.
CLOSE, EQUAL = 2.0**-8, 1e-13
# A view is narrow if its variance lies in so few columns, by `n_effective`: directions of its rows
# then tell little. Of views with more columns than the second number, most columns hardly vary, and
# to standardise them would count noise as much as signal.
FEW_COLUMNS, MANY_COLUMNS = 3.5, 64
# Rows that principal components are computed from at most: beyond, the components hardly change.
PCA_ROWS = 4096
# Entries of a view worked on at a time: in NumPy, as many as a cache holds; and elsewhere.
PIECE, LARGE_PIECE = 1 << 18, 1 << 26


def unit_rows(X: Array) -> Array:
    """Rows scaled to unit Euclidean length; zero rows stay zero."""
    xp = array_namespace(X)
    if is_numpy(xp):
        return unit_rows_in_numpy(X)
    # Largest entries of one first: their squares neither overflow nor vanish.
    peaks = xp.max(xp.abs(X), axis=1, keepdims=True)
    X = X / xp.where(peaks > 0, peaks, xp.ones_like(peaks))
    lengths = xp.sqrt(xp.sum(X * X, axis=1, keepdims=True))
    return X / xp.where(lengths > 0, lengths, xp.ones_like(lengths))


def signed_root(X: Array) -> Array:
    """``sign(x) |x|^{1/2}``; with rows scaled to unit length, Hellinger's distance of counts."""
    xp = array_namespace(X)
    return xp.sign(X) * xp.sqrt(xp.abs(X))


def _double(X: Array) -> Array:
    xp = array_namespace(X)
    return xp.astype(X, xp.float64, copy=False)


FIRST: dict[str, Callable[[Array], Array]] = {
    "as given": lambda X: X,
    "unit": unit_rows,
    "root": signed_root,
    "unit root": lambda X: unit_rows(_double(signed_root(X))),
}
# Whether each takes signed roots, and scales rows to unit length: for the compiled version.
FIRST_STEPS = {
    "as given": (False, False),
    "unit": (False, True),
    "root": (True, False),
    "unit root": (True, True),
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

    def __call__(self, X: Array) -> Array:
        """Rows (n_rows, n_components) of float32."""
        xp = array_namespace(X)
        if is_numpy(xp) and self.linear.ndim < 2:
            first = FIRST_STEPS[self.first]
            return scaled_rows(X, first, (self.centre, self.linear), FARTHEST, self.unit)
        width = self.linear.shape[1] if self.linear.ndim == 2 else X.shape[1]
        mapped = xp.empty((X.shape[0], width), dtype=xp.float32, device=X.device)

        def work(part: slice) -> None:
            mapped[part] = xp.astype(self._mapped(X[part]), xp.float32)

        for_each(work, _parts(X), xp)
        return mapped

    def _mapped(self, X: Array) -> Array:
        xp = array_namespace(X)
        centred = FIRST[self.first](X)
        centred = centred - beside(self.centre, centred)
        linear = beside(self.linear, centred)
        # In float32 a row far from those of the fit may overflow; it is cut to size below.
        with np.errstate(over="ignore"):
            mapped = centred @ linear if self.linear.ndim == 2 else centred * linear
        mapped = xp.clip(mapped, -FARTHEST, FARTHEST)
        return unit_rows(mapped) if self.unit else mapped


@dataclass(frozen=True, eq=False)
class Moments:
    """``mean`` and ``deviations`` (n_features,) of ``f(x)``, the row ``first`` of ``FIRST``."""

    first: str
    mean: np.ndarray
    deviations: np.ndarray

    def moved_near_zero(self) -> Representation:
        """``f(x)``, less the mean of the rows if they lie close together and far from the origin.

        No distance changes by that, but float32 would round such rows to nearly the same one.
        """
        spread, length = np.linalg.norm(self.deviations), np.linalg.norm(self.mean)
        centre = self.mean if EQUAL * length < spread < CLOSE * length else np.zeros(())
        return Representation(self.first, centre, np.ones(()), unit=False)


def unit(moments: Moments, _sample: np.ndarray) -> Representation:
    """Rows of unit length: only their direction counts."""
    return moments.moved_near_zero()


def standard(moments: Moments, _sample: np.ndarray) -> Representation:
    """Columns of ``f(x)`` with mean 0 and deviation 1; constant columns become zero."""
    deviations = moments.deviations
    # A deviation of rounding errors alone is none.
    varies = deviations > 1e-12 * np.hypot(moments.mean, deviations)
    scale = np.where(varies, 1 / np.where(varies, deviations, 1), 0)
    return Representation(moments.first, moments.mean, scale, unit=False)


def standard_unit(moments: Moments, sample: np.ndarray) -> Representation:
    """`standard`, then rows of unit length."""
    return replace(standard(moments, sample), unit=True)


def centred_unit(moments: Moments, _sample: np.ndarray) -> Representation:
    """Rows of unit length, less their mean, and of unit length again: a correlation."""
    return Representation("unit", moments.mean, np.ones(()), unit=True)


def half_whitened(_moments: Moments, sample: np.ndarray) -> Representation:
    """Principal components of `centred_unit` before its last step, each over ``sd^{1/2}``.

    Between plain principal components, which the largest few rule, and whitened ones, in which
    noise counts as much as signal.
    """
    rows = unit_rows(sample.astype(np.float64))
    centre = rows.mean(axis=0)
    # On one thread, as everywhere: the digits must not depend on their number.
    with serial_blas():
        deviations, components = _principal_components(rows - centre)
    return Representation("unit", centre, components / np.sqrt(deviations), unit=True)


@dataclass(frozen=True)
class Rule:
    """How a representation follows from moments of ``f(x)``, ``first``, and a sample of rows."""

    first: str
    fit: Callable[[Moments, np.ndarray], Representation]


REPRESENTATIONS: dict[str, Rule] = {
    "unit": Rule("unit", unit),
    "standard": Rule("as given", standard),
    "standard_unit": Rule("as given", standard_unit),
    "centred_unit": Rule("unit", centred_unit),
    # Signed square roots, rows of unit length: large entries count for less.
    "hellinger": Rule("unit root", unit),
    "half_whitened": Rule("unit", half_whitened),
}
# In their place in a narrow view; and where none of its values is negative, as of amounts, of which
# a few may be very large.
IN_NARROW_VIEW = dict.fromkeys(REPRESENTATIONS, Rule("as given", standard))
OF_AMOUNTS = IN_NARROW_VIEW | {"hellinger": Rule("root", standard)}


def represent(
    rows: Rows,
    X: Column,
    names: Iterable[str],
    sample: np.ndarray,
    rules: Mapping[str, Rule] = REPRESENTATIONS,
) -> dict[str, Representation]:
    """Representations by name, fitted to the observed rows of a view.

    Those of the same rule are one object.

    Parameters
    ----------
    rows : Rows
    X : column of array (n_observed, n_features)
    names : iterable of str
        Keys of ``rules``.
    sample : array (n_sampled, n_features)
        Some of the rows on the host, as those of `component_rows`.
    rules : mapping of str to Rule
    """
    of_names = {name: rules[name] for name in names}
    moments = fit_moments(rows, X, sorted({rule.first for rule in of_names.values()}))
    fitted = {
        rule: rule.fit(moments[rule.first], sample) for rule in dict.fromkeys(of_names.values())
    }
    return {name: fitted[rule] for name, rule in of_names.items()}


def rules_for(rows: Rows, X: Column, sample: np.ndarray) -> Mapping[str, Rule]:
    """The rules that suit a view: those for narrow ones, or the usual ones.

    Parameters as in `represent`.
    """
    if sample.shape[1] > MANY_COLUMNS:
        return REPRESENTATIONS
    moments = fit_moments(rows, X, ["as given"])["as given"]
    if n_effective(moments.deviations) > FEW_COLUMNS:
        return REPRESENTATIONS
    return IN_NARROW_VIEW if (sample < 0).any() else OF_AMOUNTS


def n_effective(deviations: np.ndarray) -> float:
    """In how many columns the variance lies: ``(sum_j s_j^2)^2 / sum_j s_j^4`` of (n_features,).

    That is their number if all vary alike, and one if one of them varies far more than the others.
    """
    tiny = np.finfo(float).tiny
    shares = (deviations / max(float(deviations.max(initial=0)), tiny)) ** 2
    return float(shares.sum() ** 2 / max(float(shares @ shares), tiny))


def fit_moments(rows: Rows, X: Column, firsts: Iterable[str]) -> dict[str, Moments]:
    """Moments of some ``f(x)``, keys of ``FIRST``, in two passes over the rows."""
    zeros: dict[str, np.ndarray] = {first: np.zeros(()) for first in firsts}
    sums = on_host(rows.sums(moment_sums, X, shared=zeros))
    n_rows = max(float(sums["n"]), 1.0)
    means = {first: sums[f"gaps {first}"] / n_rows for first in zeros}
    # Squares of differences from the mean: those of the rows would lose the digits that differ.
    sums = on_host(rows.sums(moment_sums, X, shared=means))
    return {
        first: Moments(first, mean, np.sqrt(sums[f"squares {first}"] / n_rows))
        for first, mean in means.items()
    }


def moment_sums(X: Array, centres: Mapping[str, np.ndarray]) -> Sums:
    """Task: number of rows, sums of ``f(x)`` less a centre, and of squares of that, by ``f``."""

    def work(part: slice) -> Sums:
        sums: dict[str, Any] = {"n": X[part].shape[0]}
        for first, centre in centres.items():
            values = _double(FIRST[first](X[part]))
            gaps = values - beside(centre, values)
            sums |= {f"gaps {first}": total(gaps), f"squares {first}": total(gaps * gaps)}
        return sums

    return summed_in_pieces(work, X, _parts(X))


def component_rows(X: np.ndarray) -> np.ndarray:
    """Rows that principal components are computed from, chosen by their content."""
    return X if len(X) <= PCA_ROWS else X[bottom_rows(X, PCA_ROWS)]


def _parts(X: Array) -> list[slice]:
    size = PIECE if is_numpy(array_namespace(X)) else LARGE_PIECE
    return row_blocks(X.shape[0], X.shape[1], size)


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
