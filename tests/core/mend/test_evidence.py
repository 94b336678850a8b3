"""Evidence of the views: the formula, and what it makes of good, useless and missing views."""

import numpy as np
from scipy.special import softmax
from scipy.stats import multivariate_normal

from viewmend.core.mend.evidence import evidence_shares, gather_evidence
from viewmend.core.mend.geometry import MendGeometry, MendView
from viewmend.core.mend.kernel_features import kernel_features
from viewmend.core.mend.view_gaussian import fit_view_gaussian

N_SAMPLES, N_CLASSES = 150, 3
PRIOR = np.array([0.5, 0.3, 0.2])
RNG = np.random.default_rng(0)
CLASSES = RNG.choice(N_CLASSES, N_SAMPLES, p=PRIOR)
ONE_HOT = np.eye(N_CLASSES)[CLASSES]


def geometry_of(views, observed):
    """Kernel features of every view; neighbours and representations play no part here."""
    built = []
    for X_v, seen in zip(views, observed.T, strict=True):
        rows = np.flatnonzero(seen)
        X = X_v[rows].astype(np.float32)
        features = kernel_features({"as given": X}, np.arange(0, len(X), 2), 0.3)
        built.append(MendView(X, rows, {}, {}, features))
    return MendGeometry(tuple(built), observed)


def leaning(noise, n_features=6):
    """A view in which classes have centres of their own, under noise."""
    centres = RNG.normal(size=(N_CLASSES, n_features))
    return centres[CLASSES] + noise * RNG.normal(size=(N_SAMPLES, n_features))


OBSERVED = RNG.random((N_SAMPLES, 3)) < 0.7
OBSERVED[np.arange(N_SAMPLES), RNG.integers(3, size=N_SAMPLES)] = True
# A clear view, a blurred one, and one that knows nothing of the classes.
VIEWS = [leaning(0.3), leaning(1.0), RNG.normal(size=(N_SAMPLES, 6))]
GEOMETRY = geometry_of(VIEWS, OBSERVED)
EVIDENCE = gather_evidence(GEOMETRY, ONE_HOT, CLASSES, PRIOR)


def random_scores(n_views, seed=1):
    rng = np.random.default_rng(seed)
    observed = rng.random((N_SAMPLES, n_views)) < 0.7
    observed[np.arange(N_SAMPLES), rng.integers(n_views, size=N_SAMPLES)] = True
    Z = ONE_HOT[:, None] + 0.5 * rng.normal(size=(N_SAMPLES, n_views, N_CLASSES))
    return Z * observed[:, :, None], observed


def gaussian_shares(gaussian, z, seen):
    """Class shares by Bayes' rule, by SciPy."""
    columns = np.repeat(seen, N_CLASSES)
    covariance = gaussian.covariance[np.ix_(columns, columns)]
    density = [
        multivariate_normal.pdf(z.ravel()[columns], m[columns], covariance) for m in gaussian.means
    ]
    joint = gaussian.prior * density
    return joint / joint.sum()


def test_shares_are_a_geometric_mean_of_two_readings():
    Z, observed = random_scores(3)
    weights = np.array([2.0, 0.5, 1.0])
    gaussian = fit_view_gaussian(Z, observed, CLASSES, PRIOR, 0.1)
    found = evidence_shares(Z, observed, weights, gaussian)
    for i in range(N_SAMPLES):
        seen = np.flatnonzero(observed[i])
        mean = np.average(Z[i, seen], axis=0, weights=weights[seen])
        by_mean = softmax(6 * mean)
        by_gauss = gaussian_shares(gaussian, Z[i], observed[i]) ** 0.5
        product = np.sqrt(by_mean * by_gauss)
        np.testing.assert_allclose(found[i], product / product.sum(), atol=1e-8)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_the_only_view_needs_no_weight():
    Z, observed = random_scores(1)
    gaussian = fit_view_gaussian(Z, observed, CLASSES, PRIOR, 0.1)
    found = [evidence_shares(Z, observed, np.array([w]), gaussian) for w in (1e-3, 1.0, 20.0)]
    expected = [
        softmax(6 * z[0]) * np.sqrt(gaussian_shares(gaussian, z, seen))
        for z, seen in zip(Z, observed, strict=True)
    ]
    expected = np.sqrt(expected) / np.sqrt(expected).sum(axis=1, keepdims=True)
    for shares in found:
        np.testing.assert_allclose(shares, expected, atol=1e-8)


def test_evidence_is_made_of_left_out_scores():
    """The shares follow from the fits and the Gaussian, with scores of observed rows only."""
    Z = np.zeros((N_SAMPLES, 3, N_CLASSES))
    for v, (view, fit) in enumerate(zip(GEOMETRY.views, EVIDENCE.fits, strict=True)):
        Z[view.rows, v] = fit.scores
    gaussian = fit_view_gaussian(Z, OBSERVED, CLASSES, PRIOR, 0.1)
    np.testing.assert_array_equal(gaussian.means, EVIDENCE.gaussian.means)
    expected = evidence_shares(Z, OBSERVED, EVIDENCE.view_weights, gaussian)
    np.testing.assert_array_equal(EVIDENCE.P, expected)
    np.testing.assert_allclose(EVIDENCE.P.sum(axis=1), 1)


def test_views_are_trusted_by_what_they_explain():
    clear, blurred, useless = EVIDENCE.view_weights
    assert clear > 2 * blurred > 20 * useless
    r2 = np.array([fit.r2 for fit in EVIDENCE.fits])
    np.testing.assert_allclose(EVIDENCE.view_weights, r2 / (1.05 - r2))


def test_a_useless_view_neither_helps_nor_harms():
    rows = np.flatnonzero(OBSERVED[:, :2].any(axis=1))
    seen, classes = OBSERVED[rows], CLASSES[rows]
    views = [view[rows] for view in VIEWS]
    P, Q = (
        gather_evidence(
            geometry_of(views[:count], seen[:, :count]), ONE_HOT[rows], classes, PRIOR
        ).P
        for count in (3, 2)
    )
    right = [np.mean(shares.argmax(axis=1) == classes) for shares in (P, Q)]
    assert right[1] > 0.9
    assert abs(right[0] - right[1]) < 0.03
    assert np.mean(np.abs(P - Q)) < 0.05


def test_wrong_targets_are_overruled_by_the_others():
    """Every sample is predicted without its own target, so a wrong one does not confirm itself."""
    clear = geometry_of(VIEWS[:1], np.ones((N_SAMPLES, 1), dtype=bool))
    wrong = np.random.default_rng(2).permutation(N_SAMPLES)[:15]
    told = CLASSES.copy()
    told[wrong] = (told[wrong] + 1) % N_CLASSES
    evidence = gather_evidence(clear, np.eye(N_CLASSES)[told], told, PRIOR)
    assert np.mean(evidence.P.argmax(axis=1)[wrong] == CLASSES[wrong]) > 0.85


def test_views_may_come_in_any_order():
    order = [1, 2, 0]
    turned = gather_evidence(
        geometry_of([VIEWS[v] for v in order], OBSERVED[:, order]), ONE_HOT, CLASSES, PRIOR
    )
    np.testing.assert_allclose(turned.P, EVIDENCE.P, atol=1e-8)
    np.testing.assert_allclose(turned.view_weights, EVIDENCE.view_weights[order])
