"""Splits and eigenvectors, whose answers are compared by what they must obey."""

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewmend.backend import dispatch
from viewmend.backend.namespace import to_numpy

try:
    import torch
except ImportError:
    torch = None

LIBRARIES = {"numpy": np.asarray, "strict": array_api_strict.asarray}
if torch is not None:
    LIBRARIES["torch"] = torch.asarray
    if torch.cuda.is_available():
        LIBRARIES["cuda"] = lambda array: torch.asarray(array, device="cuda")

pytestmark = pytest.mark.parametrize("place", LIBRARIES.values(), ids=LIBRARIES)


def split(place, X, sizes, balanced, seed=0):
    """Parts of the given sizes, and both sides of each."""
    rng = np.random.default_rng(seed)
    parts = np.split(rng.permutation(len(X)), np.cumsum(sizes)[:-1])
    starts = [rng.permutation(len(rows)) < len(rows) // 2 for rows in parts]
    sides = dispatch.split_parts(place(X), [place(rows) for rows in parts], starts, balanced)
    sides = [to_numpy(side) for side in sides]
    return parts, list(zip(sides[::2], sides[1::2], strict=True))


def gap(X, sides):
    """Squared distance of the rows of both sides to the left mean, minus that to the right."""
    left, right = (X[rows].mean(axis=0) for rows in sides)
    return [((X[rows] - left) ** 2 - (X[rows] - right) ** 2).sum(axis=1) for rows in sides]


@pytest.mark.parametrize("balanced", [True, False])
def test_sides_make_up_their_part_and_are_nearer_to_their_own_mean(place, balanced):
    """Tight clusters, so that the rounds settle: the fixed point of Lloyd's iteration."""
    rng = np.random.default_rng(1)
    centres = np.array([[0.0, 0.0], [9.0, 0.0]])
    X = centres[np.arange(61) % 2] + rng.normal(size=(61, 2))
    parts, pairs = split(place, X, [20, 21, 20], balanced)
    for rows, sides in zip(parts, pairs, strict=True):
        assert sorted(np.concatenate(sides)) == sorted(rows)
        on_left, on_right = gap(X, sides)
        if balanced:
            assert len(sides[0]) == len(rows) // 2
            assert on_left.max() <= on_right.min()
        else:
            assert on_left.max() < 0
            assert on_right.min() >= 0


@pytest.mark.parametrize("balanced", [True, False])
def test_all_libraries_split_alike(place, balanced):
    X = np.random.default_rng(2).normal(size=(90, 5))
    _, expected = split(np.asarray, X, [30, 31, 29], balanced)
    _, found = split(place, X, [30, 31, 29], balanced)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


@pytest.mark.parametrize("balanced", [True, False])
def test_equal_rows_are_halved_in_their_order(place, balanced):
    _, pairs = split(place, np.ones((7, 3)), [7], balanced)
    parts, _ = split(np.asarray, np.ones((7, 3)), [7], balanced)
    np.testing.assert_array_equal(pairs[0][0], parts[0][:3])
    np.testing.assert_array_equal(pairs[0][1], parts[0][3:])


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 3), min_size=4, max_size=12), st.booleans(), st.integers(0, 5))
def test_no_side_is_empty(place, numbers, balanced, seed):
    """Rows with many ties."""
    X = np.array(numbers, dtype=float)[:, None]
    sizes = [len(X) // 2, len(X) - len(X) // 2]
    parts, pairs = split(place, X, sizes, balanced, seed)
    for rows, sides in zip(parts, pairs, strict=True):
        assert min(map(len, sides)) > 0
        assert sorted(np.concatenate(sides)) == sorted(rows)


def test_leading_eigenvectors_are_those_of_the_largest_eigenvalues(place):
    A = np.random.default_rng(3).normal(size=(6, 6))
    A = A + A.T
    values, vectors = map(to_numpy, dispatch.leading_eigenvectors(place(A), 4))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A)[::-1][:4], atol=1e-12)
    np.testing.assert_allclose(A @ vectors, vectors * values, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-12)
    all_values, _ = dispatch.leading_eigenvectors(place(A), 9)
    assert all_values.shape == (6,)
