"""What a run was made with: versions, machine, revision."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import viewmend

__all__ = ["environment"]

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch")


@cache
def environment() -> dict[str, Any]:
    """``versions`` of what computes, ``machine``, and the ``revision`` of this code.

    Neither the machine nor its user is named: records are meant to be published.

    Returns
    -------
    dict
        Of strings, numbers and dicts of these.
    """
    return {"versions": _versions(), "machine": _machine(), "revision": _revision()}


def _versions() -> dict[str, str]:
    versions = {"viewmend": viewmend.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def _machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
    }


def _processor() -> str:
    """Name of the processor, which Linux alone tells in a file."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def _revision() -> str:
    """As git describes it, "unknown" for an installed package.

    A package installed somewhere below a checkout of something else is not described by it.
    """
    if not _git("ls-files", "--error-unmatch", Path(__file__).name):
        return "unknown"
    return _git("describe", "--always", "--dirty") or "unknown"


def _git(*arguments: str) -> str:
    """Answer of git about the folder of this file; empty where it has none."""
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return answer.stdout.strip() if answer.returncode == 0 else ""
