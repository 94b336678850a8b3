"""The expected change in closed form is what spreading again with one more label brings."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from viewmend.core.advice.change import Answers, expected_changes
from viewmend.core.advice.labels import STRATEGIES, Known
from viewmend.core.common.class_shares import normalise_rows
from viewmend.core.common.held_out import unit_columns
from viewmend.core.graphs.spreading import spread_labels

SPREADING, N, C = 0.9, 30, 3


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def known(rng):
    W = np.where(rng.random((N, N)) < 0.2, rng.random((N, N)), 0)
    graph = csr_array(W + W.T)
    codes = np.full(N, -1)
    codes[:6] = [0, 1, 2, 0, 1, 2]
    evidence = rng.dirichlet(np.ones(C), N)
    answers = Answers(spread(graph, codes), evidence)
    return Known(graph, SPREADING, codes, answers.shares(), answers)


def spread(graph, codes):
    return spread_labels(graph, (codes[:, None] == np.arange(C)).astype(float), SPREADING, 1e-12)


def refitted(known, row, c):
    """Answers with the label ``c`` at ``row``, by another spreading on the same graph."""
    codes = known.codes.copy()
    codes[row] = c
    F = spread(known.graph, codes)
    return normalise_rows(F / F.sum(axis=0) * known.answers.evidence)


def change_by_refits(known, row):
    before = known.answers.shares()
    changes = [np.abs(refitted(known, row, c) - before).sum() / 2 for c in range(C)]
    return known.shares[row] @ changes


def test_closed_form_is_what_refitting_the_spreading_gives(known):
    rows = np.array([7, 12, 29])
    columns = spread_labels(known.graph, unit_columns(rows, N), SPREADING, 1e-12)
    found = expected_changes(known.answers, columns, known.shares[rows])
    np.testing.assert_allclose(found, [change_by_refits(known, i) for i in rows], rtol=1e-8)


def test_the_strategy_ranks_all_samples_of_a_small_graph_by_it(known):
    gains = STRATEGIES["change"].ranking(known, 1).gains()
    expected = [change_by_refits(known, i) for i in range(N)]
    free = known.codes < 0
    np.testing.assert_allclose(gains[free], np.array(expected)[free], rtol=1e-2)


def test_samples_that_spread_alike_share_what_they_change(known):
    """A second label at the same place changes nothing; one that spreads elsewhere keeps all."""
    ranking = STRATEGIES["change"].ranking(known, 1)
    before = ranking.gains().copy()
    columns = spread_labels(known.graph, np.eye(N), SPREADING, 1e-12)
    columns /= np.linalg.norm(columns, axis=0)
    ranking.choose(11)
    np.testing.assert_allclose(
        ranking.gains(), before * (1 - (columns.T @ columns)[11] ** 2), rtol=1e-2, atol=1e-9
    )
