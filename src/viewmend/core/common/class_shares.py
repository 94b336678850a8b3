"""Class weights that make predicted class sizes agree with known class shares."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

# From soft shares to the shares of the largest class of each row; every solution is the start of
# the next. In units of the spread of the log soft labels.
SHARPNESSES = (1.0, 8.0, 64.0)
# A share of zero is this part of the largest of its row, so that no class is ruled out for ever.
LEAST_SHARE = 1e-12


def normalise_rows(F: np.ndarray) -> np.ndarray:
    """Rows of a non-negative array divided by their sums; zero rows stay zero."""
    total = F.sum(axis=1, keepdims=True)
    return np.divide(F, total, out=np.zeros_like(F), where=total > 0)


def normalise_columns(F: np.ndarray) -> np.ndarray:
    """Columns of a non-negative array divided by their sums: every class gets the same mass."""
    total = F.sum(axis=0)
    return np.divide(F, total, out=np.zeros_like(F), where=total > 0)


def balance_classes(P: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Rows ``P_ic w_c / sum of these`` with weights ``w`` such that their mean is ``prior``.

    What Sinkhorn's iteration of row and column scaling converges to; here by its dual, the one of
    `class_weights` without sharpening. Arrays as there, but zero rows become the prior.
    """
    some = P.sum(axis=1) > 0
    log_P = log_shares(P[some])
    # Weights w = exp(b) act on log shares as a shift.
    b = minimize(_dual, np.zeros(len(prior)), (log_P, prior, 1.0), jac=True, method="L-BFGS-B").x
    balanced = np.tile(prior, (len(P), 1))
    balanced[some] = softmax(log_P + b, axis=1)
    return balanced


def class_weights(F: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Weights ``w`` such that the classes ``argmax_c F_ic w_c`` come in the shares ``prior``.

    With ``b = log w`` this is the dual of assigning samples to classes of given sizes: minimise
    ``mean_i max_c (log F_ic + b_c) - sum_c prior_c b_c``. The maximum is smoothed to
    ``logsumexp(s x) / s``, which makes the problem differentiable, and ``s`` is raised in steps.
    Matching argmax rather than the soft labels themselves matters where rows are nearly uniform:
    soft shares can then equal the prior while one class wins every row.

    ``F`` (n_samples, n_classes) is non-negative, and zero rows are left out; ``prior`` is positive
    and sums to one. The weights are scaled to a geometric mean of one.
    """
    log_F = log_shares(F[F.sum(axis=1) > 0])
    log_F = log_F - log_F.mean(axis=1, keepdims=True)
    # Centring the columns is a first guess at b, and shows how much the rows differ; by medians,
    # because rows of labelled samples stand far out.
    b = -np.median(log_F, axis=0)
    spread = max(float(np.median(np.abs(log_F + b))), np.finfo(float).eps)
    for sharpness in SHARPNESSES:
        data = (log_F, prior, sharpness / spread)
        b = minimize(_dual, b, data, jac=True, method="L-BFGS-B").x
    # A common factor of all weights changes no class.
    return np.exp(b - b.mean())


def log_shares(P: np.ndarray) -> np.ndarray:
    """``log P``, finite also where a share is zero, and comparable with its row."""
    P = P.astype(np.float64)
    least = np.maximum(LEAST_SHARE * P.max(axis=1, keepdims=True), np.finfo(float).tiny)
    return np.asarray(np.log(np.maximum(P, least)))


def _dual(
    b: np.ndarray, log_F: np.ndarray, prior: np.ndarray, sharpness: float
) -> tuple[float, np.ndarray]:
    """Smoothed objective and its gradient, the excess of each class over its share."""
    # By hand: this runs some hundred times, and SciPy's logsumexp takes three times as long.
    scores = sharpness * (log_F + b)
    largest = scores.max(axis=1, keepdims=True)
    exponentials = np.exp(scores - largest)
    total = exponentials.sum(axis=1, keepdims=True)
    smooth_maximum = float((np.log(total) + largest).mean()) / sharpness
    return smooth_maximum - float(prior @ b), (exponentials / total).mean(axis=0) - prior
