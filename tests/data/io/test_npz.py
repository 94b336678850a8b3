"""Files in the published forms come back as they were written; others are refused by name."""

import numpy as np
import pytest
import scipy.io
import scipy.sparse

from viewmend.datasets import load_mat, load_npz
from viewmend.exceptions import InvalidLabelsError, InvalidViewsError

VIEWS = [np.random.default_rng(0).normal(size=(6, d)) for d in (3, 2, 4)]
LABELS = np.array([1, 3, 3, 1, 5, 3])


def cells(views, shape):
    array = np.empty(len(views), dtype=object)
    for v, view in enumerate(views):
        array[v] = view
    return array.reshape(shape)


def save_mat(path, **variables):
    scipy.io.savemat(path, variables)
    return path


@pytest.mark.parametrize("shape", [(1, 3), (3, 1)])
@pytest.mark.parametrize("variable", ["gnd", "Y"])
@pytest.mark.parametrize("labels", [LABELS[:, None], LABELS[:, None].astype(float), LABELS[None]])
def test_mat_round_trip(tmp_path, shape, variable, labels):
    path = save_mat(tmp_path / "birds.mat", X=cells(VIEWS, shape), **{variable: labels})
    dataset = load_mat(path)
    for view, written in zip(dataset.views, VIEWS, strict=True):
        np.testing.assert_array_equal(view, written)
    # 1, 3, 5 become 0, 1, 2: counted from 0, without a hole.
    np.testing.assert_array_equal(dataset.y, [0, 1, 1, 0, 2, 1])
    assert dataset.name == "birds"
    assert dataset.view_names == ("view 0", "view 1", "view 2")


def test_mat_with_one_view_and_uint8_values(tmp_path):
    pixels = np.arange(12, dtype=np.uint8).reshape(6, 2)
    dataset = load_mat(save_mat(tmp_path / "a.mat", X=cells([pixels], (1, 1)), gnd=LABELS[:, None]))
    assert dataset.views[0].dtype == np.float64
    np.testing.assert_array_equal(dataset.views[0], pixels)


def test_sparse_cells_become_dense(tmp_path):
    words = np.eye(6, 4) * 2
    both = cells([scipy.sparse.csc_array(words), VIEWS[0]], (1, 2))
    dataset = load_mat(save_mat(tmp_path / "text.mat", X=both, gnd=LABELS[:, None]))
    np.testing.assert_array_equal(dataset.views[0], words)
    np.testing.assert_array_equal(dataset.views[1], VIEWS[0])


@pytest.mark.parametrize(
    ("variables", "error", "message"),
    [
        ({"data": VIEWS[0], "gnd": LABELS}, InvalidViewsError, "cell array X .* holds data, gnd;"),
        ({"X": VIEWS[0], "gnd": LABELS}, InvalidViewsError, r"X = \{X1, X2\}"),
        ({"X": cells(VIEWS[:1] * 4, (2, 2)), "gnd": LABELS}, InvalidViewsError, r"shape \(2, 2\)"),
        (
            {"X": cells([VIEWS[0], VIEWS[1].T], (1, 2)), "gnd": LABELS},
            InvalidViewsError,
            "view 1 has 2 rows but view 0 has 6; .*transpose",
        ),
        ({"X": cells(VIEWS, (1, 3))}, InvalidLabelsError, "gnd or Y but holds X;"),
        (
            {"X": cells(VIEWS, (1, 3)), "gnd": np.eye(6, 3)},
            InvalidLabelsError,
            r"one column but have shape \(6, 3\)",
        ),
        (
            {"X": cells(VIEWS, (1, 3)), "gnd": LABELS / 2},
            InvalidLabelsError,
            "whole numbers but have dtype float64 and start with",
        ),
        (
            {"X": cells(VIEWS, (1, 3)), "gnd": LABELS[:4]},
            InvalidLabelsError,
            r"shape \(6,\), but has shape \(4,\)",
        ),
    ],
)
def test_mat_that_cannot_be_used(tmp_path, variables, error, message):
    with pytest.raises(error, match=message):
        load_mat(save_mat(tmp_path / "a.mat", **variables))


def test_npz_round_trip_keeps_the_order_of_many_views(tmp_path):
    """Eleven views: view_10 comes after view_9, however the archive lists them."""
    arrays = {f"view_{v}": np.full((3, 2), v, dtype=np.int16) for v in reversed(range(11))}
    np.savez_compressed(tmp_path / "many.npz", y=np.array([2, 0, 2]), **arrays)
    dataset = load_npz(tmp_path / "many.npz")
    assert dataset.name == "many"
    assert [view[0, 0] for view in dataset.views] == list(range(11))
    assert {view.dtype for view in dataset.views} == {np.dtype(np.float64)}
    np.testing.assert_array_equal(dataset.y, [2, 0, 2])


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ({"view_0": VIEWS[0]}, InvalidViewsError, "must hold y and .* holds view_0;"),
        ({"y": LABELS}, InvalidViewsError, "must hold y and .* holds y;"),
        (
            {"view_0": VIEWS[0], "view_2": VIEWS[1], "y": LABELS},
            InvalidViewsError,
            "without a break but holds view_0, view_2, y",
        ),
        ({"view_0": VIEWS[0], "y": LABELS[:5]}, InvalidLabelsError, r"but has shape \(5,\)"),
        ({"view_0": VIEWS[0], "y": LABELS / 1}, InvalidLabelsError, "integers .* float64"),
    ],
)
def test_npz_that_cannot_be_used(tmp_path, arrays, error, message):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    with pytest.raises(error, match=message):
        load_npz(path)
