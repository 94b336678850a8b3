"""Compiled sums over edges and their gradients, Adam, and dropout, each against dense formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array

from viewmend.backend import edges
from viewmend.baselines.gegcn_parts import Adam, Dropout, Entries, cross_entropy, sigmoid

RNG = np.random.default_rng(0)
N = 23


def pattern(n, seed, share=0.3):
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < share, k=1)
    return csr_array((upper | upper.T).astype(float))


ENTRIES = Entries(pattern(N, 0))
TABLE = ENTRIES.table


def normal(*shape, rng=RNG):
    return rng.normal(size=shape).astype(np.float32)


def symmetric(entries, low=-0.2, high=0.6, rng=RNG):
    """A graph with values below, on and above a ramp, as entries and as a matrix."""
    A = rng.uniform(low, high, (entries.n_samples,) * 2)
    A = csr_array(np.triu(A, k=1) + np.triu(A, k=1).T)
    values = entries.values_of(A)
    return values, entries.array(values).toarray()


def dense(entries, values):
    return entries.array(values).toarray()


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 99), share=st.floats(0.0, 1.0), n=st.integers(1, 14))
def test_the_table_holds_every_entry_once_and_knows_its_mirror(seed, share, n):
    graph = pattern(n, seed, share)
    entries = Entries(graph)
    starts, stops, columns, mirrors = entries.table
    assert (starts % 4 == 0).all()
    np.testing.assert_array_equal(stops - starts[:-1], (graph.toarray() != 0).sum(axis=1))
    rows = np.repeat(np.arange(n), np.diff(starts))
    np.testing.assert_array_equal(columns[mirrors], rows)
    np.testing.assert_array_equal(rows[mirrors], columns)
    np.testing.assert_array_equal(mirrors[mirrors], np.arange(entries.size))
    np.testing.assert_array_equal(dense(entries, entries.values_of(graph)), graph.toarray())
    assert entries.ones.sum() == graph.nnz == 2 * entries.n_edges


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 99), share=st.floats(0.0, 1.0), n=st.integers(1, 14))
def test_sums_over_entries_equal_dense_ones_for_any_pattern(seed, share, n):
    """Also where samples have no edge."""
    entries, rng = Entries(pattern(n, seed, share)), np.random.default_rng(seed)
    values, A = symmetric(entries, rng=rng)
    H, B, loops, weights = (
        normal(n, 9, rng=rng),
        normal(n, 9, rng=rng),
        normal(n, rng=rng),
        normal(9),
    )
    out = np.empty_like(H)
    entries.run(edges.graph_product, (values, loops), H, out)
    np.testing.assert_allclose(out, A @ H + loops[:, None] * H, atol=1e-4)
    inner = entries.empty()
    entries.run(edges.add_inner_products, values, np.float32(-9), (H, B), inner)
    joined = entries.array(entries.ones).toarray() != 0
    np.testing.assert_allclose(dense(entries, inner), joined * (H @ B.T), atol=1e-4)
    units = H[:, None] + H[None]
    entries.run(edges.relu_of_sums, H, weights, inner)
    np.testing.assert_allclose(dense(entries, inner), joined * (units.clip(0) @ weights), atol=1e-4)
    entries.run(edges.relu_slopes, values, H, out)
    np.testing.assert_allclose(out, np.einsum("ij,ijc->ic", A, units > 0), atol=1e-4)


def test_inner_products_are_all_there_where_the_graph_is_above_the_threshold():
    values, A = symmetric(ENTRIES)
    H, B, found = normal(N, 5), normal(N, 5), ENTRIES.empty()
    ENTRIES.run(edges.add_inner_products, values, np.float32(0.3), (H, B), found)
    np.testing.assert_allclose(dense(ENTRIES, found)[A > 0.3], (H @ B.T)[A > 0.3], atol=1e-5)
    assert (dense(ENTRIES, found) == 0)[ENTRIES.array(ENTRIES.ones).toarray() > 0].any()


def test_rows_of_a_product_and_their_gradients():
    values, A = symmetric(ENTRIES)
    H, loops, rows = normal(N, 3), normal(N), np.array([4, 0, 17])
    out, grad = np.empty((3, 3), np.float32), normal(3, 3)
    edges.rows_product(TABLE, (values, loops), H, rows, out)
    np.testing.assert_allclose(out, ((A + np.diag(loops)) @ H)[rows], atol=1e-5)
    by_h, inner = np.zeros_like(H), ENTRIES.empty()
    edges.rows_gradients(TABLE, (values, loops), (H, grad), rows, by_h, inner)
    whole = np.zeros_like(H)
    whole[rows] = grad
    np.testing.assert_allclose(by_h, (A + np.diag(loops)) @ whole, atol=1e-5)
    np.testing.assert_allclose(dense(ENTRIES, inner), (A != 0) * (whole @ H.T), atol=1e-5)


LOW, HIGH = np.float32(0.1), np.float32(0.2)


def shrink(a, low, high):
    ramp = high * (a - low) / (high - low)
    return np.where(a < low, 0, np.where(a < high, ramp, a))


def normalised(values):
    """The graph and its roots, compiled."""
    shrunk, out, roots = ENTRIES.empty(), ENTRIES.empty(), np.empty(N, np.float32)
    ENTRIES.run(edges.degree_roots, values, (LOW, HIGH), shrunk, roots)
    ENTRIES.run(edges.normalised_rows, shrunk, roots, out)
    return out, roots


def test_normalised_graph_has_unit_rows_once_the_roots_are_put_back():
    """With the diagonal ``root_i^2``, ``(A + D) (1 / root) = 1 / root``."""
    values, A = symmetric(ENTRIES)
    graph, roots = normalised(values)
    found = dense(ENTRIES, graph)
    np.testing.assert_allclose((found + np.diag(roots**2)) @ (1 / roots), 1 / roots, rtol=1e-5)
    expected = (A != 0) * shrink(A, LOW, HIGH) * np.outer(roots, roots)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_gradients_by_edges_and_threshold_are_those_of_finite_differences():
    """Of ``<B, A' H>`` with the roots held; an edge moves both of its entries."""
    values, A = symmetric(ENTRIES)
    _, roots = normalised(values)
    H, B, inner, found = normal(N, 5), normal(N, 5), ENTRIES.empty(), ENTRIES.empty()
    i, j = np.nonzero(np.triu(A))
    constants = np.outer(roots, roots) * (A != 0)

    def loss(edge_values, low=float(LOW)):
        moved = np.zeros((N, N))
        moved[i, j] = moved[j, i] = edge_values
        ramp = float(HIGH) - float(LOW)
        graph = shrink(moved, low, low + ramp) * constants
        return np.sum(B * (graph @ H.astype(float)))

    ENTRIES.run(edges.add_inner_products, values, LOW, (H, B), inner)
    ENTRIES.run(edges.shrink_gradients, (values, roots), (LOW, HIGH), inner, found)
    expected = approx_fprime(A[i, j], loss, 1e-6)
    np.testing.assert_allclose(dense(ENTRIES, found)[i, j], expected, atol=1e-3)
    np.testing.assert_allclose(dense(ENTRIES, found), dense(ENTRIES, found).T, rtol=1e-4)
    nothing = ENTRIES.empty()
    by_low = edges.threshold_gradient(TABLE, (values, roots), (LOW, HIGH), nothing, (H, B))
    (expected,) = approx_fprime([float(LOW)], lambda low: loss(A[i, j], low[0]), 1e-6)
    np.testing.assert_allclose(by_low, expected, rtol=1e-3)
    # What was added before counts the same as the inner products left to do.
    no_sides = np.zeros_like(H), B
    again = edges.threshold_gradient(TABLE, (values, roots), (LOW, HIGH), inner, no_sides)
    np.testing.assert_allclose(again, by_low, rtol=1e-4)


def softplus(x):
    return np.logaddexp(0, x)


def test_doubt_and_critique_have_the_gradients_of_their_losses():
    critic, (made, A) = ENTRIES.spread(RNG.random(2 * ENTRIES.n_edges)), symmetric(ENTRIES, 0, 1)
    V = dense(ENTRIES, critic)
    scores, by_A = np.empty(N, np.float32), ENTRIES.empty()
    ENTRIES.run(edges.row_scores, made, critic, scores)
    np.testing.assert_allclose(scores, (A * V).sum(axis=1), rtol=1e-5)
    ENTRIES.run(edges.add_doubts, critic, -sigmoid(-scores) / N, by_A)
    i, j = np.nonzero(np.triu(A))

    def doubt(edge_values):
        moved = np.zeros((N, N))
        moved[i, j] = moved[j, i] = edge_values
        return softplus(-(moved * V).sum(axis=1)).mean()

    np.testing.assert_allclose(
        dense(ENTRIES, by_A)[i, j], approx_fprime(A[i, j], doubt, 1e-6), atol=1e-5
    )
    real = [symmetric(ENTRIES, 0, 1) for _ in range(3)]
    graphs, found = np.stack([*(values for values, _ in real), made]), ENTRIES.empty()
    ENTRIES.run(edges.critic_gradients, graphs, critic, found)

    def critique(entries):
        V = ENTRIES.array(ENTRIES.spread(entries)).toarray()
        taken = np.mean([softplus(-(R * V).sum(axis=1)).mean() for _, R in real])
        return (taken + softplus((A * V).sum(axis=1)).mean()) / 2

    expected = approx_fprime(V[V != 0], critique, 1e-3)
    np.testing.assert_allclose(dense(ENTRIES, found)[V != 0], expected, atol=2e-4)
    assert np.abs(expected).max() > 2e-3


def test_gaps_of_the_decoder_are_half_the_gradient_of_their_squares():
    D, u, X = normal(30, 7), normal(7), normal(30, 7)
    fitted, by_u = np.maximum(D + u, 0), np.empty(7, np.float32)
    gaps = D.copy()
    np.testing.assert_allclose(
        edges.decoder_gaps(gaps, u, X, by_u), np.sum((X - fitted) ** 2), rtol=1e-5
    )
    np.testing.assert_allclose(gaps, (fitted - X) * (D + u > 0), atol=1e-6)
    np.testing.assert_allclose(by_u, gaps.sum(axis=0), atol=1e-5)


def test_cross_entropy_and_its_gradient():
    logits, known = RNG.normal(size=(6, 4)), RNG.integers(4, size=6)

    def loss(flat):
        scores = flat.reshape(6, 4)
        return np.mean(np.log(np.exp(scores).sum(1)) - scores[np.arange(6), known])

    found, slopes = cross_entropy(logits, known)
    np.testing.assert_allclose(found, loss(logits.ravel()), rtol=1e-10)
    expected = approx_fprime(logits.ravel(), loss, 1e-7)
    np.testing.assert_allclose(slopes.ravel(), expected, atol=1e-6)


@pytest.mark.parametrize("n", [8, 1 << 19], ids=["one block", "several"])
def test_adam_takes_the_steps_of_its_formula(n):
    w, target, rate, decay = normal(n), normal(n), 0.1, 0.01
    expected, m, s = w.astype(float), np.zeros(n), np.zeros(n)
    adam = Adam(w, rate, decay)
    for t in range(1, 5):
        adam.step(2 * (w - target))
        gradient = 2 * (expected - target) + decay * expected
        m, s = 0.9 * m + 0.1 * gradient, 0.999 * s + 0.001 * gradient**2
        expected -= rate * (m / (1 - 0.9**t)) / (np.sqrt(s / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(w, expected, atol=2e-4)


def test_decay_alone_ends_at_zero_and_not_near_it():
    """Numbers below the smallest normal one would slow every later product down."""
    w = np.full(3, 1e-3, np.float32)
    adam = Adam(w, 1e-3, 5e-4)
    state = adam._state
    for _ in range(6000):
        adam.step(np.zeros(3))
    tiny = np.finfo(np.float32).tiny
    for array in state:
        assert ((array == 0) | (np.abs(array) >= tiny)).all()
    assert np.abs(w).max() < 1e-6


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.999999])
def test_units_are_left_out_independently_and_keep_their_mean(rate):
    shape = 20_000, 6
    dropout = Dropout.draw(shape, rate, np.random.default_rng(3))
    H = np.ones(shape, np.float32)
    edges.drop_units(H, dropout.bits, dropout.cut, dropout.scale)
    share = np.mean(H == 0, axis=0)
    rate = min(rate, 1 - 2**-16)
    # Five standard deviations of a binomial share.
    np.testing.assert_allclose(share, rate, atol=5 * (rate * (1 - rate) / shape[0]) ** 0.5)
    if rate == 0.3:
        np.testing.assert_allclose(H.mean(), 1, atol=0.02)
        correlations = np.corrcoef(H.T) - np.eye(6)
        np.testing.assert_allclose(correlations, 0, atol=5 / shape[0] ** 0.5)


def test_dropped_units_and_negative_ones_have_no_gradient():
    H, B = normal(50, 6), normal(50, 6)
    dropout = Dropout.draw(H.shape, 0.4, np.random.default_rng(0))
    kept = (dropout.bits >= dropout.cut) / (1 - 0.4)
    out, back = H.copy(), B.copy()
    edges.drop_units(out, dropout.bits, dropout.cut, dropout.scale)
    np.testing.assert_allclose(out, kept * H.clip(0), rtol=1e-6)
    edges.where_positive(back, out, dropout.scale)
    np.testing.assert_allclose(back, B * kept * (H > 0), rtol=1e-6)


def test_none_is_left_out_where_all_are_to_stay():
    H = normal(9, 4)
    dropout, out = Dropout.none(H.shape), H.copy()
    edges.drop_units(out, dropout.bits, dropout.cut, dropout.scale)
    np.testing.assert_array_equal(out, H.clip(0))
