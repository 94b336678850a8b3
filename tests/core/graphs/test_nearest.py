"""Nearest rows by proposals and leaves: what they miss, what they measure, what they depend on."""

import numpy as np
import pytest
from tests.core.rows_to_search import assert_same, assert_true_lists, clustered, view

from viewmend.backend import threads
from viewmend.core.graphs import cells, nearest, newcomers, proposals
from viewmend.core.graphs.nearest import (
    Neighbours,
    PointIndex,
    nearest_of_new,
    nearest_points,
    nearest_rows,
    neighbour_search,
    prepare_pivot,
    recall,
)
from viewmend.core.graphs.points import nearest_in_cells
from viewmend.exceptions import InvalidViewsError


def class_shares(n_points, n_classes, seed=0):
    """Most points are within rounding of a corner, some are spread between corners."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n_points, n_classes)) * rng.exponential(3, size=(n_points, 1))
    scores[np.arange(n_points), rng.integers(n_classes, size=n_points)] += 6
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.sqrt(shares / shares.sum(axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def few_are_few(monkeypatch):
    """Let the searches for many rows begin with few."""
    monkeypatch.setattr(nearest, "EXACT_UP_TO", 500)


@pytest.mark.usefixtures("few_are_few")
def test_proposals_find_nearly_all_neighbours_in_every_representation():
    given = view(3000)
    found = neighbour_search(given, 9)
    assert list(found) == list(given)
    for name, X in given.items():
        exact = nearest_rows(X, 9)
        assert recall(found[name], exact) > 0.96
        assert (found[name].squared_distances >= exact.squared_distances).all()
        assert_true_lists(found[name], X)


def test_few_rows_are_searched_exactly():
    given = view(600)
    for name, near in neighbour_search(given, 9).items():
        assert_same(near, nearest_rows(given[name], 9))
    assert_same(nearest_points(given["few"], 4), nearest_rows(given["few"], 4))


@pytest.mark.usefixtures("few_are_few")
def test_a_representation_unlike_the_pivot_proposes_itself(monkeypatch):
    """The first pass is of its own proposals; without them it misses many."""
    given = view(3000)
    exact = nearest_rows(given["weighted"], 9)
    monkeypatch.setattr(proposals, "PASSES", 1)
    own = neighbour_search(given, 9)["weighted"]
    monkeypatch.setattr(proposals, "_own_proposals", lambda rows: np.full((len(rows), 1), -1))
    not_own = neighbour_search(given, 9)["weighted"]
    assert recall(own, exact) > recall(not_own, exact) + 0.1


@pytest.mark.usefixtures("few_are_few")
def test_neighbours_of_neighbours_find_what_proposals_missed(monkeypatch):
    given = {"plain": view(3000)["plain"]}
    exact = nearest_rows(given["plain"], 9)
    monkeypatch.setattr(proposals, "PROBES", 2)
    monkeypatch.setattr(proposals, "POOR", 0)
    found = []
    for n_passes in (0, 1, 3):
        monkeypatch.setattr(proposals, "PASSES", n_passes)
        found.append(neighbour_search(given, 9)["plain"])
    assert (found[1].squared_distances <= found[0].squared_distances).all()
    assert (found[2].squared_distances <= found[1].squared_distances).all()
    assert recall(found[0], exact) < recall(found[1], exact) <= recall(found[2], exact)


@pytest.mark.usefixtures("few_are_few")
def test_threads_do_not_change_the_neighbours(monkeypatch):
    given, points = view(2000), class_shares(2000, 6)
    results = []
    for n_threads in (1, 2, 3):
        monkeypatch.setattr(threads, "available_threads", lambda n=n_threads: n)
        results.append([*neighbour_search(given, 7).values(), nearest_points(points, 7)])
    for other in results[1:]:
        for one, same in zip(results[0], other, strict=True):
            assert_same(one, same)


@pytest.mark.usefixtures("few_are_few")
def test_crowds_of_duplicates_find_one_another():
    X = clustered(2400, 20)
    X[:1500] = X[0]
    found = neighbour_search({"rows": X}, 5)["rows"]
    assert (found.squared_distances[:1500] == 0).all()
    assert_true_lists(found, X)
    assert recall(found, nearest_rows(X, 5)) > 0.96


@pytest.mark.usefixtures("few_are_few")
def test_a_row_far_from_all_others_has_neighbours():
    X = clustered(2000, 20)
    X[0] = 1e3
    found = neighbour_search({"rows": X}, 5)["rows"]
    assert_true_lists(found, X)


@pytest.mark.parametrize("scale", [1e-25, 1e25])
@pytest.mark.usefixtures("few_are_few")
def test_size_of_the_numbers_does_not_matter(scale):
    X = clustered(1500, 12).astype(np.float64)
    found = neighbour_search({"rows": X}, 5)["rows"]
    scaled = neighbour_search({"rows": scale * X}, 5)["rows"]
    assert np.mean(found.indices == scaled.indices) > 0.99


@pytest.mark.parametrize("n_classes", [2, 10, 60])
@pytest.mark.usefixtures("few_are_few")
def test_points_near_the_corners_find_nearly_all_neighbours(n_classes):
    points = class_shares(4000, n_classes)
    found, exact = nearest_points(points, 8), nearest_rows(points, 8)
    assert recall(found, exact) > 0.96
    assert_true_lists(found, points)


@pytest.mark.usefixtures("few_are_few")
def test_queries_are_answered_one_by_one_as_all_at_once():
    points, queries = class_shares(4000, 6), class_shares(300, 6, seed=1)
    found = nearest_points(points, 8, queries)
    assert recall(found, nearest_rows(points, 8, queries=queries)) > 0.96
    assert_true_lists(found, points, queries)
    assert_same(
        nearest_points(points, 8, queries[7:8]),
        Neighbours(found.indices[7:8], found.squared_distances[7:8]),
    )


@pytest.mark.parametrize("n_classes", [5, 30])
@pytest.mark.parametrize("odd", [np.nan, np.inf])
@pytest.mark.usefixtures("few_are_few")
def test_points_that_are_not_finite_are_refused(odd, n_classes):
    """Cut in halves, they would be written to places that belong to others."""
    points = class_shares(4000, n_classes)
    points[3::2, 1] = odd
    with pytest.raises(InvalidViewsError, match="finite, got"):
        nearest_points(points, 8)
    with pytest.raises(InvalidViewsError, match="finite, got NaN or infinity in 1999 of 4000"):
        PointIndex(points, 8).nearest(class_shares(10, n_classes))


def test_leaves_hold_every_row_once_and_are_of_one_size():
    points = np.vstack([class_shares(900, 4), np.zeros((333, 4), dtype=np.float32)])
    leaves = cells.cells_of_leaves(points, 16)
    assert sorted(leaves.order) == list(range(1233))
    sizes = np.diff(leaves.starts)
    assert sizes.max() <= 16
    assert sizes.min() >= 8


@pytest.mark.parametrize("n_columns", [3, 40])
def test_of_the_cells_that_are_looked_into_the_nearest_rows_are_found(n_columns):
    # Whole numbers: distances are exact, and many are equal.
    rng = np.random.default_rng(n_columns)
    rows, queries = (rng.integers(3, size=(n, n_columns)).astype(np.float32) for n in (2000, 50))
    found_cells = cells.cells_around_centres(rows)
    arranged = rows[found_cells.order]
    near = cells.nearest_cells(found_cells, 4, queries)
    found = nearest_in_cells(queries, arranged, found_cells, 4, 7)
    for query, looked_into, indices in zip(queries, near, found, strict=True):
        positions = np.sort(found_cells.positions(looked_into))
        distances = ((arranged[positions] - query) ** 2).sum(axis=1)
        expected = positions[np.argsort(distances, kind="stable")]
        np.testing.assert_array_equal(indices, expected[: len(indices)])


@pytest.mark.usefixtures("few_are_few")
def test_new_rows_find_rows_of_fit_and_do_not_depend_on_one_another():
    given = view(3200)
    fit = {name: X[:3000] for name, X in given.items()}
    new = {name: X[3000:] for name, X in given.items()}
    pivot = prepare_pivot(fit)
    asked = []

    def mapped(name, rows):
        asked.append(len(fit[name][rows]))
        return fit[name][rows]

    found = nearest_of_new(new, 9, pivot, mapped)
    for name, X in fit.items():
        # Rows that are near in another representation alone are not proposed.
        enough = 0.93 if name == pivot.name else 0.6
        assert recall(found[name], nearest_rows(X, 9, queries=new[name])) > enough
        # Those of the pivot itself, which keeps its rows scaled, are exact up to float32.
        tolerance = 1e-4 if name == pivot.name else 1e-12
        assert_true_lists(found[name], X, new[name], tolerance)
    asked.clear()
    one = nearest_of_new({name: Q[5:6] for name, Q in new.items()}, 9, pivot, mapped)
    assert max(asked) < 200
    for name, near in found.items():
        row = Neighbours(near.indices[5:6], near.squared_distances[5:6])
        assert_same(one[name], row)


@pytest.mark.usefixtures("few_are_few")
def test_new_rows_whose_nearby_cells_have_too_few_rows_look_at_all(monkeypatch):
    # A cell has some thirty rows.
    monkeypatch.setattr(newcomers, "PROBES", 1)
    X = clustered(3100, 6)
    fit, Q = X[:3000], X[3000:]
    found = nearest_of_new({"rows": Q}, 70, prepare_pivot({"rows": fit}), lambda _, rows: fit[rows])
    assert recall(found["rows"], nearest_rows(fit, 70, queries=Q)) > 0.99


def test_new_rows_are_searched_exactly_among_few_rows():
    given = view(700)
    fit = {name: X[:600] for name, X in given.items()}
    new = {name: X[600:] for name, X in given.items()}
    pivot = prepare_pivot(fit)
    found = nearest_of_new(new, 5, pivot, lambda name, rows: fit[name][rows])
    for name, near in found.items():
        assert_same(near, nearest_rows(fit[name], 5, queries=new[name]))


def test_recall_counts_what_is_near_enough():
    exact = Neighbours(np.array([[1, 2], [0, 2]]), np.array([[1.0, 2.0], [1.0, 1.0]]))
    found = Neighbours(np.array([[1, 3], [3, 2]]), np.array([[1.0, 3.0], [1.0, 1.0]]))
    assert recall(exact, exact) == 1
    # Row 3 ties with row 0 for the second query, and is too far for the first.
    assert recall(found, exact) == 0.75
