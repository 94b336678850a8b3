"""AGF-TI in the paper's symbols: pure functions of arrays.

Read `admm` first (Algorithm 2), then `fusion` (Algorithm 1); `released` holds what the authors'
code does differently. The names of all symbols are listed in ``docs/notation.md``.
"""

from viewmend.core.agfti.admm import solve
from viewmend.core.agfti.state import Problem, Result, Round, State

__all__ = ["Problem", "Result", "Round", "State", "solve"]
