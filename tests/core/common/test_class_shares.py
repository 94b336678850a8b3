"""Class weights meet the class shares they are asked for."""

import numpy as np
import pytest

from viewmend.core.common.class_shares import (
    balance_classes,
    class_weights,
    normalise_columns,
    normalise_rows,
)

RNG = np.random.default_rng(0)
CLASSES = RNG.integers(4, size=3000)


def soft_labels(contrast, scales=(1.0, 1.0, 1.0, 1.0)):
    """Rows that lean to their class by ``contrast``, of any scale, columns out of balance."""
    scores = contrast * (RNG.normal(size=(3000, 4)) + 3 * np.eye(4)[CLASSES])
    return np.exp(scores) * np.array(scales) * RNG.uniform(0.1, 10, (3000, 1))


@pytest.mark.parametrize("contrast", [1.0, 0.01])
@pytest.mark.parametrize("prior", [(0.1, 0.2, 0.3, 0.4), (0.01, 0.01, 0.01, 0.97)])
def test_predicted_shares_meet_the_prior(contrast, prior):
    F = soft_labels(contrast, scales=(3, 1, 0.2, 1))
    predicted = np.argmax(F * class_weights(F, np.array(prior)), axis=1)
    shares = np.bincount(predicted, minlength=4) / 3000
    np.testing.assert_allclose(shares, prior, atol=3e-3)


def test_flat_rows_do_not_collapse():
    """Soft shares can equal the prior while one class wins every row; argmax shares cannot."""
    F = soft_labels(0.01, scales=(2, 1, 1, 1))
    assert np.all(np.argmax(F, axis=1) == 0)
    weighted = F * class_weights(F, np.full(4, 0.25))
    assert np.mean(np.argmax(weighted, axis=1) == CLASSES) > 0.9


def test_scaling_a_column_changes_nothing_but_its_weight():
    F, prior = soft_labels(1.0), np.array([0.4, 0.3, 0.2, 0.1])
    scales = np.array([5.0, 1.0, 0.1, 2.0])
    ratio = class_weights(F * scales, prior) * scales / class_weights(F, prior)
    np.testing.assert_allclose(ratio / ratio[0], 1, rtol=1e-3)


def test_rows_may_come_in_any_order_and_scale():
    F, prior = soft_labels(0.5), np.array([0.4, 0.3, 0.2, 0.1])
    mixed = RNG.permutation(F)[:, ::-1] * 7.0
    np.testing.assert_allclose(
        class_weights(mixed, prior[::-1])[::-1], class_weights(F, prior), rtol=1e-3
    )


def test_samples_without_soft_labels_are_ignored():
    F, prior = soft_labels(1.0), np.array([0.4, 0.3, 0.2, 0.1])
    padded = np.r_[F, np.zeros((50, 4))]
    np.testing.assert_array_equal(class_weights(padded, prior), class_weights(F, prior))


def test_rows_are_normalised_and_zero_rows_left():
    F = np.array([[1.0, 3.0], [0.0, 0.0]])
    np.testing.assert_array_equal(normalise_rows(F), [[0.25, 0.75], [0.0, 0.0]])


def test_columns_are_normalised_and_zero_columns_left():
    F = np.array([[1.0, 0.0, 2.0], [3.0, 0.0, 2.0]])
    np.testing.assert_array_equal(normalise_columns(F), [[0.25, 0, 0.5], [0.75, 0, 0.5]])


# ------------------------------------------------------------------ balanced soft labels

SHARES = np.array([0.1, 0.2, 0.3, 0.4])


def sinkhorn(P, prior, n_rounds=2000):
    """Columns scaled to the prior, rows to one, in turn."""
    for _ in range(n_rounds):
        P = P * (prior / P.mean(axis=0))
        P = P / P.sum(axis=1, keepdims=True)
    return P


@pytest.mark.parametrize("contrast", [1.0, 0.1])
def test_balanced_rows_are_where_sinkhorn_ends(contrast):
    P = soft_labels(contrast, scales=(3, 1, 0.2, 1))[:200]
    balanced = balance_classes(P, SHARES)
    np.testing.assert_allclose(balanced, sinkhorn(P, SHARES), atol=1e-4)
    np.testing.assert_allclose(balanced.mean(axis=0), SHARES, atol=3e-5)
    np.testing.assert_allclose(balanced.sum(axis=1), 1)


def test_balancing_weighs_classes_and_nothing_else():
    """Odds of two classes change by one factor for all rows; scales of rows and columns cancel."""
    P = soft_labels(0.5)[:200]
    balanced = balance_classes(P, SHARES)
    odds = (balanced / P) / (balanced / P)[:, [0]]
    np.testing.assert_allclose(odds, np.tile(odds[0], (200, 1)), rtol=1e-8)
    scaled = P * RNG.uniform(0.1, 10, (200, 1)) * [5.0, 1.0, 0.1, 2.0]
    np.testing.assert_allclose(balance_classes(scaled, SHARES), balanced, atol=1e-4)


def test_balanced_rows_stay_as_they_are():
    P = sinkhorn(soft_labels(1.0)[:200], SHARES)
    np.testing.assert_allclose(balance_classes(P, SHARES), P, atol=1e-4)


def test_rows_without_soft_labels_become_the_prior_and_do_not_count():
    P = soft_labels(1.0)[:200]
    padded = np.r_[P, np.zeros((50, 4))]
    balanced = balance_classes(padded, SHARES)
    np.testing.assert_array_equal(balanced[200:], np.tile(SHARES, (50, 1)))
    np.testing.assert_array_equal(balanced[:200], balance_classes(P, SHARES))


def test_sure_rows_balance_with_zeros_in_them():
    """Rows that rule classes out keep doing so; the others make up for them."""
    P = np.array([[1.0, 0.0]] * 3 + [[0.5, 0.5]] * 5)
    balanced = balance_classes(P, np.array([0.5, 0.5]))
    np.testing.assert_allclose(balanced[:3], [[1.0, 0.0]] * 3, atol=1e-6)
    np.testing.assert_allclose(balanced[3:], [[0.2, 0.8]] * 5, atol=1e-4)
