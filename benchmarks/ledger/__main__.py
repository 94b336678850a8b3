"""Write the ledger and the pages of results that take their figures from the same records.

python -m benchmarks.ledger --results docs/results --out docs/results [--paper DIR] [--charts]

``--results`` holds the exports: ``paper/NAME.csv``, ``NAME.csv`` and ``theory.csv``. ``--paper`` is
a folder with the paper's printed tables; with it our means are compared with them anew
(``paper/beside_print.csv``). ``--charts`` draws the pictures too.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from viewmend.bench.paper_values import read_paper_tables
from viewmend.bench.runs import Record
from viewmend.storage.atomic import replacing, write_text

from . import beside, picture
from .claims import read_claims
from .exports import read_export
from .judging import Sources
from .page import judge, page
from .templates import Filling, drawn_charts, filled_pages

__all__ = ["main", "read_sources", "written_pages"]


def read_sources(results: Path, paper: Path | None = None) -> Sources:
    """Everything that verdicts are made from; comparisons with print that are stale are refused."""
    exports = read_exports(results)
    if paper is None:
        rows = beside.read_beside(results / "paper" / beside.FILE)
        beside.check_fresh(rows, exports)
    else:
        rows = beside.compared(exports, read_paper_tables(paper))
    theory, revision = _read_theory(results / "theory.csv")
    return Sources(exports, rows, theory, revision, read_claims().bars)


def read_exports(results: Path) -> dict[str, list[Record]]:
    """Exports by the names of their files; those of the paper come first."""
    files = [*sorted(results.glob("*.csv")), *sorted((results / "paper").glob("*.csv"))]
    found = {path.stem: read_export(path) for path in files}
    return {name: records for name, records in found.items() if records}


def written_pages(sources: Sources) -> dict[str, str]:
    """Every page by its name, the ledger among them."""
    table = read_claims()
    judgements = judge(table, sources)
    filling = Filling(sources, judgements)
    return {"ledger.md": page(table, judgements), **filled_pages(filling)}


def _read_theory(path: Path) -> tuple[dict[str, str], str]:
    if not path.is_file():
        return {}, ""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {row["quantity"]: row["shown"] for row in rows}, rows[0]["revision"] if rows else ""


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the pages, and with ``--paper`` the comparison with print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="folder of the exports")
    parser.add_argument("--out", type=Path, required=True, help="folder of the pages")
    parser.add_argument("--paper", type=Path, help="folder of the paper's printed tables")
    parser.add_argument("--charts", action="store_true", help="draw the pictures too")
    options = parser.parse_args(arguments)
    sources = read_sources(options.results, options.paper)
    if options.paper is not None:
        write_text(options.out / "paper" / beside.FILE, beside.to_csv(sources.beside))
    for name, text in written_pages(sources).items():
        write_text(options.out / name, text)
        print(f"Page: {options.out / name}")
    if options.charts:
        table = read_claims()
        own = {picture.FILE: picture.draw_verdicts(table, judge(table, sources))}
        for name, figure in chain(own.items(), drawn_charts(sources)):
            with replacing(options.out / name) as stream:
                figure.savefig(stream)
            print(f"Picture: {options.out / name}")


if __name__ == "__main__":
    main()
