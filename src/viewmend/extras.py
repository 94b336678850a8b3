"""How to get what an optional part of the library needs, in words true where one stands."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import unquote, urlparse

__all__ = ["EXTRA_OF", "how_to_install"]

# Packages that only a part of the library needs, and the extra that brings each.
EXTRA_OF = {
    "anndata": "omics",
    "dask": "dask",
    "distributed": "dask",
    "h5py": "omics",
    "joblib": "bench",
    "matplotlib": "plot",
    "mudata": "omics",
    "pandas": "frames",
    "polars": "frames",
    "pyarrow": "bench",
    "rich": "cli",
    "torch": "torch",
    "typer": "cli",
    "zarr": "dask",
}


def how_to_install(*extras: str) -> str:
    """The command that installs some extras of the library, as the end of a message.

    Quoted, because brackets mean something to shells. A library that was installed from a folder
    is installed from there again: an index of packages may have no such name, or another version.

    Examples
    --------
    >>> how_to_install("plot").startswith("run: pip install ")
    True
    """
    wanted = f"[{','.join(extras)}]"
    folder, editable = _source()
    if folder is None:
        return f"run: pip install 'viewmend{wanted}'"
    return f"run: pip install {'-e ' if editable else ''}'{folder}{wanted}'"


def _source() -> tuple[Path | None, bool]:
    """The folder that the library was installed from, if it was, and whether it is used in place.

    Installers write that down in ``direct_url.json`` (PEP 610).
    """
    try:
        written = distribution("viewmend").read_text("direct_url.json")
    except PackageNotFoundError:
        written = None
    origin = json.loads(written) if written else {}
    place = urlparse(origin.get("url", ""))
    folder = Path(unquote(place.path))
    if "dir_info" not in origin or place.scheme != "file" or not folder.is_dir():
        return None, False
    return folder, bool(origin["dir_info"].get("editable", False))
