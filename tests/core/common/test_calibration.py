"""Temperatures: optimality, recovery, invariances; errors by hand; thresholds and their promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from viewmend.core.common.calibration import (
    COLDEST,
    HOTTEST,
    Calibration,
    calibration_error,
    fit_temperature,
    log_loss,
    proven_temperature,
    smooth_targets,
    surest_first,
    temperature_for,
    tempered,
    uncalibrated,
)
from viewmend.core.common.class_shares import normalise_rows

SHARES = arrays(np.float64, (6, 4), elements=st.floats(0, 1)).map(normalise_rows)


def drawn(n_samples, temperature=1.0, n_classes=4, seed=0):
    """Shares, and classes that come as often as ``tempered(shares, temperature)`` says."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(n_classes, 0.5), n_samples)
    steps = np.cumsum(tempered(P, temperature), axis=1)
    codes = (rng.random((n_samples, 1)) > steps).sum(axis=1)
    return P, np.minimum(codes, n_classes - 1)


def calibration_of(P, codes):
    return Calibration(fit_temperature(P, codes), P, codes)


def all_right(confidences):
    """A calibration of two classes whose held-out samples are all found right."""
    p = np.asarray(confidences)
    return Calibration(1.0, np.c_[p, 1 - p], np.zeros(len(p), dtype=int))


# ------------------------------------------------------------------ temperature


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_the_temperature_that_classes_were_drawn_with_is_found(temperature):
    P, codes = drawn(4000, temperature)
    assert fit_temperature(P, codes) == pytest.approx(temperature, rel=0.08)


@pytest.mark.parametrize("n_samples", [5, 60])
def test_no_other_temperature_has_a_smaller_loss(n_samples):
    P, codes = drawn(n_samples, 2.0)
    targets = smooth_targets(codes, 4)

    def loss(temperature):
        return -np.sum(targets * np.log(tempered(P, temperature)))

    best = fit_temperature(P, codes)
    assert COLDEST < best < HOTTEST
    assert all(loss(best) < loss(best * factor) for factor in (0.5, 0.99, 1.01, 2.0))


# ------------------------------------------------------------------ proven temperature


def test_held_out_labels_take_confidence_away_and_add_none():
    too_sure, too_timid = drawn(400, 2.5), drawn(400, 0.4)
    one_hot = too_sure[1][:, None] == np.arange(4)

    def loss(temperature):
        return -np.sum(one_hot * np.log(tempered(too_sure[0], temperature)))

    best = proven_temperature(*too_sure)
    assert best == pytest.approx(2.5, rel=0.3)
    assert all(loss(best) < loss(best * factor) for factor in (0.9, 1.1))
    assert proven_temperature(*too_timid) == 1
    assert fit_temperature(*too_timid) < 0.6


def test_a_few_labels_that_were_all_found_right_have_no_say():
    P = np.tile([0.9, 0.05, 0.05], (1000, 1))
    assert [proven_temperature(P[:n], np.zeros(n, dtype=int)) for n in (0, 3, 1000)] == [1, 1, 1]


@pytest.mark.parametrize("confidence", [0.3, 0.4])
def test_the_temperature_of_a_mean_confidence(confidence):
    P, _ = drawn(200)
    found = temperature_for(P, confidence)
    assert found > 1
    assert temperature_for(P, confidence, coldest=2 * found) == 2 * found
    assert tempered(P, found).max(axis=1).mean() == pytest.approx(confidence, abs=1e-6)


def test_a_mean_confidence_that_is_not_reached_is_left_alone():
    P, _ = drawn(200)
    assert temperature_for(P, 1.0, coldest=1.5) == 1.5
    assert temperature_for(P, 0.2) == HOTTEST


def test_tempering_beforehand_is_undone():
    P, codes = drawn(50)
    again = fit_temperature(tempered(P, 3.0), codes)
    assert again == pytest.approx(fit_temperature(P, codes) / 3.0, rel=1e-9)


def test_names_and_order_do_not_matter():
    P, codes = drawn(50)
    names, rows = np.array([2, 0, 3, 1]), np.random.default_rng(1).permutation(50)
    renamed = fit_temperature(P[:, np.argsort(names)][rows], names[codes][rows])
    assert renamed == pytest.approx(fit_temperature(P, codes), rel=1e-9)


def test_few_labels_that_were_all_found_right_leave_more_doubt():
    P = np.tile([0.9, 0.05, 0.05], (1000, 1))
    found = [fit_temperature(P[:n], np.zeros(n, dtype=int)) for n in (3, 30, 1000)]
    assert found[0] > found[1] > found[2] > COLDEST
    # Rule of succession: the share of the right class is that of the smooth targets.
    assert tempered(P[:1], found[1])[0, 0] == pytest.approx(1 - 1 / 32 + 1 / 96)


def test_shares_that_are_worse_than_nothing_are_flattened():
    P = np.tile([0.7, 0.3], (50, 1))
    assert fit_temperature(P, np.ones(50, dtype=int)) == HOTTEST


def test_shares_that_say_nothing_have_no_temperature():
    assert fit_temperature(np.full((5, 3), 1 / 3), np.zeros(5, dtype=int)) == 1.0


@given(SHARES)
def test_one_changes_nothing(P):
    assert tempered(P, 1.0) is P


@settings(deadline=None)
@given(SHARES, st.floats(0.1, 8.0))
def test_tempered_rows_are_shares_in_the_same_order(P, temperature):
    Q = tempered(P, temperature)
    some = P.any(axis=1)
    np.testing.assert_allclose(Q.sum(axis=1), some)
    assert (Q[np.arange(6), np.argmax(P, axis=1)] == Q.max(axis=1)).all()


def test_tempering_twice_is_tempering_once():
    P, _ = drawn(30)
    np.testing.assert_allclose(tempered(tempered(P, 2.0), 0.3), tempered(P, 0.6), rtol=1e-9)


def test_single_precision_stays_single():
    P, _ = drawn(30)
    single = tempered(P.astype(np.float32), 2.0)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, tempered(P, 2.0), atol=1e-6)


# ------------------------------------------------------------------ errors


def test_calibration_error_by_hand():
    """Two bins of two: confidences 0.6 and 0.6 with one right, 0.8 and 1.0 with both right."""
    P = np.array([[0.6, 0.4], [0.8, 0.2], [0.4, 0.6], [1.0, 0.0]])
    codes = np.array([0, 0, 0, 0])
    assert calibration_error(P, codes, n_bins=2) == pytest.approx((0.2 + 0.2) / 4)
    assert calibration_error(P, codes, n_bins=1) == pytest.approx(0.0)


def test_error_falls_where_classes_are_drawn_from_tempered_shares():
    P, codes = drawn(3000, 2.5)
    calibration = calibration_of(P, codes)
    (before, after), (loss_before, loss_after) = calibration.errors, calibration.log_losses
    assert after < 0.04 < 0.1 < before
    assert loss_after < loss_before
    assert loss_after == log_loss(tempered(P, calibration.temperature), codes)


def test_log_loss_is_finite_where_a_class_was_ruled_out():
    assert log_loss(np.array([[1.0, 0.0]]), np.array([1])) == pytest.approx(-np.log(1e-12))


def test_without_labels_nothing_is_claimed():
    nothing = calibration_of(np.empty((0, 3)), np.empty(0, dtype=int))
    assert (nothing.temperature, nothing.n_samples) == (1.0, 0)
    assert np.isnan([*nothing.errors, *nothing.log_losses]).all()
    assert repr(nothing) == repr(uncalibrated(3))
    assert repr(nothing) == "Calibration(temperature=1, of no held-out label)"


def test_repr_tells_before_and_after():
    text = repr(calibration_of(*drawn(3000, 2.5)))
    assert text.startswith("Calibration(temperature=2.")
    assert "of 3000 held-out labels: error 0." in text


# ------------------------------------------------------------------ thresholds


def test_surest_first_counts_hits():
    confidence, hits = surest_first(np.array([0.5, 0.9, 0.7]), np.array([True, False, True]))
    np.testing.assert_array_equal(confidence, [0.9, 0.7, 0.5])
    np.testing.assert_array_equal(hits, [0, 1, 2])


def test_samples_that_are_all_right_allow_the_least_confidence():
    confidences = np.linspace(0.6, 0.99, 45)
    # 0.95^45 < 0.1 < 0.95^44.
    assert all_right(confidences).threshold_for(0.95) == 0.6
    with pytest.raises(ValueError, match=r"the 45 most confident .* got 44 held out, 44 of"):
        all_right(confidences[1:]).threshold_for(0.95)
    assert all_right(confidences[1:]).threshold_for(0.95, certainty=0.8) == confidences[1]


def test_samples_after_too_many_errors_are_not_decided():
    p = np.linspace(0.99, 0.51, 200)
    calibration = Calibration(1.0, np.c_[p, 1 - p], (np.arange(200) >= 100).astype(int))
    threshold = calibration.threshold_for(0.9)
    decided = calibration.confidence >= threshold
    assert 100 < decided.sum() < 111
    assert calibration.correct[decided].mean() > 0.9


def test_nothing_is_promised_where_all_are_wrong():
    p = np.linspace(0.99, 0.51, 200)
    with pytest.raises(ValueError, match=r"got 200 held out, 0 of the most confident correct"):
        Calibration(1.0, np.c_[p, 1 - p], np.ones(200, dtype=int)).threshold_for(0.5)


@pytest.mark.parametrize("wrong_first", [False, True])
def test_samples_of_equal_confidence_are_decided_together(wrong_first):
    """All have 0.9, and half of them are wrong: the order in which they come says nothing."""
    p, codes = np.full(200, 0.9), np.repeat([0, 1], 100)
    codes = codes[::-1] if wrong_first else codes
    with pytest.raises(ValueError, match="cannot be promised"):
        Calibration(1.0, np.c_[p, 1 - p], codes).threshold_for(0.8)
    surer = np.r_[np.full(50, 0.95), p]
    calibration = Calibration(1.0, np.c_[surer, 1 - surer], np.r_[np.zeros(50, int), codes])
    assert calibration.threshold_for(0.8) == 0.95


def test_the_promise_is_kept_as_often_as_is_said():
    """Samples whose accuracy is the square of their confidence, so that the truth is known."""
    rng = np.random.default_rng(0)
    broken = []
    for _ in range(200):
        p = rng.uniform(0.8, 1.0, 80)
        calibration = Calibration(1.0, np.c_[p, 1 - p], (rng.random(80) > p**2).astype(int))
        try:
            threshold = calibration.threshold_for(0.9, certainty=0.8)
        except ValueError:
            broken.append(False)
        else:
            # Mean of p^2 over [threshold, 1].
            broken.append((1 - threshold**3) / 3 / (1 - threshold) < 0.9)
    assert 0 < np.mean(broken) < 0.2


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, np.nan])
@pytest.mark.parametrize("name", ["accuracy", "certainty"])
def test_shares_of_nothing_or_all_cannot_be_promised(name, value):
    with pytest.raises(ValueError, match=f"{name} must lie between 0 and 1.* got {value}"):
        all_right([0.9]).threshold_for(**{"accuracy": 0.9} | {name: value})
