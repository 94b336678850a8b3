"""The generated data has the structure its description claims."""

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import kneighbors_graph

from viewmend.datasets import make_broken_moons, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError


def neighbour_graph(task, v):
    """7-nearest-neighbour graph of view v over all samples; missing samples have no edge."""
    rows = np.flatnonzero(task.data.observed[:, v])
    edges = kneighbors_graph(task.data.rows_seen(v), n_neighbors=7).tocoo()
    n = task.data.n_samples
    return coo_array((edges.data, (rows[edges.row], rows[edges.col])), shape=(n, n)).tocsr()


def samples_reached(task, graph):
    """Samples whose component of the graph holds a labelled sample."""
    _, component = connected_components(graph, directed=False)
    return np.isin(component, component[task.labelled])


def place_along_moon(task):
    """Rank of each row along its own moon, from 0 to 1."""
    n_first = np.sum(task.y_true == 0)
    sizes = np.array([n_first, task.order.size - n_first])
    return (task.order - n_first * task.y_true) / sizes[task.y_true]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "options", [{}, {"gap": 0.1}, {"gap": 0.3}, {"noise": 0.0}, {"n_samples": 801, "n_labelled": 1}]
)
def test_one_view_cannot_reach_what_both_views_reach(seed, options):
    task = make_broken_moons(random_state=seed, **options)
    graphs = [neighbour_graph(task, v) for v in range(2)]
    for v, middle in enumerate([1 / 3, 2 / 3]):
        reached = samples_reached(task, graphs[v])
        beyond_gap = place_along_moon(task) > middle
        cut_off = task.data.observed[:, v] & beyond_gap
        assert all(np.any(cut_off & (task.y_true == c)) for c in (0, 1))
        assert not np.any(reached & cut_off)
    union = graphs[0] + graphs[1]
    assert samples_reached(task, union).all()
    # Nor does the union join the moons: each component is one class, so labels spread right.
    n_components, component = connected_components(union, directed=False)
    assert n_components == 2
    assert np.unique(np.column_stack([component, task.y_true]), axis=0).shape[0] == 2


def test_the_gaps_have_the_length_asked_for_and_lie_apart():
    task = make_broken_moons(2000, gap=0.25, random_state=0)
    place = place_along_moon(task)
    for v, middle in enumerate([1 / 3, 2 / 3]):
        missing = ~task.data.observed[:, v]
        assert missing.mean() == pytest.approx(0.25, abs=0.002)
        assert np.abs(place[missing] - middle).max() == pytest.approx(0.125, abs=0.002)
    assert task.data.observed.any(axis=1).all()


def test_only_the_first_end_of_each_moon_is_labelled():
    task = make_broken_moons(n_labelled=4, random_state=1)
    for c in (0, 1):
        place = place_along_moon(task)[task.y_true == c]
        labelled = task.labelled[task.y_true == c]
        assert labelled.sum() == 4
        assert place[labelled].max() < place[~labelled].min()
    np.testing.assert_array_equal(task.y[task.labelled], task.y_true[task.labelled])
    assert task.data.observed[task.labelled].all()


def test_moon_samples_stray_as_told_and_separately_in_each_view():
    task = make_broken_moons(4000, noise=0.05, random_state=2)
    upper = (task.y_true == 0) & task.data.observed.all(axis=1)
    strays = [np.linalg.norm(view[upper], axis=1) - 1 for view in task.data.views]
    for stray in strays:
        assert stray.mean() == pytest.approx(0, abs=0.01)
        assert stray.std() == pytest.approx(0.05, rel=0.05)
    assert abs(np.corrcoef(strays)[0, 1]) < 4 / np.sqrt(upper.sum())


def test_moons_are_shuffled_by_default_and_fixed_by_the_seed():
    shuffled, again = (make_broken_moons(random_state=3) for _ in range(2))
    in_order = make_broken_moons(random_state=3, shuffle=False)
    np.testing.assert_array_equal(shuffled.data.stacked(), again.data.stacked())
    np.testing.assert_array_equal(shuffled.data.stacked(), in_order.data[shuffled.order].stacked())
    assert np.mean(shuffled.y_true[1:] == shuffled.y_true[:-1]) < 0.6
    np.testing.assert_array_equal(in_order.order, np.arange(400))
    np.testing.assert_array_equal(in_order.y_true, np.repeat([0, 1], 200))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gap": 0}, r"gap must lie in \(0, 0.3\] but is 0"),
        ({"gap": 0.34}, r"gap must lie in \(0, 0.3\] but is 0.34"),
        ({"noise": -1}, "noise must be 0 or more but is -1"),
        ({"n_labelled": 0}, "n_labelled must be 1 or more"),
        ({"n_samples": 40, "n_labelled": 5}, "only 4 samples of each moon lie before"),
    ],
)
def test_moons_that_cannot_be_made(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        make_broken_moons(**options)


def test_blobs_without_noise_are_their_centres():
    dataset = make_multiview_blobs(50, n_views=3, n_classes=4, noise=0.0, random_state=0)
    for view in dataset.views:
        centres = np.unique(view, axis=0)
        assert len(centres) == 4
        for c in range(4):
            assert len(np.unique(view[dataset.y == c], axis=0)) == 1


def test_blobs_scatter_independently_in_each_view():
    dataset = make_multiview_blobs(6000, n_features=(2, 5), noise=0.5, random_state=1)
    residuals = [view.copy() for view in dataset.views]
    for residual in residuals:
        for c in range(3):
            residual[dataset.y == c] -= residual[dataset.y == c].mean(axis=0)
    covariance = np.cov(np.hstack(residuals), rowvar=False)
    np.testing.assert_allclose(covariance, 0.25 * np.eye(7), atol=4 * 0.25 * np.sqrt(2 / 6000))


def test_blob_classes_are_balanced_and_their_rows_mixed():
    y = make_multiview_blobs(302, random_state=2).y
    assert np.ptp(np.bincount(y, minlength=3)) == 1
    assert np.mean(y[1:] == y[:-1]) < 0.6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_samples": 2}, "n_samples must be 3 or more but is 2"),
        ({"n_views": 0}, "n_views must be 1 or more"),
        ({"n_classes": 0}, "n_classes must be 1 or more"),
        ({"noise": float("nan")}, "noise must be 0 or more but is nan"),
        ({"n_features": [2, 3, 4]}, "n_features must be a positive int or 2 of them"),
        ({"n_features": 0}, "n_features must be a positive int or 2 of them"),
    ],
)
def test_blobs_that_cannot_be_made(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        make_multiview_blobs(**options)
