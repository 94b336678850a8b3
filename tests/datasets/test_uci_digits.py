"""The embedded digits equal their source to the last printed digit."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from viewmend.datasets import load_uci_digits
from viewmend.exceptions import InvalidParameterError

SCRIPT = Path(__file__).parents[2] / "scripts" / "embed_uci_digits.py"
COLUMNS = {"fou": 76, "fac": 216, "kar": 64, "pix": 240, "zer": 47, "mor": 6}


def test_values_are_the_printed_ones():
    """Spot values as the source prints them, among them the one in exponent form."""
    digits = load_uci_digits(tuple(COLUMNS))
    views = dict(zip(digits.view_names, digits.views, strict=True))
    assert views["fou"][0, :4].tolist() == [0.065882, 0.19731, 0.10383, 0.27036]
    assert views["kar"][0, :4].tolist() == [-10.297, -11.667, 11.561, -2.0813]
    assert views["kar"][1999, -2:].tolist() == [0.76397, 0.040369]
    assert np.any(views["kar"] == -3.06e-05)
    assert views["zer"][0, :3].tolist() == [0.011033, 0.83147, 15.352]
    assert views["mor"][1999].tolist() == [1, 1, 1, 133.92, 1.5646, 3808]
    assert views["fac"].max() == 1353
    assert np.unique(views["pix"]).tolist() == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("name", COLUMNS)
def test_values_are_short_decimals(name):
    """Six significant digits give every value back; 32-bit floats would not."""
    (view,) = load_uci_digits([name]).views
    assert view.shape == (2000, COLUMNS[name])
    printed = np.array([float(f"{number:.6g}") for number in view.ravel()])
    np.testing.assert_array_equal(view.ravel(), printed)


def test_rows_are_sorted_by_class_and_the_views_show_the_same_digits():
    digits = load_uci_digits()
    assert digits.view_names == ("fou", "fac", "kar")
    np.testing.assert_array_equal(digits.y, np.repeat(np.arange(10), 200))
    # Nearest class centre on odd rows, learnt on even rows: far above 10 % in every view.
    for view in digits.views:
        scaled = view / view.std(axis=0)
        centres = np.stack([scaled[::2][digits.y[::2] == c].mean(axis=0) for c in range(10)])
        distances = np.linalg.norm(scaled[1::2, None] - centres, axis=2)
        assert np.mean(distances.argmin(axis=1) == digits.y[1::2]) > 0.7


def test_views_come_in_the_order_asked_for():
    swapped, usual = load_uci_digits(["kar", "fou"]), load_uci_digits(["fou", "kar"])
    assert swapped.view_names == ("kar", "fou")
    np.testing.assert_array_equal(swapped.views[0], usual.views[1])
    np.testing.assert_array_equal(swapped.views[1], usual.views[0])
    np.testing.assert_array_equal(load_uci_digits("kar").views[0], swapped.views[0])


def test_unknown_views_are_named():
    with pytest.raises(InvalidParameterError, match=r"fou, fac, kar.* there is no view 'fourier'"):
        load_uci_digits(("fac", "fourier"))
    with pytest.raises(InvalidParameterError, match="name at least one"):
        load_uci_digits(())


@pytest.fixture
def embedding():
    """The script that builds the archive, as a module."""
    if not SCRIPT.exists():
        pytest.skip("scripts/ is part of the repository, not of the source distribution")
    spec = importlib.util.spec_from_file_location("embed_uci_digits", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_script_stores_printed_numbers_without_loss(embedding, tmp_path):
    printed = ["0.1", "-3.06E-05", "777.86", "0.00010943", "17572", "0"]
    for view in COLUMNS:
        (tmp_path / f"mfeat-{view}.csv").write_text(f"0,1,2,3,4,5,0\n{','.join(printed)},9\n")
    archive = embedding.build_archive(tmp_path)
    numbers = archive["kar"] / 10.0 ** int(archive["kar_decimals"])
    assert numbers.ravel().tolist() == [float(text) for text in printed]
    assert archive["y"].tolist() == [9]


def test_script_refuses_files_that_disagree_on_the_labels(embedding, tmp_path):
    for view in COLUMNS:
        label = 1 if view == "zer" else 2
        (tmp_path / f"mfeat-{view}.csv").write_text(f"0,0\n0.5,{label}\n")
    with pytest.raises(ValueError, match=r"mfeat-zer.csv has other labels"):
        embedding.build_archive(tmp_path)
