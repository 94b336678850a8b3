"""Samples that fit no class: far from all labelled samples, and claimed by no regression.

Labelled samples, each compared with the others, show how far and how weakly claimed a sample of a
known class may be. A sample is strange by the sum of both, each in units of its spread among the
labelled samples. Of samples of the fit it counts too how much of the labels reaches them over the
graph: a class without any label is a part of the graph that labels hardly reach, however close its
samples are to each other. Labelled samples that tell of each other, such as rows of one patient,
are of one group, and are compared with other groups only: rows of a new patient are no closer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.common.class_shares import normalise_rows
from viewmend.core.graphs.exact import nearest_rows
from viewmend.core.graphs.spreading import spread_labels
from viewmend.core.mend.induction import (
    FittedView,
    MendInduction,
    represent_new,
    scores_of_new,
    view_scores,
)
from viewmend.core.mend.joining import inverse_roots

# Labelled samples that others are compared with, at most: more would cost time and tell little.
MOST_LABELS = 2000
# Squared distances and masses below this are taken for it: a row may repeat another.
LEAST = 1e-12
# Rows of a group that a search may find before one of another group; of larger groups, the rows are
# left out of the search.
MOST_SEARCHED = 32
# Spread of what is the same in all labelled samples, and of what no two of them have.
NARROWEST, WIDEST = 1e-3, 1e9
# No term tells more than this by itself, in units of its spread.
MOST_STRANGE = 20.0
# What it counts how little of the labels reaches a sample, which tells most of samples of a fit.
REACH_WEIGHT = 3.0
# Parts that the labels are dealt into; each is judged by the labels of the others.
N_PARTS = 10


@dataclass(frozen=True, eq=False)
class TypicalSamples:
    """Labelled samples that were compared with each other: what samples of known classes look like.

    Attributes
    ----------
    labelled : array (n_labelled,) of int
        Which samples of the fit these are.
    groups : array (n_labelled,) of int
        Samples of one group are not compared with each other.
    claimed : bool
        Whether it counts too how strongly the regressions claim a sample. They leave out a sample
        and not its group, which would claim it for its class.
    centres, spreads : array (n_views, n_representations)
        Of the logarithm of the squared distance to the nearest other.
    middle, width : array (n_terms,)
        Mean and standard deviation of what makes a sample strange: how far it is, and how little
        it is claimed.
    strangeness : array (n_labelled,)
        The sum of both, in these units.
    """

    labelled: np.ndarray
    groups: np.ndarray
    claimed: bool
    centres: np.ndarray
    spreads: np.ndarray
    middle: np.ndarray
    width: np.ndarray
    strangeness: np.ndarray

    @property
    def n_groups(self) -> int:
        """Number of groups; samples of a single one were compared with nothing."""
        return len(np.unique(self.groups))


def typical_samples(fit: MendInduction, labelled: np.ndarray, groups: np.ndarray) -> TypicalSamples:
    """Compare labelled samples of a fit, (n_labelled,) of int, with those of other groups.

    The ``groups`` are (n_labelled,) of int.
    """
    claimed = fit.evidence is not None and len(np.unique(groups)) == len(groups)
    steps = min(len(labelled), MOST_LABELS)
    some = np.arange(steps) * len(labelled) // max(steps, 1)
    labelled, groups = labelled[some], groups[some]
    logs = _logs_in_fit(fit, labelled, labelled, groups)
    centres, spreads = _centres_and_spreads(logs)
    terms = [_farness(logs, centres, spreads)]
    terms += [_unclaimed_in_fit(fit, labelled)] if claimed else []
    middle, width = _mean_and_width(terms)
    summed = strange_sum(terms, middle, width)
    return TypicalSamples(labelled, groups, claimed, centres, spreads, middle, width, summed)


def strange_new(
    fit: MendInduction,
    typical: TypicalSamples,
    views: Sequence[np.ndarray | csr_array],
    observed: np.ndarray,
) -> np.ndarray:
    """How strange new samples are, (n_new,), on the scale of the typical ones.

    ``views`` and ``observed`` (n_new, n_views) as in `viewmend.core.mend.induction.induce_classes`.
    """
    new = represent_new(fit.views, views, observed)
    logs = np.full((len(observed), *typical.centres.shape), np.nan)
    for v, view in enumerate(fit.views):
        points = _rows_of(view, typical.labelled, len(fit.observed))
        points = points[points >= 0]
        for r, (name, queries) in enumerate(new.mapped[v].items()):
            logs[new.rows[v], v, r] = _log_nearest(view.mapped(name, points), queries)
    terms = [_farness(logs, typical.centres, typical.spreads)]
    if typical.claimed:
        terms.append(_unclaimed(fit, scores_of_new(fit.views, new, len(fit.prior)), observed))
    return strange_sum(terms, typical.middle, typical.width)


def strange_in_fit(
    fit: MendInduction,
    typical: TypicalSamples,
    graph: csr_array,
    codes: np.ndarray,
    groups: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """How strange the samples of a fit are, (n_samples,), and those typical ones among them.

    Parameters
    ----------
    fit : MendInduction
    typical : TypicalSamples
    graph : sparse array (n_samples, n_samples)
        That the labels last spread over.
    codes : array (n_samples,) of int
        Given classes, -1 without one.
    groups : array (n_labelled,) of int
        Of the samples that have one.
    """
    every = np.arange(len(codes))
    logs = _logs_in_fit(fit, every, typical.labelled, typical.groups)
    terms = [_farness(logs, typical.centres, typical.spreads)]
    terms += [_unclaimed_in_fit(fit, every)] if typical.claimed else []
    reach = label_reach(graph, codes, groups, fit.prior, fit.settings.spreading)
    terms.append(-np.log(np.maximum(reach, LEAST)))
    middle, width = _mean_and_width([term[typical.labelled] for term in terms])
    width[-1] /= REACH_WEIGHT
    strange = strange_sum(terms, middle, width)
    return strange, strange[typical.labelled]


def label_reach(
    graph: csr_array, codes: np.ndarray, groups: np.ndarray, prior: np.ndarray, spreading: float
) -> np.ndarray:
    """How much of the labels reaches each sample over the graph, without its own: (n_samples,).

    Labels weigh as much as the ``prior`` (n_classes,) of their class says. Those of a part are left
    out where its samples are judged, and the others of the same class count for them. Samples of
    one of the ``groups`` (n_labelled,) are in one part.
    """
    labelled = np.flatnonzero(codes >= 0)
    of_class = codes[labelled]
    part = _parts(of_class, groups)
    Y = np.zeros((len(codes), N_PARTS + 1))
    # A column without the labels of each part, and last one with all of them.
    kept = part[:, None] != np.arange(N_PARTS + 1)
    left = np.eye(len(prior))[of_class].T @ kept
    # Over most graphs labels of all classes reach a sample, so that each has to have its weight.
    Y[labelled] = (prior[:, None] / np.maximum(left, 1))[of_class] * kept
    F = spread_labels(graph, Y, spreading)
    reach = F[:, N_PARTS].copy()
    reach[labelled] = F[labelled, part]
    return np.asarray(reach * inverse_roots(np.asarray(graph.sum(axis=1)).ravel()))


def _parts(of_class: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Parts (n_labelled,) that labels are dealt into, those of a group together."""
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    # Dealt class by class, so that none is left out altogether if it has labels of two groups.
    main = of_class[first]
    order, counts = np.lexsort((first, main)), np.bincount(main)
    part = np.empty(len(first), dtype=np.int64)
    part[order] = (np.arange(len(order)) - (np.cumsum(counts) - counts)[main[order]]) % N_PARTS
    return np.asarray(part[group])


def unknown_scores(strangeness: np.ndarray, typical: np.ndarray) -> np.ndarray:
    """Share of the typical samples that are less strange, (n_samples,).

    Of ``n`` samples that are exchangeable with a sample of a known class, at most a share ``1 - s``
    of such samples has a score of ``s`` or more, for every ``s`` up to ``n / (n + 1)``. Between
    two typical samples the score is interpolated below that, and beyond the strangest of them it
    rises to one.
    """
    n = len(typical)
    typical = np.sort(typical)
    inner = np.interp(strangeness, typical, np.arange(n) / (n + 1))
    scale = max(float(typical.std()), NARROWEST)
    beyond = 1 - np.exp(-np.maximum(strangeness - typical[-1], 0) / scale)
    return np.asarray(inner + beyond * 2 / (n + 1))


def strange_sum(terms: Sequence[np.ndarray], middle: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Sum of terms (n_samples,) in units of their ``width`` (n_terms,), each of them bounded."""
    gaps = (np.stack(terms, axis=1) - middle) / width
    return np.asarray(np.clip(gaps, -MOST_STRANGE, MOST_STRANGE).sum(axis=1))


# ------------------------------------------------------------------ terms


def _farness(logs: np.ndarray, centres: np.ndarray, spreads: np.ndarray) -> np.ndarray:
    """How far samples are from labelled ones, a mean over the views that they have, (n_samples,).

    ``logs`` (n_samples, n_views, n_representations) are NaN in views that a sample misses.
    """
    gaps = np.clip((logs - centres) / spreads, -MOST_STRANGE, MOST_STRANGE).mean(axis=2)
    seen = np.isfinite(gaps)
    return np.asarray(np.where(seen, gaps, 0).sum(axis=1) / np.maximum(seen.sum(axis=1), 1))


def _unclaimed_in_fit(fit: MendInduction, places: np.ndarray) -> np.ndarray:
    """Of `_unclaimed`, each sample without itself."""
    return _unclaimed(fit, view_scores(fit, places), fit.observed[places])


def _unclaimed(fit: MendInduction, Z: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Minus the largest mean score of a class over the views of a sample, (n_samples,).

    Scores ``Z`` are (n_samples, n_views, n_classes); views are weighed as in the evidence.
    """
    weights = np.array([0.0 if v.regression is None else v.regression.weight for v in fit.views])
    shares = normalise_rows(observed * weights)
    return np.asarray(-np.einsum("iv,ivc->ic", shares, Z).max(axis=1))


def _logs_in_fit(
    fit: MendInduction, places: np.ndarray, labelled: np.ndarray, groups: np.ndarray
) -> np.ndarray:
    """Log squared distances (n_places, n_views, n_representations) of samples of a fit.

    To the nearest labelled sample, of another group if they are labelled themselves; NaN in views
    that they miss. The ``groups`` (n_labelled,) are those of the labelled samples.
    """
    n_samples, n_maps = len(fit.observed), len(fit.views[0].representations)
    group = np.full(n_samples, -1)
    group[labelled] = np.unique(groups, return_inverse=True)[1]
    in_group = group[places] >= 0
    logs = np.full((len(places), len(fit.views), n_maps), np.nan)
    for v, view in enumerate(fit.views):
        points = _rows_of(view, labelled, n_samples)
        points, rows = points[points >= 0], _rows_of(view, places, n_samples)
        free, own = (np.flatnonzero((rows >= 0) & some) for some in (~in_group, in_group))
        groups_here = group[view.rows[points]], group[places[own]]
        for r, name in enumerate(view.representations):
            near = view.mapped(name, points)
            logs[free, v, r] = _log_nearest(near, view.mapped(name, rows[free]))
            logs[own, v, r] = _log_nearest_other(near, view.mapped(name, rows[own]), *groups_here)
    return logs


def _rows_of(view: FittedView, places: np.ndarray, n_samples: int) -> np.ndarray:
    """Rows of a view that belong to samples of the fit, -1 where it lacks them."""
    rows = np.full(n_samples, -1)
    rows[view.rows] = np.arange(len(view.rows))
    return rows[places]


def _log_nearest(points: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Log squared distance (n_queries,) to the nearest of the points; NaN where there is none."""
    return _log_least(nearest_rows(points, 1, queries=queries).squared_distances)


def _log_nearest_other(
    points: np.ndarray, queries: np.ndarray, of_points: np.ndarray, of_queries: np.ndarray
) -> np.ndarray:
    """The same to the nearest point of another group; groups are (n_points,) and (n_queries,)."""
    logs = np.full(len(queries), np.nan)
    counts = np.bincount(of_points, minlength=of_queries.max(initial=-1) + 1)
    large = counts > MOST_SEARCHED
    some = np.flatnonzero(~large[of_queries])
    # One more than a group has: the nearest rows may all be of it.
    near = nearest_rows(points, 1 + counts[~large].max(initial=0), queries=queries[some])
    same = of_points[near.indices] == of_queries[some, None]
    logs[some] = _log_least(np.where(same, np.nan, near.squared_distances))
    for group in np.flatnonzero(large):
        of_group = of_queries == group
        logs[of_group] = _log_nearest(points[of_points != group], queries[of_group])
    return logs


def _log_least(squares: np.ndarray) -> np.ndarray:
    """Logarithm of the least of every row (n_queries, n_near); NaN where there is none."""
    return np.asarray(np.log(np.maximum(np.fmin.reduce(squares, axis=1, initial=np.nan), LEAST)))


# ------------------------------------------------------------------ typical values


def _centres_and_spreads(logs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Medians, and half of the range of the middle 68 %; where nothing is known, all is normal."""
    shape = logs.shape[1:]
    centres, spreads = np.zeros(shape), np.full(shape, WIDEST)
    for place in np.ndindex(shape):
        known = logs[:, *place]
        known = known[np.isfinite(known)]
        if len(known) > 1:
            low, centres[place], high = np.quantile(known, [0.16, 0.5, 0.84])
            spreads[place] = max((high - low) / 2, NARROWEST)
    return centres, spreads


def _mean_and_width(terms: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    table = np.stack(terms, axis=1)
    return table.mean(axis=0), np.maximum(table.std(axis=0), NARROWEST)
