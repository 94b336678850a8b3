"""The attacks of ``benchmarks/attacks``, which are imported as `attacks`, as `hostile.py` does."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# A source distribution has the tests but not the attacks.
collect_ignore_glob = [] if BENCHMARKS.is_dir() else ["*"]

if str(BENCHMARKS) not in sys.path:
    sys.path.append(str(BENCHMARKS))
