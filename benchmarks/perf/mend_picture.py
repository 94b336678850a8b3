"""Seconds and memory of fits against the number of samples, as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from viewmend.plot.style import GREY, PALETTE, plot_style

from .mend_cases import columns_text
from .pictures import plain_ticks

__all__ = ["curves_of", "draw"]

# By what was fitted: its line and its mark.
STYLES = (("-", "o"), ("--", "s"), (":", "^"))
# What stands beside the fits: mark and name.
SIDES = {"spreading": ("x", "LabelSpreading"), "brute": ("+", "brute force")}
TEN_CLASSES = 10
# Families in which the samples grow.
GROWING = ("samples", "million", "million-mnist")


class Measured(Protocol):
    """A fit of `mend_page`."""

    @property
    def engine(self) -> str: ...
    @property
    def row(self) -> Mapping[str, Any]: ...
    @property
    def ended(self) -> bool: ...


Curves = dict[tuple[str, tuple[int, ...]], list[Mapping[str, Any]]]


def curves_of(fits: Iterable[Measured]) -> Curves:
    """Rows of fits that differ in their samples alone, by engine and columns.

    Families in which something else grows are no curves.
    """
    found: Curves = {}
    for fit in fits:
        if fit.ended and fit.row["n_classes"] == TEN_CLASSES:
            found.setdefault((fit.engine, tuple(fit.row["columns"])), []).append(fit.row)
    return {
        key: sorted(rows, key=lambda row: row["n_samples"])
        for key, rows in found.items()
        if len(rows) > 1 or rows[0]["family"] in GROWING
    }


def draw(fits: Sequence[Measured], path: Path) -> None:
    """Seconds above, memory below, both axes logarithmic; at least one curve is needed."""
    from matplotlib.figure import Figure

    curves = curves_of(fits)
    engines = list(dict.fromkeys(engine for engine, _ in curves))
    kinds = list(dict.fromkeys(columns for _, columns in curves))
    with plot_style():
        figure = Figure(figsize=(7.5, 7.4), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True)
        for (engine, columns), rows in curves.items():
            color = PALETTE[engines.index(engine) % len(PALETTE)]
            style, mark = STYLES[kinds.index(columns) % len(STYLES)]
            look = {"color": color, "linestyle": style, "marker": mark, "markersize": 5}
            label = f"{engine}: {columns_text(columns)} columns"
            _line(above, rows, [row["fit"]["seconds"] for row in rows], look, label)
            _memory(below, rows, look, engine)
        _draw_sides(above, curves)
        _name(above, below)
        figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=8.5)
        figure.savefig(path, dpi=150)


def _line(
    ax: Any, rows: Sequence[Mapping[str, Any]], heights: Sequence[float], look: Any, label: str
) -> None:
    ax.loglog([row["n_samples"] for row in rows], heights, label=label, **look)


def _memory(ax: Any, rows: Sequence[Mapping[str, Any]], look: Any, engine: str) -> None:
    """Memory of the process, and in a lighter tone that of the GPU."""
    _line(ax, rows, [row["fit"]["peak_bytes"] / 1e9 for row in rows], look, "")
    used = [row for row in rows if "device_bytes" in row["fit"]]
    if used:
        named = any(line.get_label() == f"{engine}: its own memory" for line in ax.lines)
        heights = [row["fit"]["device_bytes"] / 1e9 for row in used]
        light = {**look, "alpha": 0.45, "markerfacecolor": "white"}
        _line(ax, used, heights, light, "" if named else f"{engine}: its own memory")


def _draw_sides(ax: Any, curves: Curves) -> None:
    """What the sides take for the same samples, by the first curve that has two of them."""
    for side, (mark, label) in SIDES.items():
        for (engine, columns), rows in curves.items():
            known = [row for row in rows if "seconds" in row.get(side, {})]
            if len(known) > 1:
                heights = [row[side]["seconds"] for row in known]
                look = {"color": GREY, "linestyle": ":", "marker": mark, "linewidth": 1.2}
                _line(ax, known, heights, look, f"{label}: {engine}, {columns_text(columns)}")
                break


def _name(above: Any, below: Any) -> None:
    """What the axes are, and light lines to read along."""
    above.set_ylabel("seconds of a fit")
    below.set_ylabel("peak memory, GB")
    below.set_xlabel("samples")
    for ax in (above, below):
        ax.grid(color="#DDDDDD", linewidth=0.6)
        ax.set_axisbelow(True)
        plain_ticks(ax.yaxis)
    plain_ticks(below.xaxis)
    below.xaxis.set_major_formatter(lambda x, _: _short(x))


def _short(number: float) -> str:
    """Samples in words: 5k, 2M."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{np.round(number / size, 1):g}{letter}"
    return f"{number:g}"
