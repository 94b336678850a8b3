"""What the protocols of the honest comparison hide, change and leave alone."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from protocols import IMBALANCE, PROTOCOLS, imbalanced, pose, uniform_rows

from viewmend.data import MultiViewData
from viewmend.datasets import make_multiview_blobs

BLOBS = make_multiview_blobs(240, n_views=3, n_classes=4, random_state=0)


def shown(task):
    return set(task.order[task.labelled])


@pytest.mark.parametrize("name", PROTOCOLS)
def test_rows_are_shuffled_and_only_true_labels_are_shown(name):
    task = pose(BLOBS, name, 0.5, 0)
    assert_array_equal(task.y[task.labelled], task.y_true[task.labelled])
    assert set(task.y[task.labelled]) == set(task.y_true)
    # Neighbouring rows agree in class as often as any two: the order tells nothing.
    pairs = np.mean(task.y_true[1:] == task.y_true[:-1])
    shares = np.bincount(task.y_true) / task.y_true.size
    assert pairs == pytest.approx(np.sum(shares**2), abs=0.12)
    missing = ~task.data.observed
    for v, view in enumerate(task.data.views):
        assert_array_equal(np.isnan(view).all(axis=1), missing[:, v])


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_seed_gives_one_task(name):
    first, again, other = (pose(BLOBS, name, 0.5, seed) for seed in (3, 3, 4))
    for a, b in zip(first.data.views, again.data.views, strict=True):
        assert_array_equal(a, b)
    assert_array_equal(first.y, again.y)
    assert not np.array_equal(first.y, other.y)


@pytest.mark.parametrize("name", ["random_labels", "non_stratified", "few_labels_1"])
def test_label_protocols_leave_masks_and_order_alone(name):
    main, task = pose(BLOBS, "main", 0.5, 0), pose(BLOBS, name, 0.5, 0)
    assert_array_equal(task.order, main.order)
    assert_array_equal(task.data.observed, main.data.observed)
    assert shown(task) != shown(main)


@pytest.mark.parametrize("n_labels", [1, 2])
def test_few_labels_go_to_the_most_complete_of_every_class(n_labels):
    task = pose(BLOBS, f"few_labels_{n_labels}", 0.7, 1)
    n_seen = task.data.observed.sum(axis=1)
    assert_array_equal(np.bincount(task.y[task.labelled]), n_labels)
    for label in np.unique(task.y_true):
        own = task.y_true == label
        assert n_seen[own & task.labelled].min() >= n_seen[own & task.unlabelled].max()


def test_uniform_labels_follow_the_shares_of_the_data():
    y = np.repeat([0, 1, 2], [600, 300, 100])
    rng = np.random.default_rng(0)
    counts = [np.bincount(y[uniform_rows(y, y, rng)], minlength=3) for _ in range(300)]
    np.testing.assert_allclose(np.mean(counts, axis=0), [30, 15, 5], rtol=0.05)
    # A stratified draw would give the same counts every time; these are hypergeometric.
    expected = np.sqrt(50 * 0.6 * 0.4 * (950 / 999))
    assert np.std(counts, axis=0)[0] == pytest.approx(expected, rel=0.15)


def test_uniform_labels_reach_a_class_that_is_never_drawn():
    y = np.repeat([0, 1, 2], [998, 1, 1])
    rows = uniform_rows(y, y, np.random.default_rng(0))
    assert set(y[rows]) == {0, 1, 2}
    assert len(set(rows)) == rows.size


@pytest.mark.parametrize("counts", [[60] * 5, [400, 100, 90, 80, 40]])
def test_imbalanced_sizes_are_geometric_and_as_large_as_possible(counts):
    y = np.repeat(np.arange(5), counts)
    views = (np.arange(y.size, dtype=float)[:, None],)
    (kept,), found = imbalanced(views, y, np.random.default_rng(0))
    assert_array_equal(y[kept[:, 0].astype(int)], found)
    sizes = np.sort(np.bincount(found))[::-1]
    np.testing.assert_allclose(sizes, sizes[0] * IMBALANCE ** -np.linspace(0, 1, 5), atol=1.0)
    # Some class is used up, or the sizes could all grow.
    assert np.any(np.bincount(found) == counts)


def test_two_views_are_the_first_two():
    dataset = BLOBS
    task = pose(dataset, "two_views", 0.3, 0)
    seen = task.data.observed
    for v, view in enumerate(task.data.views):
        assert_array_equal(view[seen[:, v]], dataset.views[v][task.order][seen[:, v]])
    assert task.data.n_views == 2
    assert PROTOCOLS["two_views"].min_views == 3


def test_the_useless_view_knows_nothing_and_the_others_are_untouched():
    main, task = pose(BLOBS, "main", 0.3, 0), pose(BLOBS, "useless_view", 0.3, 0)
    same = [
        np.array_equal(a, b, equal_nan=True)
        for a, b in zip(main.data.views, task.data.views, strict=True)
    ]
    assert sorted(same) == [False, True, True]
    noise = task.data.views[same.index(False)]
    seen = ~np.isnan(noise[:, 0])
    between = [noise[seen & (task.y_true == c)].mean(axis=0) for c in range(4)]
    # Class means of standard noise over some 40 rows each.
    assert np.abs(between).max() < 4 / np.sqrt(40)


def test_every_view_is_useless_for_some_seed():
    views = tuple(np.full((60, 2), 1e6) for _ in range(3))
    marked = MultiViewData(views, np.ones((60, 3), dtype=bool), tuple("abc"), y=np.arange(60) % 3)
    spoilt = set()
    for seed in range(12):
        views = pose(marked, "useless_view", 0.0, seed).data.views
        spoilt |= {v for v, view in enumerate(views) if view.max() < 1e3}
    assert spoilt == {0, 1, 2}
