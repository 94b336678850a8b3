"""Imputation by the nearest samples that have the view."""

import numpy as np
import pytest

from viewmend.data.container import MultiViewData
from viewmend.impute import ColumnMeanImputer, NeighbourImputer, neighbours


def random_data(n=50, seed=0):
    rng = np.random.default_rng(seed)
    observed = rng.random((n, 3)) < 0.6
    observed[np.arange(n), rng.integers(3, size=n)] = True
    views = [
        np.where(seen[:, None], rng.normal(1, 1, size=(n, d)), np.nan)
        for seen, d in zip(observed.T, (4, 3, 6), strict=True)
    ]
    return MultiViewData(tuple(views), observed, ("a", "b", "c"))


DATA = random_data()


def brute_force(data, donors, n_neighbors):
    """Sample by sample and pair by pair."""
    filled = [view.copy() for view in data.views]
    for i in range(data.n_samples):
        for v in np.flatnonzero(~data.observed[i]):
            candidates = []
            for j in np.flatnonzero(donors.observed[:, v]):
                gaps = []
                for u in np.flatnonzero(data.observed[i] & donors.observed[j]):
                    ours, theirs = data.views[u][i], donors.views[u][j]
                    gap = ours / np.linalg.norm(ours) - theirs / np.linalg.norm(theirs)
                    gaps.append(gap @ gap)
                if gaps:
                    candidates.append((np.mean(gaps), j))
            nearest = [j for _, j in sorted(candidates)[:n_neighbors]]
            rows = donors.views[v][nearest] if nearest else donors.rows_seen(v)
            filled[v][i] = rows.mean(axis=0)
    return filled


@pytest.mark.parametrize("n_neighbors", [1, 4, 1000])
def test_equals_brute_force(n_neighbors):
    completed = NeighbourImputer(n_neighbors).fit_transform(DATA)
    for found, expected in zip(completed.views, brute_force(DATA, DATA, n_neighbors), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_new_samples_equal_brute_force_over_the_samples_of_fit():
    new = random_data(12, seed=7)
    completed = NeighbourImputer(3).fit(DATA).transform(new)
    for found, expected in zip(completed.views, brute_force(new, DATA, 3), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_parts_of_the_distances_at_a_time_change_nothing(monkeypatch):
    whole = NeighbourImputer().fit_transform(DATA)
    monkeypatch.setattr(neighbours, "_CHUNK", 3 * 50)
    np.testing.assert_array_equal(NeighbourImputer().fit_transform(DATA).stacked(), whole.stacked())


def test_column_means_where_no_sample_shares_a_view():
    """No sample has both views, so nothing can be compared."""
    observed = np.repeat([[True, False], [False, True]], 5, axis=0)
    rng = np.random.default_rng(0)
    views = [np.where(seen[:, None], rng.normal(size=(10, 3)), np.nan) for seen in observed.T]
    found = NeighbourImputer(2).fit_transform(views).stacked()
    np.testing.assert_array_equal(found, ColumnMeanImputer().fit_transform(views).stacked())


def test_lengths_of_rows_do_not_matter_for_who_is_near():
    """Scaled rows are filled with the scaled rows of the same donors."""
    scale = np.random.default_rng(1).uniform(0.1, 10, size=(50, 3))
    scaled = [view * scale[:, [v]] for v, view in enumerate(DATA.views)]
    plain, found = (NeighbourImputer(1).fit_transform(views) for views in (DATA, scaled))
    for v in range(3):
        lost = ~DATA.observed[:, v]
        ratio = found.views[v][lost] / plain.views[v][lost]
        np.testing.assert_allclose(ratio, ratio[:, [0]] * np.ones_like(ratio), rtol=1e-9)
        assert np.ptp(ratio) > 1


def test_a_copy_of_a_sample_is_its_nearest_neighbour():
    whole = np.flatnonzero(DATA.observed.all(axis=1))[0]
    twin = DATA[[*range(50), whole]]
    twin.observed[-1, 1] = False
    completed = NeighbourImputer(1).fit_transform(twin)
    np.testing.assert_array_equal(completed.views[1][-1], DATA.views[1][whole])
