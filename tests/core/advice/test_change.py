"""The expected change in closed form is what spreading again with one more label brings."""

from dataclasses import replace

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
ROWS = np.arange(N + N_APART)


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


def changes_once_known(known, chosen):
    """Of all samples, if the chosen ones had their expected labels: by spreading all again."""
    columns = spread_labels(known.graph, np.eye(len(known.codes)), SPREADING, 1e-12)
    soft = (known.codes[:, None] == np.arange(C)).astype(float)
    soft[chosen] = known.shares[chosen]
    F = spread_labels(known.graph, soft, SPREADING, 1e-12)
    later = Answers(F, known.answers.evidence, PRIOR, F.sum(axis=0))
    return expected_changes(later, columns, known.shares)


def test_a_batch_goes_on_as_if_the_chosen_samples_had_their_expected_labels(known):
    """Each is the best per cost of those that are left."""
    free, costs = known.codes < 0, np.random.default_rng(1).uniform(0.5, 2, len(known.codes))
    ranking = STRATEGIES["change"].ranking(replace(known, rates=free / costs), 1)
    found = choose_batch(ranking, 9, free, costs, Likeness(csr_array(known.graph.shape), ROWS))
    for turn, row in enumerate(found.rows.tolist()):
        before = found.rows[:turn]
        expected = changes_once_known(known, before)
        assert found.gains[turn] == found.told[turn] == pytest.approx(expected[row], rel=1e-2)
        best = np.max((expected / costs)[free & ~np.isin(ROWS, before)])
        assert expected[row] / costs[row] == pytest.approx(best, rel=1e-2)


def test_once_the_first_samples_are_used_up_others_are_looked_at(rng, monkeypatch):
    """A choice takes near-duplicates with it, and the change of few samples is computed at first.

    No sample is chosen without one.
    """
    graph = csr_array(random_graph(rng, 200, 0.03) ** 0.1)
    codes = np.full(200, -1)
    codes[:3] = [0, 1, 2]
    known, n = known_of(graph, codes, rng.dirichlet(np.ones(C), 200)), 15
    monkeypatch.setattr(labels, "SHORTLIST", 20)
    ranking = STRATEGIES["change"].ranking(known, n)
    gains(ranking)
    first = set(ranking.rows.tolist())
    found = choose_batch(ranking, n, codes < 0, np.ones(200), Likeness(graph, np.arange(200)))
    assert len(set(found.rows.tolist())) == n
    assert len(first) == 20
    assert set(found.rows.tolist()) - first
    for turn, row in enumerate(found.rows.tolist()):
        expected = changes_once_known(known, found.rows[:turn])[row]
        assert found.gains[turn] == pytest.approx(expected, rel=1e-2)
