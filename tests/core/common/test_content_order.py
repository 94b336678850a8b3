"""The canonical order is decided by content alone."""

from __future__ import annotations

import numpy as np
import pytest

from viewmend.core.common.content_order import bottom_rows, canonical_order, row_hashes


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(500, 7))


def test_hash_follows_the_row(X):
    order = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_array_equal(row_hashes(X[order]), row_hashes(X)[order])


def test_rows_that_differ_anywhere_have_other_hashes(X):
    changed = X.copy()
    # The last bit of one entry of every row, in a column that moves.
    where = (np.arange(len(X)), np.arange(len(X)) % X.shape[1])
    changed[where] = np.nextafter(X[where], np.inf)
    assert not (row_hashes(changed) == row_hashes(X)).any()
    assert len(np.unique(row_hashes(X))) == len(X)


def test_swapped_columns_change_the_hash(X):
    assert not (row_hashes(X[:, ::-1]) == row_hashes(X)).any()


def test_integers_hash_apart():
    grid = np.stack(np.meshgrid(*[np.arange(32)] * 3), axis=-1).reshape(-1, 3)
    assert len(np.unique(row_hashes(grid))) == 32**3


def test_precision_and_sign_of_zero_do_not_matter(X):
    single = X.astype(np.float32)
    np.testing.assert_array_equal(row_hashes(single), row_hashes(single.astype(np.float64)))
    np.testing.assert_array_equal(
        row_hashes(np.array([[-0.0, 1.0]])), row_hashes(np.array([[0.0, 1.0]]))
    )


def test_hashes_are_those_of_the_formula(X):
    """The compiled pass against the same sums in NumPy, on which the order of all fits rests."""

    def mix(z):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    golden = np.uint64(0x9E3779B97F4A7C15)
    salts = mix(np.arange(1, X.shape[1] + 1, dtype=np.uint64) * golden) | np.uint64(1)
    bits = mix((X + 0.0).view(np.uint64) * golden)
    np.testing.assert_array_equal(row_hashes(X), mix((bits * salts).sum(axis=1, dtype=np.uint64)))


def test_all_nan_count_as_the_same():
    payloads = np.array([0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000], np.uint64)
    hashes = row_hashes(np.column_stack([payloads.view(np.float64), np.ones(3)]))
    assert len(np.unique(hashes)) == 1


def test_hashes_are_spread_evenly(X):
    """Each bit of the hash is set in about half of the rows (6 sigma)."""
    bits = np.unpackbits(row_hashes(X).view(np.uint8)).reshape(len(X), 64)
    assert np.abs(bits.mean(axis=0) - 0.5).max() < 6 * 0.5 / np.sqrt(len(X))


def test_canonical_order_forgets_rows_and_views(X):
    rng = np.random.default_rng(2)
    views = [X, X[:, :3] ** 2, rng.normal(size=(len(X), 4))]
    observed = rng.random((len(X), 3)) < 0.6
    observed[~observed.any(axis=1), 0] = True
    codes = rng.integers(-1, 3, len(X))
    first = canonical_order(views, observed, codes)
    rows = rng.permutation(len(X))
    second = canonical_order(
        [views[v][rows] for v in (2, 0, 1)], observed[rows][:, [2, 0, 1]], codes[rows]
    )
    np.testing.assert_array_equal(rows[second], first)


def test_canonical_order_does_not_read_missing_rows(X):
    observed = np.ones((len(X), 1), dtype=bool)
    observed[::3] = False
    blank = np.where(observed, X, np.nan)
    codes = np.zeros(len(X), dtype=int)
    np.testing.assert_array_equal(
        canonical_order([X], observed, codes), canonical_order([blank], observed, codes)
    )


def test_bottom_rows_are_a_sample_of_the_content(X):
    rows = np.random.default_rng(3).permutation(len(X))
    np.testing.assert_array_equal(rows[bottom_rows(X[rows], 50)], bottom_rows(X, 50))
    assert set(bottom_rows(X, 20)) < set(bottom_rows(X, 50))
    assert set(bottom_rows(X, 50, seed=1)) != set(bottom_rows(X, 50))


def test_bottom_rows_are_uniform(X):
    """Every row is drawn with the same probability: 200 seeds, 6 sigma."""
    counts = np.zeros(len(X))
    for seed in range(200):
        counts[bottom_rows(X, 50, seed)] += 1
    assert np.abs(counts / 200 - 0.1).max() < 6 * np.sqrt(0.09 / 200)


def test_a_row_that_repeats_is_drawn_once(X):
    many = np.vstack([np.repeat(X[:1], 1000, axis=0), X[1:20]])
    drawn = bottom_rows(many, 30)
    assert len(drawn) == 20
    assert len(np.unique(many[drawn], axis=0)) == 20
