"""Class weights meet the class shares they are asked for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.core.cut_rows import CutRows, cuts

from viewmend.core.common import class_shares
from viewmend.core.common.class_shares import log_shares, normalise_rows
from viewmend.core.common.rows import RowsInMemory


def class_weights(F, prior, start=None):
    return class_shares.class_weights(RowsInMemory(), F, prior, start)


def balance_classes(P, prior):
    return class_shares.balance_classes(RowsInMemory(), P, prior)


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


def by_descent(F, prior):
    """The same problem by SciPy's descent, with medians as start and spread."""

    def dual(b, logs, sharpness):
        scores = sharpness * (logs + b)
        largest = scores.max(axis=1, keepdims=True)
        soft = np.exp(scores - largest)
        sums = soft.sum(axis=1, keepdims=True)
        value = (np.log(sums) + largest).mean() / sharpness - prior @ b
        return value, (soft / sums).mean(axis=0) - prior

    logs = log_shares(F)
    logs -= logs.mean(axis=1, keepdims=True)
    b = -np.median(logs, axis=0)
    spread = np.median(np.abs(logs + b))
    for sharpness in (1, 8, 64):
        b = minimize(dual, b, (logs, sharpness / spread), jac=True, method="L-BFGS-B").x
    return np.exp(b - b.mean())


def with_labels(F):
    """A part of the rows stands far out, as rows of labelled samples do."""
    return F * np.exp(15 * np.eye(4)[CLASSES] * (np.arange(3000) < 60)[:, None])


PRIORS = [(0.1, 0.2, 0.3, 0.4), (0.01, 0.01, 0.01, 0.97), (0.25, 0.25, 0.25, 0.25)]


@pytest.mark.parametrize("contrast", [3.0, 1.0, 0.01, 1e-4])
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("labels", [with_labels, lambda F: F], ids=["labels", "none"])
def test_newton_ends_where_descent_does(contrast, prior, labels):
    F, prior = labels(soft_labels(contrast, scales=(3, 1, 0.2, 1))), np.array(prior)
    found, expected = (
        np.argmax(F * w, axis=1) for w in (class_weights(F, prior), by_descent(F, prior))
    )
    shares, old = (np.bincount(classes, minlength=4) / 3000 for classes in (found, expected))
    assert np.abs(shares - prior).max() <= max(2e-3, 1.5 * np.abs(old - prior).max())
    assert np.mean(found != expected) < 4e-3


@pytest.mark.parametrize("prior", [(0.4, 0.33, 0.27), (0.6, 0.3, 0.1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_shares_are_met_where_hardly_a_row_is_undecided(prior, dtype):
    """Second derivatives are then rounding, by which a step must not be divided."""
    rng = np.random.default_rng(0)
    logs = 4 * np.eye(3)[np.arange(600) % 3] + 0.05 * rng.normal(size=(600, 3))
    F = np.exp(logs).astype(dtype)
    found = np.argmax(F * class_weights(F, np.array(prior)), axis=1)
    np.testing.assert_allclose(np.bincount(found), 600 * np.array(prior), atol=1)


@pytest.mark.parametrize("contrast", [1.0, 0.01])
@pytest.mark.parametrize("prior", PRIORS)
def test_few_passes_lead_there_and_fewer_from_nearby(contrast, prior):
    F, prior = with_labels(soft_labels(contrast, scales=(3, 1, 0.2, 1))), np.array(prior)
    rows = CutRows()
    cold = class_shares.class_weights(rows, [F], prior)
    assert rows.passes <= 22
    moved = F * np.exp(0.02 * contrast * RNG.normal(size=F.shape))
    rows.passes = 0
    warm = class_shares.class_weights(rows, [moved], prior, cold)
    assert rows.passes <= 9
    np.testing.assert_allclose(np.log(warm), np.log(class_weights(moved, prior)), atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_weights_do_not_depend_on_the_cut(seed, n_blocks):
    rng = np.random.default_rng(seed)
    F, prior = soft_labels(0.5), np.array([0.4, 0.3, 0.2, 0.1])
    F[rng.integers(3000, size=40)] = 0
    blocks = [F[part] for part in cuts(rng, 3000, n_blocks)]
    found = class_shares.class_weights(CutRows(), blocks, prior)
    np.testing.assert_allclose(found, class_weights(F, prior), rtol=1e-6)
    balanced = np.concatenate(class_shares.balance_classes(CutRows(), blocks, prior))
    np.testing.assert_allclose(balanced, balance_classes(F, prior), atol=1e-7)


def test_tensors_agree():
    torch = pytest.importorskip("torch")
    F, prior = soft_labels(0.5), np.array([0.4, 0.3, 0.2, 0.1])
    F[5] = 0
    np.testing.assert_allclose(
        class_weights(torch.tensor(F), prior), class_weights(F, prior), rtol=1e-6
    )
    np.testing.assert_allclose(
        balance_classes(torch.tensor(F), prior), balance_classes(F, prior), atol=1e-7
    )
    single = F.astype(np.float32)
    np.testing.assert_allclose(
        class_weights(torch.tensor(single), prior), class_weights(single, prior), rtol=1e-3
    )
    np.testing.assert_allclose(class_weights(single, prior), class_weights(F, prior), rtol=1e-3)


@pytest.mark.parametrize("prior", [(0.5, 0.5), (0.999, 0.001)])
def test_rows_without_doubt_lead_to_finite_weights(prior):
    sure = np.repeat(np.eye(2), [30, 10], axis=0)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        weights = class_weights(sure, np.array(prior))
        flat = class_weights(np.ones((20, 2)), np.array(prior))
    assert np.isfinite(weights).all()
    assert np.isfinite(flat).all()


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("rare", [1e-12, 1e-300])
def test_weights_of_a_class_that_should_have_no_row_fit_into_float32(rare):
    P = np.exp(-30 * RNG.random((6, 2))).astype(np.float32)
    weights = class_weights(P, np.array([1 - rare, rare])).astype(np.float32)
    assert np.isfinite(weights).all()
    assert np.all(np.argmax(P * weights, axis=1) == 0)


def test_single_precision_meets_the_shares_to_its_last_digits():
    """Values of the objective are then equal by rounding, long before its slope is zero."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        P = np.exp(rng.normal(size=(200, 3)) * rng.choice([0.1, 1, 5])).astype(np.float32)
        prior = rng.dirichlet(np.ones(3)) * 0.97 + 0.01
        np.testing.assert_allclose(balance_classes(P, prior).mean(axis=0), prior, atol=1e-6)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_weights_against_rows_without_doubt_fit_into_float32():
    """Rows that rule out the common class ask for larger weights than this type can hold."""
    P = np.exp(20 * np.random.default_rng(0).normal(size=(60, 10)))
    prior = np.full(10, 1e-12)
    prior[0] = 1 - prior[1:].sum()
    assert np.isfinite(class_weights(P, prior).astype(np.float32)).all()


def test_rows_are_normalised_and_zero_rows_left():
    F = np.array([[1.0, 3.0], [0.0, 0.0]])
    np.testing.assert_array_equal(normalise_rows(F), [[0.25, 0.75], [0.0, 0.0]])


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


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_little_doubt_are_balanced_too(dtype):
    """A step of Newton's method is then longer than the gap that it has to cross."""
    codes = np.repeat([0, 1], [312, 31])
    scores = 7.3 * np.eye(2)[codes] + 1e-3 * RNG.normal(size=(343, 2))
    prior = np.array([0.2, 0.8])
    balanced = balance_classes(np.exp(scores - 8).astype(dtype), prior)
    np.testing.assert_allclose(balanced.mean(axis=0), prior, atol=1e-5)
