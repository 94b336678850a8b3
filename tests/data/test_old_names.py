"""What was written for version 0.1 still works, and is told of its new names."""

import importlib
import sys

import numpy as np
import pytest

from viewmend import MultiViewData
from viewmend.datasets import hide, load_uci_digits, make_multiview_blobs
from viewmend.moved import MOVED

pd = pytest.importorskip("pandas", reason="frames need pandas")


def old_import(module, name):
    """``from module import name``, with the warning that one of them gives."""
    # A module that has moved warns when it is imported for the first time.
    if module.removeprefix("viewmend.") in MOVED:
        sys.modules.pop(module, None)
    with pytest.warns(DeprecationWarning, match=r"has moved to|is now MultiViewData"):
        return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("viewmend.interop", "AlignedViews"),
        ("viewmend.interop.aligned", "AlignedViews"),
        ("viewmend.data", "AlignedViews"),
        ("viewmend.datasets", "MultiViewDataset"),
        ("viewmend.datasets.base", "MultiViewDataset"),
        ("viewmend.datasets.folders", "IncompleteDataset"),
        ("viewmend.datasets.catalogue", "Source"),
        ("viewmend.bench.data", "Source"),
    ],
)
def test_the_old_containers_are_the_one_of_today(module, name):
    assert old_import(module, name) is MultiViewData


def test_a_name_that_never_was_is_an_error():
    import viewmend.data

    with pytest.raises(AttributeError, match=r"'viewmend.data' has no attribute 'Aligned'"):
        _ = viewmend.data.Aligned


def test_joined_views_have_the_attributes_of_old():
    from_frames = old_import("viewmend.interop", "from_frames")
    left = pd.DataFrame({"x": [1.0, 2.0], "kind": ["cat", None]}, index=["a", "b"])
    aligned = from_frames({"left": left}, labels="kind")
    assert aligned.data.names == ("left",)
    assert aligned.y.tolist() == ["cat", None]
    assert (aligned.ids.tolist(), aligned.columns) == (["a", "b"], (("x",),))


def test_complete_data_has_the_attributes_of_old():
    digits = load_uci_digits(["mor"])
    assert (digits.name, digits.view_names) == ("UCI digits", ("mor",))
    assert "CC BY 4.0" in digits.description
    assert digits.views[0].shape == (2000, 6)
    assert digits.y.shape == (2000,)


def test_reading_in_two_steps(tmp_path):
    table = pd.DataFrame({"id": ["a", "b", "c"], "x": [1.0, np.nan, 3.0], "y": [4.0, 5.0, 6.0]})
    table.to_csv(tmp_path / "labs.csv", index=False)
    source = old_import("viewmend.reading", "read_views")(tmp_path)
    aligned = source.aligned()
    np.testing.assert_array_equal(aligned.data.views[0], [[1, 4], [np.nan, 5], [3, 6]])


def test_hiding_parts_of_arrays_or_of_the_one_object_is_the_same():
    blobs = make_multiview_blobs(30, random_state=0)
    rates = {"missing_rate": 0.4, "label_rate": 0.2, "random_state": 3}
    old, new = hide(blobs.views, blobs.y, **rates), hide(blobs, **rates)
    np.testing.assert_array_equal(old.data.stacked(), new.data.stacked())
    np.testing.assert_array_equal(old.y, new.y)
    assert old.data.names == new.data.names
