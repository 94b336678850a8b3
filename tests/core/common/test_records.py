"""Records of arrays in another library: every array, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.sparse import csr_array

from viewmend.core.common.records import converted


@dataclass(frozen=True)
class Leaf:
    values: np.ndarray
    scale: float


@dataclass(frozen=True)
class Tree:
    name: str
    leaves: tuple[Leaf, ...]
    by_name: Mapping[str, np.ndarray]
    several: list
    matrix: csr_array
    rule: type
    none: None = None


TREE = Tree(
    "oak",
    (Leaf(np.arange(3.0), 2.0), Leaf(np.zeros((2, 0)), 3.0)),
    {"a": np.ones(2), "b": np.array(5)},
    [np.arange(4), "word", 7],
    csr_array(np.eye(3)),
    Leaf,
)


def arrays_of(tree):
    by_leaf = [leaf.values for leaf in tree.leaves]
    return [*by_leaf, *tree.by_name.values(), tree.several[0]]


def test_every_array_is_converted_and_all_else_stays():
    seen = []

    def doubled(array):
        seen.append(array)
        return 2 * array

    found = converted(TREE, doubled)
    assert [id(array) for array in seen] == [id(array) for array in arrays_of(TREE)]
    for new, old in zip(arrays_of(found), arrays_of(TREE), strict=True):
        np.testing.assert_array_equal(new, 2 * old)
    assert (found.name, found.rule, found.none, found.several[1:]) == (
        "oak",
        Leaf,
        None,
        ["word", 7],
    )
    assert [leaf.scale for leaf in found.leaves] == [2.0, 3.0]
    assert list(found.by_name) == ["a", "b"]
    assert type(found.several) is list
    assert found.matrix is TREE.matrix
    # The record itself is left as it was.
    np.testing.assert_array_equal(TREE.by_name["a"], 1)


def test_there_and_back_is_the_same_bits():
    torch = pytest.importorskip("torch")
    there = converted(TREE, torch.asarray)
    assert all(isinstance(array, torch.Tensor) for array in arrays_of(there))
    back = converted(there, lambda tensor: tensor.numpy())
    for new, old in zip(arrays_of(back), arrays_of(TREE), strict=True):
        assert new.dtype == old.dtype
        np.testing.assert_array_equal(new, old)
