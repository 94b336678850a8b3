"""Whether views agree about the classes: by hand, with groups, with a continuum, with noise."""

from dataclasses import replace

import numpy as np
import pytest
from tests.core.small_mend import dense_graphs, geometry_of, in_memory

from viewmend.core.mend.groups import agreement_of_views, classes_of_view
from viewmend.core.mend.homophily import homophily_of_known
from viewmend.core.mend.label_reading import AGREEMENT
from viewmend.core.mend.labelling import Labelling

N, RARE = 400, 40
CLASSES = (np.arange(N) < RARE).astype(int)
SHARES = np.array([0.9, 0.1])
SPREADING = 0.99
RNG = np.random.default_rng(0)
OBSERVED = RNG.random((N, 2)) < 0.7
OBSERVED[~OBSERVED.any(axis=1), 0] = True
# A rare group that both views see, and the largest values of a sum that neither sees alone.
GROUP = [RNG.normal(size=(N, 6)) + 6 * CLASSES[:, None] for _ in range(2)]
NOISE = [RNG.normal(size=(N, 6)) for _ in range(2)]
END = (np.argsort(np.argsort(-sum(X.sum(axis=1) for X in NOISE))) < RARE).astype(int)


def labels_of(classes, n_labels=100):
    Y = np.zeros((N, 2), dtype=np.float32)
    rows = np.random.default_rng(1).permutation(N)[:n_labels]
    Y[rows, classes[rows]] = 1
    return Y


def graphs_of(views, observed):
    return in_memory(geometry_of(views, observed, n_landmarks=20), 2).graphs


def agreement(views, classes, observed=OBSERVED, Y=None):
    Y = labels_of(classes) if Y is None else Y
    graphs, labelling = graphs_of(views, observed), Labelling(Y, SHARES)
    return agreement_of_views(graphs, len(views), labelling, SHARES, SPREADING)


def test_views_agree_about_a_group():
    assert agreement(GROUP, CLASSES) > 2 * AGREEMENT[1]


def test_views_do_not_agree_about_the_end_of_a_sum():
    assert agreement(NOISE, END) < AGREEMENT[0]


def test_views_of_noise_hide_no_group():
    """The homophily of a single sum of graphs would be diluted by them."""
    views = [*GROUP, *NOISE]
    observed = np.hstack([OBSERVED, OBSERVED])
    np.testing.assert_allclose(agreement(views, CLASSES, observed), agreement(GROUP, CLASSES))


def test_views_that_tell_no_samples_apart_agree_with_none():
    """All edges of such a view lead to a few samples, which are mostly of one class."""
    equal, few = np.ones((N, 3)), np.arange(N)[:, None] % 3 * 1.0
    for view in (equal, few):
        observed = np.column_stack([OBSERVED, np.ones(N, dtype=bool)])
        assert agreement([*NOISE, view], END, observed) < AGREEMENT[0]
        assert agreement([*GROUP, view], CLASSES, observed) > 2 * AGREEMENT[1]


def test_order_and_names_of_classes_do_not_matter():
    graphs, Y = graphs_of(GROUP, OBSERVED), labels_of(CLASSES)
    found, turned = (
        agreement_of_views(graphs, 2, Labelling(targets, shares), shares, SPREADING)
        for targets, shares in ((Y, SHARES), (Y[:, ::-1].copy(), SHARES[::-1]))
    )
    assert found == pytest.approx(turned, abs=1e-6)


def test_order_of_the_samples_does_not_matter():
    order = np.random.default_rng(2).permutation(N)
    moved = agreement(
        [X[order] for X in GROUP], CLASSES[order], OBSERVED[order], labels_of(CLASSES)[order]
    )
    assert moved == pytest.approx(agreement(GROUP, CLASSES), abs=1e-6)


def test_one_view_agrees_with_none():
    assert agreement(GROUP[:1], CLASSES, np.ones((N, 1), dtype=bool)) is None


def test_a_view_without_labels_of_a_class_finds_nothing_and_is_compared_with():
    """The first view has no label of the rare class, so that the second alone finds classes."""
    Y, observed = labels_of(CLASSES), OBSERVED.copy()
    observed[Y[:, 1] > 0] = [False, True]
    graphs, labelling = graphs_of(GROUP, observed), Labelling(Y, SHARES)
    in_second = replace(labelling, Y=np.where(observed[:, 1:], Y, 0))
    classes = classes_of_view(graphs, slice(6, 12), in_second, SHARES, SPREADING)
    expected = homophily_of_known(graphs, classes)[:6].max()
    found = agreement_of_views(graphs, 2, labelling, SHARES, SPREADING)
    assert found == pytest.approx(expected)
    observed[Y[:, 1] > 0] = [False, False]
    assert agreement(GROUP, CLASSES, observed, Y) is None


def test_a_view_with_labels_of_some_classes_finds_none_of_them():
    """Also where those of the classes that it has labels of would agree with another view."""
    codes = CLASSES + (np.arange(N) % 2)
    Y = np.eye(3, dtype=np.float32)[codes] * labels_of(CLASSES).any(axis=1, keepdims=True)
    observed = OBSERVED.copy()
    observed[Y[:, 2] > 0] = False
    graphs, labelling = graphs_of(GROUP, observed), Labelling(Y, np.full(3, 1 / 3))
    assert agreement_of_views(graphs, 2, labelling, labelling.prior, SPREADING) is None


def test_homophily_of_known_is_that_of_the_edges_between_them():
    graphs, classes = graphs_of(GROUP, OBSERVED), CLASSES.copy()
    classes[::3] = -1
    known, found = classes >= 0, homophily_of_known(graphs, classes)
    for W, value in zip(dense_graphs(graphs), found, strict=True):
        W = W * np.outer(known, known)
        within = W[classes[:, None] == classes].sum() / W.sum()
        ends = np.bincount(classes[known], W.sum(axis=1)[known])
        chance = np.sum((ends / ends.sum()) ** 2)
        assert value == pytest.approx((within - chance) / (1 - chance), abs=1e-5)


def test_homophily_tells_nothing_where_one_class_is_known():
    graphs = graphs_of(GROUP, OBSERVED)
    for classes in (np.zeros(N, dtype=int), np.full(N, -1)):
        assert np.isneginf(homophily_of_known(graphs, classes)).all()
