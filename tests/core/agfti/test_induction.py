"""Labels of unseen samples follow from those of the fit."""

import numpy as np
import pytest

from viewmend.core import Problem, solve
from viewmend.core.agfti.bipartite import anchor_graphs
from viewmend.core.agfti.fusion import Game, best_response
from viewmend.core.agfti.induction import fused_rows, induce_labels, induction

RNG = np.random.default_rng(0)
N, K = 60, 4
CLASSES = np.arange(N) % 3
VIEWS = [RNG.normal(size=(N, 4)) + 3 * RNG.normal(size=(3, 4))[CLASSES] for _ in range(3)]
ANCHORS = [view[:8] for view in VIEWS]
SEEN = np.ones((N, 3), dtype=bool)
Y = np.where(np.arange(N)[:, None] < 12, np.eye(3)[CLASSES], 0.0)


@pytest.fixture(scope="module")
def solved():
    problem = Problem(anchor_graphs(VIEWS, SEEN, ANCHORS, K), Y, SEEN, 9.0, 1.0, 10.0)
    return problem, solve(problem, max_iter=10)


def test_complete_sample_gets_the_row_that_the_fit_would_start_from(solved):
    problem, result = solved
    fit = induction(problem, result, ANCHORS, K)
    game = Game(problem.Z @ result.T, 0 * problem.Z[0], problem.lam, problem.beta)
    np.testing.assert_allclose(
        fused_rows(fit, VIEWS, SEEN), best_response(game, result.alpha), atol=1e-12
    )


def test_without_soft_label_distances_induction_is_propagation(solved):
    """For a row ``p`` of the fit, ``f`` is twice the F of an unlabelled sample (B = 1)."""
    problem, result = solved
    fit = induction(problem, result, ANCHORS, K)
    soft = result.P @ fit.anchor_labels
    np.testing.assert_allclose(soft[12:], 2 * result.F[12:], atol=1e-12)


def test_any_subset_of_equal_views_gives_the_same_labels():
    """Three copies of one view: which of them a new sample has cannot matter."""
    twins, anchors = [VIEWS[0]] * 3, [ANCHORS[0]] * 3
    problem = Problem(anchor_graphs(twins, SEEN, anchors, K), Y, SEEN, 9.0, 1.0, 10.0)
    fit = induction(problem, solve(problem, max_iter=5), anchors, K)
    full = induce_labels(fit, twins, SEEN)
    some = SEEN.copy()
    some[:30, 0] = some[10:40, 1] = False
    torn = [np.where(some[:, [v]], view, np.nan) for v, view in enumerate(twins)]
    np.testing.assert_allclose(induce_labels(fit, torn, some), full, atol=1e-9)


def test_samples_do_not_influence_each_other(solved):
    problem, result = solved
    fit = induction(problem, result, ANCHORS, K)
    together = induce_labels(fit, VIEWS, SEEN)
    alone = [induce_labels(fit, [v[[i]] for v in VIEWS], SEEN[[i]]) for i in range(5)]
    np.testing.assert_allclose(np.concatenate(alone), together[:5], atol=1e-12)
