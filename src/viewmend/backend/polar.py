"""The orthogonal polar factor of a matrix by matrix products alone, which all hardware does fast.

A step ``X -> X (a I + b X^T X + c (X^T X)^2)`` keeps the singular vectors of ``X`` and maps every
singular value ``x`` to ``a x + b x^3 + c x^5``. With the right coefficients some eight steps bring
all values between a thousandth and 1 to 1, where ``X`` is the polar factor.
"""

from __future__ import annotations

from functools import cache

import numpy as np

__all__ = ["N_COURSES", "SMALLEST_SHARE", "Coefficients", "quintics"]

Coefficients = tuple[float, float, float]

# One course of steps serves matrices whose singular values are above this share of the Frobenius
# norm, as those of most alignments are; a second course serves those above its square.
SMALLEST_SHARE = 1e-3
N_COURSES = 2

# Below this distance from 1 the best polynomial equals, to all digits, the one that is flattest at
# 1: its first two derivatives vanish there, so that errors are cubed.
NEAR = 1e-2
FLATTEST = 15 / 8, -10 / 8, 3 / 8


@cache
def quintics(smallest: float, precision: float) -> tuple[Coefficients, ...]:
    """Coefficients of the steps that bring singular values in [smallest, 1] to 1.

    Each is the best for the interval that the one before leaves.

    Parameters
    ----------
    smallest : float
        Lower bound of the singular values, in (0, 1).
    precision : float
        Largest error at the end.

    References
    ----------
    N. Amsel, D. Persson, C. Musco, R. M. Gower. The Polar Express: optimal matrix sign methods and
    their application to the Muon algorithm. arXiv:2505.16932, 2025.
    """
    # After a step the values lie in [1 - error, 1 + error], where the next one starts.
    steps, low, high = [], smallest, 1.0
    while max(1 - low, high - 1) > precision:
        if 1 - low > NEAR:
            step, error = _best_quintic(low, high)
        else:
            # 1 - p(x) = (1 - x)^3 (1 + 9 x / 8 + 3 x^2 / 8), and the second factor is 2.5 at 1.
            step, error = FLATTEST, 2.5 * max(1 - low, high - 1) ** 3
        steps.append(step)
        low, high = 1 - error, 1 + error
    return tuple(steps)


def _best_quintic(low: float, high: float) -> tuple[Coefficients, float]:
    """The odd polynomial of degree 5 nearest 1 on an interval, and how near it comes.

    Its error is as large at both ends as at its two extrema between them, and changes sign from
    one to the next (Remez's method).
    """
    # Start of the two inner extrema; each round solves for the polynomial whose error alternates
    # on the four points, then moves the inner points to the extrema of that polynomial.
    inner = np.array([0.75 * low + 0.25 * high, 0.25 * low + 0.75 * high])
    for _ in range(30):
        points = np.array([low, *inner, high])
        system = np.stack([points, points**3, points**5, [1.0, -1.0, 1.0, -1.0]], axis=1)
        a, b, c, error = np.linalg.solve(system, np.ones(4))
        # Zeros of the derivative a + 3 b x^2 + 5 c x^4, a quadratic in x^2.
        inner = np.sqrt(np.sort(np.roots([5 * c, 3 * b, a]).real))
    return (float(a), float(b), float(c)), float(abs(error))
