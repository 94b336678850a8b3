"""Plots of the rounds of a fit: convergence and view weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.core import Round
from viewmend.core.mend.stage import StageRecord
from viewmend.exceptions import InvalidParameterError
from viewmend.plot.style import (
    GREY,
    PALETTE,
    axes_or_new,
    label_line_ends,
    label_texts,
    name_ticks,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Room above and below the lines of a log axis, as a factor.
LOG_MARGIN = 3.0


@styled
def plot_convergence(
    history: Sequence[Round] | Sequence[StageRecord] | Sequence[float],
    ax: Axes | None = None,
    tol: float | None = None,
) -> Axes:
    """Draw how a fit converged.

    For AGF-TI, it shows how much soft labels and view weights changed in each round, on a log axis,
    and the residual ``|Z - G|``. The residual falls by many powers of ten once the tensor step has
    converged, so it may leave the frame. For `MendClassifier`, it shows the share of the samples
    whose class changed in each stage after the first. For other methods, it shows the objective.

    Parameters
    ----------
    history : sequence of Round, of StageRecord or of float
        ``history_`` of a fitted model.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    tol : float, optional
        Draw the change below which AGF-TI stops, if it is above 0.

    Returns
    -------
    matplotlib Axes
    """
    draw = _CONVERGENCE[_kind(history, tuple(_CONVERGENCE))]
    ax = axes_or_new(ax)
    draw(history, ax, tol)
    return ax


@styled
def plot_view_weights(
    history: Sequence[Round] | Sequence[StageRecord],
    view_names: Sequence[str],
    ax: Axes | None = None,
) -> Axes:
    """Draw the weight of each view after each round, with the last value beside its line.

    For `MendClassifier`, it shows the share of the variance of the classes that each view explains,
    from which the weights are computed.

    Parameters
    ----------
    history : sequence of Round or of StageRecord
        ``history_`` of a fitted model.
    view_names : sequence of str
        One name per view.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    matplotlib Axes
    """
    kind = _kind(history, tuple(_TRACES))
    field, step, quantity = _TRACES[kind]
    traced = [(record.iteration, getattr(record, field)) for record in history]
    told = [(iteration, values) for iteration, values in traced if values]
    _check_names(view_names, told)
    ax = axes_or_new(ax)
    rounds, weights = [iteration for iteration, _ in told], np.array([found for _, found in told])
    colors = [PALETTE[v % len(PALETTE)] for v in range(len(view_names))]
    if kind is Round:
        ax.axhline(1 / len(view_names), color=GREY, linestyle="--", linewidth=1)
    for color, weights_v in zip(colors, weights.T, strict=True):
        ax.plot(rounds, weights_v, color=color, marker=".")
    ax.set_ylim(ax.get_ylim())
    if kind is Round:
        place = (rounds[-1], 1 / len(view_names))
        _annotate(ax, "equal weights", place, (0, -8), color=GREY, ha="right")
    named = zip(label_texts(view_names), weights[-1], strict=True)
    texts = [f"{name} {weight:.3f}" for name, weight in named]
    label_line_ends(ax, weights[-1], texts, colors)
    _name_axes(ax, quantity, step)
    return ax


def _draw_rounds(history: Sequence[Round], ax: Axes, tol: float | None) -> None:
    rounds = [round_.iteration for round_ in history]
    changes = {
        "soft labels": [max(round_.change_F, round_.change_Q) for round_ in history],
        "view weights": [round_.change_alpha for round_ in history],
    }
    lines = {**changes, "residual |Z - G|": [round_.primal_residual for round_ in history]}
    # A weight that stands still has no place on a log axis: leave a gap there.
    ax.set_yscale("log", nonpositive="mask")
    for color, values in zip(PALETTE, lines.values(), strict=False):
        ax.plot(rounds, values, color=color, marker=".")
    lowest = [value for values in changes.values() for value in values] + [tol or 0.0]
    highest = [value for values in lines.values() for value in values]
    _set_log_limits(ax, lowest, highest)
    if tol:
        ax.axhline(tol, color=GREY, linestyle="--", linewidth=1)
    _label_lines(ax, lines, tol)
    _name_axes(ax, "largest change in the round")


def _draw_stages(history: Sequence[StageRecord], ax: Axes, _tol: float | None) -> None:
    # The first stage finds all classes, so that its bar would dwarf the others.
    told = history[1:] or history
    shares = [100 * record.change for record in told]
    bars = ax.bar(range(len(shares)), shares, 0.7, color=PALETTE[0])
    ax.bar_label(bars, [f"{share:.1f}" for share in shares], padding=2, fontsize=9)
    ax.set_xlim(-0.6, len(shares) - 0.4)
    name_ticks(ax, "x", [f"{record.iteration} {record.name}" for record in told])
    ax.set_xlabel("stage")
    ax.set_ylabel("samples that changed class (%)")


def _draw_objective(history: Sequence[float], ax: Axes, _tol: float | None) -> None:
    ax.plot(range(1, len(history) + 1), history, color=PALETTE[0], marker=".")
    _name_axes(ax, "objective")


# By the type of the records of a history.
_CONVERGENCE: dict[type, Callable[..., None]] = {
    Round: _draw_rounds,
    StageRecord: _draw_stages,
    float: _draw_objective,
}
# Field of the records, what one of them is, and what the field holds.
_TRACES: dict[type, tuple[str, str, str]] = {
    Round: ("alpha", "round", "weight of the view"),
    StageRecord: ("view_r2", "stage", "variance explained by the view"),
}


def _kind(history: Sequence[Any], known: tuple[type, ...]) -> type:
    if not len(history):
        msg = "history is empty; pass history_ of a fitted model, which has at least one round"
        raise InvalidParameterError(msg)
    matching = next((kind for kind in known if isinstance(history[0], kind)), None)
    if matching is None:
        msg = (
            f"history must hold records of {' or '.join(kind.__name__ for kind in known)}, got "
            f"{type(history[0]).__name__}; pass history_ of a fitted model that has such"
        )
        raise InvalidParameterError(msg)
    return matching


def _check_names(view_names: Sequence[str], told: Sequence[tuple[int, tuple[float, ...]]]) -> None:
    if not told:
        msg = "history has no view weights; fit MendClassifier with n_rounds of at least 1"
        raise InvalidParameterError(msg)
    n_views = len(told[0][1])
    if len(view_names) != n_views:
        msg = f"view_names has {len(view_names)} names but the history has {n_views} views"
        raise InvalidParameterError(msg)


def _set_log_limits(ax: Axes, lowest: Sequence[float], highest: Sequence[float]) -> None:
    """Limits around the positive finite values of both lists, where there are any."""
    lows, highs = (
        [value for value in values if 0 < value < np.inf] for values in (lowest, highest)
    )
    if lows and highs:
        ax.set_ylim(min(lows) / LOG_MARGIN, max(highs) * LOG_MARGIN)


def _label_lines(ax: Axes, lines: dict[str, list[float]], tol: float | None) -> None:
    """Name each line beside its end, or at the edge through which it has left the frame."""
    bottom, top = ax.get_ylim()
    ends = [(tol, "tolerance", GREY)] if tol else []
    for color, (name, values) in zip(PALETTE, lines.items(), strict=False):
        if any(bottom <= value < np.inf for value in values):
            end = np.nan_to_num(values[-1], nan=top, posinf=top)
            ends.append((float(np.clip(end, bottom, top)), name, color))
    if ends:
        label_line_ends(ax, *zip(*ends, strict=True))


def _annotate(
    ax: Axes, text: str, place: tuple[float, float], offset: tuple[float, float], **looks: Any
) -> None:
    """Text at an offset in points from a place in data coordinates."""
    ax.annotate(text, place, offset, textcoords="offset points", fontsize=9, va="center", **looks)


def _name_axes(ax: Axes, quantity: str, step: str = "round") -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel(step)
    ax.set_ylabel(quantity)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
