"""What a run was made with: versions, machine, revision."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import viewmend
from viewmend.exceptions import InvalidParameterError

UNKNOWN, DIRTY = "unknown", "-dirty"

# What `git describe --always --dirty` says, for copies of a checkout on machines without it.
REVISION_VARIABLE = "VIEWMEND_REVISION"

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch")


@cache
def environment() -> dict[str, Any]:
    """``versions`` of what computes, ``machine``, and the ``revision`` of this code.

    Neither the machine nor its user is named: records are meant to be published.
    """
    versions = {"viewmend": viewmend.__version__, "python": platform.python_version()}
    machine = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
    }
    return {
        "versions": versions | {package: _version(package) for package in PACKAGES},
        "machine": machine,
        "revision": _revision(),
    }


def check_publishable(environments: Iterable[Mapping[str, Any]], path: str | Path) -> None:
    """Refuse figures of code that nobody can look up for the documentation of a checkout.

    ``environments`` are what `environment` gave when the figures were made, ``path`` is where a
    page, table or picture of them is to be written. Nothing is refused unless it lies in a folder
    ``docs`` with a file ``conf.py``. Refused are revisions that are not known, or are those of
    code with changes that were not committed.
    """
    folders = (Path(path).resolve(), *Path(path).resolve().parents)
    if not any(one.name == "docs" and (one / "conf.py").is_file() for one in folders):
        return
    revisions = [str(one.get("revision", UNKNOWN)) for one in environments]
    refused = Counter(one for one in revisions if one == UNKNOWN or one.endswith(DIRTY))
    if refused:
        listed = ", ".join(f"{count} of {revision}" for revision, count in refused.items())
        msg = (
            f"{refused.total()} of {len(revisions)} records come from code that cannot be looked "
            f"up ({listed}), so {path} under docs/ must not show them; commit the code and do "
            "these runs again, or write to another folder"
        )
        raise InvalidParameterError(msg)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """Name of the processor, which Linux alone tells in a file."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def _revision() -> str:
    """As git describes it, `UNKNOWN` for an installed package; a copy without git may be told.

    A package installed somewhere below a checkout of something else is not described by it.
    """
    if not _git("ls-files", "--error-unmatch", Path(__file__).name):
        return os.environ.get(REVISION_VARIABLE, UNKNOWN)
    return _git("describe", "--always", f"--dirty={DIRTY}") or UNKNOWN


def _git(*arguments: str) -> str:
    """Answer of git about the folder of this file; empty where it has none."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
