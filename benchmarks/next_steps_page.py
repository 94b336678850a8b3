"""The record of `benchmarks/next_steps.py`, and the page that it makes.

The page opens with what was measured beside what was required, and says where that was missed. Of
data sets whose runs are not finished, seeds count that all strategies have.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
from csv_rows import append_rows, read_rows, shown_row, write_rows

from viewmend.bench.environment import check_publishable
from viewmend.plot.style import PALETTE, plot_style

DATA = ("CUB", "UCI-Digit", "MNIST-USPS", "OutScene (3 views)")
N_SEEDS = 10
REFERENCE = 0.05
TIMED_SAMPLES = 20_000
RANDOM, DEFAULT, RIVAL = "random", "default", "TypiClust (scikit-activeml)"
LABELS, VIEWS, TIME = "labels", "views", "time"
SHOWN = (RANDOM, "margin", DEFAULT, RIVAL)
MEASURED = (RANDOM, "least sure", DEFAULT)
# What was asked for: share of random's labels at most, gain over random's at least.
MOST_SHARE, LEAST_RATIO = 0.6, 2.0
DIGITS = 6
FIELDS = (
    *("revision", "what", "data", "strategy", "seed"),
    *("n_samples", "n", "accuracy", "n_classes", "fit_seconds", "suggest_seconds"),
)


def read(path: Path) -> list[dict]:
    """The record; numbers as numbers."""
    words = {"revision", "what", "data", "strategy"}
    return [
        {k: v if k in words else (float(v) if v else np.nan) for k, v in row.items()}
        for row in read_rows(path)
    ]


def write(path: Path, rows: list[dict]) -> None:
    write_rows(path, FIELDS, (shown_row(row, DIGITS) for row in rows))


def append(path: Path, rows: list[dict]) -> None:
    append_rows(path, FIELDS, (shown_row(row, DIGITS) for row in rows))


# ------------------------------------------------------------------ labels


def strategies_of(rows: list[dict], data: str) -> list[str]:
    """Strategies that have loops on a data set, those of the page first."""
    known = {r["strategy"] for r in rows if r["what"] == LABELS and r["data"] == data}
    return [*(s for s in SHOWN if s in known), *sorted(known - set(SHOWN))]


def seeds_of(rows: list[dict], data: str) -> list[float]:
    """Seeds that all strategies have finished on a data set."""
    by_strategy = [
        {r["seed"] for r in rows if (r["what"], r["data"], r["strategy"]) == (LABELS, data, name)}
        for name in strategies_of(rows, data)
    ]
    return sorted(set.intersection(*by_strategy)) if by_strategy else []


def curve(rows: list[dict], data: str, strategy: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of labels, and accuracies (n_seeds, n_batches)."""
    seeds = seeds_of(rows, data)
    here = [r for r in rows if (r["what"], r["data"], r["strategy"]) == (LABELS, data, strategy)]
    table = {(r["seed"], r["n"]): r["accuracy"] for r in here if r["seed"] in seeds}
    counts = np.unique([n for _, n in table])
    return counts, np.array([[table[seed, n] for n in counts] for seed in seeds])


def labels_needed(counts: np.ndarray, accuracies: np.ndarray, wanted: float) -> float:
    """Labels, between batches by a straight line, at which an accuracy is first reached."""
    above = np.flatnonzero(accuracies >= wanted)
    if len(above) == 0:
        return np.nan
    i = above[0]
    if i == 0:
        return float(counts[0])
    share = (wanted - accuracies[i - 1]) / (accuracies[i] - accuracies[i - 1])
    return float(counts[i - 1] + share * (counts[i] - counts[i - 1]))


def label_tables(rows: list[dict]) -> tuple[list[str], list[str], dict[str, list[float]]]:
    """Lines of two tables: accuracies with 5 % labels, and labels needed.

    Shares of random's labels are listed by strategy, one per data set, NaN where a loop ended
    before it got there.
    """
    sets = [data for data in DATA if seeds_of(rows, data)]
    names = [s for s in SHOWN if any(s in strategies_of(rows, data) for data in sets)]
    shares: dict[str, list[float]] = {name: [] for name in names}
    rights, needs = _head(names, "seeds", "labels"), _head(names, "accuracy")
    for data in sets:
        reference = REFERENCE * n_samples_of(rows, data)
        x, by_chance = curve(rows, data, RANDOM)
        wanted = float(np.interp(reference, x, by_chance.mean(axis=0)))
        right, need = [], []
        for name in names:
            counts, by_seed = curve(rows, data, name)
            if len(counts) == 0:
                right.append("-")
                need.append("-")
                continue
            needed = labels_needed(counts, by_seed.mean(axis=0), wanted)
            shares[name].append(needed / reference)
            at_reference = [np.interp(reference, counts, row) for row in by_seed]
            right.append(_with_error(at_reference))
            need.append(_needed(needed, reference, counts[-1]))
        rights.append(_line(data, f"{len(by_chance)}", f"{reference:.0f}", *right))
        needs.append(_line(data, f"{100 * wanted:.1f}", *need))
    return rights, needs, shares


def _needed(needed: float, reference: float, most: float) -> str:
    if np.isnan(needed):
        return f"more than {most:.0f}"
    return f"{needed:.0f} ({100 * needed / reference:.0f} %)"


def _with_error(values: list[float]) -> str:
    if len(values) == 1:
        return f"{100 * values[0]:.1f}"
    error = np.std(values) / np.sqrt(max(len(values) - 1, 1))
    return f"{100 * np.mean(values):.1f} ± {100 * error:.1f}"


def _head(names: list[str], *first: str) -> list[str]:
    return [_line("data", *first, *names), _line(*["---"] * (1 + len(first) + len(names)))]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


# ------------------------------------------------------------------ views


def view_table(rows: list[dict]) -> tuple[list[str], dict[str, float]]:
    """Right answers gained per 100 measured pairs, and the ratio of mean gains to random's."""
    lines = _head([*MEASURED, "default over random"], "seeds", "pairs")
    gains: dict[str, list[float]] = {name: [] for name in MEASURED}
    for data in DATA:
        here = [row for row in rows if row["what"] == VIEWS and row["data"] == data]
        if not here:
            continue
        n_free = round(n_samples_of(rows, data) * (1 - REFERENCE))
        before = {row["seed"]: row["accuracy"] for row in here if row["strategy"] == "nothing"}
        cells = []
        for name in MEASURED:
            mine = [row for row in here if row["strategy"] == name]
            each = [n_free * (r["accuracy"] - before[r["seed"]]) / r["n"] for r in mine]
            gains[name].append(float(np.mean(each)))
            cells.append(_with_error(each))
        n_pairs = np.mean([row["n"] for row in here if row["strategy"] == DEFAULT])
        ratio = gains[DEFAULT][-1] / gains[RANDOM][-1]
        lines.append(_line(data, f"{len(before)}", f"{n_pairs:.0f}", *cells, f"{ratio:.1f}"))
    mean = {name: float(np.mean(each)) if each else np.nan for name, each in gains.items()}
    return lines, {name: gain / mean[RANDOM] for name, gain in mean.items()}


def n_samples_of(rows: list[dict], data: str) -> float:
    return next(row["n_samples"] for row in rows if row["data"] == data)


# ------------------------------------------------------------------ the page


def draw(rows: list[dict], path: Path) -> None:
    """Learning curves, one panel per data set."""
    from matplotlib.figure import Figure

    sets = [data for data in DATA if seeds_of(rows, data)]
    with plot_style():
        figure = Figure(figsize=(3.1 * len(sets) + 0.6, 3.2), layout="constrained")
        axes = figure.subplots(1, len(sets), squeeze=False)[0]
        for ax, data in zip(axes, sets, strict=True):
            for color, name in zip(PALETTE, SHOWN, strict=False):
                counts, by_seed = curve(rows, data, name)
                if len(counts) == 0:
                    continue
                mean, spread = by_seed.mean(axis=0), by_seed.std(axis=0) / np.sqrt(len(by_seed))
                ax.plot(counts, 100 * mean, color=color, label=name)
                low, high = 100 * (mean - spread), 100 * (mean + spread)
                ax.fill_between(counts, low, high, color=color, alpha=0.2, linewidth=0)
            # Below, all curves climb from one class of ten.
            ax.set_ylim(max(ax.get_ylim()[0], 40), None)
            ax.set_title(f"{data}, {len(seeds_of(rows, data))} seeds")
            ax.set_xlabel("labels")
        axes[0].set_ylabel("accuracy on the rest, %")
        axes[-1].legend(frameon=False, loc="lower right", fontsize=8)
        figure.savefig(path, dpi=120)


def bars(rows: list[dict], shares: dict[str, list[float]], ratio: float) -> list[str]:
    """What was asked for, what was found, and whether that is enough."""
    lines = [_line("requirement", "measured", "met"), _line("---", "---", "---")]
    share = float(np.mean(shares[DEFAULT])) if shares.get(DEFAULT) else np.nan
    lines.append(
        _line(
            "labels for the accuracy of 5 % random labels: at most 60 % as many, on average",
            f"{100 * share:.0f} %",
            _met(share <= MOST_SHARE),
        )
    )
    lines.append(
        _line(
            "gain per measured pair: on average at least twice that of a random pair",
            f"{ratio:.1f} times",
            _met(ratio >= LEAST_RATIO),
        )
    )
    times = [row for row in rows if row["what"] == TIME]
    if times:
        slowest = max(row["suggest_seconds"] / row["fit_seconds"] for row in times)
        told = f"at most {100 * slowest:.0f} % of a fit"
        asked = f"suggestions for {TIMED_SAMPLES:,} samples in less than a fit".replace(",", " ")
        lines.append(_line(asked, told, _met(slowest < 1)))
    return lines


def _met(yes: bool) -> str:
    return "yes" if yes else "**no**"


def unfinished(rows: list[dict]) -> str:
    """A sentence on data sets and seeds that are still to be run, if any."""
    counts = {data: len(seeds_of(rows, data)) for data in DATA}
    if min(counts.values()) >= N_SEEDS:
        return ""
    few = [f"{data} {count}" for data, count in counts.items() if count]
    absent = [data for data in DATA if not seeds_of(rows, data)]
    told = [f"Seeds so far, of {N_SEEDS}: {', '.join(few)}."] if few else []
    told += [f"Not run yet: {', '.join(absent)}."] if absent else []
    return " ".join(["", *told])


def spoken(shares: list[float]) -> str:
    """The mean of shares in percent, as far as the loops went."""
    known = [share for share in shares if np.isfinite(share)]
    if not known:
        return "more than the loops had"
    more = f" on {len(known)} of {len(shares)} data sets, not reached on the others"
    return f"{100 * np.mean(known):.0f} %{more if len(known) < len(shares) else ''}"


def flat(rows: list[dict]) -> str:
    """A sentence on data sets where random choice has the accuracy of 5 % with far fewer labels."""
    told = []
    for data in DATA:
        if not seeds_of(rows, data):
            continue
        counts, by_seed = curve(rows, data, RANDOM)
        reference, mean = REFERENCE * n_samples_of(rows, data), by_seed.mean(axis=0)
        first = labels_needed(counts, mean, float(np.interp(reference, counts, mean)))
        if first < 0.9 * reference:
            told.append(f"with {first:.0f} labels on {data}")
    if not told:
        return ""
    sentence = (
        f"Where its curve is flat, random choice has this accuracy earlier too: {', '.join(told)}. "
        "There the lead of the default is in how accurate it becomes, not in how early."
    )
    return "\n\n" + textwrap.fill(sentence, 98, break_on_hyphens=False)


def make_page(folder: Path) -> None:
    rows = read(folder / "next_steps.csv")
    check_publishable([{"revision": row["revision"]} for row in rows], folder)
    draw(rows, folder / "next_steps.png")
    rights, needs, shares = label_tables(rows)
    views, ratios = view_table(rows)
    times = [
        _line(row["strategy"], f"{100 * row['suggest_seconds'] / row['fit_seconds']:.0f} %")
        for row in rows
        if row["what"] == TIME
    ]
    n_sets = len([data for data in DATA if seeds_of(rows, data)])
    others = [f"{name} {spoken(shares[name])}" for name in shares if name not in (RANDOM, DEFAULT)]
    opening = OPENING.format(
        default=spoken(shares.get(DEFAULT, [])),
        others=", ".join(others),
        n_sets=f"mean of {n_sets} data sets" if n_sets > 1 else "of one data set",
        ratio=ratios[DEFAULT],
        unfinished=unfinished(rows),
    )
    text = PAGE.format(
        opening=textwrap.fill(opening, 118, break_on_hyphens=False),
        bars="\n".join(bars(rows, shares, ratios[DEFAULT])),
        rights="\n".join(rights),
        needs="\n".join(needs) + flat(rows),
        views="\n".join(views),
        times="\n".join(times),
        revision=", ".join(sorted({row["revision"] for row in rows})),
        samples=f"{TIMED_SAMPLES:,}".replace(",", " "),
    )
    (folder / "next_steps.md").write_text(text.rstrip() + "\n")


OPENING = (
    "`suggest_labels` reaches the accuracy that random labels for 5 % of the samples give with "
    "{default} as many labels ({n_sets}). Other strategies: {others}. A missing view that "
    "`suggest_views` suggests adds {ratio:.1f} times as many correct predictions as a random one."
    "{unfinished}"
)

PAGE = """# What suggestions are worth

{opening}

![Accuracy against the number of labels, by strategy](next_steps.png)

{bars}

This is a simulation: the true classes are known, and a strategy gets those that it asks for.
`benchmarks/next_steps.py` runs it and writes this page. Single runs are in
[next_steps.csv](next_steps.csv), of revision {revision}. How to get suggestions: [What to do
next](../guide/next_steps.md).

## Labels

Half of the views are missing. A run begins with one random label and asks for ten more at a time,
until 10 % of the samples have a label. All strategies are compared by the accuracy of
`MendClassifier`, without calibration, on the samples that have no label. As long as all labels are
of one class, no model can be fitted. Then the default uses `suggest_first_labels`, and the other
strategies choose at random. TypiClust, from scikit-activeml, uses the standardised views side by
side and needs no model.

Accuracy in percent with 5 % of the samples labelled, and its standard error over the seeds:

{rights}

Labels needed for the accuracy that random choice reaches with labels for 5 % of the samples, and
this number in percent of those labels. Between batches, the mean curve is interpolated linearly:

{needs}

## Views

With 5 % labels, a tenth of the missing pairs of a sample and a view is measured at once. The table
shows how many more of the samples without a label are then classified correctly, per 100 measured
pairs, with the standard error over the seeds. "Least sure" measures any missing view of the
samples with the lowest confidence.

{views}

## Time

Time of 100 suggestions for {samples} samples of 3 views and 10 classes, relative to the time of the
fit, both on one thread and with nothing else running. Seconds are in the record.

| suggestion | share of a fit |
|---|---|
{times}
"""
