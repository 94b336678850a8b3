"""The page and the chart of `familiar`."""

from __future__ import annotations

from pathlib import Path


def write(rows: list[dict[str, str]], out: Path) -> None:
    """Write ``familiar.md`` and ``familiar.png`` into a folder."""
