"""Whether Algorithm 2 ends where Eq. (proposed) is stationary.

At a stationary point the multiplier is a subgradient of the tensor norm, ``W in rho d|G|``, the
graphs agree, ``Z = G``, and no missing row of ``Z_v`` gains by moving on the simplex along
``lam alpha_v^2 P T_v^T - W_v``. The first holds after every tensor step and the second in the limit
of a growing penalty. The third is what is measured here; see ``docs/theory.md``.
"""

from __future__ import annotations

from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.agfti.state import Problem, State
from viewmend.core.common.simplex import project_simplex


def missing_row_residuals(state: State, problem: Problem) -> list[Array]:
    """``Z_v - proj(Z_v + lam alpha_v^2 P T_v^T - W_v)`` on the missing rows of every view.

    Zero exactly where the rows satisfy the first-order (KKT) conditions of the problem.
    """
    residuals = []
    for v in range(problem.Z.shape[0]):
        rows = problem.missing[:, v]
        weight = problem.lam * float(state.alpha[v]) ** 2
        Z_v = state.Z[v, ...][rows]
        ascent = weight * (state.P[rows] @ state.T[v, ...].T) - state.W[v, ...][rows]
        residuals.append(Z_v - project_simplex(Z_v + ascent))
    return residuals


def graph_residual(state: State, problem: Problem) -> float:
    """Norm of `missing_row_residuals` over all views; zero at a stationary point."""
    squares = [
        float(array_namespace(part).sum(part**2)) for part in missing_row_residuals(state, problem)
    ]
    return sum(squares) ** 0.5
