"""Which views of which samples go missing.

A protocol maps ``(n_samples, n_views, rate, rng)`` to a mask ``observed`` (n_samples, n_views) of
bool. Every protocol leaves each sample at least one view. The two protocols below give the same
rate two meanings, so results under one cannot be compared with results under the other;
`realised_completeness` measures how complete a mask really is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from viewmend.exceptions import InvalidParameterError

MissingProtocol = Callable[[int, int, float, np.random.Generator], np.ndarray]


def drop_independently(
    n_samples: int, n_views: int, rate: float, rng: np.random.Generator
) -> np.ndarray:
    """Drop every (sample, view) pair with probability ``rate``, then refill emptied samples.

    A sample that lost all its views gets one of them back, chosen uniformly. The expected share
    of observed pairs is therefore ``1 - rate + rate**n_views / n_views``, more than ``1 - rate``:
    with two views and rate 0.5 only 37.5 % of the pairs are missing. This is the protocol of the
    code released with AGF-TI.

    Parameters
    ----------
    n_samples, n_views : int
        Size of the mask.
    rate : float in [0, 1)
        Probability that a pair is dropped.
    rng : numpy Generator
        Source of random numbers.

    Returns
    -------
    observed : array (n_samples, n_views) of bool
        Which sample has which view.
    """
    _check_rate(rate, n_views)
    observed = rng.random((n_samples, n_views)) >= rate
    emptied = np.flatnonzero(~observed.any(axis=1))
    observed[emptied, rng.integers(n_views, size=emptied.size)] = True
    return observed


def drop_from_samples(
    n_samples: int, n_views: int, rate: float, rng: np.random.Generator
) -> np.ndarray:
    """Let ``round(rate * n_samples)`` samples lose 1 to ``n_views - 1`` views each.

    The samples, the number of views each loses and which ones are uniform. A share ``1 - rate``
    of the samples stays complete, and the expected share of observed pairs is ``1 - rate / 2``
    whatever the number of views. This is the protocol of the text of the AGF-TI paper.

    Parameters
    ----------
    n_samples, n_views : int
        Size of the mask.
    rate : float in [0, 1)
        Share of the samples that become incomplete.
    rng : numpy Generator
        Source of random numbers.

    Returns
    -------
    observed : array (n_samples, n_views) of bool
        Which sample has which view.
    """
    _check_rate(rate, n_views)
    observed = np.ones((n_samples, n_views), dtype=bool)
    if rate == 0:
        return observed
    incomplete = rng.choice(n_samples, size=round(rate * n_samples), replace=False)
    n_lost = rng.integers(1, n_views, size=incomplete.size)
    # The views ranked below n_lost in a random ranking are a uniform subset of that size.
    ranking = rng.permuted(np.tile(np.arange(n_views), (incomplete.size, 1)), axis=1)
    observed[incomplete] = ranking >= n_lost[:, None]
    return observed


# Which samples lose which views, by the name that `hide` takes.
MISSING_PROTOCOLS: dict[str, MissingProtocol] = {
    "independent": drop_independently,
    "samples": drop_from_samples,
}


@dataclass(frozen=True)
class Completeness:
    """How complete a mask really is, beside its nominal rate.

    Attributes
    ----------
    observed_pairs : float
        Share of the (sample, view) pairs that are observed.
    complete_samples : float
        Share of the samples that have every view.
    """

    observed_pairs: float
    complete_samples: float


def realised_completeness(observed: np.ndarray) -> Completeness:
    """Measure how complete a mask is.

    Parameters
    ----------
    observed : array (n_samples, n_views) of bool
        Which sample has which view.

    Returns
    -------
    Completeness
    """
    observed = np.asarray(observed, dtype=bool)
    return Completeness(float(observed.mean()), float(observed.all(axis=1).mean()))


def _check_rate(rate: float, n_views: int) -> None:
    if not 0 <= rate < 1:
        msg = (
            f"the missing rate must lie in [0, 1) but is {rate!r}; "
            "pass a share such as 0.3 for 30 %, less than 1 because every sample keeps a view"
        )
        raise InvalidParameterError(msg)
    if rate > 0 and n_views < 2:
        msg = (
            f"the missing rate is {rate!r} but there are {n_views} views; every sample keeps at "
            "least one view, so pass two or more views, or a rate of 0"
        )
        raise InvalidParameterError(msg)
