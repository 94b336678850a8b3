"""Pages of the gallery: the scripts in ``examples``, run when the site is built.

A script is divided by lines ``# %%`` into cells. The comment that a cell begins with is Markdown,
the rest code; what the code prints and the figures it leaves open are shown below it.
"""

from __future__ import annotations

import io
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

EXAMPLES = Path(__file__).parents[2] / "examples"
SECTIONS: Mapping[str, tuple[str, ...]] = {
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
        "agfti_convergence",
        "agfti_imputation",
    ),
}
INTRODUCTION = """# Gallery

Scripts of a few seconds each, run when this site was built: what is shown below the code is what it
printed and drew. All of them check their own results and are part of the tests; they lie in
`examples/` of the source.
"""


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


def on_config(config: MkDocsConfig) -> None:
    section = next(item["Gallery"] for item in config.nav if "Gallery" in item)
    for title, scripts in SECTIONS.items():
        section.append({title: [f"gallery/{script}.md" for script in scripts]})


def on_files(files: Files, config: MkDocsConfig) -> Files:
    lines = [INTRODUCTION]
    for title, scripts in SECTIONS.items():
        lines.append(f"\n## {title}\n")
        for script in scripts:
            path = EXAMPLES / f"{script}.py"
            shown = run_cells(read_cells(path.read_text()), path)
            lines.append(_entry(script, shown))
            for name, content in _contents(path, shown).items():
                files.append(File.generated(config, f"gallery/{name}", content=content))
    files.append(File.generated(config, "gallery/index.md", content="\n".join(lines) + "\n"))
    return files


def _contents(path: Path, shown: list[Shown]) -> dict[str, str | bytes]:
    """The files of one script by name: its page, itself, its pictures."""
    drawn = {picture_name(path.stem, *place): png for place, png in pictures(shown)}
    return {f"{path.stem}.md": page_text(path.stem, shown), path.name: path.read_text(), **drawn}


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
            parts.append(f"``` {{.text .printed}}\n{part.printed.rstrip()}\n```")
        names = [picture_name(script, c, p) for p in range(len(part.pictures))]
        parts += [f"![What the code above draws]({name})" for name in names]
    parts.append(f"[This page as a script]({script}.py){{ download }}")
    return "\n\n".join(parts) + "\n"


def _entry(script: str, shown: list[Shown]) -> str:
    """One item of the list of scripts: title and first sentence."""
    title, _, rest = shown[0].cell.prose.partition("\n")
    first = re.split(r"(?<=\.)\s", " ".join(rest.split()))[0]
    return f"- [{title.lstrip('# ')}]({script}.md): {first}"
