"""What is known of the classes, over rows in one block, in many, and as tensors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.cut_rows import CutRows, cuts

from viewmend.core.common.rows import RowsInMemory
from viewmend.core.mend.labelling import Labelling, doubted_rows, label_likelihood

N_ROWS, N_CLASSES = 600, 4
RNG = np.random.default_rng(0)
CLASSES = RNG.integers(N_CLASSES, size=N_ROWS)
P = np.exp(RNG.normal(size=(N_ROWS, N_CLASSES)) + 2 * np.eye(N_CLASSES)[CLASSES])
# No label reaches these.
P[100:110] = 0
# Labels stand first, some of them against the scores: whole blocks have none.
Y = np.zeros((N_ROWS, N_CLASSES))
Y[:40] = np.eye(N_CLASSES)[(CLASSES[:40] + (np.arange(40) % 5 == 0)) % N_CLASSES]
PRIOR = np.array([0.1, 0.2, 0.3, 0.4])
# In equal shares, in the prior, in the scores.
TRUSTS = [(0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.2, 0.3, 0.5)]


def outcome(rows, Y, P, trust):
    labelling = Labelling(Y, PRIOR, trust).settled(rows, P)
    found = labelling.assign(rows, P, labelling.shares(rows, P))
    return labelling.trust, found, labelling.targets(rows, P, found.shares)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([None, *TRUSTS]))
def test_a_cut_of_the_rows_does_not_show(seed, n_blocks, trust):
    parts = cuts(np.random.default_rng(seed), N_ROWS, n_blocks)
    columns = [[array[part] for part in parts] for array in (Y, P)]
    found_trust, found, targets = outcome(CutRows(), *columns, trust)
    whole_trust, whole, expected = outcome(RowsInMemory(), Y, P, trust)
    assert found_trust == pytest.approx(whole_trust)
    np.testing.assert_allclose(found.shares, whole.shares)
    np.testing.assert_array_equal(np.concatenate(found.classes), whole.classes)
    np.testing.assert_allclose(np.concatenate(targets), expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_tensors_agree(kind):
    torch = pytest.importorskip("torch")
    tensors = torch.tensor(Y), torch.tensor(P.astype(kind))
    trust, found, targets = outcome(RowsInMemory(), *tensors, None)
    whole_trust, whole, expected = outcome(RowsInMemory(), Y, P, None)
    assert trust == pytest.approx(whole_trust)
    # A row on the border of two classes may fall to either in single precision.
    assert np.mean(found.classes.numpy() != whole.classes) <= 1 / N_ROWS
    np.testing.assert_allclose(targets, expected, atol=1e-5)
    assert targets.dtype == torch.float32


def test_classes_keep_labels_and_leave_out_rows_without_score():
    _, found, targets = outcome(RowsInMemory(), Y, P, (0.0, 1.0, 0.0))
    np.testing.assert_array_equal(found.classes[:40], Y[:40].argmax(axis=1))
    np.testing.assert_array_equal(found.classes[100:110], -1)
    rest = np.r_[40:100, 110:N_ROWS]
    np.testing.assert_array_equal(found.classes[rest], (P * found.weights)[rest].argmax(axis=1))
    scored = P.any(axis=1)
    shares = np.bincount((P * found.weights)[scored].argmax(axis=1)) / scored.sum()
    np.testing.assert_allclose(shares, PRIOR, atol=5e-3)
    np.testing.assert_array_equal(targets[:40], Y[:40])
    np.testing.assert_allclose(targets[100:110], np.tile(PRIOR, (10, 1)), rtol=1e-6)


def test_targets_are_squares_in_the_shares_aimed_at():
    """Odds are squared up to one factor per class; means of scored rows are the shares."""
    shares = np.full(N_CLASSES, 0.25)
    targets = Labelling(np.zeros_like(Y), PRIOR).targets(RowsInMemory(), P, shares)
    scored = P.any(axis=1)
    np.testing.assert_allclose(targets[scored].mean(axis=0), shares, atol=1e-6)
    factors = np.log(targets[scored].astype(float)) - 2 * np.log(P[scored])
    factors -= factors[:, [0]]
    np.testing.assert_allclose(factors, np.tile(factors[0], (scored.sum(), 1)), atol=1e-4)


def test_a_new_start_leads_to_the_same_classes():
    labelling = Labelling(Y, PRIOR)
    cold = labelling.assign(RowsInMemory(), P, PRIOR)
    near = cold.weights * np.exp([0.05, -0.05, 0.0, 0.02])
    warm = labelling.assign(RowsInMemory(), P, PRIOR, near)
    np.testing.assert_allclose(warm.weights, cold.weights, rtol=1e-4)
    np.testing.assert_array_equal(warm.classes, cold.classes)


def test_trust_must_be_settled_first():
    with pytest.raises(ValueError, match="call settled first"):
        Labelling(Y, PRIOR, None).shares(RowsInMemory(), P)


def test_a_sample_of_any_class_has_some_label():
    """A label is wrong with the probability of the noise, whatever the number of classes."""
    for n_classes in (2, 5):
        likelihood = label_likelihood(np.eye(n_classes), 0.3)
        np.testing.assert_allclose(np.diag(likelihood), 0.7)
        np.testing.assert_allclose(likelihood.sum(axis=0), 1)


def test_a_label_remains_where_the_evidence_rules_it_out():
    labels, evidence = np.eye(3)[[0, 1]], np.array([[0, 0.5, 0.5], [0.2, 0.2, 0.6]])
    np.testing.assert_array_equal(doubted_rows(labels, evidence, 0.0), labels)
    expected = np.array([0.2 * 0.15, 0.2 * 0.7, 0.6 * 0.15])
    found = doubted_rows(labels, evidence, 0.3)
    np.testing.assert_allclose(found, [[0, 0.5, 0.5], expected / expected.sum()])
    assert not doubted_rows(np.zeros((1, 3)), evidence[:1], 0.3).any()
