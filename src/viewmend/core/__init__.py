"""The mathematics of both methods: pure functions of arrays; symbols as in ``docs/notation.md``.

The low-level entry of AGF-TI is here. It takes the symbols of the paper and returns them::

    from viewmend.core import Problem, solve

    result = solve(Problem(Z=Z, Y=Y, observed=observed, lam=4.0, beta=1.0, rho=100.0))
    result.F        # soft labels (n_samples, n_classes)

That of Mend is in `viewmend.core.mend`, whose docstring shows it.

Rooms: `agfti` and `mend`, one method each, which do not import each other; `graphs` (nearest
neighbours, graphs, label spreading) and `common` (class shares, calibration, linear systems, the
order of the samples), which both use. Each package lists its modules in reading order.
"""

from viewmend.core.agfti.admm import solve
from viewmend.core.agfti.state import Problem, Result, Round, State

__all__ = ["Problem", "Result", "Round", "State", "solve"]
