"""Pages of the gallery: the scripts in ``examples``, run when the site is built.

A script is divided by lines ``# %%`` into cells. The comment that a cell begins with is Markdown,
the rest code; what the code prints and the figures it leaves open are shown below it. The first
heading is the title, the first sentence below it the caption, and the first picture the thumbnail;
a script that draws nothing has the end of what it prints for one.

A page can be downloaded as a script or as a notebook. ``-D gallery_run=0`` leaves the pages of an
earlier build as they are.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generated import write_folder
from sphinx.application import Sphinx

EXAMPLES = Path(__file__).parents[2] / "examples"
# Scripts that no section names belong to the last one.
SECTIONS: Mapping[str, tuple[str, ...]] = {
    "From start to end": ("multiomics",),
    "Data as you keep it": (
        "arrays",
        "dict_and_mask",
        "stacked_pipeline",
        "pandas_frames",
        "polars_frames",
        "anndata_obsm",
        "mudata_modalities",
        "sparse_words",
        "torch_tensors",
        "csv_folder",
    ),
    "Models at work": (
        "calibration",
        "explanation",
        "labelling_loop",
        "tuning",
        "long_fits",
    ),
}
# Pages that another part of the navigation lists.
ELSEWHERE = ("multiomics",)
INTRODUCTION = """---
html_theme.sidebar_secondary.remove: true
---

# Gallery

Scripts of a few seconds each, run when this site was built: what is shown below the code is what it
printed and drew. All of them check their own results and are part of the tests.
"""
# How much of what a script prints fits into a thumbnail.
THUMBNAIL_LINES, THUMBNAIL_COLUMNS = 10, 39


@dataclass(frozen=True)
class Cell:
    """Markdown, and the code that follows it with its first line number."""

    prose: str
    code: str
    line: int


@dataclass(frozen=True)
class Shown:
    """A cell, what it printed, and the PNG files of the figures it drew."""

    cell: Cell
    printed: str
    pictures: tuple[bytes, ...]


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("gallery_run", True, "", [bool, int, str])
    app.connect("builder-inited", on_builder_inited)
    return {"parallel_read_safe": True}


def on_builder_inited(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "gallery"
    if app.config.gallery_run in (True, "1") or not folder.is_dir():
        write_folder(folder, gallery_files())


def sections() -> dict[str, list[str]]:
    """Every script by its section, in the order of the gallery."""
    there = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    named = {script for scripts in SECTIONS.values() for script in scripts}
    found = {title: [one for one in scripts if one in there] for title, scripts in SECTIONS.items()}
    found[list(SECTIONS)[-1]] += [script for script in there if script not in named]
    return found


def gallery_files() -> dict[str, str | bytes]:
    """Run every script: the index and all other files of the gallery by name."""
    parts, files = [INTRODUCTION], {}
    for title, scripts in sections().items():
        cards = []
        for script in scripts:
            path = EXAMPLES / f"{script}.py"
            shown = run_cells(read_cells(path.read_text()), path)
            cards.append(card(script, shown))
            files.update(_contents(path, shown))
        parts += [f"## {title}\n", ":::::{grid} 1 2 3 3\n:gutter: 3\n", *cards, ":::::\n"]
    listed = [one for scripts in sections().values() for one in scripts if one not in ELSEWHERE]
    parts.append("\n".join(["```{toctree}", ":hidden:", "", *listed, "```", ""]))
    return {"index.md": "\n".join(parts), **files}


def _contents(path: Path, shown: list[Shown]) -> dict[str, str | bytes]:
    """The files of one script by name: its page, itself, its notebook, its pictures."""
    drawn = {picture_name(path.stem, *place): png for place, png in pictures(shown)}
    return {
        f"{path.stem}.md": page_text(path.stem, shown),
        path.name: path.read_text(),
        f"{path.stem}.ipynb": notebook([part.cell for part in shown]),
        **drawn,
    }


def read_cells(text: str) -> list[Cell]:
    """The cells of a script, of which the first begins at its top."""
    cells, line = [], 1
    for part in re.split(r"^# %%.*\n", text, flags=re.MULTILINE):
        comment = re.match(r"(#.*\n|\s*\n)*", part)[0]
        prose = "\n".join(re.sub(r"^# ?", "", row) for row in comment.splitlines())
        code = part[len(comment) :]
        cells.append(Cell(prose.strip(), code.strip(), line + comment.count("\n")))
        line += part.count("\n") + 1
    return [cell for cell in cells if cell.prose or cell.code]


def run_cells(cells: list[Cell], path: Path) -> list[Shown]:
    """Run the cells of a script one after another, in an empty folder."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    variables: dict[str, Any] = {"__name__": "__main__", "__file__": str(path)}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return [_run(cell, path, variables) for cell in cells]


def _run(cell: Cell, path: Path, variables: dict[str, Any]) -> Shown:
    printed = io.StringIO()
    # Empty lines before the code, so that a traceback names the line of the file.
    code = compile("\n" * (cell.line - 1) + cell.code, path, "exec")
    with redirect_stdout(printed), warnings.catch_warnings():
        # The tests run the same scripts with warnings as errors.
        warnings.simplefilter("ignore")
        exec(code, variables)
    return Shown(cell, printed.getvalue(), tuple(_drawn()))


def _drawn() -> Iterator[bytes]:
    """The figures that are open, closed thereafter."""
    import matplotlib.pyplot as plt

    for number in plt.get_fignums():
        picture = io.BytesIO()
        # Without the date and the version that Matplotlib writes, the file is the same every time.
        metadata = {"Software": None}
        plt.figure(number).savefig(picture, dpi=110, bbox_inches="tight", metadata=metadata)
        plt.close(number)
        yield picture.getvalue()


def pictures(shown: list[Shown]) -> Iterator[tuple[tuple[int, int], bytes]]:
    """Every picture of a script under the number of its cell and its own."""
    for c, part in enumerate(shown):
        for p, png in enumerate(part.pictures):
            yield (c, p), png


def picture_name(script: str, cell: int, picture: int) -> str:
    return f"{script}_{cell}_{picture}.png"


def page_text(script: str, shown: list[Shown]) -> str:
    """The page of one script in Markdown."""
    parts = []
    for c, part in enumerate(shown):
        parts.append(part.cell.prose)
        if part.cell.code:
            parts.append(f"```python\n{part.cell.code}\n```")
        if part.printed.strip():
            parts.append(f"```{{code-block}} text\n:class: printed\n\n{part.printed.rstrip()}\n```")
        names = [picture_name(script, c, p) for p in range(len(part.pictures))]
        parts += [f"![What the code above draws]({name})" for name in names]
    parts.append(f"Download: [script]({script}.py), [notebook]({script}.ipynb).")
    return "\n\n".join(parts) + "\n"


def notebook(cells: list[Cell]) -> str:
    """Cells as a Jupyter notebook without outputs."""
    parts = []
    for cell in cells:
        if cell.prose:
            parts.append({"cell_type": "markdown", "metadata": {}, "source": cell.prose})
        if cell.code:
            code = {"cell_type": "code", "metadata": {}, "source": cell.code}
            parts.append({**code, "execution_count": None, "outputs": []})
    for number, part in enumerate(parts):
        part["id"] = f"cell-{number}"
    return json.dumps(
        {"cells": parts, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1
    )


def card(script: str, shown: list[Shown]) -> str:
    """One entry of the gallery: thumbnail, title and first sentence."""
    title, sentence = caption(shown)
    options = [f":link: {script}", ":link-type: doc", ":class-card: example"]
    drawn = next((picture_name(script, *place) for place, _ in pictures(shown)), None)
    if drawn is not None:
        picture, head = [f":img-top: {drawn}", f":img-alt: Picture of {script}"], []
    else:
        picture = []
        head = [":::{card-header}", "```text", thumbnail_text(shown), "```", ":::", ""]
    top = f"::::{{grid-item-card}} {title}"
    return "\n".join([top, *options, *picture, "", *head, sentence, "::::", ""])


def caption(shown: list[Shown]) -> tuple[str, str]:
    """Title and first sentence of a script."""
    title, _, rest = shown[0].cell.prose.partition("\n")
    return title.lstrip("# "), re.split(r"(?<=\.)\s", " ".join(rest.split()))[0]


def thumbnail_text(shown: list[Shown]) -> str:
    """The end of what a script prints."""
    lines = [line for part in shown for line in part.printed.splitlines() if line.strip()]
    fitted = [short for line in lines[-THUMBNAIL_LINES:] for short in _fitted(line)]
    return "\n".join(fitted[:THUMBNAIL_LINES])


def _fitted(line: str) -> list[str]:
    """A line in the width of a thumbnail: sentences are wrapped, rows of tables cut."""
    if "  " in line or not line.isascii():
        return [line[:THUMBNAIL_COLUMNS]]
    return textwrap.wrap(line, THUMBNAIL_COLUMNS, subsequent_indent="  ")
