"""The expected change in closed form is what spreading again with one more label brings."""

import numpy as np
import pytest
import scipy.linalg
from scipy.sparse import csr_array

from viewmend.core.advice import labels
from viewmend.core.advice.batches import Likeness, choose_batch
from viewmend.core.advice.change import Answers, expected_changes
from viewmend.core.advice.labels import STRATEGIES, Known
from viewmend.core.common.held_out import unit_columns
from viewmend.core.graphs.spreading import spread_labels
from viewmend.core.mend.evidence import combine
from viewmend.core.mend.samples import scaled_columns

SPREADING, N, C = 0.9, 30, 3
# Further samples that nothing joins to the others: no label reaches them.
N_APART = 8
PRIOR = np.array([0.5, 0.3, 0.2])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def random_graph(rng, n_samples, density):
    W = np.where(
        rng.random((n_samples, n_samples)) < density, rng.random((n_samples, n_samples)), 0
    )
    return W + W.T


@pytest.fixture
def known(rng):
    W = scipy.linalg.block_diag(random_graph(rng, N, 0.2), random_graph(rng, N_APART, 0.5))
    graph, codes = csr_array(W), np.full(len(W), -1)
    codes[:6] = [0, 1, 2, 0, 1, 2]
    return known_of(graph, codes, rng.dirichlet(np.ones(C), len(W)))


def known_of(graph, codes, evidence):
    F = spread(graph, codes)
    answers = Answers(F, evidence, PRIOR, F.sum(axis=0))
    return Known(graph, SPREADING, codes, answers.shares(), answers)


def spread(graph, codes):
    return spread_labels(graph, (codes[:, None] == np.arange(C)).astype(float), SPREADING, 1e-12)


def refitted(known, row, c):
    """Answers with the label ``c`` at ``row``, by another spreading on the same graph."""
    codes = known.codes.copy()
    codes[row] = c
    F = spread(known.graph, codes)
    return combine(scaled_columns(F, F.sum(axis=0)), known.answers.evidence, PRIOR, 1.0)


def change_by_refits(known, row):
    before = known.answers.shares()
    changes = [np.abs(refitted(known, row, c) - before).sum() / 2 for c in range(C)]
    return known.shares[row] @ changes


def gains(ranking):
    return ranking.gains(np.ones(len(ranking.worth), dtype=bool))


def test_closed_form_is_what_refitting_the_spreading_gives(known):
    """Also among samples that no label reaches yet, which have answers by their evidence."""
    rows = np.array([7, 12, 29, N, N + 5])
    columns = spread_labels(known.graph, unit_columns(rows, N + N_APART), SPREADING, 1e-12)
    found = expected_changes(known.answers, columns, known.shares[rows])
    np.testing.assert_allclose(found, [change_by_refits(known, i) for i in rows], rtol=1e-8)


def test_labels_outside_the_graph_grow_with_those_inside(known):
    """If every sample outside repeats one inside, answers inside are those of all samples."""
    rows = np.array([7, 12, 29])
    columns = spread_labels(known.graph, unit_columns(rows, N + N_APART), SPREADING, 1e-12)
    plain, answers = known.answers, known.answers
    twice = Answers(answers.F, answers.evidence, PRIOR, 2 * answers.mass)
    found, expected = (expected_changes(a, columns, known.shares[rows]) for a in (twice, plain))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_strategy_ranks_all_samples_of_a_small_graph_by_it(known):
    found = gains(STRATEGIES["change"].ranking(known, 1))
    expected = [change_by_refits(known, i) for i in range(len(known.codes))]
    free = known.codes < 0
    np.testing.assert_allclose(found[free], np.array(expected)[free], rtol=1e-2)


def test_samples_that_spread_alike_share_what_they_change(known):
    """A second label at the same place changes nothing; one that spreads elsewhere keeps all."""
    ranking = STRATEGIES["change"].ranking(known, 1)
    before = gains(ranking).copy()
    columns = spread_labels(known.graph, np.eye(len(known.codes)), SPREADING, 1e-12)
    columns /= np.linalg.norm(columns, axis=0)
    ranking.choose(11)
    np.testing.assert_allclose(
        gains(ranking), before * (1 - (columns.T @ columns)[11] ** 2), rtol=1e-2, atol=1e-9
    )


def test_once_the_first_samples_are_used_up_others_are_looked_at(rng, monkeypatch):
    """A choice takes near-duplicates with it, and the change of few samples is computed at first.

    No sample was chosen without one, and what two labels share counts across all of them.
    """
    graph = csr_array(random_graph(rng, 200, 0.03) ** 0.1)
    codes = np.full(200, -1)
    codes[:3] = [0, 1, 2]
    known, n = known_of(graph, codes, rng.dirichlet(np.ones(C), 200)), 15
    monkeypatch.setattr(labels, "SHORTLIST", 20)
    likeness = Likeness(graph, np.arange(200))
    ranking = STRATEGIES["change"].ranking(known, n)
    found = choose_batch(ranking, n, codes < 0, np.ones(200), likeness)
    assert len(set(found.rows.tolist())) == n
    assert len(ranking.rows) > 20
    monkeypatch.setattr(labels, "SHORTLIST", 200)
    every = STRATEGIES["change"].ranking(known, n)
    for row, gain in zip(found.rows.tolist(), found.gains.tolist(), strict=True):
        assert gains(every)[row] == pytest.approx(gain, rel=1e-2)
        assert gain > 0
        every.choose(row)
