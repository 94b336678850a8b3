"""The search for very many rows, which begins here with few."""

import numpy as np
import pytest
from tests.core.rows_to_search import assert_same, assert_true_lists, clustered, view

from viewmend.backend import numba_neighbours, threads
from viewmend.core.common.content_order import canonical_order
from viewmend.core.graphs import cells, many_rows, nearest, probes
from viewmend.core.graphs.cells import cells_around_centres
from viewmend.core.graphs.nearest import (
    Neighbours,
    nearest_of_new,
    nearest_rows,
    neighbour_search,
    prepare_pivot,
    recall,
)


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    monkeypatch.setattr(nearest, "EXACT_UP_TO", 500)
    monkeypatch.setattr(cells, "MANY", 1000)
    # More than one piece of work for every thread.
    monkeypatch.setattr(probes, "TOGETHER", 300)


def test_nearly_all_neighbours_are_found_in_every_representation():
    given = view(3000)
    found = neighbour_search(given, 9)
    for name, X in given.items():
        assert recall(found[name], nearest_rows(X, 9)) > 0.96
        assert_true_lists(found[name], X)


def test_threads_do_not_change_the_neighbours(monkeypatch):
    given = view(2000)
    results = []
    for n_threads in (1, 2):
        monkeypatch.setattr(threads, "available_threads", lambda n=n_threads: n)
        results.append(neighbour_search(given, 7))
    for name in given:
        assert_same(results[0][name], results[1][name])


def test_order_of_rows_does_not_matter_in_canonical_order():
    X = clustered(1500, 20)
    moved = np.random.default_rng(3).permutation(len(X))
    found = []
    for rows in (X, X[moved]):
        seen, classes = np.ones((len(X), 1), dtype=bool), np.zeros(len(X), dtype=int)
        order = canonical_order([rows], seen, classes)
        near = neighbour_search({"rows": rows[order]}, 6)["rows"]
        back = np.empty_like(order)
        back[order] = np.arange(len(X))
        found.append(Neighbours(order[near.indices][back], near.squared_distances[back]))
    assert_same(
        Neighbours(moved[found[1].indices], found[1].squared_distances),
        Neighbours(found[0].indices[moved], found[0].squared_distances[moved]),
    )


def test_crowds_of_duplicates_and_rows_far_from_all_have_neighbours():
    X = clustered(2400, 20)
    X[:1300], X[-1] = X[0], 1e3
    found = neighbour_search({"rows": X}, 5)["rows"]
    assert (found.squared_distances[:1300] == 0).all()
    assert_true_lists(found, X)
    assert recall(found, nearest_rows(X, 5)) > 0.96


def test_rows_whose_nearby_cells_have_too_few_rows_look_at_all(monkeypatch):
    # A cell has about ten rows.
    monkeypatch.setattr(many_rows, "PROBES", 1)
    monkeypatch.setattr(many_rows, "PASSES", 0)
    X = clustered(1200, 6)
    assert_same(neighbour_search({"rows": X}, 23)["rows"], nearest_rows(X, 23))


def test_proposals_below_a_limit_are_those_without_one_that_are_below():
    X = clustered(1500, 12)
    grouped = cells_around_centres(X)
    P = X[grouped.order]
    every = probes.propose_each(P, grouped, 8, 20)
    gaps = ((P[:, None] - P[every]) ** 2).sum(axis=2)
    limits = np.sort(gaps, axis=1)[:, 4:6].mean(axis=1)
    found = probes.propose_each(P, grouped, 8, 20, limits)
    np.testing.assert_array_equal(found[:, :5], every[:, :5])
    assert (found[:, 5:] == -1).all()


def test_each_row_looks_into_better_cells_than_all_rows_of_its_cell():
    X = clustered(4000, 30)
    grouped = cells_around_centres(X)
    P, exact = X[grouped.order], nearest_rows(X[grouped.order], 9)
    together = cells.propose(P, grouped, 4, 9)
    one_by_one = probes.propose_each(P, grouped, 4, 9)
    found = [
        (exact.indices[:, :, None] == near[:, None]).any(axis=2).mean()
        for near in (together, one_by_one)
    ]
    assert found[1] > found[0] + 0.1


def test_a_look_around_that_finds_little_is_left_out(monkeypatch):
    """Rows that fill their dimensions: without that, all passes would be made."""
    X = np.random.default_rng(0).normal(size=(3000, 40)).astype(np.float32)
    monkeypatch.setattr(many_rows, "PROBES", 2)
    looks = []
    whole = many_rows.look_around

    def look_around(rows, known, lists, around, parts=None):
        looks.append(parts is None)
        return whole(rows, known, lists, around, parts)

    monkeypatch.setattr(many_rows, "look_around", look_around)
    monkeypatch.setattr(many_rows, "WORTH", 1.0)
    neighbour_search({"rows": X}, 9)
    # Tried on a few rows before and after its own proposals.
    assert looks == [False, False]


def test_new_rows_find_rows_of_fit_in_finer_cells():
    X = clustered(3200, 30)
    fit, new = X[:3000], X[3000:]
    pivot = prepare_pivot({"rows": fit})
    found = nearest_of_new({"rows": new}, 9, pivot, lambda _, rows: fit[rows])["rows"]
    assert recall(found, nearest_rows(fit, 9, queries=new)) > 0.93


@pytest.mark.parametrize("n_rows", [900, 3000])
def test_the_lowest_scores_are_kept_in_order(n_rows):
    """With few rows and with many, which are told from the rest by a limit."""
    rng = np.random.default_rng(0)
    # Many scores are the same.
    products = rng.integers(-50, 50, size=(20, n_rows)).astype(np.float32)
    norms = rng.integers(20, size=n_rows).astype(np.float32)
    numbers = np.arange(n_rows, dtype=np.int32)
    excluded = np.argmax(products, axis=1).astype(np.int32)
    scores = np.full((20, 40), np.inf, dtype=np.float32)
    indices = np.full((20, 40), -1, dtype=np.int32)
    numba_neighbours.keep_nearest(products, norms, numbers, excluded, scores, indices)
    true = norms - 2 * products
    true[np.arange(20), excluded] = np.inf
    order = np.argsort(true, axis=1, kind="stable")[:, :40]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(scores, np.take_along_axis(true, order, axis=1))
