"""The figures of the speed pages as pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.plot.style import GREY, PALETTE, plot_style

from .growth import growth_ratio
from .hardware import TENSOR_PASSES
from .rounds import ratio

__all__ = [
    "draw_fit",
    "draw_growth",
    "draw_hardware",
    "draw_ratios",
    "draw_shares",
    "draw_tnn",
    "plain_ticks",
]

Row = Mapping[str, Any]

# Line searches of the transcriptions, and how they are drawn.
SEARCHES = (
    ("slope", "exact search", "o"),
    ("golden", "golden section", "s"),
    ("armijo", "Armijo", "^"),
)
RATIOS = [
    (dtype, search, f"{dtype}, {label}", marker, color)
    for dtype, color in (("float64", PALETTE[0]), ("float32", PALETTE[1]))
    for search, label, marker in SEARCHES
]

# Height of a bar or of a row of dots, and what surrounds them, in inches.
ROW, FRAME = 0.34, 1.5
WIDTH = 7.5


def draw_ratios(rows: Sequence[Row], path: Path) -> None:
    """How many times faster than the transcriptions, a line for every size."""
    with plot_style():
        figure, ax = _axes(len(rows))
        for dtype, search, label, marker, color in RATIOS:
            found = [(ratio(row, dtype, search), -y) for y, row in enumerate(rows)]
            points = [(x, y) for x, y in found if x is not None]
            if points:
                filled = color if search == "slope" else "white"
                ax.plot(
                    *zip(*points, strict=True), marker, color=color, mfc=filled, label=label, ms=6
                )
        for level in (1, 10, 20):
            ax.axvline(level, color=GREY, linewidth=0.8, linestyle=":")
        ax.set_xscale("log")
        ax.set_xticks([1, 2, 5, 10, 20, 50, 100], labels=["1", "2", "5", "10", "20", "50", "100"])
        ax.minorticks_off()
        _name_rows(ax, [f"{row['case']}" for row in rows])
        ax.set_xlabel("times faster than the transcription in float64, with the same stopping")
        _legend(ax, 2)
        _save(figure, path)


def draw_shares(shares: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Where the time of a solve goes: a bar for every label."""
    with plot_style():
        figure, ax = _axes(len(shares))
        _stack(ax, [{part: 100 * x for part, x in row.items()} for row in shares.values()])
        _name_rows(ax, list(shares))
        ax.set_xlim(0, 100)
        ax.set_xlabel("percent of the time of a solve")
        _legend(ax, 5)
        _save(figure, path)


def draw_fit(rows: Sequence[Row], path: Path) -> None:
    """Seconds of a whole fit by stage."""
    with plot_style():
        figure, ax = _axes(len(rows))
        _stack(ax, [row["stages"] for row in rows])
        _name_rows(ax, [row["dtype"] for row in rows])
        ax.set_xlabel(f"seconds of a fit on {rows[0]['n_samples']} samples")
        _legend(ax, 4)
        _save(figure, path)


def draw_growth(rows: Sequence[Row], path: Path) -> None:
    """Seconds of a round and peak memory over the number of samples."""
    done = [row for row in rows if not row["skipped"]]
    n = np.array([row["n_samples"] for row in done])
    seconds = np.array([row["seconds_per_round"] for row in done])
    with plot_style():
        figure, (left, right) = _figure(WIDTH, 3.2, 2)
        left.loglog(n, seconds, "o-", color=PALETTE[0], label="a round")
        left.loglog(n, seconds[0] * n / n[0], ":", color=GREY, label="in proportion to n")
        growth = growth_ratio(rows)
        left.set_title("" if growth is None else f"t(80k) / t(8k) = {growth:.1f}")
        left.set_ylabel("seconds")
        left.legend(frameon=False, fontsize=9)
        right.semilogx(n, [row["peak_multiple"] for row in done], "o-", color=PALETTE[1])
        right.axhline(5, color=GREY, linewidth=0.8, linestyle=":")
        right.set_ylim(bottom=0)
        right.set_ylabel("peak memory beyond the input, in Z")
        for ax in (left, right):
            ax.set_xlabel("samples")
            plain_ticks(ax.xaxis)
        plain_ticks(left.yaxis)
        _save(figure, path)


def draw_tnn(rows: Sequence[Row], copy_rate: float, path: Path) -> None:
    """Seconds of the tensor step over the size of its input, beside the paper's."""
    done = [row for row in rows if not row["skipped"]]
    millions = (
        np.array([row["n_samples"] * row["n_views"] * row["n_anchors"] for row in done]) / 1e6
    )
    with plot_style():
        figure, (ax,) = _figure(6.0, 3.6, 1)
        printed = [
            (x, row["paper_seconds"])
            for x, row in zip(millions, done, strict=True)
            if row["paper_seconds"] is not None
        ]
        if printed:
            ax.loglog(
                *zip(*printed, strict=True), "s", color=PALETTE[1], label="the paper's server"
            )
        ax.loglog(millions, [row["seconds"] for row in done], "o", color=PALETTE[0], label="here")
        largest = int(np.argmax(millions))
        limit = TENSOR_PASSES * done[largest]["input_bytes"] / copy_rate
        ends = np.array([millions.min(), millions.max()])
        times = limit * ends / ends[1]
        ax.loglog(ends, times, ":", color=GREY, label="six passes as fast as a copy")
        ax.set_xlabel("millions of entries")
        for axis in (ax.xaxis, ax.yaxis):
            plain_ticks(axis)
        ax.set_ylabel("seconds of a tensor step")
        ax.legend(frameon=False, fontsize=9)
        _save(figure, path)


def draw_hardware(rows: Sequence[Row], path: Path) -> None:
    """Share of the machine's rate that every kernel gets."""
    names = list(dict.fromkeys(row["kernel"] for row in rows))
    with plot_style():
        figure, ax = _axes(len(names))
        for color, dtype in zip(PALETTE, ("float64", "float32"), strict=False):
            of_dtype = [row for row in rows if row["dtype"] == dtype]
            y = [-names.index(row["kernel"]) for row in of_dtype]
            ax.plot(
                [100 * row["share"] for row in of_dtype], y, "o", color=color, label=dtype, ms=6
            )
        _name_rows(ax, [f"{name} ({_limit(rows, name)})" for name in names])
        ax.axvline(100, color=GREY, linewidth=0.8, linestyle=":")
        ax.set_xlim(left=0)
        ax.set_xlabel("percent of the machine's measured rate")
        _legend(ax, 2)
        _save(figure, path)


def _limit(rows: Sequence[Row], kernel: str) -> str:
    return str(next(row["limit"] for row in rows if row["kernel"] == kernel))


def _stack(ax: Any, rows: Sequence[Mapping[str, float]]) -> None:
    """A horizontal bar of parts for every row; parts of nothing are not named."""
    ends = np.zeros(len(rows))
    parts = [part for part in rows[0] if max(row[part] for row in rows) > 0]
    for color, part in zip(PALETTE, parts, strict=False):
        lengths = np.maximum([row[part] for row in rows], 0)
        ax.barh(-np.arange(len(rows)), lengths, 0.7, left=ends, color=color, label=part)
        ends += lengths


def _name_rows(ax: Any, names: Sequence[str]) -> None:
    ax.set_yticks(-np.arange(len(names)), labels=names)
    ax.set_ylim(-len(names) + 0.4, 0.6)
    ax.tick_params(axis="y", length=0)


def plain_ticks(axis: Any) -> None:
    """Numbers as they are spoken, 0.1 and 20000, at 1, 2 and 5 of every power of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def _legend(ax: Any, columns: int) -> None:
    """Above the axes, where it hides nothing."""
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "borderaxespad": 0.2}
    ax.legend(ncols=columns, frameon=False, fontsize=9, **place)


def _axes(n_rows: int) -> tuple[Any, Any]:
    figure, (ax,) = _figure(WIDTH, FRAME + ROW * n_rows, 1)
    return figure, ax


def _figure(width: float, height: float, n_axes: int) -> tuple[Any, Iterable[Any]]:
    # Not through pyplot, whose figures live until they are closed.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, np.atleast_1d(figure.subplots(1, n_axes))


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=150)
