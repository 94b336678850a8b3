"""NumPy archives come back as they were written; others are refused by name."""

import numpy as np
import pytest

from viewmend.data import load_npz
from viewmend.exceptions import InvalidLabelsError, InvalidViewsError

VIEWS = [np.random.default_rng(0).normal(size=(6, d)) for d in (3, 2)]
LABELS = np.array([1, 3, 3, 1, 5, 3])


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
