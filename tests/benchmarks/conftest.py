"""The scripts of ``benchmarks/`` import each other by name, as if run from there."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

if str(BENCHMARKS) not in sys.path:
    sys.path.append(str(BENCHMARKS))
