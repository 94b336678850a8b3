"""Prediction sets: all classes that are not too improbable, with a promised coverage.

Split conformal prediction with the score "one minus the share of the class" (Sadinle, Lei and
Wasserman 2019; "LAC" in MAPIE), which gives the smallest sets on average. If the shares of ``n``
held-out samples and of a new one are exchangeable, the new sample's own share is below the ``k``-th
smallest of theirs with probability ``k / (n + 1)`` at most.
"""

from __future__ import annotations

import math

import numpy as np

from viewmend.core.common.calibration import tempered

# Held-out labels of a class that a promise of its own takes: it is kept too well by up to one of
# them, which is two points of the coverage.
PER_CLASS = 50


def fewest_labels(alpha: float) -> int:
    """Held-out labels without which sets of this miss rate are all classes: ``1 / alpha - 1``."""
    return math.ceil(1 / alpha - 1)


def least_shares(shares: np.ndarray, codes: np.ndarray, alpha: float, by_class: bool) -> np.ndarray:
    """From which share on each class is in a set, (n_classes,); minus infinity: always.

    Parameters
    ----------
    shares : array (n_held_out, n_classes)
        Of samples whose labels the model did not see.
    codes : array (n_held_out,) of int
        Their classes.
    alpha : float in (0, 1)
        Share of the sets that may miss the class of their sample.
    by_class : bool
        Whether that is promised for the samples of every class, or for all together.
    """
    n_classes = shares.shape[1]
    own = shares[np.arange(len(codes)), codes]
    if not by_class:
        return np.full(n_classes, _smallest(own, alpha))
    return np.array([_smallest(own[codes == c], alpha) for c in range(n_classes)])


def class_sets(
    shares: np.ndarray,
    least: np.ndarray,
    temperature: float,
    unscored: np.ndarray,
    allow_empty: bool = True,
) -> np.ndarray:
    """Classes of large enough share at a temperature, (n_samples, n_classes) of bool.

    Parameters
    ----------
    shares : array (n_samples, n_classes)
    least : array (n_classes,)
    temperature : float
    unscored : array (n_classes,)
        Shares that say that nothing is known of a sample, which may be of any class.
    allow_empty : bool
        Otherwise the class of largest share is in the set whatever it is.
    """
    silent = (shares == unscored).all(axis=1, keepdims=True)
    sets = (tempered(shares, temperature) >= least) | silent
    if not allow_empty:
        sets[np.arange(len(shares)), np.argmax(shares, axis=1)] = True
    return np.asarray(sets)


def enough_by_class(codes: np.ndarray, n_classes: int) -> bool:
    """Whether every class has held-out labels enough for a promise of its own.

    This does not depend on what is promised: sets shrink as more misses are allowed.
    """
    return bool(np.bincount(codes, minlength=n_classes).min() >= PER_CLASS)


def _smallest(own: np.ndarray, alpha: float) -> float:
    """The ``floor(alpha (n + 1))``-th smallest of ``n`` shares."""
    k = math.floor(alpha * (len(own) + 1))
    return float(np.sort(own)[k - 1]) if k else -math.inf
