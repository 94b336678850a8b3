"""Prediction sets keep their promise, by labels and by what the model believes."""

import numpy as np
import pytest

from viewmend.core.advice.conformal import enough_by_class, fewest_labels, least_shares, miss_rates
from viewmend.core.advice.set_levels import MISS_RATES, believed_misses, set_levels, share_levels
from viewmend.core.common.calibration import tempered


def drawn(n, n_classes, rng, clear=1.5):
    """Right probabilities of classes, and classes drawn from them."""
    logits = clear * rng.normal(size=(n, n_classes)) ** 2
    shares = np.exp(logits)
    shares /= shares.sum(axis=1, keepdims=True)
    draws = rng.random((n, 1))
    codes = np.minimum((np.cumsum(shares, axis=1) < draws).sum(axis=1), n_classes - 1)
    return shares, codes


def coverage(n, alpha, by_class, rng, temperature=1.0, clear=1.5):
    """Of sets for further samples of one law, some of whose classes are known.

    The model tells probabilities at a temperature, which makes them wrong.
    """
    shares, codes = drawn(n + 800, 3, rng, clear)
    told = tempered(shares, temperature)
    held_out, others, new = slice(n), slice(n, n + 400), slice(n + 400, None)
    levels = set_levels(told[others], told[others])
    least = least_shares(told[held_out], codes[held_out], levels, alpha, by_class)
    found = tempered(told[new], levels.temperature) >= least
    return found[np.arange(400), codes[new]].mean()


def conformal_coverage(n, alpha, rng, clear):
    """The same of split conformal prediction, which does not look at other samples."""
    shares, codes = drawn(n + 400, 3, rng, clear)
    own = shares[np.arange(n + 400), codes]
    return (own[n:] >= np.sort(own[:n])[int(alpha * (n + 1)) - 1]).mean()


@pytest.mark.parametrize("temperature", [1.0, 0.4, 2.5])
@pytest.mark.parametrize(("n", "alpha", "by_class"), [(30, 0.1, False), (90, 0.2, True)])
def test_sets_hold_the_class_as_often_as_promised_whatever_is_believed(
    n, alpha, by_class, temperature
):
    """On average over draws: neither less often nor, as by rounding to whole labels, more often."""
    rng = np.random.default_rng(0)
    found = [coverage(n, alpha, by_class, rng, temperature) for _ in range(200)]
    error = np.std(found) / np.sqrt(200)
    # What interpolation can miss between labels, of which a class has a third.
    rounding = 0.1 / (n / 3 if by_class else n)
    assert abs(np.mean(found) - (1 - alpha)) < 3 * error + rounding


def test_right_beliefs_make_the_coverage_of_a_single_fit_less_a_matter_of_chance():
    """Where the model is surer than the promise, samples without a label tell nearly all."""
    rng = np.random.default_rng(1)
    ours = np.std([coverage(50, 0.2, False, rng, clear=15.0) for _ in range(100)])
    split = np.std([conformal_coverage(50, 0.2, rng, clear=15.0) for _ in range(100)])
    assert ours < 0.6 * split


@pytest.mark.parametrize("n", [19, 30, 75])
def test_without_other_samples_labels_alone_decide_between_two_of_them(n):
    """A share of the miss rate ``alpha`` is between the two that ``alpha (n + 1)`` is between."""
    shares, codes = drawn(n, 3, np.random.default_rng(n))
    own = np.sort(shares[np.arange(n), codes])
    levels = set_levels(shares, shares)
    for alpha in (0.1, 0.25, 0.5):
        (least,) = set(least_shares(shares, codes, levels, alpha, by_class=False))
        k = int(alpha * (n + 1))
        # Levels are interpolated, as labels are.
        low, high = own[max(k - 2, 0)], own[min(k + 1, n - 1)]
        assert low <= least <= high


def test_levels_are_missed_at_the_rates_that_they_are_levels_of():
    """By shares that are right, and by what the model believes of them."""
    shares, codes = drawn(200_000, 3, np.random.default_rng(3))
    levels = share_levels(shares)
    assert (np.diff(levels) >= 0).all()
    np.testing.assert_allclose(believed_misses(shares, levels), MISS_RATES, atol=1e-4)
    own = np.sort(shares[np.arange(200_000), codes])
    np.testing.assert_allclose(np.searchsorted(own, levels) / 200_000, MISS_RATES, atol=0.005)


def test_estimated_miss_rates_rise_from_none_to_all():
    rng = np.random.default_rng(4)
    shares, codes = drawn(40, 3, rng)
    levels = set_levels(*(drawn(300, 3, rng)[0] for _ in range(2)))
    rates = miss_rates(shares[np.arange(40), codes], shares, MISS_RATES, levels)
    assert (np.diff(rates) >= 0).all()
    assert rates[0] == pytest.approx(0, abs=0.02)
    assert rates[-1] == pytest.approx(1, abs=0.02)


def test_a_model_that_is_surer_than_fits_without_labels_has_smaller_sets():
    """It is believed in part: sets are between those that do, and that do not, believe it."""
    rng = np.random.default_rng(5)
    shares, codes = drawn(100, 3, rng)
    others, _ = drawn(500, 3, rng)

    def size(fit):
        levels = set_levels(others, fit)
        least = least_shares(shares, codes, levels, 0.1, by_class=False)
        return (tempered(fit, levels.temperature) >= least).sum(axis=1).mean()

    assert size(tempered(others, 0.5)) < size(tempered(others, 0.8)) < size(others)
    same = set_levels(others, others)
    assert same.temperature == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(same.fit, same.held_out, rtol=1e-6)


def test_a_model_is_believed_the_less_the_closer_others_are_to_guessing():
    """Others that guess leave it nothing of its higher confidence, certain ones leave it half."""
    rng = np.random.default_rng(6)
    others, _ = drawn(500, 3, rng)
    parts = []
    for heat in (0.2, 1, 5, 1e6):
        told, fit = tempered(others, heat), tempered(others, heat / 4)
        levels = set_levels(told, fit)
        sure, surer, believed = (
            P.max(axis=1).mean() for P in (told, fit, tempered(fit, levels.temperature))
        )
        parts.append((believed - sure) / (surer - sure))
    assert (np.diff(parts) < 0).all()
    assert parts[-1] == pytest.approx(0, abs=1e-3)
    assert 0.4 < parts[0] < 0.5


def test_too_few_labels_for_the_promise_leave_every_class_in():
    """With n labels the rarest miss that can be promised is one of n + 1."""
    shares, codes = drawn(9, 3, np.random.default_rng(0))
    levels = set_levels(shares, shares)
    assert fewest_labels(0.1) == 9
    assert [fewest_labels(1 / n) for n in range(2, 200)] == list(range(1, 199))
    assert fewest_labels(0.0999) == 10
    assert np.isneginf(least_shares(shares[:8], codes[:8], levels, 0.1, by_class=False)).all()
    assert np.isfinite(least_shares(shares, codes, levels, 0.1, by_class=False)).all()
    assert np.isneginf(least_shares(shares[:0], codes[:0], levels, 0.99, by_class=True)).all()


def test_labels_that_tell_the_same_are_not_enough():
    """As many labels as a promise takes, of which some do not count; and of one class alone."""
    shares, codes = drawn(60, 3, np.random.default_rng(0))
    levels = set_levels(shares, shares)
    for count, enough in ((9, True), (8, False)):
        least = least_shares(shares, codes, levels, 0.1, by_class=False, counts=np.array([count]))
        assert np.isfinite(least).all() == enough
    by_class = least_shares(shares, codes, levels, 0.1, True, counts=np.array([9, 8, 9]))
    np.testing.assert_array_equal(np.isfinite(by_class), [True, False, True])


@pytest.mark.parametrize("by_class", [False, True])
def test_sets_shrink_as_more_misses_are_allowed(by_class):
    """From all classes for alpha near 0 to none but the largest shares near 1."""
    rng = np.random.default_rng(1)
    shares, codes = drawn(90, 3, rng)
    fit, _ = drawn(300, 3, rng)
    levels = set_levels(fit, fit)
    alphas = np.linspace(0.001, 0.999, 200)
    least = np.array([least_shares(shares, codes, levels, alpha, by_class)[0] for alpha in alphas])
    assert np.isneginf(least[0])
    assert least[-1] > np.quantile(fit.max(axis=1), 0.9)
    assert (np.diff(least[np.isfinite(least)]) >= 0).all()


def test_classes_have_thresholds_of_their_own_once_each_has_labels_enough():
    """A class that is hard keeps its promise, which one threshold for all would break."""
    rng = np.random.default_rng(2)
    codes = np.tile([0, 1], 2000)
    own = np.where(codes == 0, rng.uniform(0.8, 1, 4000), rng.uniform(0, 1, 4000))
    shares = np.where(codes[:, None] == [0, 1], own[:, None], 1 - own[:, None])
    assert enough_by_class(np.bincount(codes[:100]))
    assert not enough_by_class(np.bincount(codes[:100], minlength=3))
    assert not enough_by_class(np.bincount(codes[:98]))
    levels = set_levels(shares, shares)
    least = least_shares(shares, codes, levels, 0.1, by_class=True)
    covered = [(own[codes == c] >= least[c]).mean() for c in (0, 1)]
    np.testing.assert_allclose(covered, 0.9, atol=0.005)
    pooled = least_shares(shares, codes, levels, 0.1, by_class=False)
    assert (own[codes == 1] >= pooled[1]).mean() < 0.85


@pytest.mark.parametrize("by_class", [False, True])
def test_names_of_classes_and_order_of_samples_do_not_matter(by_class):
    rng = np.random.default_rng(3)
    shares, codes = drawn(300, 3, rng)
    others, fit = (drawn(400, 3, rng)[0] for _ in range(2))
    classes, rows = np.array([2, 0, 1]), rng.permutation(300)
    renamed = least_shares(
        shares[rows][:, classes],
        np.argsort(classes)[codes[rows]],
        set_levels(others[::-1, classes], fit[::-1, classes]),
        0.2,
        by_class,
    )
    expected = least_shares(shares, codes, set_levels(others, fit), 0.2, by_class)[classes]
    np.testing.assert_allclose(renamed, expected, rtol=1e-9)
