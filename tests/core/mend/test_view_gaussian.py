"""One Gaussian per class over the scores of all views, against SciPy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import multivariate_normal
from tests.core.cut_rows import CutRows, cuts

from viewmend.core.common.rows import RowsInMemory
from viewmend.core.mend import view_gaussian
from viewmend.core.mend.blocks import MendBlock
from viewmend.core.mend.view_gaussian import (
    PRIOR_PAIRS,
    ViewGaussian,
    log_posterior,
    observed_patterns,
)

N_SAMPLES, N_VIEWS, N_CLASSES = 200, 3, 3
PRIOR = np.array([0.5, 0.3, 0.2])


def fit_view_gaussian(Z, observed, classes, prior, shrinkage):
    block = MendBlock(observed, ())
    return view_gaussian.fit_view_gaussian(RowsInMemory(), block, Z, classes, prior, shrinkage)


def sample_scores(seed=0, n_samples=N_SAMPLES):
    """Scores that lean to their class, with noise that the views have in common."""
    rng = np.random.default_rng(seed)
    classes = rng.choice(N_CLASSES, n_samples, p=PRIOR)
    observed = rng.random((n_samples, N_VIEWS)) < 0.6
    observed[np.arange(n_samples), rng.integers(N_VIEWS, size=n_samples)] = True
    shared = rng.normal(scale=0.3, size=(n_samples, 1, N_CLASSES))
    own = rng.normal(scale=0.3, size=(n_samples, N_VIEWS, N_CLASSES))
    Z = (np.eye(N_CLASSES)[classes][:, None] + shared + own) * observed[:, :, None]
    return Z, observed, classes


Z, OBSERVED, CLASSES = sample_scores()
GAUSSIAN = fit_view_gaussian(Z, OBSERVED, CLASSES, PRIOR, 0.1)


def posterior_by_scipy(gaussian, z, seen):
    """Log density of the observed coordinates plus log prior, largest zero."""
    columns = np.repeat(seen, N_CLASSES)
    covariance = gaussian.covariance[np.ix_(columns, columns)]
    scores = np.log(gaussian.prior) + [
        multivariate_normal.logpdf(z.ravel()[columns], mean[columns], covariance)
        for mean in gaussian.means
    ]
    return scores - scores.max()


# ------------------------------------------------------------------ posterior


def test_posterior_is_that_of_the_observed_coordinates():
    assert np.linalg.eigvalsh(GAUSSIAN.covariance)[0] > GAUSSIAN.floor
    found = log_posterior(GAUSSIAN, Z, OBSERVED)
    expected = [posterior_by_scipy(GAUSSIAN, z, seen) for z, seen in zip(Z, OBSERVED, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-8)
    assert {len(views) for views in map(tuple, OBSERVED)} == {N_VIEWS}
    assert OBSERVED.all(axis=1).any()
    assert (OBSERVED.sum(axis=1) == 1).any()


def test_scores_of_missing_views_are_not_read():
    noisy = np.where(OBSERVED[:, :, None], Z, 1e3)
    np.testing.assert_array_equal(
        log_posterior(GAUSSIAN, noisy, OBSERVED), log_posterior(GAUSSIAN, Z, OBSERVED)
    )


def test_views_may_come_in_any_order():
    order = [2, 0, 1]
    turned = fit_view_gaussian(Z[:, order], OBSERVED[:, order], CLASSES, PRIOR, 0.1)
    found = log_posterior(turned, Z[:, order], OBSERVED[:, order])
    np.testing.assert_allclose(found, log_posterior(GAUSSIAN, Z, OBSERVED), atol=1e-8)


def test_an_indefinite_covariance_is_lifted_to_the_floor():
    """Blocks from different samples can contradict each other: eigenvalues 3 and -1 here."""
    covariance = np.kron([[1.0, 2.0], [2.0, 1.0]], np.eye(2))
    means = np.array([[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 2.0]])
    prior = np.array([0.5, 0.5])
    rough = ViewGaussian(means, covariance, 0.25, prior)
    lifted = np.kron([[1.625, 1.375], [1.375, 1.625]], np.eye(2))
    z = np.random.default_rng(0).normal(size=(5, 2, 2))
    both, first = np.ones((5, 2), dtype=bool), np.tile([True, False], (5, 1))
    for seen, matrix in [(both, lifted), (first, covariance)]:
        columns = np.repeat(seen[0], 2)
        density = [
            multivariate_normal.logpdf(
                z.reshape(5, 4)[:, columns], mean[columns], matrix[np.ix_(columns, columns)]
            )
            for mean in means
        ]
        found = log_posterior(rough, z, seen)
        np.testing.assert_allclose(found[:, 0] - found[:, 1], density[0] - density[1], atol=1e-10)


def test_a_view_of_noise_changes_little():
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(N_SAMPLES, 1, N_CLASSES))
    seen = np.column_stack([OBSERVED, np.ones(N_SAMPLES, dtype=bool)])
    more = np.concatenate([Z, noise], axis=1)
    gaussian = fit_view_gaussian(more, seen, CLASSES, PRIOR, 0.01)
    plain = fit_view_gaussian(Z, OBSERVED, CLASSES, PRIOR, 0.01)
    with_noise = softmax(log_posterior(gaussian, more, seen), axis=1)
    without = softmax(log_posterior(plain, Z, OBSERVED), axis=1)
    assert np.mean(np.abs(with_noise - without)) < 0.05
    right = [np.mean(P.argmax(axis=1) == CLASSES) for P in (with_noise, without)]
    assert abs(right[0] - right[1]) < 0.04


def test_views_that_repeat_each_other_count_once():
    """The mean over views would count them twice; the covariance knows better."""
    single, seen = Z[:, :1], OBSERVED[:, :1]
    rows = seen[:, 0]
    twice = np.repeat(single[rows], 2, axis=1)
    once = fit_view_gaussian(single[rows], seen[rows], CLASSES[rows], PRIOR, 0.001)
    both = np.ones((rows.sum(), 2), dtype=bool)
    copied = fit_view_gaussian(twice, both, CLASSES[rows], PRIOR, 0.001)
    P = softmax(log_posterior(once, single[rows], seen[rows]), axis=1)
    Q = softmax(log_posterior(copied, twice, both), axis=1)
    independent = ViewGaussian(
        copied.means, copied.covariance * np.kron(np.eye(2), np.ones((3, 3))), 1e-9, PRIOR
    )
    R = softmax(log_posterior(independent, twice, both), axis=1)
    assert np.mean(np.abs(P - Q)) < 0.3 * np.mean(np.abs(P - R))


def test_scores_that_sum_to_one_are_not_lifted_to_the_floor():
    """Their covariance is singular but for what was added to it, which is more than the floor."""
    shares = softmax(Z, axis=2) * OBSERVED[:, :, None]
    gaussian = fit_view_gaussian(shares, OBSERVED, CLASSES, PRIOR, 0.1)
    one_view = gaussian.covariance[:N_CLASSES, :N_CLASSES]
    np.testing.assert_allclose(np.linalg.eigvalsh(one_view)[0], 2 * gaussian.floor)
    first = np.flatnonzero((OBSERVED == [True, False, False]).all(axis=1))
    expected = [posterior_by_scipy(gaussian, shares[i], OBSERVED[i]) for i in first]
    found = log_posterior(gaussian, shares[first], OBSERVED[first])
    np.testing.assert_allclose(found, expected, atol=1e-8)


# ------------------------------------------------------------------ estimates


def test_means_and_covariance_equal_loops_over_samples():
    means = np.zeros((N_CLASSES, N_VIEWS, N_CLASSES))
    for v in range(N_VIEWS):
        overall = Z[OBSERVED[:, v], v].mean(axis=0)
        for c in range(N_CLASSES):
            members = Z[OBSERVED[:, v] & np.equal(CLASSES, c), v]
            means[c, v] = np.vstack([members, overall]).mean(axis=0)
    np.testing.assert_allclose(GAUSSIAN.means, means.reshape(N_CLASSES, -1))
    covariance = np.zeros((N_VIEWS, N_CLASSES, N_VIEWS, N_CLASSES))
    for v in range(N_VIEWS):
        for u in range(N_VIEWS):
            rows = OBSERVED[:, v] & OBSERVED[:, u]
            r_v, r_u = (Z[rows, w] - means[CLASSES[rows], w] for w in (v, u))
            pairs = rows.sum() + (0 if u == v else PRIOR_PAIRS)
            covariance[v, :, u] = r_v.T @ r_u / pairs
    covariance = covariance.reshape(GAUSSIAN.covariance.shape)
    covariance += 0.1 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    np.testing.assert_allclose(GAUSSIAN.covariance, covariance, atol=1e-12)


def test_views_never_seen_together_are_uncorrelated():
    apart = OBSERVED.copy()
    apart[:, 1] &= ~apart[:, 0]
    hidden = Z * apart[:, :, None]
    covariance = fit_view_gaussian(hidden, apart, CLASSES, PRIOR, 0.1).covariance
    blocks = covariance.reshape(N_VIEWS, N_CLASSES, N_VIEWS, N_CLASSES)
    np.testing.assert_array_equal(blocks[0, :, 1], 0)
    assert np.abs(blocks[0, :, 2]).max() > 0.01


def test_unknown_classes_are_left_out():
    wild = np.full((30, N_VIEWS, N_CLASSES), 1e3)
    more = np.concatenate([Z, wild])
    seen = np.concatenate([OBSERVED, np.ones((30, N_VIEWS), dtype=bool)])
    classes = np.concatenate([CLASSES, np.full(30, -1)])
    found = fit_view_gaussian(more, seen, classes, PRIOR, 0.1)
    np.testing.assert_array_equal(found.means, GAUSSIAN.means)
    np.testing.assert_array_equal(found.covariance, GAUSSIAN.covariance)


def test_a_class_that_a_view_never_shows_has_the_mean_of_all():
    seen = OBSERVED & ~((CLASSES == 2)[:, None] & (np.arange(N_VIEWS) == 1))
    hidden = Z * seen[:, :, None]
    means = fit_view_gaussian(hidden, seen, CLASSES, PRIOR, 0.1).means
    np.testing.assert_allclose(means[2].reshape(N_VIEWS, -1)[1], hidden[seen[:, 1], 1].mean(axis=0))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
def test_estimates_do_not_depend_on_the_cut(seed, n_blocks):
    rng = np.random.default_rng(seed)
    parts = cuts(rng, N_SAMPLES, n_blocks)
    classes = np.where(rng.random(N_SAMPLES) < 0.2, -1, CLASSES)
    whole = fit_view_gaussian(Z, OBSERVED, classes, PRIOR, 0.1)
    columns = [[array[part] for part in parts] for array in (Z, classes)]
    blocks = [MendBlock(OBSERVED[part], ()) for part in parts]
    found = view_gaussian.fit_view_gaussian(CutRows(), blocks, *columns, PRIOR, 0.1)
    np.testing.assert_allclose(found.means, whole.means, atol=1e-12)
    np.testing.assert_allclose(found.covariance, whole.covariance, atol=1e-12)
    posterior = [log_posterior(found, Z[part], OBSERVED[part]) for part in parts]
    np.testing.assert_allclose(
        np.concatenate(posterior), log_posterior(whole, Z, OBSERVED), atol=1e-8
    )


@pytest.mark.parametrize(("kind", "tolerance"), [("float64", 1e-9), ("float32", 1e-4)])
def test_tensors_agree(kind, tolerance):
    torch = pytest.importorskip("torch")
    scores, seen, classes = (
        torch.tensor(Z.astype(kind)),
        torch.tensor(OBSERVED),
        torch.tensor(CLASSES),
    )
    found = fit_view_gaussian(scores, seen, classes, PRIOR, 0.1)
    np.testing.assert_allclose(found.covariance, GAUSSIAN.covariance, atol=tolerance)
    np.testing.assert_allclose(
        log_posterior(found, scores, seen), log_posterior(GAUSSIAN, Z, OBSERVED), atol=tolerance
    )


# ------------------------------------------------------------------ patterns


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([1, 2, 4, 31, 32, 70, 100]))
def test_patterns_partition_the_samples(seed, n_samples, n_views):
    rng = np.random.default_rng(seed)
    # Rows come more than once, also where there are many views.
    observed = (rng.random((n_samples, n_views)) < 0.5)[rng.integers(n_samples, size=n_samples)]
    patterns, groups = zip(*observed_patterns(observed), strict=True)
    np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.arange(n_samples))
    for views, rows in zip(patterns, groups, strict=True):
        np.testing.assert_array_equal(observed[rows], np.tile(views, (len(rows), 1)))
        assert len(rows) > 0
    assert len({tuple(views) for views in patterns}) == len(patterns)


def test_each_of_many_views_makes_another_pattern():
    """More views than an integer has bits."""
    observed = ~np.eye(100, dtype=bool)
    assert len(list(observed_patterns(observed))) == 100
