"""The reading of given labels alone: its formula, without own labels, and where it is asked for."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.core.small_mend import MEMORY, geometry_of, in_memory

from viewmend.core.mend.geometry import GeometrySettings, build_geometry
from viewmend.core.mend.label_reading import (
    AGREEMENT,
    INTERCEPT,
    MOST_DEVIATIONS,
    MOST_LABELS,
    RIDGE,
    SHARPNESS,
    WITHIN,
    WITHIN_ALONE,
    columns_read,
    has_rare_class,
    rare_class_in,
    reading_of_labels,
    share_read,
    standard_columns,
)
from viewmend.core.mend.representations import Representation
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


def read(targets=Y, share=1.0):
    return reading_of_labels(MEMORY, SAMPLES.raw, SAMPLES.views, targets, share)


def scores(reading):
    """As the regression has them, before they are sharpened."""
    return (reading.Z.sum(axis=1) + reading.intercept) / SHARPNESS


def joined_columns():
    """Standardised columns of all views side by side, zero where a view is missing.

    All views weigh the same, whatever their number of columns, and the last column is constant.
    """
    parts = []
    for X, seen in zip(TASK.data.views, OBSERVED.T, strict=True):
        part = np.zeros(X.shape)
        part[seen] = (X[seen] - X[seen].mean(axis=0)) / X[seen].std(axis=0)
        parts.append(part / np.sqrt(2 * X.shape[1]))
    return np.hstack([*parts, np.full((N_SAMPLES, 1), np.sqrt(INTERCEPT))])


def weighted_ridge(targets, sizes=None):
    """Scores of all samples by the normal equations; weights are by the ``sizes`` of all labels."""
    Phi, known = joined_columns(), targets.any(axis=1)
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


def test_coefficients_give_the_scores_of_samples_without_a_label():
    """As new samples are read by them."""
    reading, free = read(), ~Y.any(axis=1)
    for v, (X, columns, coefficients) in enumerate(
        zip(TASK.data.views, reading.columns, reading.coefficients, strict=True)
    ):
        rows = free & OBSERVED[:, v]
        found = columns_read(X[rows], columns) @ coefficients
        np.testing.assert_allclose(found, reading.Z[rows, v], atol=1e-4)


def test_units_of_columns_do_not_matter():
    """Nor does a column that is always the same."""
    views = [np.hstack([1e3 * X + 7, np.full((N_SAMPLES, 1), 5.0)]) for X in TASK.data.views]
    other = in_memory(geometry_of(views, OBSERVED, n_landmarks=30), 2)
    found = reading_of_labels(MEMORY, other.raw, other.views, Y, 1.0)
    np.testing.assert_allclose(found.Z, read().Z, atol=1e-3)


def test_views_of_more_columns_than_samples_are_read():
    """In the limit of many columns of noise nothing is left but the shares of the classes."""
    rng = np.random.default_rng(0)
    wide = [rng.normal(size=(N_SAMPLES, 5000)) for _ in range(2)]
    samples = in_memory(geometry_of(wide, OBSERVED, n_landmarks=30), 2)
    found = scores(reading_of_labels(MEMORY, samples.raw, samples.views, Y, 1.0))
    free = ~Y.any(axis=1)
    np.testing.assert_allclose(found[free], found[free].mean(axis=0)[None].repeat(20, 0), atol=0.05)


def test_a_value_far_outside_its_column_counts_as_one_at_the_edge():
    columns = Representation("as given", np.array([1.0]), np.array([0.5]), unit=False)
    found = columns_read(np.array([[1e9], [3.0], [-1e9]]), columns)
    np.testing.assert_array_equal(found, [[MOST_DEVIATIONS], [1], [-MOST_DEVIATIONS]])


def test_components_of_a_sparse_view_keep_their_proportions():
    X = csr_array(np.random.default_rng(0).poisson(0.3, size=(N_SAMPLES, 80)).astype(float))
    view = build_geometry([X], np.ones((N_SAMPLES, 1), bool), GeometrySettings()).views[0]
    standard = standard_columns(view)(view.X)
    variances, expected = standard.var(axis=0), view.X.var(axis=0)
    np.testing.assert_allclose(variances.mean(), 1, rtol=1e-5)
    np.testing.assert_allclose(variances / variances[0], expected / expected[0], rtol=1e-4)


def test_labels_count_as_far_as_they_are_read():
    full, half = read(), read(share=0.5)
    np.testing.assert_allclose(half.Z, full.Z / 2, rtol=1e-5)
    np.testing.assert_allclose(half.intercept, full.intercept / 2)


@pytest.mark.parametrize(
    ("agreement", "within", "share"),
    [
        (-0.1, 0.0, 1.0),
        (AGREEMENT[0], WITHIN[0], 1.0),
        (np.mean(AGREEMENT), 0.0, 0.5),
        (0.0, np.mean(WITHIN), 0.5),
        (AGREEMENT[1], 0.0, 0.0),
        (1.0, 0.0, 0.0),
        (0.0, WITHIN[1], 0.0),
        (None, -0.2, 1.0),
        (None, np.mean(WITHIN_ALONE), 0.5),
        (None, WITHIN_ALONE[1], 0.0),
    ],
)
def test_labels_are_read_the_less_the_more_is_found_of_groups(agreement, within, share):
    assert share_read(agreement, within) == pytest.approx(share)


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
