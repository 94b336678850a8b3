"""What the rest of the data says of a labelled sample."""

import numpy as np
import pytest

from viewmend import MendClassifier
from viewmend.core.advice.label_noise import error_ratios, rank_labels, shares_without_own
from viewmend.core.mend.evidence import combine
from viewmend.datasets import hide, make_multiview_blobs

BLOBS = make_multiview_blobs(120, n_views=2, noise=3.0, n_classes=3, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.3, random_state=0)


@pytest.mark.parametrize("n_rounds", [0, 2])
def test_what_neighbours_say_is_the_soft_label_less_the_own_label(n_rounds):
    """``F = Y + a S F``: without the own label, ``F - Y`` is left, up to the solver's error."""
    model = MendClassifier(n_landmarks=40, n_rounds=n_rounds).fit(TASK.data, TASK.y)
    state, fit = model.fitted_state_, model.fitted_state_.induction
    codes = state.label_codes[state.order]
    places = np.flatnonzero(codes >= 0)
    graph = model.graph_[state.order][:, state.order]
    found = shares_without_own(fit, graph[places], places, state.class_weights)
    others = fit.F[places].astype(float) - (codes[places][:, None] == np.arange(3))
    expected = np.maximum(others, 0) / fit.mass
    if fit.evidence is not None:
        evidence = fit.evidence.P[places].astype(float)
        expected = combine(expected, evidence, fit.prior, fit.settings.evidence_power)
    expected = expected * state.class_weights
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_errors_of_all_kinds_equally_often_leave_the_share_of_the_given_class():
    """The label is wrong with the probability of all other classes together."""
    shares = np.array([[0.3, 0.6, 0.1], [0.6, 0.3, 0.1], [0.1, 0.3, 0.6], [0.4, 0.3, 0.3]])
    codes = np.array([0, 1, 2, 0])
    np.testing.assert_allclose(error_ratios(np.full((3, 3), 7.0)), 1, atol=0.01)
    np.testing.assert_allclose(error_ratios(np.zeros((3, 3))), 1)
    ranked = rank_labels(codes, shares)
    np.testing.assert_allclose(ranked.scores, [0.7, 0.7, 0.6, 0.4], atol=0.02)
    assert set(ranked.places[:2]) == {0, 1}
    # The third is less probable than all others together, of which none is as probable.
    np.testing.assert_array_equal(ranked.places[2:], [3, 2])
    np.testing.assert_array_equal(ranked.found, shares[ranked.places].argmax(axis=1))


def test_a_kind_of_error_that_is_frequent_makes_labels_more_suspect():
    """Samples of class 0 are often given label 1, and no others a wrong one."""
    sure = 0.01 + 0.97 * np.eye(3)
    truth = np.repeat([0, 1, 2], 100)
    codes = np.where(np.arange(300) < 30, 1, truth)
    # Two more labels, of equal shares: 1 where 0 is likelier, and 0 where 1 is.
    codes = np.append(codes, [1, 0])
    shares = np.vstack([sure[truth], [[0.55, 0.4, 0.05], [0.4, 0.55, 0.05]]])
    ranked = rank_labels(codes, shares)
    ratios = error_ratios(ranked.counts)
    assert ratios[1, 0] > 1.5 > 1 > ratios[1, 2]
    place = {row: i for i, row in enumerate(ranked.places.tolist())}
    assert place[300] < place[301]
    # All that is certain comes first.
    assert set(ranked.places[:30]) == set(range(30))


def test_names_of_classes_do_not_matter_for_kinds_of_errors():
    counts, names = np.random.default_rng(0).integers(0, 40, (4, 4)).astype(float), [2, 0, 3, 1]
    renamed = error_ratios(counts[np.ix_(names, names)])
    np.testing.assert_allclose(renamed, error_ratios(counts)[np.ix_(names, names)])


def test_labels_of_two_classes_are_ranked_by_the_share_of_their_class():
    codes = np.array([0, 1, 1, 0])
    shares = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.3, 0.7]])
    ranked = rank_labels(codes, shares)
    assert ranked.places.tolist() == [1, 3, 2, 0]
    assert ranked.found.tolist() == [0, 1, 1, 0]
    np.testing.assert_allclose(ranked.scores, [0.8, 0.7, 0.4, 0.1])
    # Thresholds are 0.6 and 0.4: each is counted for its largest share, and two of four differ.
    assert ranked.counts.tolist() == [[1, 1], [1, 1]]
    assert ranked.noise_rate == 0.5
