"""Figures with the machine they come from, as JSON files in a folder."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from viewmend.backend.threads import available_threads
from viewmend.backend.torch_gpu import import_torch
from viewmend.bench.environment import environment
from viewmend.memory import machine_memory

from .measuring import DEVICES

__all__ = ["Record", "common_parser", "line", "machine", "read", "save", "titles", "write"]

# Programs that were running when this one started: above zero, they share in all seconds.
LOAD_BEFORE = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
# Folders say nothing about a figure, and what is in their names is nobody's business.
UNRECORDED = ("out", "name", "paper", "data")


@dataclass(frozen=True)
class Record:
    """What one run of a script found.

    Attributes
    ----------
    benchmark : str
        Name of the script.
    machine : dict
        See `machine`.
    settings : dict
        Options of the run.
    rows : list of dict
    """

    benchmark: str
    machine: Mapping[str, Any]
    settings: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]


def common_parser(doc: str) -> argparse.ArgumentParser:
    """The options that all scripts have."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2, help="of BLAS and of the kernels")
    parser.add_argument("--repeats", type=int, default=3, help="the shortest counts")
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="cpu is NumPy")
    parser.add_argument("--out", type=Path, help="folder for the JSON file")
    parser.add_argument("--name", help="name of that file, if not that of the script")
    return parser


def machine(device: str) -> dict[str, Any]:
    """Processor, memory, versions, revision, threads, other load, and the GPU if it was used."""
    blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    known = environment()
    facts: dict[str, Any] = {
        "cpu": known["machine"]["processor"],
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory_gb": machine_memory() / 1e9,
        "system": platform.system(),
        "load_before": LOAD_BEFORE,
        "blas": sorted({f"{pool['internal_api']} {pool['version']}" for pool in blas}),
        "blas_threads": max((pool["num_threads"] for pool in blas), default=None),
        "kernel_threads": available_threads(),
        "versions": known["versions"],
        "revision": known["revision"],
    }
    return facts if device != "cuda" else facts | _gpu()


def write(benchmark: str, args: argparse.Namespace, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a record to the folder ``args.out``, if there is one.

    To be called while the threads of the run are still limited: their number is recorded.
    """
    if args.out is None:
        return
    settings = {key: value for key, value in vars(args).items() if key not in UNRECORDED}
    save(Record(benchmark, machine(args.device), settings, list(rows)), args)


def save(record: Record, args: argparse.Namespace) -> None:
    """Write a record to the folder ``args.out``, if there is one, under ``args.name``."""
    if args.out is None:
        return
    args.out.mkdir(parents=True, exist_ok=True)
    device = record.settings["device"]
    default = record.benchmark if device == "cpu" else f"{record.benchmark}-{device}"
    path = args.out / f"{args.name or default}.json"
    path.write_text(json.dumps(asdict(record), indent=1) + "\n")


def read(folder: Path) -> list[Record]:
    """All records of a folder, in the order of their file names."""
    paths = sorted(folder.glob("*.json"))
    if not paths:
        msg = f"{folder} must hold JSON files of these scripts, got none; run one with --out"
        raise FileNotFoundError(msg)
    return [Record(**json.loads(path.read_text())) for path in paths]


def titles(names: Sequence[str]) -> str:
    """Head of a Markdown table."""
    return f"{line(names)}\n|{'---|' * len(names)}"


def line(cells: Iterable[object]) -> str:
    """Row of a Markdown table."""
    return "| " + " | ".join(map(str, cells)) + " |"


def _gpu() -> dict[str, Any]:
    torch = import_torch()
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "gpu": properties.name,
        "gpu_memory_gb": properties.total_memory / 1e9,
        "cuda": torch.version.cuda,
    }
