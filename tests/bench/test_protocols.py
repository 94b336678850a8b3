"""What the protocols hide and change, what they leave alone, what their rows give away."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from viewmend.bench.protocols import (
    ALTERATIONS,
    IMBALANCE,
    PROTOCOLS,
    altered,
    observed_pairs,
    pose,
    regardless_of_class,
)
from viewmend.data.container import MultiViewData
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.datasets.catalogue import digest
from viewmend.exceptions import InvalidParameterError

BLOBS = make_multiview_blobs(150, n_views=3, n_classes=3, random_state=0)
BY_CLASS = np.argsort(BLOBS.y, kind="stable")


def source_of(present=None):
    views = tuple(view[BY_CLASS] for view in BLOBS.views)
    present = np.ones((150, 3), dtype=bool) if present is None else present
    return MultiViewData(views, present, ("a", "b", "c"), y=BLOBS.y[BY_CLASS])


COMPLETE = source_of()


# Those that `hide` can do alone, and those that draw a share of every class.
PLAIN = ["paper", "paper-shuffled", "honest", "most-complete", "honest-whole-samples"]
SHARES = [
    name
    for name, p in PROTOCOLS.items()
    if p.labels_per_class is p.label_share is None and name != "random-labels"
]


def back(task):
    """Mask and labels in the order of the source."""
    rows = np.argsort(task.order)
    return task.data.observed[rows], task.y[rows]


@pytest.mark.parametrize("name", PLAIN)
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
    names = ("paper-shuffled", "most-complete", "honest", "random-labels", "honest-one-label")
    pairs, labels = back(pose(COMPLETE, "paper", rate, 0.1, seed))
    assert_array_equal(pairs, observed_pairs(COMPLETE, "independent", rate, seed))
    posed = {name: back(pose(COMPLETE, name, rate, 0.1, seed)) for name in names}
    for own_pairs, _ in posed.values():
        assert_array_equal(own_pairs, pairs)
    assert_array_equal(posed["paper-shuffled"][1], labels)
    assert_array_equal(posed["most-complete"][1], labels)
    for name in ("honest", "random-labels", "honest-one-label"):
        assert not np.array_equal(posed[name][1], labels)


@pytest.mark.parametrize("name", SHARES)
def test_every_class_gets_its_share_of_labels_rounded_up(name):
    task = pose(COMPLETE, name, 0.5, 0.05, 3)
    assert_array_equal(task.y[task.labelled], task.y_true[task.labelled])
    expected = [math.ceil(0.05 * n) for n in np.bincount(altered(COMPLETE, name, 3).y)]
    assert_array_equal(np.bincount(task.y[task.labelled]), expected)


def test_the_paper_labels_the_most_complete_and_the_honest_protocol_does_not():
    def least_labelled_less_most_unlabelled(name):
        task = pose(COMPLETE, name, 0.7, 0.1, 0)
        n_seen = task.data.observed.sum(axis=1)
        rows = [task.y_true == c for c in range(3)]
        return [n_seen[c & task.labelled].min() - n_seen[c & task.unlabelled].max() for c in rows]

    for name in ("paper", "most-complete", "most-complete-one-label", "most-complete-two-labels"):
        assert min(least_labelled_less_most_unlabelled(name)) >= 0
    assert max(least_labelled_less_most_unlabelled("honest")) < 0


def test_the_order_of_the_paper_tells_the_classes_and_a_shuffled_one_does_not():
    def equal_neighbours(name):
        y = pose(COMPLETE, name, 0.5, 0.1, 0).y_true
        return np.mean(y[1:] == y[:-1])

    # Two runs of three classes: at most five changes in 149 steps.
    assert equal_neighbours("paper") >= 1 - 5 / 149
    chance = np.sum((np.bincount(COMPLETE.y) / 150) ** 2)
    for name in SHARES:
        if name not in ("paper", "paper-text") and "imbalanced" not in name:
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


@pytest.mark.parametrize("rate", [0.3, 0.7])
def test_the_papers_text_hides_whole_shares_of_samples_and_draws_labels(rate):
    text, shuffled = (pose(COMPLETE, f"paper-text{end}", rate, 0.1, 3) for end in ("", "-shuffled"))
    n_views = text.data.observed.sum(axis=1)
    assert np.mean(n_views < COMPLETE.n_views) == pytest.approx(rate, abs=1 / len(n_views))
    assert set(n_views) == set(range(1, COMPLETE.n_views + 1))
    # Labelled samples are as incomplete as the others, which those of the released code are not.
    released = pose(COMPLETE, "paper", rate, 0.1, 3)
    assert np.any(n_views[text.labelled] < COMPLETE.n_views)
    assert (
        released.data.observed[released.labelled].mean() > text.data.observed[text.labelled].mean()
    )
    # Labelled rows first, then by class; the twin has the same rows in another order.
    assert np.all(np.diff(text.y_true[text.unlabelled]) >= 0)
    assert_array_equal(back(shuffled)[0], back(text)[0])
    assert_array_equal(back(shuffled)[1], back(text)[1])
    assert not np.array_equal(shuffled.order, text.order)


def test_unknown_protocols_are_refused_by_name():
    with pytest.raises(InvalidParameterError, match=r"protocol='fair' .* 'paper',"):
        pose(COMPLETE, "fair", 0.5, 0.1, 0)


def test_honest_means_one_thing():
    """Every name that says honest: rows shuffled, labels drawn within classes, defaults."""
    for name, protocol in PROTOCOLS.items():
        if name.startswith("honest"):
            assert (protocol.labels, protocol.order, protocol.tuned) == (
                "random",
                "shuffled",
                False,
            )
    assert sum(p.labels == "regardless_of_class" for p in PROTOCOLS.values()) == 1


def test_no_two_protocols_have_the_same_rules():
    rules = [protocol.rules for protocol in PROTOCOLS.values()]
    assert len(set(rules)) == len(rules)


@pytest.mark.parametrize("base", ["honest", "most-complete"])
@pytest.mark.parametrize(("name", "n_labels"), [("one-label", 1), ("two-labels", 2)])
def test_few_labels_are_as_many_in_every_class_whatever_the_rate(base, name, n_labels):
    task = pose(COMPLETE, f"{base}-{name}", 0.7, 0.5, 1)
    assert_array_equal(np.bincount(task.y[task.labelled]), n_labels)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5]))
@settings(max_examples=20, deadline=None)
def test_the_limit_adds_labels_to_those_of_honest_and_hides_the_same_pairs(seed, rate):
    honest, limit = (pose(COMPLETE, name, rate, 0.05, seed) for name in ("honest", "honest-limit"))
    assert_array_equal(limit.order, honest.order)
    assert_array_equal(limit.data.observed, honest.data.observed)
    assert_array_equal(limit.y[honest.labelled], honest.y[honest.labelled])
    sizes = np.bincount(COMPLETE.y)
    assert_array_equal(np.bincount(limit.y_true[limit.unlabelled]), sizes // 10)
    # Whatever the label rate, which is part of the seed of a run.
    assert_array_equal(limit.y, pose(COMPLETE, "honest-limit", rate, 0.5, seed).y)


def test_labels_regardless_of_class_follow_the_shares_of_the_data():
    y = np.repeat([0, 1, 2], [600, 300, 100])
    rng = np.random.default_rng(0)
    drawn = [y[regardless_of_class(y, 0.05, y, rng)] for _ in range(300)]
    counts = [np.bincount(labels, minlength=3) for labels in drawn]
    np.testing.assert_allclose(np.mean(counts, axis=0), [30, 15, 5], rtol=0.05)
    # A draw within classes would give the same counts every time; these are hypergeometric.
    expected = np.sqrt(50 * 0.6 * 0.4 * (950 / 999))
    assert np.std(counts, axis=0)[0] == pytest.approx(expected, rel=0.15)


def test_labels_regardless_of_class_reach_one_that_is_never_drawn():
    y = np.repeat([0, 1, 2], [998, 1, 1])
    rows = regardless_of_class(y, 0.05, y, np.random.default_rng(0))
    assert set(y[rows]) == {0, 1, 2}
    assert len(set(rows)) == rows.size


@pytest.mark.parametrize("name", [n for n, p in PROTOCOLS.items() if p.alteration])
def test_a_seed_gives_one_alteration_with_a_digest_of_its_own(name):
    first, again, other = (altered(COMPLETE, name, seed) for seed in (3, 3, 4))
    for a, b in zip(first.data.views, again.data.views, strict=True):
        assert_array_equal(a, b)
    # Of the first two views there is one choice only.
    assert (digest(first) == digest(other)) == name.endswith("two-views")
    assert digest(first) == digest(again) != digest(COMPLETE)


@pytest.mark.parametrize("counts", [[60] * 5, [400, 100, 90, 80, 40]])
def test_imbalanced_sizes_are_geometric_and_as_large_as_possible(counts):
    y = np.repeat(np.arange(5), counts)
    rows = np.arange(y.size, dtype=float)[:, None]
    data = MultiViewData((rows,), np.ones((y.size, 1), dtype=bool), ("rows",), y=y)
    thinned = ALTERATIONS["classes of unequal size"](data, np.random.default_rng(0))
    classes = thinned.y
    assert_array_equal(y[thinned.views[0][:, 0].astype(int)], classes)
    sizes = np.sort(np.bincount(classes))[::-1]
    np.testing.assert_allclose(sizes, sizes[0] * IMBALANCE ** -np.linspace(0, 1, 5), atol=1.0)
    # Some class is used up, or the sizes could all grow.
    assert np.any(np.bincount(classes) == counts)


def test_two_views_are_the_first_two():
    task = pose(COMPLETE, "honest-two-views", 0.3, 0.1, 0)
    assert task.data.n_views == 2
    for v, (view, seen) in enumerate(zip(task.data.views, task.data.observed.T, strict=True)):
        assert_array_equal(view[seen], COMPLETE.data.views[v][task.order][seen])


def test_the_useless_view_knows_nothing_and_the_others_are_untouched():
    honest, task = (pose(COMPLETE, n, 0.3, 0.1, 0) for n in ("honest", "honest-useless-view"))
    same = [
        np.array_equal(a, b, equal_nan=True)
        for a, b in zip(honest.data.views, task.data.views, strict=True)
    ]
    assert sorted(same) == [False, True, True]
    noise = task.data.views[same.index(False)]
    seen = ~np.isnan(noise[:, 0])
    between = [noise[seen & (task.y_true == c)].mean(axis=0) for c in range(3)]
    # Class means of standard noise over some 35 rows each.
    assert np.abs(between).max() < 4 / np.sqrt(35)


def test_every_view_is_useless_for_some_seed():
    views, y = (np.full((60, 2), 1e6),) * 3, np.sort(np.arange(60) % 3)
    source = MultiViewData(views, np.ones((60, 3), bool), ("a", "b", "c"), y=y)
    spoilt = set()
    for seed in range(12):
        views = pose(source, "honest-useless-view", 0.0, 0.1, seed).data.views
        spoilt |= {v for v, view in enumerate(views) if view.max() < 1e3}
    assert spoilt == {0, 1, 2}
