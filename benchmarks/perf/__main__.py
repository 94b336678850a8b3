"""Sets of runs, one process each, and the page of what they found.

python -m benchmarks.perf --set quick --out build/bench
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["SETS", "main"]

# Script and options of every run.
SETS: dict[str, tuple[str, ...]] = {
    # Two minutes on two cores that do nothing else.
    "quick": (
        "rounds --quick --rounds 10 --plain-rounds 2 --repeats 2",
        "growth --sizes 2000 4000 8000 --rounds 2 --repeats 2",
        "tnn --samples 2000 5000 --views 2 4 --anchors 128 --repeats 2 --plain --copied 134217728",
        "hardware --samples 5000 --repeats 2 --copied 134217728 --product-size 768",
        "whole_fit --samples 3000 --anchors 128",
    ),
    # Hours: the transcription with golden section takes most of them.
    "full": (
        "rounds --only CUB UCI-Digit Caltech101-20 OutScene MNIST-USPS",
        "rounds --only AwA-256 AwA-512 --plain-rounds 3 --name rounds-awa",
        "growth",
        "growth --dtype float32 --name growth-float32",
        "tnn --plain",
        "tnn --dtype float32 --name tnn-float32",
        "hardware",
        "whole_fit --memory",
    ),
    # Minutes on one NVIDIA H200.
    "gpu": (
        "gpu",
        "growth --device cuda --rounds 10 --budget-gb 80",
        "tnn --device cuda --repeats 10 --budget-gb 80",
        "tnn --device cuda --dtype float32 --repeats 10 --budget-gb 80 --name tnn-cuda-float32",
        "hardware --device cuda --samples 126054 --anchors 1024 --repeats 10",
        "whole_fit --device cuda --repeats 2 --memory",
    ),
}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--set", choices=list(SETS), default="quick", help="which runs")
    parser.add_argument("--out", type=Path, required=True, help="folder for figures and page")
    parser.add_argument("--threads", type=int, default=2, help="of BLAS and of the kernels")
    parser.add_argument("--page", type=Path, help="where the page goes, if not into the folder")
    args = parser.parse_args(argv)
    for command in SETS[args.set]:
        script, *options = command.split()
        print(f"\n{command}\n", flush=True)
        _run(script, *options, "--threads", str(args.threads), "--out", str(args.out))
    page = args.page or args.out / "speed.md"
    _run("page", "--data", str(args.out), "--out", str(page))
    print(f"\n{page}")


def _run(script: str, *options: str) -> None:
    """One process for each: memory and compiled code of one run do not help or harm the next."""
    package = (__spec__.parent if __spec__ else None) or "benchmarks.perf"
    subprocess.run([sys.executable, "-m", f"{package}.{script}", *options], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
