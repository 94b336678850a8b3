"""Three guesses at class shares: which is trusted follows from how they agree."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from viewmend.core.mend.share_trust import share_trust

N_CLASSES = 10
EQUAL = np.full(N_CLASSES, 1 / N_CLASSES)
UNEQUAL = np.geomspace(10, 1, N_CLASSES) / np.geomspace(10, 1, N_CLASSES).sum()
# Factors that do not go with the class sizes.
NOISE = np.exp(0.1 * np.array([1, -1, -1, 1, 1, -1, -1, 1, -1, 1]))


def shares_of(weights):
    return weights / np.sum(weights)


def believed(labelled, n_labels, scored):
    return np.array(share_trust(labelled, n_labels, scored)) @ [EQUAL, labelled, scored]


def distance(shares, others):
    return np.abs(shares - others).sum() / 2


def drawn(shares, n_labels, seed):
    """Class shares of labels drawn at random, at least one in every class."""
    counts = np.random.default_rng(seed).multinomial(n_labels, shares)
    return shares_of(np.maximum(counts, 1))


def test_labels_dealt_out_by_class_are_believed():
    """Scores that are off by chance confirm shares that cannot be that right by chance."""
    labelled = np.rint(100 * UNEQUAL) / np.rint(100 * UNEQUAL).sum()
    believed_shares = believed(labelled, 100, shares_of(UNEQUAL * NOISE))
    assert distance(believed_shares, labelled) < 0.1 * distance(labelled, EQUAL)
    assert distance(believed_shares, labelled) < distance(believed_shares, UNEQUAL * NOISE)
    # Where they are equal, nothing else is believed.
    np.testing.assert_allclose(believed(EQUAL, 100, shares_of(NOISE)), EQUAL, rtol=0.02)


@pytest.mark.parametrize("true", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
def test_labels_drawn_at_random_give_way_to_what_is_less_noisy(true):
    scored = shares_of(true * NOISE)
    for seed in range(5):
        labelled = drawn(true, 60, seed)
        found = believed(labelled, 60, scored)
        assert distance(found, true) < 0.6 * distance(labelled, true)
        # Equal classes are recognised, and scores are not the last word there.
        if true is EQUAL:
            assert distance(found, true) < 0.7 * distance(scored, true)


def test_many_labels_are_believed_where_scores_are_off():
    scored = shares_of(UNEQUAL * NOISE**3)
    weights = [share_trust(drawn(UNEQUAL, n, 0), n, scored)[1] for n in (100, 10**4, 10**6)]
    assert weights == sorted(weights)
    assert weights[-1] > 0.99


def test_one_label_per_class_says_nothing_and_clear_scores_decide():
    """So many labels for every class may be a plan, which knows nothing of class sizes."""
    scored = np.geomspace(100, 1, N_CLASSES)
    _, labels, scores = share_trust(EQUAL, N_CLASSES, shares_of(scored))
    assert scores > 0.8
    assert labels < 0.05
    # Scores that differ little from equal shares leave them.
    assert distance(believed(EQUAL, N_CLASSES, shares_of(NOISE)), EQUAL) < 0.02


def test_scores_that_favour_all_classes_alike_do_not_hide_a_rare_one():
    """Columns of scores have the same mass, so that classes that overlap are favoured alike."""
    rare, alike = np.array([0.05, 0.95]), np.array([0.45, 0.55])
    assert share_trust(rare, 80, alike)[1] > 0.75
    # As many labels of both leave room for what clear scores say.
    assert share_trust(np.array([0.5, 0.5]), 80, np.array([0.1, 0.9]))[2] > 0.5


def test_classes_in_another_order_are_trusted_alike():
    labelled, scored = drawn(UNEQUAL, 60, 1), shares_of(UNEQUAL * NOISE)
    order = np.random.default_rng(2).permutation(N_CLASSES)
    expected = share_trust(labelled, 60, scored)
    np.testing.assert_allclose(share_trust(labelled[order], 60, scored[order]), expected)
    assert sum(expected) == pytest.approx(1)


def trust_by_hypotheses(labelled, n, scored):
    """Every row of the tables in ``docs/mend.md`` with every other one, and SciPy's Gaussian."""
    c = len(labelled)
    seen = [2 * (np.sqrt(shares) - c**-0.5) for shares in (labelled, scored)]
    rounding = c / (12 * n**2)
    labels = [
        (0.58, True, rounding),
        (0.38, True, 1 / n),
        (0.02, False, rounding),
        (0.02, False, 1 / n + 1 / c),
    ]
    scores = [(0.05, True), (0.1, True), (0.2, True), (0.4, True), (0.4, False)]
    logs, precisions = [], []
    for (before, labels_tell, d), spread, (error, scores_tell) in product(
        labels, (0.01, 0.2, 0.4, 0.8, 1.6), scores
    ):
        t, e = spread**2 / c, error**2 / c
        covariance = t * np.outer(*2 * [[labels_tell, scores_tell]]) + np.diag([d, e])
        gaussian = multivariate_normal(cov=covariance)
        # Shares sum to one, so that one class follows from the others: its constant is left out.
        density = gaussian.logpdf(np.transpose(seen)).sum() - gaussian.logpdf([0, 0])
        logs.append(np.log(before) + density)
        precisions.append([1 / t, labels_tell / d, scores_tell / e])
    probable = np.exp(np.array(logs) - max(logs))
    weights = np.array(precisions) / np.sum(precisions, axis=1, keepdims=True)
    return probable @ weights / probable.sum()


@pytest.mark.parametrize("n_labels", [10, 60, 1000])
def test_trust_is_the_mean_of_all_hypotheses(n_labels):
    for seed in range(3):
        labelled = drawn(UNEQUAL, n_labels, seed)
        for scored in (shares_of(UNEQUAL * NOISE), shares_of(NOISE)):
            expected = trust_by_hypotheses(labelled, n_labels, scored)
            np.testing.assert_allclose(share_trust(labelled, n_labels, scored), expected)
