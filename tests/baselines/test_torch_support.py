"""Sparse products and sums over pairs with their gradients, dropout, and steps of an optimiser."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

torch = pytest.importorskip("torch")

from viewmend.backend.threads import limited_threads  # noqa: E402
from viewmend.baselines import torch_support  # noqa: E402
from viewmend.baselines.gegcn_steps import CompiledPairs, Pairs  # noqa: E402
from viewmend.baselines.torch_support import SparseConstant, TorchRun  # noqa: E402

RNG = np.random.default_rng(0)
RUN = TorchRun.start("cpu", np.random.default_rng(0))
N = 40


def pattern(n, seed, share=0.2):
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < share, k=1)
    return csr_array((upper | upper.T).astype(float))


PAIRS = Pairs(RUN, pattern(N, 0))
both_ways = pytest.mark.parametrize(
    "pairs", [PAIRS, CompiledPairs(RUN, pattern(N, 0))], ids=["plain", "compiled"]
)
FIRST, SECOND = PAIRS.first.numpy(), PAIRS.second.numpy()


def normal(*shape):
    return torch.tensor(RNG.normal(size=shape), dtype=torch.float32, requires_grad=True)


def dense(values, mirrored=None):
    """The matrix (n, n) of one value per pair, differentiable by plain indexing."""
    A = torch.zeros(N, N)
    A = A.index_put((PAIRS.first.long(), PAIRS.second.long()), values)
    return A.index_put(
        (PAIRS.second.long(), PAIRS.first.long()), values if mirrored is None else mirrored
    )


def assert_same(found, expected, parameters):
    """Equal values, and equal gradients of a random weighing of them."""
    np.testing.assert_allclose(found.detach(), expected.detach(), atol=1e-4)
    weights = torch.tensor(RNG.normal(size=found.shape), dtype=torch.float32)
    fast, naive = (
        torch.autograd.grad((weights * value).sum(), parameters) for value in (found, expected)
    )
    for one, other in zip(fast, naive, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4 * (1 + other.abs().max()))


def test_pairs_are_in_order_and_make_the_matrix():
    assert ((np.diff(FIRST) > 0) | ((np.diff(FIRST) == 0) & (np.diff(SECOND) > 0))).all()
    assert (FIRST < SECOND).all()
    values = normal(PAIRS.n_pairs)
    A = PAIRS.array(values).toarray()
    np.testing.assert_allclose(A, dense(values).detach(), atol=1e-7)
    np.testing.assert_array_equal(A != 0, pattern(N, 0).toarray() != 0)
    np.testing.assert_array_equal(PAIRS.values_of(csr_array(A)), values.detach())
    np.testing.assert_array_equal(PAIRS.degrees, (A != 0).sum(axis=1))


@both_ways
def test_row_sums_of_both_sides(pairs):
    graphs, sides = normal(PAIRS.n_pairs, 3), normal(2, PAIRS.n_pairs)
    naive = torch.stack([dense(g * sides[0], g * sides[1]).sum(1) for g in graphs.T], 1)
    assert_same(pairs.row_sums(graphs, sides), naive, [graphs, sides])


@both_ways
def test_neighbour_sums(pairs):
    H, ones = normal(N, 5), torch.ones(PAIRS.n_pairs)
    assert_same(pairs.neighbour_sums(H), dense(ones) @ H, [H])


@both_ways
def test_relu_of_sums(pairs):
    H, weights = normal(N, 6), normal(6)
    naive = (H[FIRST] + H[SECOND]).relu() @ weights
    assert_same(pairs.relu_of_sums(H, weights), naive, [H, weights])


@both_ways
def test_relu_of_sums_serves_two_losses(pairs):
    """What it keeps for gradients survives the first of them."""
    H, weights = normal(N, 6), normal(6)
    found = pairs.relu_of_sums(H, weights)
    first = torch.autograd.grad(found.sum(), H, retain_graph=True)[0]
    again = torch.autograd.grad(found.sum(), H)[0]
    np.testing.assert_array_equal(first, again)


@both_ways
def test_inner_products(pairs):
    left, right = normal(N, 4).detach(), normal(N, 4).detach()
    both = left @ right.T + right @ left.T
    np.testing.assert_allclose(pairs.inner_products(left, right), both[FIRST, SECOND], atol=1e-5)


@both_ways
def test_normalised_graph_has_unit_rows_once_the_roots_are_put_back(pairs):
    """With the diagonal ``root_i^2``, ``(A + D) (1 / root) = 1 / root``."""
    A = torch.tensor(RNG.uniform(-0.2, 0.6, PAIRS.n_pairs), dtype=torch.float32)
    graph, root = pairs.normalised(A, torch.tensor([0.1]), 0.1)
    whole = dense(graph) + torch.diag(root**2)
    np.testing.assert_allclose(whole @ (1 / root), 1 / root, rtol=1e-5)


@both_ways
def test_normalised_graph_and_its_gradients_with_roots_held(pairs):
    # Weights below, on and above the ramp.
    A = torch.tensor(RNG.uniform(-0.2, 0.6, PAIRS.n_pairs), dtype=torch.float32)
    A, low = A.requires_grad_(), torch.tensor([0.1], requires_grad=True)
    graph, root = pairs.normalised(A, low, 0.1)
    assert not root.requires_grad
    ramp = (low + 0.1) * (A - low) / 0.1
    shrunk = torch.where((A - low) < 0, 0.0, torch.where((A - low) < 0.1, ramp, A))
    assert_same(graph, shrunk * root[FIRST] * root[SECOND], [A, low])


@both_ways
@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_convolutions(pairs, rate):
    values, H, C = normal(PAIRS.n_pairs), normal(N, 7), normal(7, 3)
    loops, kept = normal(N).detach(), RUN.kept(N, 7, rate)
    for rows in (torch.tensor([3, 0, 17, 39]), torch.arange(N)):
        A = dense(values) + torch.diag(loops)
        naive = A @ ((kept * (A @ H).relu()) @ C)
        found = pairs.convolutions((values, loops), H, kept, C, rows)
        assert_same(found, naive[rows], [values, H, C])


@both_ways
def test_convolutions_give_the_gradient_that_is_asked_for_alone(pairs):
    values, H, C = normal(PAIRS.n_pairs), normal(N, 7), normal(7, 3)
    loops, kept, rows = normal(N).detach(), RUN.kept(N, 7, 0.3), torch.arange(N)
    whole = pairs.convolutions((values, loops), H, kept, C, rows)
    part = pairs.convolutions((values.detach(), loops), H, kept, C.detach(), rows)
    by_whole, by_part = (torch.autograd.grad(value.sum(), H)[0] for value in (whole, part))
    np.testing.assert_array_equal(by_whole, by_part)


@pytest.mark.parametrize("gaps_of", [torch_support._plain_gaps, torch_support._compiled_gaps])
def test_reconstruction_and_its_gradients(gaps_of, monkeypatch):
    monkeypatch.setattr(torch_support, "_compiled_gaps", gaps_of)
    # Fewer rows than the parts of the sums, and more.
    for n_rows in (5, 70):
        Z, U, u, X = normal(n_rows, 4), normal(4, 9), normal(9), normal(n_rows, 9).detach()
        naive = (X - (Z @ U + u).relu()).square().sum() / 2
        assert_same(torch_support.reconstruction(Z, U, u, X), naive, [Z, U, u])


def test_compiled_sums_are_the_same_on_any_number_of_threads():
    pairs, H, weights = CompiledPairs(RUN, pattern(N, 0)), normal(N, 6), normal(6)
    values, loops = normal(PAIRS.n_pairs), normal(N)
    found = []
    for n_jobs in (1, -1):
        with limited_threads(n_jobs):
            found.append((pairs.product(values, loops, H), pairs.relu_sums(H, weights)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 99), share=st.floats(0.05, 1.0), n=st.integers(3, 12))
def test_compiled_sums_equal_plain_ones_for_any_pattern(seed, share, n):
    """Also with samples that have no pair."""
    plain, compiled = (kind(RUN, pattern(n, seed, share)) for kind in (Pairs, CompiledPairs))
    rng = np.random.default_rng(seed)
    H, values, loops = (
        torch.tensor(rng.normal(size=shape), dtype=torch.float32)
        for shape in ((n, 5), plain.n_pairs, n)
    )
    ones = torch.ones(2, plain.n_pairs)
    rows = plain.array(values).toarray().sum(axis=1)
    for pairs in (plain, compiled):
        np.testing.assert_allclose(pairs.row_sums(values[:, None], ones)[:, 0], rows, atol=1e-5)
    for name, arguments in {
        "product": (values, loops, H),
        "relu_sums": (H, H[0]),
        "relu_slopes": (values, H),
        "inner_products": (H, H.flip(0)),
    }.items():
        fast, slow = (getattr(pairs, name)(*arguments) for pairs in (compiled, plain))
        np.testing.assert_allclose(fast, slow, atol=1e-5)


def test_constant_product_and_its_gradient():
    matrix = csr_array(RNG.normal(size=(N, 30)) * (RNG.random((N, 30)) < 0.3))
    H = normal(30, 4)
    full = torch.tensor(matrix.toarray(), dtype=torch.float32)
    assert_same(SparseConstant(RUN, matrix) @ H, full @ H, [H])


@pytest.mark.parametrize("n_columns", [1, 6, 64])
def test_kept_units_have_mean_one_and_the_share_asked_for(n_columns):
    kept = TorchRun.start("cpu", np.random.default_rng(3)).kept(5000, n_columns, 0.3).numpy()
    assert kept.shape == (5000, n_columns)
    np.testing.assert_allclose(np.unique(kept), [0, 1 / 0.7], rtol=1e-6)
    # Five standard deviations of a binomial share.
    np.testing.assert_allclose(np.mean(kept == 0), 0.3, atol=5 * (0.21 / kept.size) ** 0.5)
    columns = np.mean(kept == 0, axis=0)
    np.testing.assert_allclose(columns, 0.3, atol=5 * (0.21 / 5000) ** 0.5)


def test_columns_are_kept_independently():
    """Four factors share a draw, of which each has its own bits."""
    kept = TorchRun.start("cpu", np.random.default_rng(4)).kept(20_000, 8, 0.5).numpy()
    correlations = np.corrcoef(kept.T) - np.eye(8)
    np.testing.assert_allclose(correlations, 0, atol=5 / 20_000**0.5)


def test_no_dropout_keeps_all():
    np.testing.assert_array_equal(RUN.kept(9, 5, 0.0), np.ones((9, 5)))


def test_adam_takes_the_steps_of_its_formula():
    start, rate, decay = RNG.normal(size=8), 0.1, 0.01
    target = torch.tensor(RNG.normal(size=8), dtype=torch.float32)
    w = torch.tensor(start, dtype=torch.float32, requires_grad=True)
    optimiser = RUN.adam([w], rate, decay)
    expected, m, s = start.copy(), np.zeros(8), np.zeros(8)
    for t in range(1, 6):
        RUN.step(optimiser, ((w - target) ** 2).sum())
        gradient = 2 * (expected - target.numpy()) + decay * expected
        m, s = 0.9 * m + 0.1 * gradient, 0.999 * s + 0.001 * gradient**2
        expected -= rate * (m / (1 - 0.9**t)) / (np.sqrt(s / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(w.detach(), expected, atol=1e-5)


def test_a_step_that_keeps_leaves_the_gradient_of_another_loss_as_it_was():
    """Made from the values of the first network before its step, not from its parameters after."""
    a, b = normal(5), normal(5)
    values = a.relu()
    before = values.detach().clone()
    loss = (values * b).square().sum()
    RUN.step(RUN.adam([a], 0.1), loss, keep=True)
    (by_b,) = torch.autograd.grad(loss, b)
    np.testing.assert_allclose(by_b, 2 * before**2 * b.detach(), rtol=1e-5)
    assert not np.allclose(before, a.detach().relu()), "the step moved a"
