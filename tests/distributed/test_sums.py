"""Formulas of the core in two parts: sums over rows or columns, and what follows from them."""

from itertools import chain, pairwise

import dask
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from viewmend.backend import dispatch
from viewmend.core.agfti.alignment import align_products
from viewmend.core.agfti.fusion import Game, agreements, aligned_graphs, evaluate, fuse
from viewmend.core.agfti.graph_fourier import (
    graph_spectrum,
    prox_graph_norm,
    restored,
    shrink_waves,
    shrinkage,
    wave_sums,
)
from viewmend.core.agfti.propagation import (
    LabelSums,
    anchor_labels,
    label_sums,
    propagate_labels,
    sample_labels,
)
from viewmend.core.agfti.tensor_nuclear import (
    filtered_columns,
    frequency_grams,
    mean_over_frequencies,
    prox_tnn,
)
from viewmend.distributed.final import _reached_anchors
from viewmend.distributed.rows import DaskRows, add_up, tree

seeds = st.integers(0, 2**32 - 1)
cuts = st.lists(st.integers(0, 40), min_size=0, max_size=4).map(sorted)


def simplex(rng, *shape):
    rows = rng.random(shape) * (rng.random(shape) < 0.5) + 1e-6
    return rows / rows.sum(axis=-1, keepdims=True)


def blocks(cut, n_rows=40):
    bounds = [0, *cut, n_rows]
    return [slice(a, b) for a, b in pairwise(bounds)]


@settings(max_examples=20, deadline=None)
@given(seeds, cuts)
def test_labels_from_sums_over_any_blocks(seed, cut):
    rng = np.random.default_rng(seed)
    P, B = simplex(rng, 40, 6), np.where(rng.random(40) < 0.3, 1e8, 0.5)
    Y = np.eye(3)[rng.integers(3, size=40)] * (B > 1)[:, None]
    parts = [label_sums(P[rows], Y[rows], B[rows]) for rows in blocks(cut)]
    sums = LabelSums(*(sum(getattr(p, of) for p in parts) for of in ("degrees", "gram", "pulled")))
    Q, scaled_Q = anchor_labels(sums, np.ones(6))
    F = np.concatenate([sample_labels(P[r], Y[r], B[r], scaled_Q) for r in blocks(cut)])
    expected_F, expected_Q = propagate_labels(P, Y, B, np.ones(6))
    assert_allclose(Q, expected_Q, atol=1e-12)
    assert_allclose(F, expected_F, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(seeds, cuts, st.floats(0.01, 10))
def test_the_tensor_step_from_sums_over_any_blocks(seed, cut, tau):
    rng = np.random.default_rng(seed)
    Y, U = rng.normal(size=(3, 40, 5)), graph_spectrum(simplex(rng, 40, 5), 4).U
    parts = [wave_sums(U[rows], Y[:, rows]) for rows in blocks(cut)]
    Y_hat, gram = (sum(column) for column in zip(*parts, strict=True))
    shrunk = shrink_waves(Y_hat, gram, tau, 40)
    G = np.concatenate([restored(U[r], Y[:, r], shrunk) for r in blocks(cut)], axis=1)
    expected, norm = prox_graph_norm(U, Y, tau)
    assert_allclose(G, expected, atol=1e-10)
    assert_allclose(shrunk.norm, norm, atol=1e-10)


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(2, 15), st.integers(1, 6), st.floats(0.01, 10))
def test_the_papers_tensor_step_from_sums_over_columns(seed, n_samples, width, tau):
    Y = np.random.default_rng(seed).normal(size=(3, n_samples, 6))
    spectra = [np.fft.rfft(Y[:, :, j : j + width], axis=1) for j in range(0, 6, width)]
    mixing, left = shrinkage(sum(map(frequency_grams, spectra)), tau)
    shrunk = [np.fft.irfft(filtered_columns(s, mixing), n=n_samples, axis=1) for s in spectra]
    expected, norm = prox_tnn(Y, tau)
    assert_allclose(np.concatenate(shrunk, axis=2), expected, atol=1e-9)
    assert_allclose(mean_over_frequencies(left, n_samples, np), norm, atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(seeds, cuts)
def test_the_game_is_played_with_sums_over_any_blocks(seed, cut):
    rng = np.random.default_rng(seed)
    game = Game(simplex(rng, 3, 40, 5), rng.random((40, 5)), 9.0, 2.0)

    def ask(_game, alpha):
        parts = [
            evaluate(Game(game.A[:, rows], game.H[rows], game.lam, game.beta), alpha)
            for rows in blocks(cut)
        ]
        whole = evaluate(game, alpha)
        assert_allclose(sum(p.cost for p in parts), whole.cost, rtol=1e-10)
        assert_allclose(sum(p.agreements for p in parts), whole.agreements, rtol=1e-10)
        assert_allclose(sum(p.spread for p in parts), whole.spread, rtol=1e-8, atol=1e-12)
        return whole

    start = np.full(3, 1 / 3)
    assert_allclose(fuse(game, start, evaluate=ask).alpha, fuse(game, start).alpha, atol=1e-12)


def test_alignment_from_sums_of_products():
    rng = np.random.default_rng(0)
    Z, P = simplex(rng, 2, 40, 5), simplex(rng, 40, 5)
    C = sum(np.swapaxes(Z[:, rows], 1, 2) @ P[rows] for rows in blocks([7, 21]))
    T, agreed = align_products(C)
    assert_allclose(T, align_products(dispatch.cross_products(Z, P))[0], atol=1e-10)
    assert_allclose(agreed, agreements(aligned_graphs(Z, T), P), rtol=1e-12)


def test_sums_of_blocks_are_added_but_for_changes_and_joins():
    parts = [
        {"gain": 1.0, "change_F": 0.5, "joined": np.array([True, False])},
        {"gain": 2.0, "change_F": 0.2, "joined": np.array([False, False])},
        {"gain": 4.0, "change_F": 0.1, "joined": np.array([False, True])},
    ]
    found = add_up(parts)
    assert (found["gain"], found["change_F"]) == (7.0, 0.5)
    assert found["joined"].all()


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 80))
def test_trees_take_every_part_once_and_in_order(n_parts):
    parts = [dask.delayed([i]) for i in range(n_parts)]
    joined = tree(parts, lambda lists: list(chain(*lists)))
    assert joined.compute(scheduler="synchronous") == list(range(n_parts))


def test_passes_are_counted_and_blocks_keep_their_order():
    runner = DaskRows()
    with dask.config.set(scheduler="synchronous"):
        doubled = runner.map(double, [1, 2, 3], shared=2)
        again, sums = runner.both(halve, doubled, shared=2)
        assert runner.gather(double, again, shared=10) == [10, 20, 30]
    assert sums == {"total": 6}
    assert runner.passes == {"double": 2, "halve": 1}


def double(number, factor):
    return number * factor


def halve(number, factor):
    return number // factor, {"total": number // factor}


def test_anchors_are_reached_over_others():
    # 0 - 1 - 2 in a chain, 3 - 4 apart, 5 touched by no sample.
    joined = np.zeros((6, 6), dtype=bool)
    for i, j in ((0, 1), (1, 2), (3, 4)):
        joined[i, j] = joined[j, i] = joined[i, i] = joined[j, j] = True
    labelled = np.arange(6) == 0
    np.testing.assert_array_equal(_reached_anchors(joined, labelled), [1, 1, 1, 0, 0, 0])
