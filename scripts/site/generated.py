"""Folders of pages that are made when the site is built."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_folder(folder: Path, contents: Mapping[str, str | bytes]) -> None:
    """Make ``folder`` hold these files and no others; what has not changed is not touched.

    Sphinx reads a page again when its file is new, so an untouched file saves the time for it.
    """
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name not in contents:
            path.unlink()
    for name, content in contents.items():
        wanted = content.encode() if isinstance(content, str) else content
        path = folder / name
        if not path.is_file() or path.read_bytes() != wanted:
            path.write_bytes(wanted)
