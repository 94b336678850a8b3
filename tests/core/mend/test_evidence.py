"""Evidence of the views: the formula, and what it makes of good, useless and missing views."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import multivariate_normal
from tests.core.cut_rows import CutRows, cuts

from viewmend.core.common.rows import RowsInMemory
from viewmend.core.mend import evidence as module
from viewmend.core.mend import view_gaussian
from viewmend.core.mend.blocks import MendBlock, ViewRows
from viewmend.core.mend.evidence import combine, evidence_shares
from viewmend.core.mend.kernel_features import kernel_features, kernel_products

N_SAMPLES, N_CLASSES = 150, 3
PRIOR = np.array([0.5, 0.3, 0.2])
RNG = np.random.default_rng(0)
CLASSES = RNG.choice(N_CLASSES, N_SAMPLES, p=PRIOR)
ONE_HOT = np.eye(N_CLASSES)[CLASSES]


@dataclass
class Geometry:
    """Kernel features of every view; neighbours and representations play no part here."""

    block: MendBlock
    spectra: list


def geometry_of(views, observed):
    built, spectra = [], []
    for X_v, seen in zip(views, observed.T, strict=True):
        rows = np.flatnonzero(seen)
        points = {"as given": X_v[rows].astype(np.float32)}
        landmarks = {"as given": points["as given"][::2]}
        products = kernel_products(RowsInMemory(), points, landmarks, 0.3)
        ((kernel, features),) = kernel_features(RowsInMemory(), [products])
        built.append(ViewRows(rows, features.Phi, features.leverages))
        spectra.append(kernel.spectrum)
    return Geometry(MendBlock(observed, tuple(built)), spectra)


def gather_evidence(geometry, T, classes, prior):
    return module.gather_evidence(
        RowsInMemory(), geometry.block, geometry.spectra, T, classes, prior
    )


def fit_view_gaussian(Z, observed, classes, prior, shrinkage):
    block = MendBlock(observed, ())
    return view_gaussian.fit_view_gaussian(RowsInMemory(), block, Z, classes, prior, shrinkage)


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
    Z = EVIDENCE.Z
    assert not Z[~OBSERVED].any()
    gaussian = fit_view_gaussian(Z, OBSERVED, CLASSES, PRIOR, 0.1)
    np.testing.assert_array_equal(gaussian.means, EVIDENCE.gaussian.means)
    expected = evidence_shares(Z, OBSERVED, EVIDENCE.view_weights, gaussian)
    np.testing.assert_array_equal(EVIDENCE.P, expected)
    np.testing.assert_allclose(EVIDENCE.P.sum(axis=1), 1, rtol=1e-6)


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
    np.testing.assert_allclose(turned.P, EVIDENCE.P, atol=1e-5)
    np.testing.assert_allclose(turned.view_weights, EVIDENCE.view_weights[order], rtol=1e-5)


# ------------------------------------------------------------------ engines


def cut(block, part):
    """Some rows of a block."""
    views = []
    for view in block.views:
        here = (view.rows >= part.start) & (view.rows < part.stop)
        views.append(ViewRows(view.rows[here] - part.start, view.Phi[here], view.leverages[here]))
    return replace(block, observed=block.observed[part], views=tuple(views))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_a_cut_of_the_rows_does_not_show(seed, n_blocks):
    rng = np.random.default_rng(seed)
    parts = cuts(rng, N_SAMPLES, n_blocks)
    classes = np.where(rng.random(N_SAMPLES) < rng.choice([0, 0.2]), -1, CLASSES)
    columns = [[array[part] for part in parts] for array in (ONE_HOT, classes)]
    blocks = [cut(GEOMETRY.block, part) for part in parts]
    found = module.gather_evidence(CutRows(), blocks, GEOMETRY.spectra, *columns, PRIOR)
    whole = gather_evidence(GEOMETRY, ONE_HOT, classes, PRIOR)
    np.testing.assert_allclose(np.concatenate(found.P), whole.P, atol=1e-4)
    np.testing.assert_allclose(found.view_weights, whole.view_weights, rtol=1e-4)


def test_tensors_agree():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor
    block = replace(
        GEOMETRY.block,
        observed=tensor(OBSERVED),
        views=tuple(
            ViewRows(tensor(view.rows), tensor(view.Phi), tensor(view.leverages))
            for view in GEOMETRY.block.views
        ),
    )
    found = gather_evidence(
        Geometry(block, GEOMETRY.spectra), tensor(ONE_HOT), tensor(CLASSES), PRIOR
    )
    assert found.P.dtype == torch.float32
    np.testing.assert_allclose(found.P, EVIDENCE.P, atol=1e-4)
    np.testing.assert_allclose(found.view_weights, EVIDENCE.view_weights, rtol=1e-4)


def test_evidence_decides_where_no_label_reaches():
    P = np.array([[2.0, 6.0, 0.0], [0.0, 0.0, 0.0]])
    shares = np.array([[0.5, 0.25, 0.25], [0.04, 0.16, 0.8]])
    found = combine(P, shares, PRIOR, 0.5)
    first = np.array([2 * np.sqrt(0.5), 6 * np.sqrt(0.25), 0])
    second = PRIOR * np.sqrt(shares[1])
    np.testing.assert_allclose(found, [first / first.sum(), second / second.sum()])


@pytest.mark.parametrize("power", [1.0, 3.0, 200.0, 1e4])
def test_evidence_of_any_power_has_its_say(power):
    """Ratios count, also where the shares themselves would be too small for single precision."""
    P = np.array([[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]], dtype=np.float32)
    shares = np.array([[0.3, 0.5, 0.2], [0.4, 0.4, 0.2]], dtype=np.float32)
    found = combine(P, shares, PRIOR, power)
    logs = np.log(P.astype(float)) + power * np.log(shares.astype(float))
    np.testing.assert_allclose(found, softmax(logs, axis=1), atol=1e-6)
    # Where there is none, the scores of the graph are left.
    np.testing.assert_array_equal(combine(P, 0 * shares, PRIOR, power), P)
