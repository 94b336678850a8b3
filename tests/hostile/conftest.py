"""The attacks of ``benchmarks/attacks``, which are imported as `attacks`, as `hostile.py` does."""

import os
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# These attacks fork, which Windows cannot.
collect_ignore = [] if os.name == "posix" else ["test_kills.py", "test_writers.py"]

if str(BENCHMARKS) not in sys.path:
    sys.path.append(str(BENCHMARKS))
