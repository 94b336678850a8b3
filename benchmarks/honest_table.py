"""The runs of the honest comparison as Markdown: means, intervals, paired tests, failures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from comparison import Cell, Comparison, Interval, Scores, compare, holm, mean_interval
from comparison import paired_differences as paired
from protocols import PROTOCOLS

METRICS = ("accuracy", "macro_precision", "macro_recall", "macro_f1")
NOTES = """\
Percent, on unlabelled rows. ± is the half-width of the 95 % Student interval over the seeds, absent
where there is one seed. A cell is a data set at a missing rate. A method that lacks cells is
averaged over those it has. Seconds are medians.

Paired differences are on shared cells and seeds, and positive where {subject} is better. By method:
mean over the data sets with the 95 % interval over them; p of the one-sided signed-rank test over
the cells' mean differences, Holm-corrected over the methods (the cells of one data set are not
independent, so it is a summary); wins/ties/losses of cells and of single runs. By cell: mean over
the seeds with its 95 % interval; p of the one-sided signed-rank test over the seeds, Holm-corrected
over the cells of the column.
"""

Row = Mapping[str, Any]


def report(rows: Sequence[Row], subject: str, metric: str) -> str:
    """All protocols, one section each.

    Parameters
    ----------
    rows : sequence of dict
        Runs as `runs.read` gives them.
    subject : str
        Method that the others are compared with.
    metric : str
        Of `METRICS`.

    Returns
    -------
    str
        Markdown.
    """
    present = [name for name in PROTOCOLS if any(row["protocol"] == name for row in rows)]
    sections = [
        section(name, [row for row in rows if row["protocol"] == name], subject, metric)
        for name in present
    ]
    title = f"# Honest comparison: {metric.replace('_', ' ')}\n"
    return "\n".join([title, NOTES.format(subject=subject), *sections])


def section(protocol: str, rows: Sequence[Row], subject: str, metric: str) -> str:
    """Tables and failures of one protocol."""
    scores = scores_of(rows, metric)
    comparisons = {
        other: compare(differences)
        for other in scores
        if other != subject and (differences := paired(scores.get(subject, {}), scores[other]))
    }
    parts = [f"## {protocol}\n", means_table(scores), summary_table(rows)]
    if comparisons:
        parts += [
            f"{subject} against each:\n",
            overall_table(comparisons),
            cells_table(comparisons),
        ]
    return "\n".join([*parts, failures(comparisons, subject), errors(rows)])


def scores_of(rows: Iterable[Row], metric: str) -> dict[str, dict[Cell, dict[int, float]]]:
    """Percent by method, cell and seed; of several settings of a name the last in the file."""
    found: dict = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        if row["status"] == "done":
            found[row["method"]][row["data"], row["rate"]][row["seed"]] = 100 * row[metric]
    return {method: dict(cells) for method, cells in found.items()}


def cell_means(scores: Scores) -> dict[Cell, float]:
    return {cell: float(np.mean(list(by_seed.values()))) for cell, by_seed in scores.items()}


def means_table(scores: Mapping[str, Scores]) -> str:
    """Cells by methods, the best mean of a row in bold, and the mean over the cells below."""
    cells = sorted({cell for own in scores.values() for cell in own})
    means = {method: cell_means(own) for method, own in scores.items()}
    lines = []
    for cell in cells:
        best = max(own[cell] for own in means.values() if cell in own)
        texts = [
            emphasised(mean_interval(list(own[cell].values())), best) if cell in own else "-"
            for own in scores.values()
        ]
        lines.append([*named(cell), seeds_text(scores, cell), *texts])
    overall = [f"{np.mean(list(own.values())):.1f}" for own in means.values()]
    counts = [f" ({len(own)} cells)" if len(own) < len(cells) else "" for own in means.values()]
    lines.append(["mean", "", "", *(a + b for a, b in zip(overall, counts, strict=True))])
    return markdown(["data", "missing", "seeds", *scores], lines)


def summary_table(rows: Sequence[Row]) -> str:
    """All metrics, averaged over the cells, and the median time of a fit, best accuracy first."""
    averages = {metric: scores_of(rows, metric) for metric in METRICS}
    lines = []
    for method in averages["accuracy"]:
        values = [np.mean(list(cell_means(averages[m][method]).values())) for m in METRICS]
        own = [row for row in rows if row["method"] == method and row["status"] == "done"]
        seconds = np.median([row["seconds"] for row in own])
        filling = [row["completion_seconds"] for row in own if row["completion_seconds"]]
        apart = f"{np.median(filling):.1f}" if filling else "-"
        lines.append([method, *(f"{value:.1f}" for value in values), f"{seconds:.2f}", apart])
    lines.sort(key=lambda line: -float(line[1]))
    names = [metric.replace("_", " ") for metric in METRICS]
    return markdown(["method", *names, "s per fit", "s completion"], lines)


def overall_table(comparisons: Mapping[str, Comparison]) -> str:
    corrected = holm([found.p for found in comparisons.values()])
    lines = [
        [other, signed(found.overall), p_text(p), str(found.cell_counts), str(found.run_counts)]
        for (other, found), p in zip(comparisons.items(), corrected, strict=True)
    ]
    return markdown(["method", "difference", "p", "cells", "runs"], lines)


def cells_table(comparisons: Mapping[str, Comparison]) -> str:
    cells = sorted({cell for found in comparisons.values() for cell in found.cells})
    lines = [
        [*named(cell), *(difference_text(found, cell) for found in comparisons.values())]
        for cell in cells
    ]
    return markdown(["data", "missing", *comparisons], lines)


def failures(comparisons: Mapping[str, Comparison], subject: str) -> str:
    """Cells where the subject is not better, by name."""
    lines = [
        f"- {' at '.join(named(cell))}, {other}: {signed(found.cells[cell])}"
        for other, found in comparisons.items()
        for cell in sorted(found.not_better)
    ]
    if not comparisons:
        return f"No run of {subject} shares a problem with another method.\n"
    head = f"Cells where {subject} is not better:"
    return "\n".join([head, "", *(lines or ["- none"]), ""])


def errors(rows: Sequence[Row]) -> str:
    """Runs that failed, counted by method, data set and message."""
    counted: dict = defaultdict(int)
    for row in rows:
        if row["status"] != "done":
            counted[row["method"], row["data"], row["status"].splitlines()[0]] += 1
    lines = [
        f"- {method}, {data}, {count} runs: {status}"
        for (method, data, status), count in counted.items()
    ]
    return "\n".join(["Runs that failed:", "", *(lines or ["- none"]), ""])


def markdown(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rule = ["---"] * len(header)
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, rule, *lines)) + "\n"


def named(cell: Cell) -> list[str]:
    return [cell[0], f"{cell[1]:.0%}"]


def seeds_text(scores: Mapping[str, Scores], cell: Cell) -> str:
    """Number of seeds, a range where methods differ."""
    counts = {len(own[cell]) for own in scores.values() if cell in own}
    return "-".join(str(count) for count in sorted({min(counts), max(counts)}))


def emphasised(found: Interval, best: float) -> str:
    text = f"{found.mean:.1f}"
    text = f"**{text}**" if found.mean == best else text
    return text if np.isnan(found.half_width) else f"{text} ± {found.half_width:.1f}"


def signed(found: Interval) -> str:
    text = f"{found.mean:+.1f}"
    return text if np.isnan(found.half_width) else f"{text} ± {found.half_width:.1f}"


def difference_text(found: Comparison, cell: Cell) -> str:
    if cell not in found.cells:
        return "-"
    return f"{signed(found.cells[cell])} (p {p_text(found.cell_p[cell])})"


def p_text(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"
