"""The reading of given labels alone: its formula, without own labels, and where it is asked for."""

import numpy as np
import pytest
from tests.core.small_mend import MEMORY, geometry_of, in_memory

from viewmend.core.mend.label_reading import (
    INTERCEPT,
    LITTLE_EXPLAINED,
    MOST_LABELS,
    RIDGE,
    SHARPNESS,
    has_rare_class,
    reading_of_labels,
)
from viewmend.datasets import hide, make_multiview_blobs

N_SAMPLES, N_LABELS, LITTLE = 60, 40, (0.01, 0.05)
BLOBS = make_multiview_blobs(N_SAMPLES, n_views=2, n_features=(5, 4), random_state=3)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=3)
OBSERVED = TASK.data.observed
SAMPLES = in_memory(geometry_of(TASK.data.views, OBSERVED, n_landmarks=30), 2)
# Two labels of the second class among forty.
CLASSES = (np.arange(N_LABELS) % 20 == 0).astype(int)
LABELLED = np.arange(N_LABELS)
Y = np.zeros((N_SAMPLES, 2), dtype=np.float32)
Y[LABELLED, CLASSES] = 1


def read(targets=Y, explained=LITTLE):
    return reading_of_labels(MEMORY, SAMPLES.blocks, targets, explained)


def scores(reading):
    """As the regression has them, before they are sharpened."""
    sharpness = SHARPNESS * (1 - max(LITTLE) / LITTLE_EXPLAINED)
    return (reading.Z.sum(axis=1) + reading.intercept) / sharpness


def joined_features():
    """Features of all views side by side, zero where a view is missing, and a constant one."""
    parts = [np.zeros((N_SAMPLES, view.Phi.shape[1])) for view in SAMPLES.blocks.views]
    for part, view in zip(parts, SAMPLES.blocks.views, strict=True):
        part[view.rows] = view.Phi
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


def test_labels_count_the_less_the_more_the_first_round_explains():
    strong, weak = read(explained=(0.0, 0.0)), read(explained=(0.5 * LITTLE_EXPLAINED, 0.0))
    np.testing.assert_allclose(weak.Z, strong.Z / 2, rtol=1e-5)
    np.testing.assert_allclose(weak.intercept, strong.intercept / 2)


@pytest.mark.parametrize(
    ("explained", "asked"),
    [((), False), (LITTLE, True), ((0.01, LITTLE_EXPLAINED), False)],
    ids=["before the first round", "views explain little", "one view explains enough"],
)
def test_labels_are_read_where_the_first_round_explains_little(explained, asked):
    assert (read(explained=explained) is not None) == asked


@pytest.mark.parametrize(
    ("counts", "rare"),
    [
        ((76, 4), True),
        ((40, 40), False),
        ((55, 25), False),
        ((60, 60, 10), True),
        ((3, 3, 1), False),
        ((0.95 * MOST_LABELS + 1, 0.05 * MOST_LABELS), False),
    ],
)
def test_a_class_is_rare_by_its_labels(counts, rare):
    assert has_rare_class(np.array(counts)) == rare


def test_equal_classes_are_not_read():
    even = np.zeros_like(Y)
    even[LABELLED, np.arange(N_LABELS) % 2] = 1
    assert read(even) is None
