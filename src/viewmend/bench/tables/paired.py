"""Methods compared run by run on the problems they share: intervals, signed ranks, counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

import numpy as np
from scipy.special import stdtrit
from scipy.stats import rankdata

from viewmend.bench.paper_values import Look
from viewmend.bench.runs import Condition, Record
from viewmend.bench.stats import WinTieLoss
from viewmend.bench.summaries import (
    done,
    grouped,
    method_names,
    metric_named,
    only_protocol,
    percent,
    scores,
)
from viewmend.bench.tables.table import GAP, Entry, Line, Table, condition_table

# Accuracies are fractions of counts, so smaller differences are rounding.
ROUNDING = 10

# What a comparison comes to, under these names.
SUMMARIES = OVERALL, P_VALUE, CELLS, RUNS = (
    "all data sets",
    "p",
    "wins/ties/losses of cells",
    "wins/ties/losses of runs",
)

RIVALS_NOTE = (
    "Means are over the cells that a method has, differences in points on shared cells and "
    "repetitions, positive where {subject} is better, with the 95 % interval over the data sets. p "
    "is that of the one-sided signed-rank test over the cells' mean differences, Holm-corrected "
    "over the lines (cells of one data set are not independent, so it is a summary). Seconds per "
    "fit on one thread are medians."
)

PAIRED_NOTE = (
    "Differences are in points, on shared cells and repetitions, and positive where {subject} is "
    "better. By cell: mean over the repetitions with its 95 % Student interval; p of the one-sided "
    "signed-rank test over the repetitions, Holm-corrected over the cells of the column. Below: "
    "mean over the data sets with the 95 % interval over them; p of the one-sided signed-rank test "
    "over the cells' means, Holm-corrected over the methods (cells of one data set are not "
    "independent, so it is a summary); wins/ties/losses of cells and of single runs."
)


@dataclass(frozen=True)
class Interval:
    """A mean and the half-width of its confidence interval, NaN where one value gives none."""

    mean: float
    half_width: float

    def text(self, form: str = ".1f") -> str:
        """Mean ± half-width, the mean alone where there is no interval."""
        spread = "" if np.isnan(self.half_width) else f" ± {self.half_width:.1f}"
        return f"{self.mean:{form}}{spread}"


def mean_interval(values: Sequence[float] | np.ndarray, level: float = 0.95) -> Interval:
    """Student's interval of the mean of ``n >= 1`` values: ``mean ± t_{n-1} s / sqrt(n)``."""
    sample = np.asarray(values, dtype=float)
    n = sample.size
    if n == 1:
        return Interval(float(sample[0]), float("nan"))
    quantile = stdtrit(n - 1, (1 + level) / 2)
    return Interval(float(sample.mean()), float(quantile * sample.std(ddof=1) / np.sqrt(n)))


def signed_rank_p(differences: Sequence[float] | np.ndarray) -> float:
    """p-value of Wilcoxon's signed-rank test against "the differences are not above zero".

    Exact also where differences are tied: zeros are left out, equal sizes share their mean rank,
    and given the sizes every sign is a fair coin. Hence no p-value of ``n`` differences is below
    ``2**-n``, which for five repetitions is 0.031.
    """
    rounded = np.round(np.asarray(differences, dtype=float), ROUNDING)
    differing = rounded[rounded != 0]
    # Mean ranks are halves, so twice a rank is a whole number.
    ranks = np.rint(2 * rankdata(np.abs(differing))).astype(int)
    reached = ranks[differing > 0].sum()
    # Distribution of the sum of those ranks whose coin shows heads.
    probability = np.zeros(ranks.sum() + 1)
    probability[0] = 1.0
    for rank in ranks:
        heads = np.zeros_like(probability)
        heads[rank:] = probability[: probability.size - rank]
        probability = (probability + heads) / 2
    return float(probability[reached:].sum())


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Holm's step-down correction: reject what is below the level, and all rejections hold at it.

    With ascending ``p_1 ... p_m`` the new ``p_i`` is ``max_{j <= i} min(1, (m - j + 1) p_j)``; they
    come in the order of the input.
    """
    given = np.asarray(p_values, dtype=float)
    order = np.argsort(given, kind="stable")
    factors = np.arange(given.size, 0, -1)
    corrected = np.empty_like(given)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(factors * given[order]))
    return corrected


def win_tie_loss(differences: Sequence[float] | np.ndarray) -> WinTieLoss:
    """Count the differences above, at and below zero."""
    signs = np.sign(np.round(np.asarray(differences, dtype=float), ROUNDING))
    return WinTieLoss(*(int(np.sum(signs == sign)) for sign in (1, 0, -1)))


@dataclass(frozen=True, eq=False)
class PairedComparison:
    """One method against another on the same problems: (n_repetitions,) differences by cell."""

    differences: Mapping[Condition, np.ndarray]

    @property
    def cells(self) -> dict[Condition, Interval]:
        """Mean difference over the repetitions."""
        return {cell: mean_interval(gaps) for cell, gaps in self.differences.items()}

    @property
    def cell_p(self) -> dict[Condition, float]:
        """One-sided signed-rank test over the repetitions, Holm-corrected over the cells."""
        corrected = holm([signed_rank_p(gaps) for gaps in self.differences.values()])
        return dict(zip(self.differences, corrected.tolist(), strict=True))

    @property
    def means(self) -> dict[Condition, float]:
        """Mean difference of every cell."""
        return {cell: float(np.mean(gaps)) for cell, gaps in self.differences.items()}

    @property
    def overall(self) -> Interval:
        """Mean difference over the data sets, each the mean of its cells.

        Rates of one data set are not independent, so data sets and not cells are observations.
        """
        data_sets = grouped(self.means, lambda cell: cell.data).values()
        return mean_interval([mean(self.means[cell] for cell in cells) for cells in data_sets])

    @property
    def p(self) -> float:
        """One-sided signed-rank test over the mean differences of the cells, not corrected."""
        return signed_rank_p(list(self.means.values()))

    @property
    def cell_counts(self) -> WinTieLoss:
        """Of the cells' mean differences."""
        return win_tie_loss(list(self.means.values()))

    @property
    def run_counts(self) -> WinTieLoss:
        """Of the single runs."""
        return win_tie_loss(np.concatenate(list(self.differences.values())))

    @property
    def not_better(self) -> list[Condition]:
        """Cells whose mean difference is not above zero."""
        return [cell for cell, gap in self.means.items() if round(gap, ROUNDING) <= 0]


def paired_differences(
    records: Sequence[Record], subject: str, other: str, metric: str
) -> dict[Condition, np.ndarray]:
    """The subject's scores less another's in points, on the cells and repetitions that both have.

    Records must be of one protocol, with one setting per method and cell.
    """
    field = metric_named(metric).field_under(only_protocol(records))
    by_method: dict[str, dict[tuple[Condition, int], float]] = {subject: {}, other: {}}
    for run in done(records):
        problem = run.key.condition, run.key.repetition
        by_method.setdefault(run.key.method, {})[problem] = percent(run.value(field))
    ours, theirs = by_method[subject], by_method[other]
    shared = grouped(sorted(ours.keys() & theirs.keys(), key=lambda p: p[1]), lambda p: p[0])
    return {
        cell: np.array([ours[problem] - theirs[problem] for problem in shared[cell]])
        for cell in scores(records, metric)
        if cell in shared
    }


def intervals_table(records: Sequence[Record], look: Look) -> Table:
    """Means with 95 % intervals over the repetitions, the best of a line marked.

    The last line is the mean over the cells that a method has.
    """
    intervals = {
        cell: {name: mean_interval(values) for name, values in by_method.items()}
        for cell, by_method in scores(records, look.metric).items()
    }
    entries, means = {}, {}
    for cell, line in intervals.items():
        best = max(one.mean for one in line.values())
        entries[cell] = {
            name: Entry(one.text(), one.mean, int(one.mean == best)) for name, one in line.items()
        }
    methods = method_names(intervals)
    for name in methods:
        values = [line[name].mean for line in intervals.values() if name in line]
        lacking = f" ({len(values)} cells)" if len(values) < len(intervals) else ""
        means[name] = Entry(f"{mean(values):.1f}{lacking}", mean(values))
    words = metric_named(look.metric).words
    return condition_table(
        f"{words[0].upper()}{words[1:]} (%) under the protocol {only_protocol(records)!r}",
        methods,
        entries,
        {"mean of the lines": means},
        ["± is the half-width of the 95 % Student interval over the repetitions. Bold is best."],
    )


def comparisons_of(records: Sequence[Record], look: Look) -> dict[str, PairedComparison]:
    """The subject against every other method with which it shares a problem."""
    others = [name for name in method_names(scores(records, look.metric)) if name != look.subject]
    differences = {
        other: paired_differences(records, look.subject, other, look.metric) for other in others
    }
    return {other: PairedComparison(gaps) for other, gaps in differences.items() if gaps}


def rivals_table(records: Sequence[Record], look: Look) -> Table:
    """A line for every method: its mean, what the subject is ahead of it, and seconds."""
    cells = scores(records, look.metric)
    seconds = {
        name: median(run.value("fit") for run in runs)
        for name, runs in grouped(done(records), lambda run: run.key.method).items()
    }
    comparisons = comparisons_of(records, look)
    against = _paired_summaries(comparisons)
    lines = []
    for name in sorted(method_names(cells), key=lambda name: name != look.subject):
        score = mean(mean(line[name]) for line in cells.values() if name in line)
        compared = [against[row].get(name, GAP) for row in SUMMARIES]
        entries = (Entry(f"{score:.1f}", score), *compared, _seconds_entry(seconds[name]))
        lines.append(Line((name,), entries))
    return Table(
        f"{look.subject} against each over all cells, protocol {only_protocol(records)!r}",
        ("method",),
        (metric_named(look.metric).words, *SUMMARIES, "seconds"),
        tuple(lines),
        (RIVALS_NOTE.format(subject=look.subject),),
    )


def paired_table(records: Sequence[Record], look: Look) -> Table:
    """The subject against every other method, cell by cell and over all, tested in pairs."""
    cells = scores(records, look.metric)
    comparisons = comparisons_of(records, look)
    entries = {
        cell: {
            other: _cell_entry(one, cell)
            for other, one in comparisons.items()
            if cell in one.differences
        }
        for cell in cells
    }
    protocol = only_protocol(records)
    return condition_table(
        f"{look.subject} against each by {look.metric} under the protocol {protocol!r}",
        list(comparisons),
        {cell: line for cell, line in entries.items() if line},
        _paired_summaries(comparisons),
        (PAIRED_NOTE.format(subject=look.subject), _not_better_note(comparisons, look.subject)),
    )


def _cell_entry(comparison: PairedComparison, cell: Condition) -> Entry:
    gap = comparison.cells[cell]
    return Entry(f"{gap.text('+.1f')} (p {_p_text(comparison.cell_p[cell])})", gap.mean)


def _paired_summaries(comparisons: Mapping[str, PairedComparison]) -> dict[str, dict[str, Entry]]:
    p_values = holm([one.p for one in comparisons.values()]).tolist()
    by_name = comparisons.items()
    return {
        OVERALL: {name: Entry(one.overall.text("+.1f"), one.overall.mean) for name, one in by_name},
        P_VALUE: {
            name: Entry(_p_text(p), p) for name, p in zip(comparisons, p_values, strict=True)
        },
        CELLS: {name: Entry(str(one.cell_counts)) for name, one in by_name},
        RUNS: {name: Entry(str(one.run_counts)) for name, one in by_name},
    }


def _not_better_note(comparisons: Mapping[str, PairedComparison], subject: str) -> str:
    cells = [
        f"{cell.text}, {other}: {one.cells[cell].text('+.1f')}"
        for other, one in comparisons.items()
        for cell in one.not_better
    ]
    return f"Cells where {subject} is not better: {'; '.join(cells) or 'none'}."


def _seconds_entry(seconds: float) -> Entry:
    return Entry(f"{seconds:.2f}", seconds)


def _p_text(p: float) -> str:
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"
