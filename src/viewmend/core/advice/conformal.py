"""Prediction sets: all classes that are not too improbable, with a promised coverage.

Conformal prediction with the score "one minus the share of the class" (Sadinle, Lei and Wasserman
2019; "LAC" in MAPIE), which gives the smallest sets on average, in a prediction-powered form
(Angelopoulos and others 2023). The miss rate of a threshold is what the model believes of all
samples without a label, plus what held-out labels say against the beliefs about their samples. If
those are right, the miss rate is known as exactly as samples without a label tell; whatever they
are, it is right on average, and labels that are easier or harder than others by chance do not
matter.
"""

from __future__ import annotations

import math

import numpy as np

from viewmend.core.advice.set_levels import MISS_RATES, SetLevels, believed_misses
from viewmend.core.common.calibration import tempered

# Held-out labels of a class that a promise of its own takes.
PER_CLASS = 50
# More than there can be.
LARGEST_COUNT = 10**18


def fewest_labels(alpha: float) -> int:
    """Held-out labels without which sets of this miss rate are all classes: ``1 / alpha - 1``."""
    # Of rates so small that their inverse overflows, no number of labels is enough. The inverse of
    # 1 / 49 is rounded to a little more than 49, which must not ask for one more.
    return math.ceil(round(min(1 / float(alpha) - 1, LARGEST_COUNT), 9))


def least_shares(
    shares: np.ndarray,
    codes: np.ndarray,
    levels: SetLevels,
    alpha: float,
    by_class: bool,
    counts: np.ndarray | None = None,
) -> np.ndarray:
    """From which share on each class is in a set of the model, (n_classes,).

    Minus infinity: always, because labels are too few for the promise.

    Parameters
    ----------
    shares : array (n_held_out, n_classes)
        Of samples whose labels the model did not see.
    codes : array (n_held_out,) of int
        Their classes.
    levels : SetLevels
    alpha : float in (0, 1)
        Share of the sets that may miss the class of their sample.
    by_class : bool
        Whether that is promised for the samples of every class, or for all together.
    counts : array (n_classes,) of int, or (1,) where it is promised for all together, optional
        How many labels there are where it is asked whether they are enough, if some of them tell
        the same and do not count.
    """
    n_classes = shares.shape[1]
    own = shares[np.arange(len(codes)), codes]
    # Of all samples, or of every class: right shares, all shares, believed misses.
    known = [(own, shares, MISS_RATES)]
    if by_class:
        known = [(own[codes == c], shares[:, c], levels.misses[c]) for c in range(n_classes)]
    counts = np.array([len(part[0]) for part in known]) if counts is None else counts
    least = [
        float(np.interp(alpha, miss_rates(*part, levels), levels.fit))
        if count >= fewest_labels(alpha)
        else -math.inf
        for part, count in zip(known, counts, strict=True)
    ]
    return np.array(least if by_class else least * n_classes)


def miss_rates(
    own: np.ndarray, shares: np.ndarray, believed: np.ndarray, levels: SetLevels
) -> np.ndarray:
    """Estimated miss rates (n_levels,) of the model at its levels, which rise with these.

    Parameters
    ----------
    own : array (n_held_out,)
        Shares of the right classes of held-out samples.
    shares : array
        All shares of the held-out samples, or those of a class.
    believed : array (n_levels,)
        What the model believes to miss of samples without a label.
    levels : SetLevels
    """
    contradiction = missed(own, levels) - believed_misses(shares, levels.held_out)
    rates = believed + contradiction
    # By chance, a higher threshold may be estimated to miss less: halfway between the lowest rising
    # curve above and the highest below.
    rising, falling = np.maximum.accumulate(rates), np.minimum.accumulate(rates[::-1])[::-1]
    return np.asarray((rising + falling) / 2)


def missed(own: np.ndarray, levels: SetLevels) -> np.ndarray:
    """Part (n_levels,) of the right classes of samples like the held-out ones that is missed.

    A further sample is missed below the ``k``-th smallest of ``n`` shares with probability
    ``k / (n + 1)``; between two of them it is interpolated.
    """
    ranks = np.arange(len(own) + 2) / (len(own) + 1)
    places = np.sort(np.interp(own, levels.held_out, MISS_RATES))
    return np.interp(MISS_RATES, np.concatenate([[0], places, [1]]), ranks)


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


def enough_by_class(counts: np.ndarray) -> bool:
    """Whether every class has held-out labels enough, of ``counts`` (n_classes,), for a promise.

    This does not depend on what is promised: sets shrink as more misses are allowed.
    """
    return bool(counts.min() >= PER_CLASS)
