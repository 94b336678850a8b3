"""Compiled sums over edges, passes over layers, Adam and dropout, each against dense formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array

from viewmend.backend import edges, layers
from viewmend.baselines.gegcn_parts import Adam, Dropout, Entries, side_by_side, sigmoid

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
    starts, uppers, stops, columns, mirrors = entries.table
    assert (starts % 8 == 0).all()
    np.testing.assert_array_equal(stops - starts[:-1], (graph.toarray() != 0).sum(axis=1))
    rows = np.repeat(np.arange(n), np.diff(starts))
    np.testing.assert_array_equal(columns[mirrors], rows)
    np.testing.assert_array_equal(rows[mirrors], columns)
    np.testing.assert_array_equal(mirrors[mirrors], np.arange(entries.size))
    np.testing.assert_array_equal(dense(entries, entries.values_of(graph)), graph.toarray())
    assert entries.ones.sum() == graph.nnz == 2 * entries.n_edges
    assert (uppers % 4 == 0).all()
    for i in range(n):
        assert (columns[starts[i] : uppers[i]] < i).all()
        assert (columns[uppers[i] : stops[i]] < i).sum() < 4


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
    out, table = np.empty_like(H), entries.table
    edges.graph_product(table, values, loops, H, out)
    np.testing.assert_allclose(out, A @ H + loops[:, None] * H, atol=1e-4)
    bits = rng.integers(2**16, size=H.shape, dtype=np.uint16)
    edges.hidden_units(table, values, H, loops, bits, np.uint16(30_000), out)
    units = (A @ H + H).clip(0) * loops[:, None]
    np.testing.assert_allclose(out, np.where(bits >= 30_000, units, 0), atol=1e-4)
    inner = entries.empty()
    joined = entries.array(entries.ones).toarray() != 0
    nothing, no_rows = entries.empty(), np.zeros(0, np.int64)
    # Between bounds below all values, shrinking changes none.
    bounds = np.float32(-9), np.float32(-8)
    edges.edge_gradients(table, values, bounds, (H, B), no_rows, nothing, inner)
    np.testing.assert_allclose(dense(entries, inner), joined * (H @ B.T + B @ H.T), atol=1e-4)
    assert inner.sum() == pytest.approx(dense(entries, inner).sum(), abs=1e-3), "zero in blanks"
    units = H[:, None] + H[None]
    edges.relu_of_sums(table, H, weights, inner)
    np.testing.assert_allclose(dense(entries, inner), joined * (units.clip(0) @ weights), atol=1e-4)
    edges.relu_slopes(table, values, H, out)
    np.testing.assert_allclose(out, np.einsum("ij,ijc->ic", A, units > 0), atol=1e-4)


def test_rows_of_a_product_and_their_gradients():
    values, A = symmetric(ENTRIES)
    H, rows = normal(N, 3), np.array([4, 0, 17])
    out, grad = np.empty((3, 3), np.float32), normal(3, 3)
    edges.rows_product(TABLE, values, H, rows, out)
    np.testing.assert_allclose(out, ((A + np.eye(N)) @ H)[rows], atol=1e-5)
    by_h, by_a = np.zeros_like(H), ENTRIES.empty()
    edges.rows_gradients(TABLE, values, (H, grad), rows, by_h, by_a)
    whole = np.zeros_like(H)
    whole[rows] = grad
    np.testing.assert_allclose(by_h, (A + np.eye(N)) @ whole, atol=1e-5)
    np.testing.assert_allclose(dense(ENTRIES, by_a), (A != 0) * (whole @ H.T), atol=1e-5)


LOW, HIGH = np.float32(0.1), np.float32(0.2)


def shrink(a, low, high):
    ramp = high * (a - low) / (high - low)
    return np.where(a < low, 0, np.where(a < high, ramp, a))


def test_the_shrunk_graph_has_unit_rows_once_it_is_normalised():
    """With ``R`` the roots, ``R (S + I) R (1 / R) = 1 / R``."""
    values, A = symmetric(ENTRIES)
    H, scaled = normal(N, 5), np.empty((N, 5), np.float32)
    shrunk, roots = ENTRIES.empty(), np.empty(N, np.float32)
    edges.shrink_graph(TABLE, values, (LOW, HIGH), H, shrunk, roots, scaled)
    S = dense(ENTRIES, shrunk)
    np.testing.assert_allclose(S, (A != 0) * shrink(A, LOW, HIGH), atol=1e-6)
    np.testing.assert_allclose(roots * ((S + np.eye(N)) @ np.ones(N)), 1 / roots, rtol=1e-5)
    np.testing.assert_allclose(scaled, roots[:, None] * H, rtol=1e-6)


def test_gradients_by_edges_and_threshold_are_those_of_finite_differences():
    """Of ``<B, S H> + <K, S>`` with ``K`` in two rows; an edge moves both of its entries."""
    values, A = symmetric(ENTRIES)
    H, B, rows, found = normal(N, 5), normal(N, 5), np.array([3, 11]), ENTRIES.empty()
    K = np.zeros((N, N))
    K[rows] = RNG.normal(size=(2, N))
    by_shrunk = ENTRIES.values_of(csr_array(K))
    i, j = np.nonzero(np.triu(A))

    def loss(edge_values, low=float(LOW)):
        moved = np.zeros((N, N))
        moved[i, j] = moved[j, i] = edge_values
        S = (A != 0) * shrink(moved, low, low + float(HIGH) - float(LOW))
        return np.sum(B * (S @ H.astype(float))) + np.sum(K * S)

    parts = TABLE, values, (LOW, HIGH), (H, B)
    edges.edge_gradients(*parts, rows, by_shrunk, found)
    expected = approx_fprime(A[i, j], loss, 1e-6)
    np.testing.assert_allclose(dense(ENTRIES, found)[i, j], expected, atol=1e-3)
    np.testing.assert_array_equal(dense(ENTRIES, found), dense(ENTRIES, found).T)
    (expected,) = approx_fprime([float(LOW)], lambda low: loss(A[i, j], low[0]), 1e-6)
    np.testing.assert_allclose(edges.threshold_gradient(*parts, by_shrunk), expected, rtol=1e-3)


def softplus(x):
    return np.logaddexp(0, x)


def test_doubt_and_critique_have_the_gradients_of_their_losses():
    critic, (made, A) = ENTRIES.spread(RNG.random(2 * ENTRIES.n_edges)), symmetric(ENTRIES, 0, 1)
    V = dense(ENTRIES, critic)
    scores, by_A = np.empty(N, np.float32), ENTRIES.empty()
    edges.row_scores(TABLE, made, critic, scores)
    np.testing.assert_allclose(scores, (A * V).sum(axis=1), rtol=1e-5)
    edges.add_doubts(TABLE, critic, -sigmoid(-scores) / N, by_A)
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
    # What a sigmoid makes of blanks must not count.
    blanks = ENTRIES.ones == 0
    graphs[-1, blanks] = 0.5
    edges.critic_gradients(TABLE, graphs, critic, found)

    def critique(entries):
        V = ENTRIES.array(ENTRIES.spread(entries)).toarray()
        taken = np.mean([softplus(-(R * V).sum(axis=1)).mean() for _, R in real])
        return (taken + softplus((A * V).sum(axis=1)).mean()) / 2

    expected = approx_fprime(V[V != 0], critique, 1e-3)
    np.testing.assert_allclose(dense(ENTRIES, found)[V != 0], expected, atol=2e-4)
    assert np.abs(expected).max() > 2e-3
    assert blanks.any()
    assert (found[blanks] == 0).all()


def test_gaps_of_the_decoder_are_half_the_gradient_of_their_squares():
    D, u, X = normal(30, 7), normal(7), normal(30, 7)
    fitted, by_u = np.maximum(D + u, 0), np.empty(7, np.float32)
    gaps = D.copy()
    np.testing.assert_allclose(
        layers.decoder_gaps(gaps, u, X, by_u), np.sum((X - fitted) ** 2), rtol=1e-5
    )
    np.testing.assert_allclose(gaps, (fitted - X) * (D + u > 0), atol=1e-6)
    np.testing.assert_allclose(by_u, gaps.sum(axis=0), atol=1e-5)


def test_cross_entropy_of_relu_and_its_gradient():
    logits, known = normal(6, 4), RNG.integers(4, size=6)

    def loss(flat):
        scores = flat.reshape(6, 4).clip(0)
        return np.mean(np.log(np.exp(scores).sum(1)) - scores[np.arange(6), known])

    slopes, flat = np.empty_like(logits), logits.ravel().astype(float)
    np.testing.assert_allclose(layers.cross_entropy(logits, known, slopes), loss(flat), rtol=1e-6)
    np.testing.assert_allclose(slopes.ravel(), approx_fprime(flat, loss, 1e-7), atol=1e-6)
    assert (logits < 0).any()
    # Large logits do not overflow.
    assert layers.cross_entropy(1e4 * np.eye(4, dtype=np.float32), np.arange(4), slopes[:4]) == 0


def test_passes_over_layers_equal_their_formulas():
    H, B, P, d, (u, v, w) = normal(8, 5), normal(8, 5), normal(8, 5), normal(8), normal(3, 5)
    out = np.empty_like(H)
    layers.affine(H, u, v, out)
    np.testing.assert_allclose(out, H * u + v, atol=1e-5)
    np.testing.assert_allclose(layers.column_dots(H, B), np.sum(H * B, axis=0), atol=1e-5)
    layers.combine(out := B.copy(), P, d, (u, v, w))
    np.testing.assert_allclose(out, B * u + P * v + np.outer(d, w), atol=1e-5)
    layers.where_positive(out := B.copy(), H, d)
    np.testing.assert_allclose(out, d[:, None] * B * (H > 0), rtol=1e-6)


def test_tasks_side_by_side_give_their_results_in_order():
    assert side_by_side(lambda: 3, lambda: "b", lambda: None) == [3, "b", None]


@pytest.mark.parametrize("parts", [[slice(None)], [slice(4), slice(4, 9)]], ids=["whole", "parts"])
def test_adam_takes_the_steps_of_its_formula(parts):
    w, target, rate, decay = normal(9, 2), normal(9, 2), 0.1, 0.01
    expected, m, s = w.astype(float), np.zeros((9, 2)), np.zeros((9, 2))
    adam = Adam(w, rate, decay)
    for t in range(1, 5):
        adam.begin()
        for part in parts:
            adam.step_rows(part, 2 * (w - target)[part])
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


def dropped(H, dropout):
    """Hidden units of a graph without edges."""
    n, out = len(H), np.empty_like(H)
    entries, factors = Entries(csr_array((n, n))), np.full(n, dropout.scale)
    parts = entries.table, entries.ones, H, factors, dropout.bits, dropout.cut
    edges.hidden_units(*parts, out)
    return out


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.999999])
def test_units_are_left_out_independently_and_keep_their_mean(rate):
    shape = 20_000, 6
    H = dropped(np.ones(shape, np.float32), Dropout.draw(shape, rate, np.random.default_rng(3)))
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
    out, back = dropped(H, dropout), B.copy()
    np.testing.assert_allclose(out, kept * H.clip(0), rtol=1e-6)
    layers.where_positive(back, out, np.full(50, dropout.scale))
    np.testing.assert_allclose(back, B * kept * (H > 0), rtol=1e-6)


def test_none_is_left_out_where_all_are_to_stay():
    H = normal(9, 4)
    np.testing.assert_array_equal(dropped(H, Dropout.none(H.shape)), H.clip(0))
