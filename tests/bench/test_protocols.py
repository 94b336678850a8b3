"""What the three protocols hide, and what their row orders give away."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from viewmend.bench.protocols import PROTOCOLS, observed_pairs, pose
from viewmend.data.container import MultiViewData
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError

BLOBS = make_multiview_blobs(150, n_views=3, n_classes=3, random_state=0)
BY_CLASS = np.argsort(BLOBS.y, kind="stable")


def source_of(present=None):
    views = tuple(view[BY_CLASS] for view in BLOBS.views)
    present = np.ones((150, 3), dtype=bool) if present is None else present
    return MultiViewData(views, present, ("a", "b", "c"), y=BLOBS.y[BY_CLASS])


COMPLETE = source_of()


def back(task):
    """Mask and labels in the order of the source."""
    rows = np.argsort(task.order)
    return task.data.observed[rows], task.y[rows]


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_on_complete_data_it_is_what_hide_does(name, rate):
    protocol, task = PROTOCOLS[name], pose(COMPLETE, name, rate, 0.1, 7)
    same = hide(
        COMPLETE.data.views,
        COMPLETE.y,
        missing_rate=rate,
        label_rate=0.1,
        missing=protocol.missing,
        labels=protocol.labels,
        order=protocol.order,
        random_state=7,
    )
    for a, b in zip(task.data.views, same.data.views, strict=True):
        assert_array_equal(a, b)
    assert_array_equal(task.data.observed, same.data.observed)
    assert_array_equal(task.y, same.y)
    assert_array_equal(task.y_true, same.y_true)
    assert_array_equal(task.order, same.order)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.3, 0.5, 0.7]))
@settings(max_examples=20, deadline=None)
def test_protocols_of_a_seed_hide_the_same_pairs(seed, rate):
    paper, shuffled, honest = (back(pose(COMPLETE, name, rate, 0.1, seed)) for name in PROTOCOLS)
    assert_array_equal(paper[0], shuffled[0])
    assert_array_equal(paper[1], shuffled[1])
    assert_array_equal(paper[0], honest[0])
    assert_array_equal(paper[0], observed_pairs(COMPLETE, "independent", rate, seed))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_class_gets_its_share_of_labels_rounded_up(name):
    task = pose(COMPLETE, name, 0.5, 0.05, 3)
    assert_array_equal(task.y[task.labelled], task.y_true[task.labelled])
    expected = [math.ceil(0.05 * n) for n in np.bincount(COMPLETE.y)]
    assert_array_equal(np.bincount(task.y[task.labelled]), expected)


def test_the_paper_labels_the_most_complete_and_the_honest_protocol_does_not():
    def least_labelled_less_most_unlabelled(name):
        task = pose(COMPLETE, name, 0.7, 0.1, 0)
        n_seen = task.data.observed.sum(axis=1)
        own = [task.y_true == c for c in range(3)]
        return [n_seen[c & task.labelled].min() - n_seen[c & task.unlabelled].max() for c in own]

    assert min(least_labelled_less_most_unlabelled("paper")) >= 0
    assert max(least_labelled_less_most_unlabelled("honest")) < 0


def test_the_order_of_the_paper_tells_the_classes_and_a_shuffled_one_does_not():
    def equal_neighbours(name):
        y = pose(COMPLETE, name, 0.5, 0.1, 0).y_true
        return np.mean(y[1:] == y[:-1])

    # Two runs of three classes: at most five changes in 149 steps.
    assert equal_neighbours("paper") >= 1 - 5 / 149
    chance = np.sum((np.bincount(COMPLETE.y) / 150) ** 2)
    for name in ("paper-shuffled", "honest"):
        assert equal_neighbours(name) == pytest.approx(chance, abs=0.12)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.4, 0.8]))
@settings(max_examples=20, deadline=None)
def test_views_missing_from_the_start_stay_missing_and_no_sample_is_lost(seed, rate):
    rng = np.random.default_rng(seed)
    present = rng.random((150, 3)) < 0.5
    present[np.arange(150), rng.integers(3, size=150)] = True
    task = pose(source_of(present), "honest", rate, 0.1, seed)
    kept = back(task)[0]
    assert not np.any(kept & ~present)
    assert kept.any(axis=1).all()
    if rate == 0:
        assert_array_equal(kept, present)
    missing = ~task.data.observed
    for v, view in enumerate(task.data.views):
        assert_array_equal(np.isnan(view).all(axis=1), missing[:, v])


def test_an_emptied_sample_gets_any_of_its_own_views_back_alike():
    present = np.tile([True, False, True], (150, 1))
    kept = sum(
        observed_pairs(source_of(present), "independent", 0.99, seed).astype(int)
        for seed in range(40)
    ).sum(axis=0)
    # 6000 draws of which nearly all keep one view: half of them, give or take four deviations.
    assert kept[1] == 0
    assert abs(kept[0] - kept[2]) < 4 * math.sqrt(6000)


def test_unknown_protocols_are_refused_by_name():
    with pytest.raises(InvalidParameterError, match=r"protocol='fair' .* 'paper',"):
        pose(COMPLETE, "fair", 0.5, 0.1, 0)
