"""The reading of given labels alone: its formula, without own labels, and where it is asked for."""

import numpy as np
import pytest
from tests.core.small_mend import MEMORY, geometry_of, in_memory

from viewmend.core.mend.label_reading import (
    ENOUGH_WITHIN,
    FEW_WITHIN,
    INTERCEPT,
    MOST_LABELS,
    RIDGE,
    SHARPNESS,
    has_rare_class,
    rare_class_in,
    reading_of_labels,
    relative_deviations,
)
from viewmend.datasets import hide, make_multiview_blobs

N_SAMPLES, N_LABELS = 60, 40
BLOBS = make_multiview_blobs(N_SAMPLES, n_views=2, n_features=(5, 4), random_state=3)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=3)
OBSERVED = TASK.data.observed
SAMPLES = in_memory(geometry_of(TASK.data.views, OBSERVED, n_landmarks=30), 2)
# Two labels of the second class among forty.
CLASSES = (np.arange(N_LABELS) % 20 == 0).astype(int)
LABELLED = np.arange(N_LABELS)
Y = np.zeros((N_SAMPLES, 2), dtype=np.float32)
Y[LABELLED, CLASSES] = 1


def read(targets=Y, within=0.0):
    return reading_of_labels(MEMORY, SAMPLES.blocks, SAMPLES.spectra, targets, within)


def scores(reading):
    """As the regression has them, before they are sharpened."""
    return (reading.Z.sum(axis=1) + reading.intercept) / SHARPNESS


def joined_features():
    """Features of all views side by side, zero where a view is missing, and a constant one.

    Those of a view are multiplied by roots of their deviations, relative to the largest.
    """
    parts = [np.zeros((N_SAMPLES, view.Phi.shape[1])) for view in SAMPLES.blocks.views]
    for part, view in zip(parts, SAMPLES.blocks.views, strict=True):
        deviations = view.Phi.astype(float).std(axis=0)
        part[view.rows] = view.Phi * np.sqrt(deviations / deviations.max())
    return np.hstack([*parts, np.full((N_SAMPLES, 1), np.sqrt(INTERCEPT))])


def weighted_ridge(targets, sizes=None):
    """Scores of all samples by the normal equations; weights are by the ``sizes`` of all labels."""
    Phi, known = joined_features(), targets.any(axis=1)
    sizes = targets.sum(axis=0) if sizes is None else sizes
    n_all = sizes.sum()
    w = n_all / (2 * targets[known] @ sizes)
    A, T = Phi[known], targets[known].astype(float)
    gram = A.T @ (w[:, None] * A) + RIDGE * n_all * np.eye(A.shape[1])
    return Phi @ np.linalg.solve(gram, A.T @ (w[:, None] * T))


def test_scores_are_those_of_a_ridge_regression_in_which_classes_weigh_the_same():
    free = ~Y.any(axis=1)
    np.testing.assert_allclose(scores(read())[free], weighted_ridge(Y)[free], atol=1e-4)


def test_labelled_samples_are_scored_without_their_label():
    found = scores(read())
    for row in LABELLED:
        others = Y.copy()
        others[row] = 0
        expected = weighted_ridge(others, sizes=Y.sum(axis=0))[row]
        np.testing.assert_allclose(found[row], expected, atol=1e-3)


def test_views_that_are_missing_add_nothing():
    assert not read().Z[~OBSERVED].any()


def test_labels_count_the_less_the_more_edges_stay_within_classes():
    full, half = read(within=FEW_WITHIN), read(within=(FEW_WITHIN + ENOUGH_WITHIN) / 2)
    np.testing.assert_allclose(half.Z, full.Z / 2, rtol=1e-5)
    np.testing.assert_allclose(half.intercept, full.intercept / 2)
    np.testing.assert_array_equal(read(within=-0.2).Z, full.Z)


@pytest.mark.parametrize("within", [ENOUGH_WITHIN, 1.0])
def test_labels_are_not_read_where_graphs_find_groups(within):
    assert read(within=within) is None


def test_a_view_without_features_does_not_count():
    """As one has whose rows are all the same; nor do lengths of zero divide by zero."""
    assert relative_deviations(np.zeros(0)).shape == (0,)
    np.testing.assert_array_equal(relative_deviations(np.zeros(2)), np.zeros(2))
    np.testing.assert_allclose(relative_deviations(np.array([1.0, 4.0, 100.0])), [0.1, 0.2, 1])


@pytest.mark.parametrize(
    ("counts", "rare"),
    [
        ((76, 4), True),
        ((40, 40), False),
        ((60, 20), True),
        ((58, 22), False),
        ((60, 60, 10), True),
        ((3, 3, 1), False),
        ((0.95 * MOST_LABELS + 1, 0.05 * MOST_LABELS), False),
    ],
)
def test_a_class_is_rare_by_its_labels(counts, rare):
    assert has_rare_class(np.array(counts)) == rare


def test_labels_are_counted_by_class():
    even = np.zeros_like(Y)
    even[LABELLED, np.arange(N_LABELS) % 2] = 1
    assert rare_class_in(MEMORY, Y)
    assert not rare_class_in(MEMORY, even)
