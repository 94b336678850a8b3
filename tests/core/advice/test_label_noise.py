"""What the rest of the data says of a labelled sample."""

import numpy as np
import pytest

from viewmend import MendClassifier
from viewmend.core.advice.label_noise import rank_labels, shares_without_own
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


def test_labels_are_ranked_by_their_odds_against_the_best_other_class():
    """And not by their share, which is small in the last sample because no class is probable."""
    shares = np.array([[0.3, 0.6, 0.1], [0.5, 0.1, 0.4], [0.28, 0.36, 0.36]])
    ranked = rank_labels(np.array([0, 0, 0]), shares)
    assert ranked.places.tolist() == [0, 2, 1]
    np.testing.assert_allclose(ranked.scores, [0.6 / 0.9, 0.36 / 0.64, 0.4 / 0.9])


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
