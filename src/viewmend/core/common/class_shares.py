"""Class weights that make predicted class sizes agree with known class shares.

Weights ``w = exp(b)`` of classes act on log shares as a shift ``b``. To meet given shares is to
minimise a smooth convex function of ``b``, by Newton's method: all that a step needs of the rows
are sums of the size of a class or of a pair of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from viewmend.backend.namespace import Array, array_namespace, row_maxima
from viewmend.core.common.rows import Column, Rows, Sums
from viewmend.core.common.small_sums import beside, on_host, summed_in_pieces, total

# From soft shares to the shares of the largest class of each row; every solution is the start of
# the next. In units of the spread of the log soft labels.
SHARPNESSES = (1.0, 8.0, 64.0)
# A share of zero is this part of the largest of its row, so that no class is ruled out for ever.
LEAST_SHARE = 1e-12
# Shares are met when no class is further off than this; on the way to a larger sharpness, than the
# second, a part of its share.
SHARE_TOLERANCE, ROUGH_TOLERANCE = 1e-7, 0.1
# Soft classes are made sharper, by this factor at a time and so often at most, until the shares of
# the largest classes are off by less than this part of a share, or by two samples.
SHARPER, MOST_SHARPER, CLOSE = 8.0, 3, 0.02
# Steps of Newton's method at most, per sharpness: as a rule three suffice. None is longer than from
# one end of the log shares of a row to the other, which turns every row over.
MOST_STEPS = 40
LONGEST_STEP = -2 * float(np.log(LEAST_SHARE))
# Second derivatives are at most the sharpness, and below this part of it but rounding of float32.
LEAST_CURVATURE = 1e-6
# Times that the centre of the log shares is looked for, from the column means on, at most.
MOST_CENTRES = 5


def normalise_rows(F: Array) -> Array:
    """Rows of a non-negative array divided by their sums; zero rows stay zero."""
    xp = array_namespace(F)
    sums = xp.sum(F, axis=1, keepdims=True)
    return F / xp.where(sums > 0, sums, xp.ones_like(sums))


def balance_classes(
    rows: Rows, P: Column, prior: np.ndarray, start: np.ndarray | None = None
) -> Column:
    """Rows ``P_ic w_c / sum of these`` with weights ``w`` such that their mean is ``prior``.

    What Sinkhorn's iteration of row and column scaling converges to; here by its dual, the one of
    `class_weights` without sharpening. Columns and arrays as there, but zero rows become the prior.
    """
    logs = rows.map(log_share_rows, P, shared=None)
    b = np.zeros(len(prior)) if start is None else np.log(start)
    b = _meet(rows, logs, prior, b, 1.0, SHARE_TOLERANCE)
    return rows.map(weighted_rows, P, shared=(b, prior))


def class_weights(
    rows: Rows, P: Column, prior: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """Weights ``w`` such that the classes ``argmax_c P_ic w_c`` come in the shares ``prior``.

    With ``b = log w`` this is the dual of assigning samples to classes of given sizes: minimise
    ``mean_i max_c (log P_ic + b_c) - sum_c prior_c b_c``. The maximum is smoothed to
    ``logsumexp(s x) / s``, which makes the problem differentiable, and ``s`` is raised in steps.
    Matching argmax rather than the soft labels themselves matters where rows are nearly uniform:
    soft shares can then equal the prior while one class wins every row.

    Parameters
    ----------
    rows : Rows
    P : column of array (n_rows, n_classes)
        Not negative; zero rows are left out.
    prior : array (n_classes,)
        Positive, of sum one.
    start : array (n_classes,), optional
        Weights that were right for similar rows.

    Returns
    -------
    array (n_classes,)
        Scaled to a geometric mean of one.
    """
    logs = rows.map(log_share_rows, P, shared=None)
    centre, spread = _centre_and_spread(rows, logs, len(prior))
    sharpnesses = [sharpness / spread for sharpness in SHARPNESSES]
    b = -centre if start is None else np.log(start)
    rough = ROUGH_TOLERANCE * prior
    if start is not None:
        now = _dual(rows, logs, prior, b, sharpnesses[-1])
        # Close already: what is missing is found at the last sharpness.
        is_close = (np.abs(now.gradient) <= rough).all()
        sharpnesses = sharpnesses[-1:] if is_close else sharpnesses
    for sharpness in sharpnesses[:-1]:
        b = _meet(rows, logs, prior, b, sharpness, rough)
    b = _meet(rows, logs, prior, b, sharpnesses[-1], SHARE_TOLERANCE)
    b = _sharpened(rows, logs, prior, b, sharpnesses[-1])
    # A common factor of all weights changes no class, and one so far behind wins no row.
    b = np.maximum(b, b.max() - LONGEST_STEP)
    return np.exp(b - b.mean())


def log_shares(P: Array) -> Array:
    """``log P`` of float64, finite also where a share is zero, and comparable with its row."""
    xp = array_namespace(P)
    P = xp.astype(P, xp.float64)
    least = LEAST_SHARE * row_maxima(P)
    return xp.log(xp.maximum(P, xp.clip(least, np.finfo(float).tiny, None)))


# ------------------------------------------------------------------ tasks


def log_share_rows(P: Array, _shared: None) -> Array:
    """`log_shares` of the rows that are not zero, less their mean in each row, of the type of P."""
    xp = array_namespace(P)
    logs = log_shares(P[xp.any(P > 0, axis=1)])
    return xp.astype(logs - xp.mean(logs, axis=1, keepdims=True), P.dtype)


def weighted_rows(P: Array, shared: tuple[np.ndarray, np.ndarray]) -> Array:
    """Shares ``P_ic exp(b_c)``, scaled to sum one, for ``shared = (b, prior)``."""
    xp = array_namespace(P)
    b, prior = (beside(values, P) for values in shared)
    scores = log_shares(P) + xp.astype(b, xp.float64)
    weighted = xp.exp(scores - row_maxima(scores))
    weighted = weighted / xp.sum(weighted, axis=1, keepdims=True)
    return xp.where(xp.any(P > 0, axis=1, keepdims=True), xp.astype(weighted, P.dtype), prior)


def column_totals(logs: Array, _shared: None) -> Sums:
    """Number of rows, and their sum."""
    return {"n_rows": len(logs), "total": total(logs)}


def closeness_sums(logs: Array, shared: tuple[np.ndarray, float]) -> Sums:
    """What a mean that far rows hardly count in is made of, for ``shared = (centre, spread)``.

    A row counts by one over its distance from the centre, so that the mean is close to a median;
    the mean logarithm of the distances is the spread that follows from them.
    """
    xp = array_namespace(logs)
    centre, spread = shared
    gaps = logs - beside(centre, logs)
    sizes = xp.abs(gaps)
    closeness = 1 / (sizes + spread)
    least = xp.finfo(logs.dtype).eps
    return {
        "pull": total(gaps * closeness),
        "closeness": total(closeness),
        "log_size": total(xp.log(xp.clip(sizes, least, None)), axis=None),
    }


def largest_sums(logs: Array, b: np.ndarray) -> Sums:
    """How many rows have their largest share in each class, (n_classes,), after the shift ``b``."""
    xp = array_namespace(logs)
    classes = xp.argmax(logs + beside(b, logs), axis=1)
    members = classes[:, None] == xp.arange(logs.shape[1], device=logs.device)
    return {"largest": total(members)}


def dual_sums(logs: Array, shared: tuple[np.ndarray, float]) -> Sums:
    """Sums over rows of the smoothed maximum, its gradient, and the products of the latter.

    For ``shared = (b, sharpness)``. All three are made of the soft classes of a row.
    """
    xp = array_namespace(logs)
    b, sharpness = shared
    shift = beside(b, logs)

    def piece(part: slice) -> Sums:
        scores = logs[part] + shift
        scores *= sharpness
        largest = row_maxima(scores)
        scores -= largest
        soft = xp.exp(scores)
        sums = xp.sum(soft, axis=1, keepdims=True)
        soft /= sums
        return {
            "maximum": total(xp.log(sums) + largest, axis=None) / sharpness,
            "soft": total(soft),
            "products": xp.astype(soft.T @ soft, xp.float64),
        }

    return summed_in_pieces(piece, logs)


# ------------------------------------------------------------------ Newton's method


@dataclass(frozen=True, eq=False)
class _Dual:
    """The smoothed objective at ``b``, its gradient and its Hessian.

    The gradient is the excess of each class over its share. Values are known up to ``rounding``.
    """

    b: np.ndarray
    value: float
    rounding: float
    gradient: np.ndarray
    hessian: np.ndarray

    def improves_on(self, other: _Dual) -> bool:
        """Whether it is lower, or as low, as far as numbers tell, and flatter by far."""
        flatter = np.abs(self.gradient).max() < np.abs(other.gradient).max() / 2
        as_low = self.value < other.value + other.rounding
        return bool(self.value < other.value or (as_low and flatter))


def _dual(rows: Rows, logs: Column, prior: np.ndarray, b: np.ndarray, sharpness: float) -> _Dual:
    sums = on_host(rows.sums(dual_sums, logs, shared=(b, sharpness)))
    # Soft classes sum to one in each row.
    n_rows = max(sums["soft"].sum(), 1.0)
    soft, maximum, mean = sums["soft"] / n_rows, sums["maximum"] / n_rows, prior @ b
    return _Dual(
        b,
        float(maximum - mean),
        float(np.finfo(np.float32).eps * (abs(maximum) + abs(mean))),
        soft - prior,
        sharpness * (np.diag(soft) - sums["products"] / n_rows),
    )


def _meet(
    rows: Rows,
    logs: Column,
    prior: np.ndarray,
    b: np.ndarray,
    sharpness: float,
    tolerance: np.ndarray | float,
) -> np.ndarray:
    """The shift ``b`` at which soft classes of this sharpness have the shares ``prior``.

    It is found once no class is further off than the ``tolerance``.
    """
    here: _Dual | None = _dual(rows, logs, prior, b, sharpness)
    for _ in range(MOST_STEPS):
        assert here is not None
        if (np.abs(here.gradient) <= tolerance).all():
            break
        b, step = here.b, _newton_step(here, sharpness)
        lengths = _lengths(step * sharpness)
        trials = (_dual(rows, logs, prior, b + t * step, sharpness) for t in lengths)
        # Lengths are tried, each with a pass over the rows, until one does.
        here = next((trial for trial in trials if trial.improves_on(here)), None)
        if here is None:
            # Nothing is left but rounding.
            break
    return b if here is None else here.b


def _sharpened(
    rows: Rows, logs: Column, prior: np.ndarray, b: np.ndarray, sharpness: float
) -> np.ndarray:
    """The shift ``b`` for soft classes so sharp that the largest come in the shares ``prior``."""
    for _ in range(MOST_SHARPER):
        counts = on_host(rows.sums(largest_sums, logs, shared=b))["largest"]
        n_rows = counts.sum()
        if (np.abs(counts - n_rows * prior) <= np.maximum(CLOSE * n_rows * prior, 2)).all():
            break
        sharpness *= SHARPER
        b = _meet(rows, logs, prior, b, sharpness, SHARE_TOLERANCE)
    return b


def _lengths(step: np.ndarray) -> tuple[float, ...]:
    """Shares of a step to try: all, the one that lowers the objective for certain, one between.

    Second derivatives of the smoothed maximum change by a factor of at most ``e^r`` along a step
    that, in units of the smoothing, has the range ``r``; so ``log(1 + r) / r`` of it is safe.
    """
    reach = float(np.ptp(step))
    safe = float(np.log1p(reach)) / reach if reach > 0 else 1.0
    return 1.0, safe**0.5, safe


def _newton_step(dual: _Dual, sharpness: float) -> np.ndarray:
    """``-H^+ g``, without the common shift of all classes, which changes nothing."""
    values, vectors = scipy.linalg.eigh(dual.hessian)
    # Classes that no row is undecided about would be moved without end.
    values = np.maximum(values, LEAST_CURVATURE * sharpness)
    step = -(vectors / values) @ (vectors.T @ dual.gradient)
    step = step - step.mean()
    return np.asarray(step * (LONGEST_STEP / max(np.ptp(step), LONGEST_STEP)))


def _centre_and_spread(rows: Rows, logs: Column, n_classes: int) -> tuple[np.ndarray, float]:
    """Where the rows are, (n_classes,), and how far from there as a rule.

    Rows of labelled samples stand far out and must not count for more than others, as they would in
    a mean. A median is no sum; this mean of rows weighted by their closeness comes close to one.
    """
    sums = on_host(rows.sums(column_totals, logs, shared=None))
    n_rows = max(float(sums["n_rows"]), 1.0)
    centre, spread = sums["total"] / n_rows, 1.0
    for _ in range(MOST_CENTRES):
        sums = on_host(rows.sums(closeness_sums, logs, shared=(centre, spread)))
        shift = sums["pull"] / np.maximum(sums["closeness"], np.finfo(float).tiny)
        centre = centre + shift
        spread = float(np.exp(sums["log_size"] / (n_rows * n_classes)))
        if np.abs(shift).max() < spread:
            break
    return centre, spread
