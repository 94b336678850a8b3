"""Class weights meet the class shares they are asked for."""

import numpy as np
import pytest

from viewmend.core.priors import class_weights, normalise_rows

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
