"""The record of `benchmarks/doubt.py`, and the page that it makes.

The page opens with what was measured beside what was required, and says where that was missed.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.bench.environment import check_publishable
from viewmend.plot.style import GREY, PALETTE, plot_style

DATA = (
    "CUB",
    "UCI-Digit",
    "MNIST-USPS",
    "OutScene (3 views)",
    "OutScene (surrogate)",
    "Caltech101-20 (surrogate)",
)
# Figures are those of the seeds below; further ones tell chance from bias.
N_SEEDS = 10
# False alarms at which unknown classes are looked for.
RATE = 0.05
# Points of coverage that sets may be off.
MOST_POINTS = 2.0
# What a figure of coverage is the mean of, and by which fields these rows are told apart.
GRAINS = {
    "on every data set": ("data",),
    "on every data set, for every promise": ("data", "alpha"),
    "in every setting: data set, promise, labels": ("data", "alpha", "labels"),
}
Cell = dict[str, Any]


def read(path: Path) -> list[Cell]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def reported(rows: Sequence[Cell]) -> list[Cell]:
    """Rows of the seeds that figures are reported of."""
    return [row for row in rows if row["seed"] < N_SEEDS]


def further(rows: Sequence[Cell]) -> list[Cell]:
    """Rows of the other seeds."""
    return [row for row in rows if row["seed"] >= N_SEEDS]


def mean(rows: Sequence[Cell], field: str, unit: float = 100.0, form: str = ".1f") -> str:
    value = average(rows, field)
    return "-" if np.isnan(value) else f"{unit * value:{form}}"


def average(rows: Sequence[Cell], field: str) -> float:
    values = [row[field] for row in rows if field in row]
    return float(np.mean(values)) if values else np.nan


def groups(rows: Sequence[Cell], part: str, *fields: str) -> Iterator[tuple[tuple, list[Cell]]]:
    """Rows of a part, by the values of some fields, in the order of the data sets."""
    here = [row for row in rows if row["part"] == part]
    order = {name: i for i, name in enumerate(DATA)}
    keys = {tuple(row[field] for field in fields) for row in here}
    for key in sorted(keys, key=lambda k: (order.get(k[0], -1), k[1:])):
        yield key, [row for row in here if tuple(row[f] for f in fields) == key]


# ------------------------------------------------------------------ tables


def suspects_table(rows: Sequence[Cell]) -> Iterator[tuple[str, ...]]:
    yield (
        *("data", "flips", "to", "suspect_labels", "cleanlab, same scores", "cleanlab, held out"),
        *("cleanlab, logistic", "noise", "cleanlab's", "accuracy", '"auto"', "labels right"),
    )
    fields = ("mend", "cleanlab", "cleanlab_held_out", "cleanlab_logistic", "noise")
    more = ("cleanlab_noise", "accuracy", "accuracy_auto", "labels_auto")
    for (data, rate, kind), here in groups(rows, "suspects", "data", "flips", "kind"):
        yield data, f"{rate:.0%}", kind, *(mean(here, field) for field in (*fields, *more))


def sets_table(rows: Sequence[Cell]) -> Iterator[tuple[str, ...]]:
    yield (
        *("data", "labels", "seeds", "held out", "promise", "to expect"),
        *("coverage, fit", "classes", "empty", "coverage, new", "classes", "empty", "none empty"),
        *("further seeds", "coverage, fit", "coverage, new"),
    )
    for (data, labels, alpha), every in groups(rows, "sets", "data", "labels", "alpha"):
        here, others = reported(every), further(every)
        figures = [
            mean(here, f"{name}_{what}", *how)
            for name in ("fit", "new")
            for what, how in (("coverage", ()), ("size", (1, ".2f")), ("empty", ()))
        ]
        figures.append(mean(here, "filled_coverage"))
        low, high = expected(here, alpha)
        held_out = mean(here, "n_held_out", 1, ".0f")
        figures += [f"{len(others)}", mean(others, "fit_coverage"), mean(others, "new_coverage")]
        known = data, f"{labels:.0%}", f"{len(here)}", held_out, f"{100 * (1 - alpha):.0f}"
        yield *known, f"{100 * low:.0f} to {100 * high:.0f}", *figures


def expected(rows: Sequence[Cell], alpha: float) -> tuple[float, float]:
    """Mean coverages of so many fits that are no surprise, at 95 %, if the promise is kept.

    If labels alone decided, with ``n`` of them held out, the coverage of one fit would have a beta
    distribution of the variance of a share of n + 2.
    """
    reach = 1.96 * sqrt(alpha * (1 - alpha) / (average(rows, "n_held_out") + 2) / len(rows))
    return 1 - alpha - reach, min(1 - alpha + reach, 1.0)


def unknown_table(rows: Sequence[Cell]) -> Iterator[tuple[str, ...]]:
    yield (
        *("data", "seeds", "new: AUROC", "by confidence", "false alarms", "found"),
        *("in fit: AUROC", "by confidence", "false alarms", "found"),
    )
    names = ("auroc", "confidence", "false", "found")
    fields = [f"{where}_{name}" for where in ("new", "fit") for name in names]
    for (data,), here in groups(rows, "unknown", "data"):
        n_seeds = len({row["seed"] for row in here})
        yield data, f"{n_seeds}", *(mean(here, field) for field in fields)


def markdown(lines: Iterator[tuple[str, ...]]) -> str:
    head, *rest = lines
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ("---",) * len(head), *rest))


# ------------------------------------------------------------------ what was asked for


def precisions(rows: Sequence[Cell]) -> np.ndarray:
    """Precision (n_settings, 2) of `suspect_labels` and of cleanlab on the same scores, in %."""
    found = [
        (100 * average(here, "mend"), 100 * average(here, "cleanlab"))
        for _, here in groups(rows, "suspects", "data", "flips", "kind")
    ]
    return np.array([pair for pair in found if np.isfinite(pair).all()]).reshape(-1, 2)


def coverages(rows: Sequence[Cell]) -> list[tuple[tuple, float, float, tuple[float, float]]]:
    """By data, labels and alpha: points that the sets of fit, and of new samples, are off.

    And the interval of these that is no surprise.
    """
    found = []
    for key, here in groups(rows, "sets", "data", "labels", "alpha"):
        promise = 1 - key[2]
        low, high = expected(here, key[2])
        off = [points_off(here, name) for name in ("fit", "new")]
        found.append((key, *off, (100 * (low - promise), 100 * (high - promise))))
    return found


def points_off(rows: Sequence[Cell], name: str) -> float:
    """Mean points by which sets, of ``"fit"`` or of ``"new"`` samples, miss their promises."""
    return float(100 * np.mean([row[f"{name}_coverage"] - 1 + row["alpha"] for row in rows]))


def bars(rows: Sequence[Cell]) -> Iterator[tuple[str, ...]]:
    yield "requirement", "measured", "met"
    yield from _precision_bar(reported(rows), "")
    yield from _coverage_bar(reported(rows), "")
    others = further(rows)
    if others:
        yield from _precision_bar(others, f", {_extent(others, 'suspects')}")
        yield from _coverage_bar(others, f", {_extent(others, 'sets')}")


def _extent(rows: Sequence[Cell], part: str) -> str:
    """How many further seeds there are of which data sets."""
    seeds = {key[0]: {row["seed"] for row in here} for key, here in groups(rows, part, "data")}
    counts = {data: len(those) for data, those in seeds.items()}
    if len(counts) == len(DATA) and len(set(counts.values())) == 1:
        return f"further seeds ({counts[DATA[0]]} of all data sets)"
    return f"further seeds ({', '.join(f'{data} {count}' for data, count in counts.items())})"


def _precision_bar(rows: Sequence[Cell], where: str) -> Iterator[tuple[str, ...]]:
    pairs = precisions(rows)
    if not len(pairs):
        return
    gaps = pairs[:, 0] - pairs[:, 1]
    below = int((gaps < -0.05).sum())
    told = f"{pairs[:, 0].mean():.1f} against {pairs[:, 1].mean():.1f} % on average; "
    told += f"{below} of {len(gaps)} settings below"
    told += f", by {-gaps.min():.1f} points at most" if below else ""
    asked = "precision of the first suspects not below cleanlab's on the same scores"
    met = "yes" if below == 0 else "on average" if gaps.mean() >= 0 else "**no**"
    yield asked + where, told, met


def _coverage_bar(rows: Sequence[Cell], where: str) -> Iterator[tuple[str, ...]]:
    for grain, fields in GRAINS.items():
        points = np.abs(
            [
                points_off(here, name)
                for _, here in groups(rows, "sets", *fields)
                for name in ("fit", "new")
            ]
        )
        if not len(points):
            return
        inside = int((points <= MOST_POINTS + 0.05).sum())
        told = (
            f"{inside} of {len(points)} figures; the largest deviation is {points.max():.1f} points"
        )
        met = "yes" if inside == len(points) else "**no**"
        yield f"coverage within 2 points of the promise {grain}{where}", told, met


def scatter(rows: Sequence[Cell]) -> str:
    """A clause on figures beyond what so few labels and seeds explain."""
    off = coverages(rows)
    if not off:
        return ""
    outside = [
        value < low - 0.05 or value > high + 0.05
        for _, fit, new, (low, high) in off
        for value in (fit, new)
    ]
    return (
        f"{len(outside) - sum(outside)} of {len(outside)} figures lie within the 95 % interval "
        "that chance alone explains with so few labels and seeds"
    )


def unfinished(rows: Sequence[Cell]) -> str:
    """A sentence on data sets and seeds that are still to be run, if any."""
    told = []
    for part, words in PARTS.items():
        counts = {
            data: len({row["seed"] for row in rows if row["part"] == part and row["data"] == data})
            for data in DATA
        }
        some = [f"{data} {count}" for data, count in counts.items() if 0 < count < N_SEEDS]
        if some:
            told.append(f"{words}: {', '.join(some)}")
    absent = [data for data in DATA if not any(row["data"] == data for row in rows)]
    less = f" Fewer seeds than {N_SEEDS}: {'; '.join(told)}." if told else ""
    return less + (f" Not run: {', '.join(absent)}." if absent else "")


PARTS = {"suspects": "suspects", "sets": "sets", "unknown": "unknown classes"}


# ------------------------------------------------------------------ picture and page


NAMES = ("95 % interval of chance alone", "samples of the fit", "new samples")


def draw(rows: Sequence[Cell], path: Path) -> None:
    """Precision beside cleanlab's; below, how far sets are from each promise."""
    from matplotlib.figure import Figure

    promises = sorted({key[2] for key, *_ in coverages(rows)})
    n_lines = len({key[:2] for key, *_ in coverages(rows)})
    low = max(2.2, 0.22 * n_lines + 0.9)
    with plot_style():
        figure = Figure(figsize=(8, 3.2 + low), layout="constrained")
        top, bottom = figure.subfigures(2, 1, height_ratios=(3.2, low))
        _draw_precision(top.subplots(), rows)
        if promises:
            axes = bottom.subplots(1, len(promises), sharex=True, sharey=True, squeeze=False)[0]
            for ax, alpha in zip(axes, promises, strict=True):
                _draw_coverage(ax, rows, alpha)
            bottom.supxlabel("coverage of the sets minus the promise, points", fontsize=9)
            handles = axes[0].get_legend_handles_labels()
            looks = {"frameon": False, "fontsize": 8.5, "ncols": 3}
            bottom.legend(*handles, loc="outside upper center", **looks)
        figure.savefig(path, dpi=120)


def _draw_precision(ax: Any, rows: Sequence[Cell]) -> None:
    sets = [data for data in DATA if any(r["data"] == data for r in rows)]
    for color, data in zip(PALETTE, sets, strict=False):
        pairs = precisions([row for row in rows if row["data"] == data])
        if len(pairs):
            ax.plot(pairs[:, 1], pairs[:, 0], "o", color=color, label=data, markersize=6)
    low = ax.get_xlim()[0]
    ax.plot([low, 100], [low, 100], color=GREY, linestyle="--", linewidth=1)
    ax.set_xlabel("cleanlab, same scores", fontsize=9)
    ax.set_ylabel("suspect_labels", fontsize=9)
    ax.set_title("Flipped labels among the first suspects, %", fontsize=10)
    ax.tick_params(labelsize=8.5)
    ax.set_aspect("equal")
    ax.legend(frameon=False, fontsize=8.5, loc="center left", bbox_to_anchor=(1.05, 0.5))


def _draw_coverage(ax: Any, rows: Sequence[Cell], alpha: float) -> None:
    off = [each for each in coverages(rows) if each[0][2] == alpha]
    ax.axvspan(-MOST_POINTS, MOST_POINTS, color="#DDDDDD", linewidth=0)
    ax.axvline(0, color=GREY, linewidth=1)
    for place, (_, fit, new, (low, high)) in enumerate(off):
        chance, of_fit, of_new = NAMES if place == 0 else (None, None, None)
        ax.hlines(place, low, high, color=GREY, linewidth=1, label=chance)
        ax.plot(fit, place, "o", color=PALETTE[0], markersize=4.5, label=of_fit)
        ax.plot(new, place, "D", color=PALETTE[1], markersize=4.5, label=of_new)
    texts = [f"{data}, {labels:.0%} labels" for (data, labels, _), *_ in off]
    ax.set_yticks(range(len(off)), texts, fontsize=8.5)
    ax.set_ylim(len(off) - 0.4, -0.6)
    ax.tick_params(axis="x", labelsize=8.5)
    ax.set_title(f"promise {100 * (1 - alpha):.0f} %", fontsize=10)


def opening(rows: Sequence[Cell]) -> str:
    pairs, off = precisions(rows), coverages(rows)
    parts = []
    if len(pairs):
        parts.append(
            f"If as many of the most suspect labels are checked as were flipped, "
            f"{pairs[:, 0].mean():.1f} % of them are flipped ones (cleanlab on the same scores: "
            f"{pairs[:, 1].mean():.1f} %)."
        )
    if off:
        points = [value for _, fit, new, _ in off for value in (fit, new)]
        parts.append(
            f"Prediction sets contain the right class about as often as promised: the deviation is "
            f"{np.mean(points):+.1f} points on average, and between {min(points):+.1f} and "
            f"{max(points):+.1f} in single settings; {scatter(rows)}."
        )
    new = [average(here, "new_auroc") for _, here in groups(rows, "unknown", "data")]
    sure = [average(here, "new_confidence") for _, here in groups(rows, "unknown", "data")]
    if new:
        parts.append(
            f"New samples of an unknown class are distinguished from others with an AUROC of "
            f"{100 * np.mean(new):.0f} %; by confidence alone it is {100 * np.mean(sure):.0f} %."
        )
    return textwrap.fill(" ".join(parts) + unfinished(rows), 118, break_on_hyphens=False)


def make_page(folder: Path) -> None:
    rows = read(folder / "doubt.jsonl")
    check_publishable([{"revision": row["revision"]} for row in rows], folder)
    shown = reported(rows)
    draw(shown, folder / "doubt.png")
    text = PAGE.format(
        opening=opening(shown),
        bars=markdown(bars(rows)),
        revision=", ".join(sorted({row["revision"] for row in rows})),
        suspects=markdown(suspects_table(shown)),
        sets=markdown(sets_table(rows)),
        unknown=markdown(unknown_table(shown)),
    )
    (folder / "doubt.md").write_text(text)


PAGE = """# Doubtful labels, prediction sets, unknown classes

{opening}

![Precision of suspects, and coverage of prediction sets](doubt.png)

{bars}

Unless they are marked as further seeds, figures are those of seeds 0 to 9. Further seeds were run
after the results of these had been seen, to distinguish chance from bias; nothing was chosen on
them. Constants were chosen on seeds 100 to 119.

Half of the views are missing, labels are drawn at random within every class, and rows are shuffled.
`benchmarks/doubt.py` runs it and writes this page. Single runs are in [doubt.jsonl](doubt.jsonl),
of revision {revision}. What the methods do: [What to doubt](../guide/doubt.md).

## Suspect labels

20 % of the samples have a label. Of these labels, 5, 10 or 20 % are flipped: to any other class, or
to the class with which a linear classifier most often confuses the right one. The first columns
are precisions in percent: of as many first suspects as there are flips, the share that are flips.
`suspect_labels` uses one fit, and scores without the label of the sample itself. cleanlab ranks the
same labels by the same scores, by scores of three fits that hold the labels out, and by
cross-validated logistic regressions on all columns. "noise" is the share of wrong labels that
`suspect_labels` estimates. "accuracy" is measured on the unlabelled samples with `label_noise=0`,
the next column with `"auto"`. "labels right" is the share of labelled samples whose class is right
with `"auto"`.

{suspects}

## Prediction sets

Coverage is the share of samples, unlabelled ones of the fit or new ones, whose set contains the
right class. "classes" is the mean size of the sets, "empty" the share of empty ones. Promises are
80, 90 and 95 %. With few held-out labels, the coverage of one fit depends on chance: "to expect" is
the 95 % interval of the mean over the seeds if the promise is kept and only these labels vary, by
the beta distribution of conformal prediction. The promise is for every class separately where each
has at least 50 held-out labels, as in MNIST-USPS with 30 %, and otherwise for all samples together.
Where a model is right far more often than promised, some sets must be empty. "none empty" is the
coverage for new samples with `allow_empty=False`.

{sets}

## Unknown classes

10 % of the samples have a label, and three classes per seed are unknown in turn. "new": all samples
of the class are left out of the fit, and scored as new samples among others. "in fit": only the
labels of the class are left out. The table has the AUROC in percent, that of the confidence alone,
and the false alarms and samples found at `unknown_rate=0.05`, in percent.

{unknown}
"""
