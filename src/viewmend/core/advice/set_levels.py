"""Thresholds of class shares that mean the same to different models.

Sets of the classes with a share of ``t`` or more miss, as a model believes, the class of its
samples at the rate ``mean_i sum_c p_ic [p_ic < t]``. That takes no labels. Two models are compared
at thresholds of one believed miss rate, whatever their shares are distributed like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viewmend.core.common.calibration import temperature_for, tempered

# Believed miss rates that thresholds are known of; between them they are interpolated. Promises are
# strict as a rule, so that they are closest near zero.
MISS_RATES = np.linspace(0, 1, 401) ** 2
# A fit with all labels and all rounds is surer than those that hold labels out. Up to so much of
# that is also right: where classes are groups, which these fits find too. Where they overlap, and
# these fits are hardly better than chance, more labels help little, and rounds repeat guesses.
CREDIT = 0.5
# New samples took no part in the rounds. They are less sure than those of the fit, and as often
# right: their shares are taken at this part of the temperature.
NEW_PART = 0.97


@dataclass(frozen=True, eq=False)
class SetLevels:
    """What shares of held-out samples, and of a model, are compared by.

    Attributes
    ----------
    temperature : float
        Of the shares of the model, at which it is as sure as it deserves beside the fits that hold
        labels out. That of new samples is `new_temperature`.
    held_out, fit : array (n_levels,)
        Shares from which on classes are in a set, at which these fits, and the model at its
        temperature, believe to miss the class of a sample at the `MISS_RATES`.
    misses : array (n_classes, n_levels)
        At what rates the model then believes to miss samples of every class.
    """

    temperature: float
    held_out: np.ndarray
    fit: np.ndarray
    misses: np.ndarray

    @property
    def new_temperature(self) -> float:
        """Of the shares of new samples."""
        return NEW_PART * self.temperature


def set_levels(held_out: np.ndarray, fit: np.ndarray) -> SetLevels:
    """Compare shares (n_rows, n_classes) by held-out fits with those of a model.

    Both are of samples without a label, which need not be the same ones.
    """
    sure, surer = (float(P.max(axis=1).mean()) for P in (held_out, fit))
    temperature = temperature_for(fit, sure + earned(sure, fit.shape[1]) * (surer - sure))
    fit = tempered(fit, temperature)
    levels = share_levels(fit)
    misses = np.stack([believed_misses(column, levels) for column in fit.T])
    return SetLevels(temperature, share_levels(held_out), levels, misses)


def earned(sure: float, n_classes: int) -> float:
    """Part of its higher confidence that a model has earned, if others are ``sure`` on average."""
    chance = 1 / n_classes
    return CREDIT * max(sure - chance, 0) / (1 - chance)


def share_levels(P: np.ndarray) -> np.ndarray:
    """Thresholds (n_levels,) at which shares ``P`` (n_rows, n_classes) miss the `MISS_RATES`."""
    shares = np.sort(P[P > 0])
    # Half of a share counts at its own value, so that levels lie between shares.
    below = np.cumsum(shares) - shares / 2
    return np.interp(MISS_RATES, below / len(P), shares)


def believed_misses(shares: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Part (n_levels,) of the sum of ``shares``, of any shape, that is below the levels."""
    shares = np.sort(shares, axis=None)
    below = np.concatenate([[0.0], np.cumsum(shares)])
    return below[np.searchsorted(shares, levels)] / max(below[-1], np.finfo(float).tiny)
