"""What happened round by round: convergence and view weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.core import Round
from viewmend.exceptions import InvalidParameterError
from viewmend.plot.style import GREY, PALETTE, label_line_ends, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_convergence", "plot_view_weights"]

# Room above and below the lines of a log axis, as a factor.
LOG_MARGIN = 3.0


@styled
def plot_convergence(history: Sequence[Round], ax: Axes, tol: float | None = None) -> Axes:
    """Draw how far soft labels and view weights moved in each round, on a log axis.

    The residual ``|Z - G|`` is drawn beside them. It falls by many powers of ten once the tensor
    step has settled, so the axis ends below the changes and lets it leave the frame.

    Parameters
    ----------
    history : sequence of Round
        ``history_`` of a fitted model.
    ax : matplotlib Axes
    tol : float, optional
        Draw the level below which the solver stops; 0, which a log axis has not, is left out.

    Returns
    -------
    matplotlib Axes
    """
    rounds = _iterations(history)
    changes = {
        "soft labels": [max(round_.change_F, round_.change_Q) for round_ in history],
        "view weights": [round_.change_alpha for round_ in history],
    }
    lines = {**changes, "residual\n|Z - G|": [round_.primal_residual for round_ in history]}
    # A weight that stands still has no place on a log axis: leave a gap there.
    ax.set_yscale("log", nonpositive="mask")
    for color, values in zip(PALETTE, lines.values(), strict=False):
        ax.plot(rounds, values, color=color, marker=".")
    lowest = [value for values in changes.values() for value in values] + [tol or 0.0]
    highest = [value for values in lines.values() for value in values]
    _set_log_limits(ax, lowest, highest)
    if tol:
        ax.axhline(tol, color=GREY, linestyle="--", linewidth=1)
    _label_lines(ax, rounds, lines, tol)
    _name_axes(ax, "largest change in the round")
    return ax


@styled
def plot_view_weights(history: Sequence[Round], view_names: Sequence[str], ax: Axes) -> Axes:
    """Draw the weight of each view after each round, with the last value beside its line.

    Parameters
    ----------
    history : sequence of Round
        ``history_`` of a fitted model.
    view_names : sequence of str
        One name per view.
    ax : matplotlib Axes

    Returns
    -------
    matplotlib Axes
    """
    rounds = _iterations(history)
    weights = np.array([round_.alpha for round_ in history])
    n_views = weights.shape[1]
    if len(view_names) != n_views:
        msg = f"view_names has {len(view_names)} names but the history has {n_views} views"
        raise InvalidParameterError(msg)
    colors = [PALETTE[v % len(PALETTE)] for v in range(n_views)]
    ax.axhline(1 / n_views, color=GREY, linestyle="--", linewidth=1)
    for color, weights_v in zip(colors, weights.T, strict=True):
        ax.plot(rounds, weights_v, color=color, marker=".")
    ax.set_ylim(ax.get_ylim())
    _annotate(ax, "equal weights", (rounds[-1], 1 / n_views), (0, -8), color=GREY, ha="right")
    texts = [f"{name} {weight:.3f}" for name, weight in zip(view_names, weights[-1], strict=True)]
    label_line_ends(ax, weights[-1], texts, colors)
    _name_axes(ax, "weight of the view")
    return ax


def _iterations(history: Sequence[Round]) -> list[int]:
    if not history:
        msg = "history is empty; pass history_ of a fitted model, which has at least one round"
        raise InvalidParameterError(msg)
    return [round_.iteration for round_ in history]


def _set_log_limits(ax: Axes, lowest: Sequence[float], highest: Sequence[float]) -> None:
    """Limits around the positive finite values of both lists, where there are any."""
    lows, highs = (
        [value for value in values if 0 < value < np.inf] for values in (lowest, highest)
    )
    if lows and highs:
        ax.set_ylim(min(lows) / LOG_MARGIN, max(highs) * LOG_MARGIN)


def _label_lines(
    ax: Axes, rounds: list[int], lines: dict[str, list[float]], tol: float | None
) -> None:
    """Name each line at its end, or half way along it where its end is outside the frame."""
    bottom = ax.get_ylim()[0]
    ends = [(tol, "tolerance", GREY)] if tol else []
    for color, (name, values) in zip(PALETTE, lines.items(), strict=False):
        visible = [i for i, value in enumerate(values) if bottom <= value < np.inf]
        if len(rounds) - 1 in visible:
            ends.append((values[-1], name, color))
        elif visible:
            middle = visible[len(visible) // 2]
            _annotate(ax, name, (rounds[middle], values[middle]), (8, 0), color=color)
    if ends:
        label_line_ends(ax, *zip(*ends, strict=True))


def _annotate(
    ax: Axes, text: str, place: tuple[float, float], offset: tuple[float, float], **looks: Any
) -> None:
    """Text at an offset in points from a place in data coordinates."""
    ax.annotate(text, place, offset, textcoords="offset points", fontsize=9, va="center", **looks)


def _name_axes(ax: Axes, quantity: str) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel("round")
    ax.set_ylabel(quantity)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
