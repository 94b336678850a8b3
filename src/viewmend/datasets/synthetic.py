"""Generated data: blobs that are easy to separate, and two moons with a gap in every view."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.datasets.task import Task, make_task
from viewmend.exceptions import InvalidParameterError

# Where along the moons, from 0 to 1, the missing stretch of each view has its middle.
GAP_MIDDLES = (1 / 3, 2 / 3)
# Beyond this no sample between the gaps would be seen in both views, and nothing would join them.
LONGEST_GAP = 0.3
# Standard deviation of the coordinates of the class centres of the blobs.
CENTRE_SPREAD = 3.0


def make_multiview_blobs(
    n_samples: int = 300,
    n_views: int = 2,
    n_classes: int = 3,
    n_features: int | Sequence[int] = 8,
    noise: float = 1.0,
    random_state: int | np.random.Generator | None = None,
) -> MultiViewData:
    """Draw classes as isotropic Gaussian blobs, independent between views given the class.

    In every view a class has a centre with coordinates from N(0, 9), and its samples scatter
    around it with standard deviation ``noise``. Class sizes differ by at most one, and the rows
    come in random order.

    Parameters
    ----------
    n_samples, n_views, n_classes : int
        At least one sample per class.
    n_features : int or sequence of n_views int
        Number of columns of all views, or of each.
    noise : float
        Standard deviation of a sample around its centre, in every coordinate; 0 or more.
    random_state : int, numpy Generator or None
        Seed.

    Returns
    -------
    MultiViewData
    """
    _check_at_least("n_views", n_views, 1)
    _check_at_least("n_classes", n_classes, 1)
    _check_at_least("n_samples", n_samples, n_classes)
    _check_at_least("noise", noise, 0)
    if isinstance(n_features, int | np.integer):
        n_features = (int(n_features),) * n_views
    if len(n_features) != n_views or min(n_features) < 1:
        msg = (
            f"n_features must be a positive int or {n_views} of them, one per view, "
            f"but is {n_features!r}; pass one number for all views or as many as n_views"
        )
        raise InvalidParameterError(msg)
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    views = []
    for d in n_features:
        centres = rng.normal(scale=CENTRE_SPREAD, size=(n_classes, d))
        views.append(centres[y] + rng.normal(scale=noise, size=(n_samples, d)))
    return MultiViewData(
        tuple(views),
        observed=np.ones((n_samples, n_views), dtype=bool),
        names=tuple(f"view {v}" for v in range(n_views)),
        y=y,
        name="blobs",
        description=f"{n_classes} Gaussian blobs in each of {n_views} views, noise {noise}",
    )


def make_broken_moons(
    n_samples: int = 400,
    *,
    noise: float = 0.08,
    gap: float = 0.2,
    n_labelled: int = 3,
    shuffle: bool = True,
    random_state: int | np.random.Generator | None = None,
) -> Task:
    """Two moons in two views; each view lacks another part of both moons.

    This is the Sub-Cluster Problem of the AGF-TI paper (Figure 1) in its smallest form. Only one
    end of each moon is labelled. In either view alone, the missing part cuts a moon in two, and
    labels cannot spread to the far end. Together the views close both gaps, because samples that
    are missing in one view are observed in the other: every sample has at least one view, and in
    the union of the 7-nearest-neighbour graphs of the views a path leads from it to a label of its
    class.

    View 0 shows the moons as they are usually drawn, view 1 shows them turned by a right angle,
    with noise of its own. Samples lie evenly along the moons, so the only holes are those cut.

    Parameters
    ----------
    n_samples : int
        Samples of both moons together.
    noise : float
        Standard deviation of a sample across its moon, which has radius 1 and lies 0.5 from the
        other. With a few hundred samples the moons keep apart up to 0.1.
    gap : float in (0, 0.3]
        Length of the part that is missing in a view, as a share of the moon: around one third of
        the way in view 0, around two thirds in view 1.
    n_labelled : int
        Labelled samples per moon, the ones nearest to its first end; all before the first gap.
    shuffle : bool
        Put the rows in random order. Otherwise they go along moon 0, then along moon 1.
    random_state : int, numpy Generator or None
        Seed.

    Returns
    -------
    Task
        ``order`` gives the place of each row along the moons.
    """
    _check_moons(n_samples, noise, gap, n_labelled)
    rng = np.random.default_rng(random_state)
    y = np.sort(np.arange(n_samples) % 2)
    sizes = np.bincount(y)
    rank = np.concatenate([np.arange(size) for size in sizes])
    place = (rank + rng.random(n_samples)) / sizes[y]
    moons, turned = (_moon_points(place, y, noise, rng) for _ in range(2))
    views = (moons, turned @ np.array([[0.0, 1.0], [-1.0, 0.0]]))
    observed = np.column_stack([np.abs(place - middle) > gap / 2 for middle in GAP_MIDDLES])
    order = rng.permutation(n_samples) if shuffle else np.arange(n_samples)
    data = MultiViewData(views, observed, ("moons", "turned moons"), y=y)
    return make_task(data, np.flatnonzero(rank < n_labelled), order)


def _moon_points(
    place: np.ndarray, y: np.ndarray, noise: float, rng: np.random.Generator
) -> np.ndarray:
    """Points (n_samples, 2) at ``place`` in [0, 1] along the upper (y = 0) or lower moon.

    Samples stray across the moon, uniformly with standard deviation ``noise``. Noise along the
    moon or without bound would open further gaps or bridge the ones cut.
    """
    width = np.sqrt(3) * noise
    radius = 1 + rng.uniform(-width, width, size=place.size)
    upper = np.column_stack([radius * np.cos(np.pi * place), radius * np.sin(np.pi * place)])
    # The lower moon is the upper one turned by half a circle about (1/2, 1/4).
    return np.where(y[:, None] == 0, upper, np.array([1.0, 0.5]) - upper)


def _check_moons(n_samples: int, noise: float, gap: float, n_labelled: int) -> None:
    _check_at_least("n_samples", n_samples, 2)
    _check_at_least("noise", noise, 0)
    _check_at_least("n_labelled", n_labelled, 1)
    if not 0 < gap <= LONGEST_GAP:
        msg = (
            f"gap must lie in (0, {LONGEST_GAP}] but is {gap!r}; pass a share of the moon such as "
            "0.2, short enough that some samples between the gaps are seen in both views"
        )
        raise InvalidParameterError(msg)
    before_the_gap = int((GAP_MIDDLES[0] - gap / 2) * (n_samples // 2))
    if n_labelled > before_the_gap:
        msg = (
            f"n_labelled={n_labelled} but only {before_the_gap} samples of each moon lie before "
            "the first gap; label fewer or raise n_samples"
        )
        raise InvalidParameterError(msg)


def _check_at_least(parameter: str, number: float, least: float) -> None:
    if not number >= least:
        msg = f"{parameter} must be {least} or more but is {number!r}; pass a larger number"
        raise InvalidParameterError(msg)
