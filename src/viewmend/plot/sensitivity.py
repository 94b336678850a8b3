"""Plot of how a score depends on one or two parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.exceptions import InvalidParameterError
from viewmend.plot.style import GREY, PALETTE, axes_or_new, name_ticks, styled
from viewmend.plot.tiles import draw_tiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes


PREFIX = "param_"


@dataclass(frozen=True)
class _Point:
    """Parameter values, a score in percent, its spread, and whether all folds were seen."""

    values: tuple[Any, ...]
    score: float
    spread: float
    complete: bool


@styled
def plot_sensitivity(
    results: Mapping[str, Sequence[Any]], ax: Axes | None = None, score: str = "mean_test_score"
) -> Axes:
    """Draw scores against one varying parameter as a line, or against two as tiles.

    Settings that dropped out of a search before its last fold were tested on fewer labels. They are
    drawn hollow or in brackets.

    Parameters
    ----------
    results : mapping of columns
        ``cv_results_`` of `LabelSearchCV` or ``GridSearchCV``, or any table with columns
        ``param_NAME`` and the score between 0 and 1; ``std_test_score`` and ``n_folds`` are used if
        they exist.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    score : str
        Name of the column of the score.

    Returns
    -------
    matplotlib Axes
    """
    names = varying_parameters(results)
    if len(names) not in _DRAWINGS:
        msg = (
            f"results must have one or two parameters that vary, got {', '.join(names) or 'none'}; "
            f"leave the others out or hold them fixed"
        )
        raise InvalidParameterError(msg)
    ax = axes_or_new(ax)
    _DRAWINGS[len(names)](ax, names, _points(results, names, score))
    return ax


def varying_parameters(results: Mapping[str, Sequence[Any]]) -> list[str]:
    """Names of the parameters that take several values in a table for `plot_sensitivity`."""
    columns = {name: _column(results, name) for name in results if name.startswith(PREFIX)}
    return [
        name.removeprefix(PREFIX)
        for name, values in columns.items()
        if len({str(value) for value in values if value is not np.ma.masked}) > 1
    ]


def _column(results: Mapping[str, Sequence[Any]], name: str) -> list[Any]:
    """Plain values; masked ones, of points that leave the parameter alone, stay so."""
    column = results[name]
    if isinstance(column, np.ma.MaskedArray):
        return [column[i] for i in range(len(column))]
    return np.asarray(column, dtype=object).tolist()


def _points(results: Mapping[str, Sequence[Any]], names: list[str], score: str) -> list[_Point]:
    if score not in results:
        msg = f"results has no column {score!r}; it has {', '.join(results)}"
        raise InvalidParameterError(msg)
    scores = np.asarray(results[score], dtype=float)
    spreads = np.asarray(results.get("std_test_score", np.zeros(len(scores))), dtype=float)
    folds = np.asarray(results.get("n_folds", np.ones(len(scores))))
    columns = zip(*(_column(results, PREFIX + name) for name in names), strict=True)
    told = zip(columns, scores, spreads, folds == folds.max(), strict=True)
    return [
        _Point(values, 100 * float(value), 100 * float(spread), bool(complete))
        for values, value, spread, complete in told
        if not any(one is np.ma.masked for one in values) and np.isfinite(value)
    ]


def _axis_values(points: Sequence[_Point], which: int) -> list[Any]:
    """Values of a parameter: numbers ascending, others in the order they came."""
    values = list(dict.fromkeys(point.values[which] for point in points))
    numeric = all(isinstance(value, int | float | np.number) for value in values)
    return sorted(values) if numeric else values


def _value_text(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float | np.number) else str(value)


def _draw_curve(ax: Axes, names: Sequence[str], points: Sequence[_Point]) -> None:
    values = _axis_values(points, 0)
    ordered = sorted(points, key=lambda point: values.index(point.values[0]))
    places = [values.index(point.values[0]) for point in ordered]
    scores = [point.score for point in ordered]
    spreads = [point.spread for point in ordered]
    ax.errorbar(places, scores, yerr=spreads, color=PALETTE[0], elinewidth=1, capsize=3)
    for place, point in zip(places, ordered, strict=True):
        fill = PALETTE[0] if point.complete else "white"
        ax.plot(place, point.score, "o", markersize=7, color=PALETTE[0], markerfacecolor=fill)
    ax.set_xlim(-0.4, len(values) - 0.6)
    name_ticks(ax, "x", [_value_text(value) for value in values])
    ax.set_xlabel(names[0])
    ax.set_ylabel("score (%), bars: spread over folds")
    if not all(point.complete for point in points):
        note = "hollow: left the race early"
        ax.text(0.98, 0.04, note, ha="right", color=GREY, fontsize=9, transform=ax.transAxes)


def _draw_surface(ax: Axes, names: Sequence[str], points: Sequence[_Point]) -> None:
    across, up = (_axis_values(points, which) for which in (0, 1))
    values = np.full((len(up), len(across)), np.nan)
    texts = np.full(values.shape, "", dtype=object)
    for point in points:
        place = up.index(point.values[1]), across.index(point.values[0])
        values[place] = point.score
        texts[place] = f"{point.score:.1f}" if point.complete else f"({point.score:.1f})"
    limits = float(np.nanmin(values)), float(np.nanmax(values))
    ticks = [[_value_text(value) for value in side] for side in (across, up)]
    draw_tiles(ax, values, texts, (ticks[0], ticks[1]), "cividis", limits)
    ax.invert_yaxis()
    brackets = "" if all(point.complete for point in points) else ", in brackets: dropped early"
    ax.set_title(f"score (%){brackets}")
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])


# By the number of parameters that vary.
_DRAWINGS = {1: _draw_curve, 2: _draw_surface}
