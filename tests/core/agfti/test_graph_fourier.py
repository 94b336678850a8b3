"""The norm along the waves of a graph: its basis, its proximal map, its limits, its symmetries."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewmend.backend.namespace import to_numpy
from viewmend.core.agfti.graph_fourier import (
    diffusion_coordinates,
    graph_norm,
    graph_spectrum,
    prox_graph_norm,
    stacked_graph,
    summed_graph,
)
from viewmend.core.agfti.tensor_nuclear import prox_tnn, tnn

N_VIEWS, N, M, R = 3, 12, 4, 5


def basis(n, r, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(n, r)))[0]


def tensor(seed, n=N):
    return np.random.default_rng(seed).normal(size=(N_VIEWS, n, M))


def rotation(size, seed):
    return basis(size, size, seed)


@pytest.fixture(scope="module")
def W():
    rng = np.random.default_rng(0)
    return np.where(rng.random((60, 9)) < 0.4, rng.random((60, 9)), 0.0) + 1e-3


# ------------------------------------------------------------------ the waves


def test_waves_are_orthonormal_eigenvectors_of_the_graph(W):
    spectrum = graph_spectrum(W, 9)
    d, columns = W.sum(axis=1), W.sum(axis=0)
    A = (W / columns) @ W.T / np.sqrt(np.outer(d, d))
    np.testing.assert_allclose(spectrum.U.T @ spectrum.U, np.eye(9), atol=1e-12)
    np.testing.assert_allclose(A @ spectrum.U, spectrum.U * spectrum.mu, atol=1e-12)
    np.testing.assert_allclose(spectrum.mu, np.linalg.eigvalsh(A)[::-1][:9], atol=1e-12)


def test_smoothest_wave_is_the_stationary_one(W):
    """It has eigenvalue 1, and one value on all samples once their degrees are taken out."""
    spectrum = graph_spectrum(W, 4)
    np.testing.assert_allclose(spectrum.mu[0], 1, atol=1e-12)
    flat = spectrum.U[:, 0] / np.sqrt(spectrum.degrees)
    np.testing.assert_allclose(flat, flat[0], rtol=1e-10)


def test_waves_follow_permuted_samples(W):
    order = np.random.default_rng(1).permutation(len(W))
    plain, permuted = graph_spectrum(W, 6), graph_spectrum(W[order], 6)
    projector = plain.U @ plain.U.T
    np.testing.assert_allclose(
        permuted.U @ permuted.U.T, projector[np.ix_(order, order)], atol=1e-9
    )


def test_rough_waves_are_orthonormal_too(W):
    """Those of frequencies near zero, by whose roots they are divided."""
    rng = np.random.default_rng(0)
    nearly_repeated = W * (1 + 3e-3 * rng.random(W.shape))
    spectrum = graph_spectrum(np.hstack([W, nearly_repeated]), 18)
    assert spectrum.mu[-1] < 1e-7
    gram = spectrum.U.T @ spectrum.U
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-12)


def test_columns_that_repeat_add_no_wave(W):
    assert graph_spectrum(np.hstack([W, W]), 18).U.shape == (60, 9)


def test_samples_of_one_row_share_a_place_and_components_lie_apart():
    block = np.random.default_rng(0).random((10, 3)) + 0.1
    W = np.zeros((20, 6))
    W[:10, :3], W[10:, 3:] = block, block
    W[1] = W[0]
    places = diffusion_coordinates(graph_spectrum(W, 6))
    np.testing.assert_allclose(places[0], places[1], atol=1e-10)
    across = np.linalg.norm(places[:10, None] - places[None, 10:], axis=2)
    within = np.linalg.norm(places[:10, None] - places[None, :10], axis=2)
    assert across.min() > within.max()


def test_distances_of_places_are_those_of_two_random_walks(W):
    """``|x_i - x_j|^2 = sum_k (p_ik - p_jk)^2 / d_k`` with ``p`` one walk over shared anchors."""
    places = diffusion_coordinates(graph_spectrum(W, 9))
    d = W.sum(axis=1)
    walk = (W / d[:, None]) @ (W / W.sum(axis=0)).T
    for i, j in [(0, 1), (5, 40), (17, 23)]:
        expected = np.sum((walk[i] - walk[j]) ** 2 / d)
        np.testing.assert_allclose(np.sum((places[i] - places[j]) ** 2), expected, rtol=1e-8)


def test_missing_rows_are_not_read():
    rng = np.random.default_rng(0)
    Z, observed = rng.random((2, 8, 3)), rng.random((8, 2)) < 0.6
    holes = np.where(observed.T[:, :, None], Z, np.nan)
    filled = np.where(observed.T[:, :, None], Z, 0.0)
    np.testing.assert_array_equal(stacked_graph(holes, observed), np.hstack(list(filled)))
    np.testing.assert_array_equal(summed_graph(holes, observed), filled[0] + filled[1])


# ------------------------------------------------------------------ the norm and its proximal map


@given(st.integers(0, 10**6), st.floats(0.01, 20.0))
@settings(max_examples=25, deadline=None)
def test_proximal_point_beats_its_neighbours(seed, tau):
    Y, U = tensor(seed), basis(N, R, seed)

    def cost(G):
        return tau * graph_norm(G, U) + np.sum((G - Y) ** 2) / 2

    G, norm = prox_graph_norm(U, Y, tau)
    np.testing.assert_allclose(norm, graph_norm(G, U), atol=1e-6)
    rng = np.random.default_rng(seed)
    for size in (1e-4, 1e-2, 1.0):
        assert cost(G) <= cost(G + size * rng.normal(size=Y.shape)) + 1e-9


def test_proximal_step_satisfies_moreau():
    """``Y - prox(Y)`` lies in ``tau`` times the dual ball: no part has a singular value above."""
    Y, U, tau = tensor(0), basis(N, R, 0), 2.5
    gap = Y - prox_graph_norm(U, Y, tau)[0]
    slices = np.moveaxis(U.T @ gap, 0, 2)
    rest = (gap - U @ (U.T @ gap)).reshape(N_VIEWS, -1)
    bound = tau / np.sqrt(N) + 1e-10
    assert np.linalg.norm(slices, 2, axis=(1, 2)).max() <= bound
    assert np.linalg.norm(rest, 2) <= bound


def test_nothing_is_shrunk_by_zero_and_all_by_much():
    Y, U = tensor(1), basis(N, R, 1)
    np.testing.assert_allclose(prox_graph_norm(U, Y, 0.0)[0], Y, atol=1e-12)
    G, norm = prox_graph_norm(U, Y, 1e6)
    assert norm == 0.0
    np.testing.assert_array_equal(G, 0)


def test_two_samples_make_the_norm_of_the_paper():
    """The discrete Fourier transform of two samples is real: sum and difference."""
    U, Y = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2), tensor(2, n=2)
    np.testing.assert_allclose(graph_norm(Y, U), tnn(Y), rtol=1e-12)
    found, expected = prox_graph_norm(U, Y, 0.7), prox_tnn(Y, 0.7)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-10)


def test_equal_rows_have_the_norm_of_the_paper_on_any_graph():
    """Constant along the samples: one frequency in both transforms, so ``rho`` means the same."""
    U = np.full((N, 1), N**-0.5)
    Y = np.repeat(tensor(3, n=1), N, axis=1)
    np.testing.assert_allclose(graph_norm(Y, U), tnn(Y), rtol=1e-6)
    np.testing.assert_allclose(prox_graph_norm(U, Y, 3.0)[0], prox_tnn(Y, 3.0)[0], atol=1e-10)


def test_a_full_basis_leaves_no_rest():
    Y, U = tensor(4), rotation(N, 4)
    slices = np.moveaxis(U.T @ Y, 0, 2)
    expected = sum(np.linalg.norm(s, "nuc") for s in slices) / np.sqrt(N)
    np.testing.assert_allclose(graph_norm(Y, U), expected, rtol=1e-9)


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_permuted_samples_views_and_rotated_anchors(seed):
    rng, Y, U = np.random.default_rng(seed), tensor(seed), basis(N, R, seed)
    rows, views, T = rng.permutation(N), rng.permutation(N_VIEWS), rotation(M, seed)
    G, norm = prox_graph_norm(U, Y, 1.5)
    moved, moved_norm = prox_graph_norm(U[rows], Y[views][:, rows] @ T, 1.5)
    np.testing.assert_allclose(moved, G[views][:, rows] @ T, atol=1e-9)
    np.testing.assert_allclose(moved_norm, norm, atol=1e-9)


def test_the_rest_is_seen_by_no_basis_of_it():
    """Samples rotated within the complement: the norm stays."""
    full = rotation(N, 5)
    U, other = full[:, :R], full[:, R:]
    turn = U @ U.T + other @ rotation(N - R, 6) @ other.T
    Y = tensor(7)
    np.testing.assert_allclose(graph_norm(turn @ Y, U), graph_norm(Y, U), rtol=1e-10)


def test_single_precision_and_the_array_standard():
    Y, U = tensor(8), basis(N, R, 8)
    G, norm = prox_graph_norm(U, Y, 2.0)
    single = prox_graph_norm(U.astype(np.float32), Y.astype(np.float32), 2.0)[0]
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, G, atol=1e-5)
    strict = prox_graph_norm(array_api_strict.asarray(U), array_api_strict.asarray(Y), 2.0)
    np.testing.assert_allclose(to_numpy(strict[0]), G, atol=1e-12)
    assert float(strict[1]) == pytest.approx(norm)


@pytest.mark.parametrize("n_waves", [1, 7, 20])
def test_single_precision_step_agrees_whatever_the_waves_leave(n_waves):
    """Also where they leave nothing, and the Gram matrix of the rest is rounding alone."""
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(3, 20, 6))
    waves = np.linalg.qr(rng.normal(size=(20, n_waves)))[0]
    G, norm = prox_graph_norm(waves, Y, 5.0)
    single, norm_single = prox_graph_norm(waves.astype(np.float32), Y.astype(np.float32), 5.0)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, G, atol=2e-5)
    np.testing.assert_allclose(norm_single, norm, rtol=1e-4)
    np.testing.assert_allclose(norm, graph_norm(G, waves), rtol=1e-6)


def test_waves_of_a_graph_in_pieces_are_not_chosen_by_rounding():
    """Each piece has a constant wave of frequency 1: no mixture of them, however numbers round."""
    rng = np.random.default_rng(5)
    pieces = np.arange(60) % 3
    N = rng.random((60, 9)) * (pieces[:, None] == np.arange(9) % 3)
    spectrum = graph_spectrum(N, 9)
    np.testing.assert_allclose(spectrum.mu[:3], 1)
    assert spectrum.mu[3] < 0.99
    on_piece = np.stack([(spectrum.U[pieces == k, :3] ** 2).sum(axis=0) for k in range(3)])
    np.testing.assert_allclose(np.sort(on_piece, axis=0), np.sort(np.eye(3), axis=0), atol=1e-12)
    nudged = graph_spectrum(N * (1 + 1e-15 * rng.normal(size=N.shape)), 9)
    np.testing.assert_allclose(np.abs(nudged.U), np.abs(spectrum.U), atol=1e-10)
