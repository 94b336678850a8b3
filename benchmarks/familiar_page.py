"""The page and the chart of `familiar`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from familiar_tools import OURS, TOOLS

from viewmend.plot.style import GREY, PALETTE, plot_style

# Generated data that shows where Mend should not be used; it is not in the means.
NOT_FOR_MEND = ("linear score", "threshold rule")
LABELS = ("0.05", "0.2", "0.5")
HALF, COMPLETE, ONE = "half missing", "complete", "one view"
SHADES = ("#BBBBBB", PALETTE[6], PALETTE[0])
ALIASES = {
    "UCI-Digit (embedded)": "UCI digits",
    "OutScene (3 views)": "OutScene, 3 views",
    "Caltech101-20 (surrogate)": "Caltech101-20, 3 views",
    "scenes, coast against country": "scenes, two classes",
    "logistic regression, kNN-imputed": "logistic, kNN-imputed",
    "random forest, kNN-imputed": "forest, kNN-imputed",
}

Rows = Sequence[dict[str, str]]


def accuracies(rows: Rows, method: str, **key: str) -> np.ndarray:
    """Percent of a method in the order of the file, of the runs that ``key`` describes."""
    wanted = {"method": method, **key}
    return np.array([100 * float(row["accuracy"]) for row in rows if wanted.items() <= row.items()])


def mean(rows: Rows, method: str, **key: str) -> float:
    """Mean over the data sets of the mean over their runs, NaN where there is none."""
    chosen = [key["data"]] if "data" in key else names_in(rows, "data")
    found = [accuracies(rows, method, **key | {"data": data}) for data in chosen]
    return float(np.mean([each.mean() for each in found if len(each)] or [np.nan]))


def names_in(rows: Rows, field: str) -> list[str]:
    return list(dict.fromkeys(row[field] for row in rows))


def usual(rows: Rows) -> list[dict[str, str]]:
    """The runs that the means are taken over."""
    return [row for row in rows if row["data"] not in NOT_FOR_MEND]


def best_other(rows: Rows, **key: str) -> str:
    """The tool that is most accurate after the fact, which is generous to the others."""
    others = [name for name in names_in(rows, "method") if name != OURS]
    return max(others, key=lambda name: mean(rows, name, **key))


def difference(rows: Rows, rival: str, **key: str) -> str:
    """Mean and standard error of what Mend is ahead of a tool on the same tasks."""
    gaps = accuracies(rows, OURS, **key) - accuracies(rows, rival, **key)
    if len(gaps) < 2:
        return f"{gaps.mean():+.1f}"
    return f"{gaps.mean():+.1f} ± {gaps.std(ddof=1) / np.sqrt(len(gaps)):.1f}"


def markdown(heading: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rule = ["---"] * len(heading)
    return "\n".join("| " + " | ".join(line) + " |" for line in (heading, rule, *lines))


def table_of_tools(rows: Rows) -> str:
    """One line per tool: means over the usual data by labels, and how far Mend is ahead."""
    shown, lines = usual(rows), []
    settings = [(HALF, labels) for labels in LABELS] + [(COMPLETE, "0.5"), (ONE, "0.5")]
    for name in by_accuracy(rows):
        cells = [f"{mean(shown, name, setting=s, labels=each):.1f}" for s, each in settings]
        ahead = "" if name == OURS else difference(shown, name, setting=HALF, labels="0.05")
        bold = "**" if name == OURS else ""
        lines.append([f"{bold}{name}{bold}", *(f"{bold}{cell}{bold}" for cell in cells), ahead])
    heading = ["tool", *(f"{float(labels):.0%} labels" for labels in LABELS)]
    heading += ["complete, 50% labels", "one view, 50% labels", "Mend ahead at 5%"]
    return markdown(heading, lines)


def table_of_data(rows: Rows, setting: str) -> str:
    """One line per data set and labels: Mend, and the best of the others with its name."""
    lines = []
    for data in names_in(rows, "data"):
        for labels in names_in([row for row in rows if row["setting"] == setting], "labels"):
            key = {"data": data, "setting": setting, "labels": labels}
            best = best_other(rows, **key)
            ours, theirs = (mean(rows, name, **key) for name in (OURS, best))
            pair = [f"{ours:.1f}", f"{theirs:.1f}"]
            winner = int(np.round(theirs, 1) > np.round(ours, 1))
            pair[winner] = f"**{pair[winner]}**"
            ahead = difference(rows, best, **key)
            lines.append([ALIASES.get(data, data), f"{float(labels):.0%}", *pair, best, ahead])
    return markdown(["data", "labels", "Mend", "best other", "which", "Mend ahead"], lines)


def by_accuracy(rows: Rows) -> list[str]:
    """Tools by their mean accuracy with half of the views missing, the best first."""
    known = [name for name in TOOLS if name in names_in(rows, "method")]
    return sorted(known, key=lambda name: -mean(usual(rows), name, setting=HALF))


def sentences(rows: Rows) -> tuple[str, str]:
    """What the chart shows, in two sentences."""
    shown = usual(rows)
    first = by_accuracy(rows)
    best = next(name for name in first if name != OURS)
    series = [
        " / ".join(f"{mean(shown, name, setting=HALF, labels=each):.0f}" for each in LABELS)
        for name in (OURS, best)
    ]
    gap = mean(shown, OURS, setting=HALF) - mean(shown, best, setting=HALF)
    lost = [
        data
        for data in names_in(rows, "data")
        if mean(rows, best_other(rows, data=data, setting=COMPLETE), data=data, setting=COMPLETE)
        > mean(rows, OURS, data=data, setting=COMPLETE)
    ]
    listed = ", ".join(ALIASES.get(data, data) for data in lost)
    return (
        f"With half of the views missing and labels for 5 / 20 / 50 % of the samples, the accuracy "
        f"of Mend on the other samples is {series[0]} %. That of the next best tool, {best}, is "
        f"{series[1]} %, which is {gap:.1f} points less on average.",
        f"With nothing missing and half of the samples labelled, a simple tool is more accurate "
        f"than Mend on {len(lost)} of {len(names_in(rows, 'data'))} data sets: {listed}.",
    )


def seeds_by_setting(rows: Rows) -> str:
    """For example: seeds 0-2 in *half missing*, 0-1 in *complete*."""
    parts = []
    for setting in names_in(rows, "setting"):
        seeds = sorted({int(row["seed"]) for row in rows if row["setting"] == setting})
        several = f"{seeds[0]}-{seeds[-1]}" if len(seeds) > 1 else f"{seeds[0]}"
        parts.append(f"{several} in *{setting}*")
    return "seeds " + ", ".join(parts)


def page(rows: Rows) -> str:
    told = ", ".join(sorted({row["revision"] for row in rows}))
    n_usual = len(names_in(usual(rows), "data"))
    first, second = sentences(rows)
    return f"""\
# Mend beside familiar tools

![Accuracy of Mend and nine familiar tools](familiar.png)

{first} {second}

## What was done

All tools get the same tasks: at most 1000 samples of five sets of images, and four two-class data
sets of few samples and many columns ([what these are](omics.md)). A seed determines the samples,
the missing views, and the labels, which are drawn at random within the classes. Figures are means
over {seeds_by_setting(rows)}.
In *half missing*, a sample misses each view with probability one half, but keeps at least one. In
*complete*, nothing is missing. In *one view*, only the view with the most columns is used. Accuracy
is measured on the samples without a label, in percent. All tools use their usual defaults, except
gradient boosting. None was tuned, and none saw a test label.

- **label spreading**: that of scikit-learn, over 7 nearest neighbours; missing views are filled
  with means.
- **logistic regression**: on all columns side by side; missing views are filled with means or with
  the mean of the 5 nearest samples (*kNN-imputed*).
- **random forest**: 300 trees, kNN-imputed.
- **gradient boosting**: `HistGradientBoostingClassifier` of scikit-learn, which accepts missing
  values, with 50 small trees of 8 leaves. Its defaults take several times as long here.
- **late fusion**: a logistic regression, or a support vector machine, per view; their log
  probabilities are averaged over the views that a sample has.
- **SNF**: similarity network fusion, then labels spread over the fused network.
- **MOFA**: 15 factors by mofapy2, learned from all samples without labels, and logistic regression.

iMML was not run: its factor model is the same MOFA, and its classifiers are neural networks for
images and text, which need PyTorch Lightning and Transformers.

## Means over {n_usual} data sets

{table_of_tools(rows)}

The last column is the accuracy of Mend minus that of the tool, in points, with half of the views
missing and 5 % labels: mean and standard error over all tasks.

## When a simple tool is the better choice

In two generated data sets, classes are not groups of similar samples. They are not part of the
means above. In *linear score*, the class is the sign of a weighted sum of all columns, which is
what logistic regression is made for. In *threshold rule*, the signs of two of 12 columns determine
the class of nine in ten samples, which trees can learn. Nothing is missing in this table. *Best
other* is the tool that turned out to be best on the test labels. Nobody knows it beforehand, so the
comparison favours the other tools.

{table_of_data(rows, COMPLETE)}

With a single view:

{table_of_data(rows, ONE)}

## Half of the views missing, by data set

{table_of_data(rows, HALF)}

`benchmarks/familiar.py`, revision {told}; [every run](familiar.csv).
"""


def draw(rows: Rows, path: Path) -> None:
    """Left: means by labels, a line per tool. Right: complete data, where simple tools may win."""
    with plot_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(11, 5.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        draw_means(left, rows)
        draw_complete(right, rows)
        for ax in (left, right):
            ax.set_title(ax.get_title(loc="left"), loc="left", fontweight="bold", pad=26)
            ax.grid(axis="x", color="#e4e4e4", linewidth=0.8)
            ax.set_axisbelow(True)
            ax.tick_params(axis="y", length=0, labelsize=10.5)
            ax.spines["left"].set_visible(False)
        figure.savefig(path, metadata={"Software": None})


def draw_means(ax, rows: Rows) -> None:
    names, shown = by_accuracy(rows), usual(rows)
    for place, name in enumerate(names):
        found = [mean(shown, name, setting=HALF, labels=each) for each in LABELS]
        ax.plot([min(found), max(found)], [place, place], color="#cccccc", linewidth=3, zorder=1)
        ax.scatter(found, [place] * 3, s=95, color=SHADES, zorder=2)
        if name == OURS:
            ax.axhspan(place - 0.45, place + 0.45, color=PALETTE[0], alpha=0.08, zorder=0)
    for each, shade in zip(LABELS, SHADES, strict=True):
        ax.scatter([], [], s=95, color=shade, label=f"{float(each):.0%} labels")
    looks = {"handletextpad": 0.1, "columnspacing": 1.2}
    ax.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(-0.02, 0.98), **looks)
    ax.set_yticks(range(len(names)), [ALIASES.get(name, name) for name in names])
    ax.get_yticklabels()[names.index(OURS)].set_fontweight("bold")
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlabel(f"accuracy in percent, mean of {len(names_in(shown, 'data'))} data sets")
    ax.set_title("Half of the views missing:\nMend is right most often")


def draw_complete(ax, rows: Rows) -> None:
    """Points that Mend is ahead of the tool that turned out best."""
    gaps = {}
    for data in names_in(rows, "data"):
        key = {"data": data, "setting": COMPLETE}
        best = best_other(rows, **key)
        gaps[data] = mean(rows, OURS, **key) - mean(rows, best, **key), best
    order = sorted(gaps, key=lambda data: -gaps[data][0])
    values = np.array([gaps[data][0] for data in order])
    colours = np.where(values >= 0, PALETTE[0], PALETTE[7])
    ax.barh(range(len(order)), values, 0.62, color=colours)
    for place, data in enumerate(order):
        ahead = values[place] >= 0
        text = f"{values[place]:+.1f}" if ahead else f"{values[place]:+.1f} {gaps[data][1]}"
        x = max(values[place], 0) + 0.3
        ax.text(x, place, text, va="center", fontsize=9.5, color=GREY)
    ax.axvline(0, color=GREY, linewidth=1)
    ax.set_yticks(range(len(order)), [ALIASES.get(data, data) for data in order])
    ax.set_ylim(len(order) - 0.4, -0.6)
    ax.set_xlim(min(values.min() * 1.08, -1), max(values.max() + 4, 9))
    ax.set_xlabel("points that Mend is ahead of the best other tool", loc="right")
    ax.set_title("Nothing missing, 50% labels:\na small lead, or none")


def readme_parts(rows: Rows) -> dict[str, str]:
    """What the README says of these runs, by the name of its place there."""
    shown = usual(rows)
    linear = {"data": "linear score", "setting": COMPLETE}
    alone = {"setting": ONE}
    best = best_other(shown, **alone)
    # Nothing is missing there, so nothing was imputed.
    best_name = best.split(",")[0]
    ours, theirs = (mean(rows, name, **linear) for name in (OURS, "logistic regression"))
    when_not = f"""\
- *Complete tables and many labels.* Simpler tools are nearly as accurate and far faster. If the
  class depends on a weighted sum of the columns, take logistic regression: with nothing missing and
  half of the samples labelled, its accuracy on the others is {theirs:.0f} %, that of Mend
  {ours:.0f} %.
- *A single table.* Mend works, but is no better than familiar tools: its accuracy is
  {mean(shown, OURS, **alone):.1f} %, that of a {best_name} {mean(shown, best, **alone):.1f} %
  ({len(names_in(shown, "data"))} data sets, half of the samples labelled)."""
    lines = [
        [name, *(f"{mean(shown, name, setting=HALF, labels=each):.1f}" for each in LABELS)]
        for name in by_accuracy(rows)
    ]
    lines[0] = [f"**{cell}**" for cell in lines[0]] if lines[0][0] == OURS else lines[0]
    heading = ["half of the views missing", *(f"{float(each):.0%} labels" for each in LABELS)]
    return {"when not": when_not, "table": markdown(heading, lines)}


def with_parts(text: str, parts: dict[str, str]) -> str:
    """A text with what stands between its marks, such as ``<!-- table -->``, written anew."""
    for name, part in parts.items():
        mark, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, rest = text.split(mark)
        text = f"{before}{mark}\n{part}\n{end}{rest.split(end)[1]}"
    return text


def write(rows: Rows, out: Path) -> None:
    """Write ``familiar.md`` and ``familiar.png`` into a folder, and the README of its checkout."""
    (out / "familiar.md").write_text(page(rows), encoding="utf-8")
    draw(rows, out / "familiar.png")
    readme = out.resolve().parents[1] / "README.md"
    if readme.exists() and out.resolve().parent.name == "docs":
        text = with_parts(readme.read_text(encoding="utf-8"), readme_parts(rows))
        readme.write_text(text, encoding="utf-8")
