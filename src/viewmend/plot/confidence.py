"""Plots of the confidence of a model, and of how well it matches the accuracy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from viewmend.core.common.calibration import BINS
from viewmend.exceptions import InvalidParameterError
from viewmend.plot.confusion import class_positions
from viewmend.plot.style import GREY, PALETTE, axes_or_new, label_texts, name_ticks, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


RIGHT, WRONG = PALETTE[0], PALETTE[1]
# Shares of a class that sum to one but for rounding may exceed it.
ROUNDING = 1e-9
QUARTERS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, eq=False)
class Reliability:
    """Confidence against accuracy, in bins of equal numbers of samples.

    Attributes
    ----------
    confidence, accuracy : array (n_bins,)
        Means over the samples of each bin.
    counts : array (n_bins,) of int
        Number of samples in each bin.
    """

    confidence: np.ndarray
    accuracy: np.ndarray
    counts: np.ndarray

    @property
    def error(self) -> float:
        """Expected calibration error: mean gap of confidence and accuracy, weighted by samples."""
        gaps = np.abs(self.confidence - self.accuracy)
        return float(np.average(gaps, weights=self.counts))


def reliability(confidence: ArrayLike, right: ArrayLike, n_bins: int = BINS) -> Reliability:
    """Sort samples by confidence and split them into bins of equal size.

    Its ``error`` is that of `viewmend.core.common.calibration.calibration_error`.

    Parameters
    ----------
    confidence : array-like (n_samples,) in [0, 1]
        Probability of the predicted class.
    right : array-like (n_samples,) of bool
        Whether the prediction is correct.
    n_bins : int
        Largest number of bins; there are never more bins than samples.

    Returns
    -------
    Reliability
    """
    sure, hits = _checked(confidence), np.asarray(right, dtype=float)
    if len(hits) != len(sure):
        msg = f"confidence has {len(sure)} samples and right has {len(hits)}; pass one of each"
        raise InvalidParameterError(msg)
    order = np.argsort(sure, kind="stable")
    bins = np.array_split(order, min(n_bins, len(order)))
    return Reliability(
        np.array([sure[rows].mean() for rows in bins]),
        np.array([hits[rows].mean() for rows in bins]),
        np.array([len(rows) for rows in bins]),
    )


@styled
def plot_reliability(
    confidence: ArrayLike, right: ArrayLike, ax: Axes | None = None, n_bins: int = BINS
) -> Axes:
    """Draw accuracy against confidence, with the expected calibration error.

    Dots on the diagonal mean good calibration: of the samples with a confidence of 80 %, 80 % are
    predicted correctly. All dots have the same number of samples.

    Parameters
    ----------
    confidence, right, n_bins
        As in `reliability`; pass only samples whose labels the model was not given.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax, (4.6, 4.4))
    curve = reliability(confidence, right, n_bins)
    ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
    ax.vlines(curve.confidence, curve.accuracy, curve.confidence, color=WRONG, linewidth=1.6)
    ax.plot(curve.confidence, curve.accuracy, "o", color=RIGHT, markersize=6)
    ax.set_title(f"calibration error {curve.error:.3f}")
    ax.text(0.97, 0.03, "overconfident", ha="right", color=GREY, transform=ax.transAxes)
    ax.text(0.03, 0.97, "underconfident", va="top", color=GREY, transform=ax.transAxes)
    _percent_axes(ax, "xy")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set_xlabel("confidence")
    ax.set_ylabel("share of right predictions")
    return ax


@styled
def plot_confidence(
    confidence: ArrayLike,
    ax: Axes | None = None,
    right: ArrayLike | None = None,
    n_bins: int = 20,
) -> Axes:
    """Draw a histogram of the confidence; correct and wrong predictions apart if known.

    Parameters
    ----------
    confidence : array-like (n_samples,) in [0, 1]
        Probability of the predicted class.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    right : array-like (n_samples,) of bool, optional
        Whether the prediction is correct, if known.
    n_bins : int
        Number of bins.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax)
    sure = _checked(confidence)
    looks: dict[str, Any] = {"bins": np.linspace(0, 1, n_bins + 1), "rwidth": 0.9}
    if right is None:
        ax.hist(sure, color=RIGHT, **looks)
    else:
        hits = np.asarray(right, dtype=bool)
        names = [f"right ({hits.sum()})", f"wrong ({(~hits).sum()})"]
        parts = [sure[hits], sure[~hits]]
        ax.hist(parts, stacked=True, color=[RIGHT, WRONG], label=names, **looks)
        ax.legend(frameon=False, loc="upper left")
    _percent_axes(ax, "x")
    ax.set_xlim(0, 1)
    ax.set_xlabel("confidence")
    ax.set_ylabel("samples")
    return ax


@styled
def plot_class_confidence(
    confidence: ArrayLike, y_pred: Iterable[Any], classes: Iterable[Any], ax: Axes | None = None
) -> Axes:
    """Draw the spread of the confidence in every predicted class.

    The dot is the median, the thick line the middle half of the samples, the thin line the middle
    nine tenths.

    Parameters
    ----------
    confidence : array-like (n_samples,) in [0, 1]
        Probability of the predicted class.
    y_pred : array-like (n_samples,)
        Predicted classes.
    classes : array-like (n_classes,)
        Order of the lines, the first on top.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    names, sure = list(classes), _checked(confidence)
    ax = axes_or_new(ax, (5.4, max(2.4, 0.24 * len(names) + 0.9)))
    rows = class_positions(y_pred, names)
    for row in np.unique(rows):
        ends = np.quantile(sure[rows == row], QUARTERS)
        ax.plot(ends[[0, 4]], [row, row], color=RIGHT, linewidth=1)
        ax.plot(ends[[1, 3]], [row, row], color=RIGHT, linewidth=4, solid_capstyle="butt")
        ax.plot(ends[2], row, "o", color="white", markeredgecolor=RIGHT, markersize=6)
    ax.set_xlim(0, 1.02)
    ax.set_ylim(len(names) - 0.4, -0.6)
    counts = zip(label_texts(names), np.bincount(rows, minlength=len(names)), strict=True)
    name_ticks(ax, "y", [f"{name} ({count})" for name, count in counts])
    _percent_axes(ax, "x")
    ax.set_xlabel("confidence (median, middle half, middle 90%)")
    ax.set_ylabel("predicted class (samples)")
    return ax


def _percent_axes(ax: Axes, which: str) -> None:
    from matplotlib.ticker import PercentFormatter

    for name in which:
        getattr(ax, f"{name}axis").set_major_formatter(PercentFormatter(1, decimals=0))


def _checked(confidence: ArrayLike) -> np.ndarray:
    sure = np.asarray(confidence, dtype=float)
    if sure.ndim != 1 or not len(sure) or not ((sure >= 0) & (sure <= 1 + ROUNDING)).all():
        msg = (
            f"confidence must be (n_samples,) between 0 and 1, got shape {sure.shape}; pass the "
            f"share of each sample's predicted class, such as label_distributions_.max(axis=1)"
        )
        raise InvalidParameterError(msg)
    return np.minimum(sure, 1)
