"""Nyström features: their inner products are the kernel, on axes of their own covariance."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from tests.core.cut_rows import CutRows, cuts

from viewmend.core.common.rows import RowsInMemory
from viewmend.core.mend import kernel_features as module
from viewmend.core.mend.loo_ridge import RIDGES

RNG = np.random.default_rng(0)
VIEWS = {
    "first": RNG.normal(size=(70, 4)).astype(np.float32),
    "second": RNG.gamma(1.0, size=(70, 3)).astype(np.float32),
}
EVERY_ROW = np.arange(70)
WIDTH = 0.3


@dataclass
class Fitted:
    """Features of all rows, and the map to them."""

    Phi: np.ndarray
    leverages: np.ndarray
    map: module.KernelMap

    @property
    def spectrum(self):
        return self.map.spectrum


def kernel_features(views, landmarks, width):
    points = {name: X[landmarks] for name, X in views.items()}
    kernel, features = of_one_view(RowsInMemory(), views, points, width)
    return Fitted(features.Phi, features.leverages, kernel)


def of_one_view(rows, *given):
    (fitted,) = module.kernel_features(rows, [module.kernel_products(rows, *given)])
    return fitted


def kernel_matrix(representations, scales):
    """Mean of Gaussian kernels, in double precision."""
    squared = {
        name: cdist(X.astype(float), X.astype(float)) ** 2 for name, X in representations.items()
    }
    return np.mean([np.exp(-E / scales[name]) for name, E in squared.items()], axis=0)


def centred(K):
    H = np.eye(len(K)) - 1 / len(K)
    return H @ K @ H


def inner_products(features):
    Phi = features.Phi.astype(float)
    return Phi @ Phi.T


@pytest.mark.parametrize("width", [0.3, 3.0])
def test_every_row_a_landmark_gives_the_centred_kernel(width):
    features = kernel_features(VIEWS, EVERY_ROW, width)
    scales = {name: (cdist(X, X) ** 2).mean() / width for name, X in VIEWS.items()}
    expected = centred(kernel_matrix(VIEWS, scales))
    # Eigenvalues below 1e-6 of the largest, which is below 70, are cut.
    np.testing.assert_allclose(inner_products(features), expected, atol=7e-5)


def test_rows_far_from_the_origin_keep_the_digits_in_which_they_differ():
    """A move of all rows changes no kernel, but the products of single precision."""
    moved = {name: X + 128 for name, X in VIEWS.items()}
    scales = {name: (cdist(X, X) ** 2).mean() / WIDTH for name, X in VIEWS.items()}
    rounded = {name: X - 128 for name, X in moved.items()}
    found = module.mean_kernel(moved, moved, scales)
    np.testing.assert_allclose(found, kernel_matrix(rounded, scales), atol=1e-5)


def test_duplicates_among_the_landmarks_do_no_harm():
    doubled = {name: np.repeat(X[:30], 2, axis=0) for name, X in VIEWS.items()}
    features = kernel_features(doubled, np.arange(60), WIDTH)
    expected = centred(kernel_matrix(doubled, features.map.scales))
    np.testing.assert_allclose(inner_products(features), expected, atol=1e-5)


@pytest.mark.parametrize("landmarks", [EVERY_ROW, np.arange(0, 70, 5)], ids=["all", "few"])
def test_columns_are_orthogonal_and_sum_to_zero(landmarks):
    features = kernel_features(VIEWS, landmarks, WIDTH)
    Phi = features.Phi.astype(float)
    np.testing.assert_allclose(Phi.T @ Phi, np.diag(features.spectrum), atol=1e-4)
    np.testing.assert_allclose(Phi.sum(axis=0), 0, atol=1e-3)
    assert np.all(np.diff(features.spectrum) >= 0)
    np.testing.assert_allclose(features.spectrum.sum(), np.sum(Phi**2), rtol=1e-5)


@pytest.mark.parametrize("landmarks", [EVERY_ROW, np.arange(0, 70, 5)], ids=["all", "few"])
def test_the_map_takes_training_rows_to_their_features(landmarks):
    features = kernel_features(VIEWS, landmarks, WIDTH)
    np.testing.assert_allclose(features.map(VIEWS), features.Phi, atol=2e-4)
    some = {name: X[11:15] for name, X in VIEWS.items()}
    np.testing.assert_allclose(features.map(some), features.Phi[11:15], atol=2e-4)


def test_more_landmarks_come_closer_to_the_kernel():
    """What is left over is positive semidefinite, so its trace is its size."""
    left = []
    for count in (4, 12, 35, 70):
        features = kernel_features(VIEWS, EVERY_ROW[:count], WIDTH)
        full = centred(kernel_matrix(VIEWS, features.map.scales))
        rest = full - inner_products(features)
        assert np.linalg.eigvalsh(rest)[0] > -1e-5
        left.append(np.trace(rest) / np.trace(full))
    assert np.all(np.diff(left) < 0)
    assert left[0] > 0.1
    assert left[-1] < 1e-4


def test_landmarks_are_reproduced_exactly():
    """Between a landmark and any row, Nyström's kernel is the kernel itself."""
    landmarks = np.arange(0, 70, 5)
    features = kernel_features(VIEWS, landmarks, WIDTH)
    full = centred(kernel_matrix(VIEWS, features.map.scales))
    rest = full - inner_products(features)
    # Differences to one landmark are free of the centre, which is not a combination of landmarks.
    gaps = rest[landmarks] - rest[landmarks[0]]
    np.testing.assert_allclose(gaps - gaps.mean(axis=1, keepdims=True), 0, atol=1e-4)


def test_the_scale_of_a_representation_does_not_matter():
    scaled = {"first": VIEWS["first"] * 50, "second": VIEWS["second"] / 8}
    one, other = (kernel_features(V, EVERY_ROW, WIDTH) for V in (VIEWS, scaled))
    np.testing.assert_allclose(inner_products(one), inner_products(other), atol=1e-5)


def test_blocks_do_not_show(monkeypatch):
    whole = kernel_features(VIEWS, EVERY_ROW[:20], WIDTH).spectrum
    monkeypatch.setattr(module, "GRAM_ROWS", 9)
    monkeypatch.setattr(module, "PIECE", 70)
    np.testing.assert_allclose(
        kernel_features(VIEWS, EVERY_ROW[:20], WIDTH).spectrum, whole, rtol=1e-6
    )


def test_identical_rows_have_no_features_to_tell_them_apart():
    same = {"only": np.ones((10, 3), dtype=np.float32)}
    features = kernel_features(same, np.array([0]), WIDTH)
    np.testing.assert_allclose(features.Phi, 0, atol=1e-6)
    np.testing.assert_allclose(features.spectrum, 0, atol=1e-10)
    assert np.isfinite(features.map({"only": np.zeros((2, 3), dtype=np.float32)})).all()


def test_leverages_are_those_of_the_hat_matrix():
    features = kernel_features(VIEWS, EVERY_ROW[:20], WIDTH)
    Phi = features.Phi.astype(float)
    for ridge, found in zip(RIDGES, features.leverages.T, strict=True):
        hat = Phi @ np.linalg.solve(Phi.T @ Phi + 70 * ridge * np.eye(Phi.shape[1]), Phi.T)
        np.testing.assert_allclose(found, np.diag(hat) + 1 / 70, atol=1e-4)


def test_features_that_no_ridge_lets_count_are_left_out(monkeypatch):
    """Predictions are a product with the hat matrix, which changes by ``q / (1 + q)`` at most."""

    def hat(features):
        Phi, ridge = features.Phi.astype(float), 70 * min(RIDGES)
        return Phi @ np.linalg.solve(Phi.T @ Phi + ridge * np.eye(Phi.shape[1]), Phi.T)

    monkeypatch.setattr(module, "LEAST_SHRINKAGE", 0.0)
    every = kernel_features(VIEWS, EVERY_ROW, 0.01)
    monkeypatch.setattr(module, "LEAST_SHRINKAGE", 2.0)
    some = kernel_features(VIEWS, EVERY_ROW, 0.01)
    assert 3 < some.Phi.shape[1] < every.Phi.shape[1] - 2
    change = np.linalg.norm(hat(every) - hat(some), 2)
    assert 0.1 < change < 2 / 3


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_a_cut_of_the_rows_does_not_show(seed, n_blocks):
    parts = cuts(np.random.default_rng(seed), 70, n_blocks)
    blocks = [{name: X[part] for name, X in VIEWS.items()} for part in parts]
    landmarks = {name: X[:20] for name, X in VIEWS.items()}
    kernel, column = of_one_view(CutRows(), blocks, landmarks, WIDTH)
    whole = kernel_features(VIEWS, EVERY_ROW[:20], WIDTH)
    np.testing.assert_allclose(kernel.spectrum, whole.spectrum, rtol=1e-4)
    Phi = np.concatenate([block.Phi for block in column])
    np.testing.assert_allclose(Phi @ Phi.T, inner_products(whole), atol=1e-4)
    leverages = np.concatenate([block.leverages for block in column])
    np.testing.assert_allclose(leverages, whole.leverages, atol=1e-4)


def test_rows_may_be_represented_piece_by_piece(monkeypatch):
    """Raw rows and the way to represent them lead where the representations do."""
    monkeypatch.setattr(module, "GRAM_ROWS", 16)
    raw = np.hstack(list(VIEWS.values()))
    landmarks = {name: X[:20] for name, X in VIEWS.items()}

    def represent(rows):
        return {"first": rows[:, :4], "second": rows[:, 4:]}

    _, found = of_one_view(RowsInMemory(), raw, landmarks, WIDTH, represent)
    whole = kernel_features(VIEWS, EVERY_ROW[:20], WIDTH)
    np.testing.assert_allclose(found.Phi, whole.Phi, atol=1e-5)


def test_tensors_agree():
    torch = pytest.importorskip("torch")
    tensors = {name: torch.tensor(X) for name, X in VIEWS.items()}
    landmarks = {name: X[:20] for name, X in tensors.items()}
    kernel, found = of_one_view(RowsInMemory(), tensors, landmarks, WIDTH)
    whole = kernel_features(VIEWS, EVERY_ROW[:20], WIDTH)
    np.testing.assert_allclose(kernel.spectrum, whole.spectrum, rtol=1e-4)
    np.testing.assert_allclose(found.Phi @ found.Phi.T, inner_products(whole), atol=1e-4)
    np.testing.assert_allclose(found.leverages, whole.leverages, atol=1e-4)
