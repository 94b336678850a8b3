"""Scores worked out by hand, and the identities between them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewmend.bench.metrics import METRICS, scores

answers = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


def both(pairs):
    return np.array(pairs).T


def test_a_confusion_worked_out_by_hand():
    # Rows true, columns found: 3 1 0 / 0 2 0 / 1 1 0; class 2 is never found.
    truth = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    found = scores(truth, np.array([0, 0, 0, 1, 1, 1, 0, 1]))
    assert list(found) == list(METRICS)
    assert found["accuracy"] == pytest.approx(5 / 8)
    assert found["macro_precision"] == pytest.approx((3 / 4 + 2 / 4 + 0) / 3)
    assert found["macro_recall"] == pytest.approx((3 / 4 + 1 + 0) / 3)
    # 2 p r / (p + r) of every class.
    assert found["macro_f1"] == pytest.approx((3 / 4 + 2 / 3 + 0) / 3)


@given(answers)
def test_on_balanced_classes_recall_is_accuracy(pairs):
    """Why the paper's PREC, a recall, equals its accuracy there."""
    truth, predicted = both(pairs)
    classes = np.unique(truth)
    size = min(np.sum(truth == c) for c in classes)
    rows = np.concatenate([np.flatnonzero(truth == c)[:size] for c in classes])
    found = scores(truth[rows], predicted[rows])
    assert found["macro_recall"] == pytest.approx(found["accuracy"])


@given(answers)
def test_a_transposed_confusion_swaps_precision_and_recall(pairs):
    truth, predicted = both(pairs)
    # The same classes on both sides, so that both average over the same.
    truth, predicted = np.append(truth, predicted), np.append(predicted, truth[::-1])
    one, other = scores(truth, predicted), scores(predicted, truth)
    assert one["macro_precision"] == pytest.approx(other["macro_recall"])
    assert one["macro_f1"] == pytest.approx(other["macro_f1"])


@given(answers, st.permutations(range(4)))
def test_names_of_classes_do_not_matter(pairs, names):
    truth, predicted = both(pairs)
    renamed = scores(np.array(names)[truth], np.array(names)[predicted])
    assert renamed == pytest.approx(scores(truth, predicted))


@given(answers)
def test_f1_lies_between_zero_and_the_mean_of_precision_and_recall(pairs):
    found = scores(*both(pairs))
    mean = (found["macro_precision"] + found["macro_recall"]) / 2
    assert -1e-12 <= found["macro_f1"] <= mean + 1e-12
    assert all(0 <= value <= 1 for value in found.values())
