"""The scripts of the gallery run, and the gallery shows what they print and draw."""

import importlib
import json
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# What a script imports beyond the library's own dependencies.
NEEDS = {
    "agfti_convergence": ["matplotlib"],
    "agfti_imputation": ["matplotlib"],
    "anndata_obsm": ["anndata"],
    "calibration": ["matplotlib"],
    "csv_folder": ["pandas"],
    "explanation": ["matplotlib"],
    "labelling_loop": ["matplotlib"],
    "long_fits": ["pandas"],
    "mudata_modalities": ["mudata"],
    "multiomics": ["mudata", "matplotlib"],
    "pandas_frames": ["pandas"],
    "polars_frames": ["polars", "pandas", "pyarrow"],
    "sparse_words": ["pandas"],
    "sub_cluster_problem": ["matplotlib"],
    "torch_tensors": ["torch"],
    "tuning": ["matplotlib"],
}

pytestmark = [
    # What these packages say about themselves and about the pandas they find.
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
]


@pytest.fixture
def gallery(monkeypatch):
    pytest.importorskip("sphinx", reason="the gallery is an extension of Sphinx")
    pytest.importorskip("matplotlib", reason="the gallery shows pictures")
    monkeypatch.syspath_prepend(ROOT / "scripts" / "site")
    return importlib.import_module("gallery")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_scripts_run_and_check_themselves(path, tmp_path, monkeypatch, capsys):
    for package in NEEDS.get(path.stem, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    assert "\nassert " in path.read_text()
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_the_gallery_shows_every_script_once(gallery):
    shown = [script for scripts in gallery.sections().values() for script in scripts]
    assert sorted(shown) == [path.stem for path in EXAMPLES]


SCRIPT = """# # Title
#
# First sentence. Second.

a = 1

# %%
# More `prose`.

print(a + 1)  # a comment

# %%
import matplotlib.pyplot as plt

plt.figure(figsize=(1, 1))
plt.plot([a, 2])
"""


def test_cells_share_variables_and_keep_their_line_numbers(gallery):
    cells = gallery.read_cells(SCRIPT)
    assert [cell.prose for cell in cells] == [
        "# Title\n\nFirst sentence. Second.",
        "More `prose`.",
        "",
    ]
    assert [SCRIPT.splitlines()[cell.line - 1] for cell in cells] == [
        "a = 1",
        "print(a + 1)  # a comment",
        "import matplotlib.pyplot as plt",
    ]
    shown = gallery.run_cells(cells, Path("script.py"))
    assert [part.printed for part in shown] == ["", "2\n", ""]
    assert [len(part.pictures) for part in shown] == [0, 0, 1]


def test_pages_show_code_output_and_pictures_and_are_the_same_every_time(gallery):
    cells = gallery.read_cells(SCRIPT)
    first, second = (gallery.run_cells(cells, Path("script.py")) for _ in range(2))
    page = gallery.page_text("script", first)
    assert "```python\nprint(a + 1)  # a comment\n```" in page
    assert "```{code-block} text\n:class: printed\n\n2\n```" in page
    assert "(script_2_0.png)" in page
    assert list(gallery.pictures(first)) == list(gallery.pictures(second))


def test_a_card_has_a_picture_or_else_the_end_of_what_was_printed(gallery):
    drawn = gallery.run_cells(gallery.read_cells(SCRIPT), Path("script.py"))
    card = gallery.card("script", drawn)
    assert "{grid-item-card} Title" in card
    assert ":img-top: script_2_0.png" in card
    assert "\nFirst sentence.\n" in card
    printed = gallery.run_cells(gallery.read_cells(SCRIPT.split("# %%\nimport")[0]), Path("s.py"))
    assert ":::{card-header}\n```text\n2\n```\n:::" in gallery.card("script", printed)


def test_captions_are_one_sentence_that_fits_a_card(gallery):
    for path in EXAMPLES:
        cells = gallery.read_cells(path.read_text())
        title, sentence = gallery.caption([gallery.Shown(cells[0], "", ())])
        assert title, path.stem
        assert sentence.endswith("."), path.stem
        assert 30 <= len(sentence) <= 160, (path.stem, sentence)


def test_a_notebook_has_the_cells_of_the_script(gallery):
    cells = json.loads(gallery.notebook(gallery.read_cells(SCRIPT)))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown", "code", "code"]
    assert cells[3]["source"] == "print(a + 1)  # a comment"


def test_an_error_in_a_cell_names_the_line_of_the_script(gallery):
    cells = gallery.read_cells("# # Title\n\n# %%\n# Prose.\n\nx = 1\nassert x == 2\n")
    with pytest.raises(AssertionError) as caught:
        gallery.run_cells(cells, Path("script.py"))
    assert caught.traceback[-1].lineno + 1 == 7
