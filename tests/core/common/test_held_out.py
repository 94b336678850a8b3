"""Leaving a label out by a correction equals spreading the others anew."""

import numpy as np
import pytest

from viewmend.core.agfti.held_out import propagated_without_own
from viewmend.core.agfti.propagation import propagate_labels
from viewmend.core.common.held_out import held_out_samples

RNG = np.random.default_rng(0)
N, M, C = 30, 6, 3
CODES = np.r_[np.arange(9) % C, np.full(N - 9, -1)]
Y = (CODES[:, None] == np.arange(C)).astype(float)
P = RNG.dirichlet(np.full(M, 0.3), N)


@pytest.mark.parametrize("damping", [0.01, 1.0])
@pytest.mark.parametrize("strength", [1e8, 2.0])
def test_propagation_without_a_label(damping, strength):
    held_out = np.array([0, 4, 8])
    B_samples, B_anchors = np.where(CODES >= 0, strength, damping), np.full(M, 0.3)
    F, growth = propagated_without_own(P, Y, (B_samples, B_anchors), held_out, P[held_out], damping)
    full, _ = propagate_labels(P, Y, B_samples, B_anchors)
    for turn, i in enumerate(held_out):
        rest, B_rest = Y.copy(), B_samples.copy()
        rest[i], B_rest[i] = 0, damping
        anew, _ = propagate_labels(P, rest, B_rest, B_anchors)
        np.testing.assert_allclose(F[turn] / (1 + damping), anew[i], rtol=1e-8)
        free = CODES < 0
        np.testing.assert_allclose(growth[turn], full[free].sum(0) / anew[free].sum(0), rtol=1e-8)


def test_masses_do_not_matter_where_every_sample_is_labelled():
    codes = np.arange(N) % C
    every = (codes[:, None] == np.arange(C)).astype(float)
    _, growth = propagated_without_own(
        P, every, (np.full(N, 9.0), np.ones(M)), np.arange(4), P[:4], 1.0
    )
    np.testing.assert_array_equal(growth, 1)


def test_classes_with_one_label_are_left_alone():
    codes = np.array([0, 1, 1, -1, 2, 2, 2])
    one_hot = (codes[:, None] == np.arange(3)).astype(float)
    np.testing.assert_array_equal(held_out_samples(one_hot), [1, 2, 4, 5, 6])
    assert len(held_out_samples(np.eye(3))) == 0


@pytest.mark.parametrize("most", [1, 7, 100, 101, 500])
def test_of_many_labels_some_from_everywhere(most):
    """On rows sorted by class, every class has its part."""
    codes = np.repeat(np.arange(4), 25)
    rows = held_out_samples((codes[:, None] == np.arange(4)).astype(float), most)
    assert len(np.unique(rows)) == min(most, 100)
    counts = np.bincount(codes[rows], minlength=4)
    assert counts.max() - counts.min() <= 1
