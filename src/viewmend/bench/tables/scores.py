"""Tables of scores: the main table, ranks over data sets, ours beside the paper's.

Each function takes records of one protocol and how to look at them, and gives a table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean

import numpy as np

from viewmend.bench.paper_values import Difference, Look, compare_with_paper, not_run
from viewmend.bench.runs import Condition, Record
from viewmend.bench.stats import Ranking, count_verdicts, rank_methods, summarise, verdict
from viewmend.bench.summaries import (
    Scores,
    grouped,
    method_names,
    metric_named,
    only_protocol,
    scores,
)
from viewmend.bench.tables.table import GAP, HEADS, Entry, Line, Table, condition_table, heads_of

Entries = Mapping[Condition, Mapping[str, Entry]]

DEVIATION = "± is the standard deviation over the runs, divided by their number as in the paper."


def scores_table(records: Sequence[Record], look: Look) -> Table:
    """The paper's main table: data set and missing rate by method, best and second best marked.

    Entries carry the verdict of the subject against the method; below are the means of the
    methods that have all conditions, and the subject's wins, ties and losses.
    """
    protocol = only_protocol(records)
    by_condition = scores(records, look.metric)
    methods = method_names(by_condition)
    entries = {
        condition: _score_entries(by_method, look.subject)
        for condition, by_method in by_condition.items()
    }
    return condition_table(
        f"{metric_named(look.metric).words.capitalize()} (%) under the protocol {protocol!r}",
        methods,
        entries,
        _score_summaries(by_condition, entries, look.subject),
        _score_notes(by_condition, entries, look, protocol),
    )


def _score_entries(by_method: Mapping[str, list[float]], subject: str) -> dict[str, Entry]:
    summaries = {name: summarise(runs) for name, runs in by_method.items()}
    places = _places({name: summary.mean for name, summary in summaries.items()})
    verdicts = {
        name: verdict(by_method[subject], runs)
        for name, runs in by_method.items()
        if subject in by_method and name != subject
    }
    return {
        name: Entry(summary.text, summary.mean, places[name], verdicts.get(name, ""))
        for name, summary in summaries.items()
    }


def _places(means: Mapping[str, float]) -> dict[str, int]:
    """1 for the largest, 2 for the second largest value as printed, 0 for the others."""
    printed = {name: round(value, 2) for name, value in means.items()}
    podium = sorted(set(printed.values()), reverse=True)[:2]
    return {
        name: podium.index(value) + 1 if value in podium else 0 for name, value in printed.items()
    }


def _score_summaries(
    by_condition: Scores, entries: Entries, subject: str
) -> dict[str, dict[str, Entry]]:
    methods = method_names(by_condition)
    means = {
        name: mean(summarise(by_method[name]).mean for by_method in by_condition.values())
        for name in methods
        if all(name in by_method for by_method in by_condition.values())
    }
    places = _places(means)
    summaries = {
        "mean of the lines": {
            name: Entry(f"{value:.2f}", value, places[name]) for name, value in means.items()
        }
    }
    if subject in methods:
        summaries[f"{subject} wins/ties/losses"] = {
            name: Entry(
                _count_text(line[name].verdict for line in entries.values() if name in line)
            )
            for name in methods
        }
    return summaries


def _count_text(verdicts: Iterable[str]) -> str:
    counted = count_verdicts(one for one in verdicts if one)
    tested = counted.wins + counted.ties + counted.losses
    return str(counted) if tested else "-"


def _score_notes(
    by_condition: Scores, entries: Entries, look: Look, protocol: str
) -> tuple[str, ...]:
    runs = {len(values) for by_method in by_condition.values() for values in by_method.values()}
    counts = "-".join(str(n) for n in sorted({min(runs), max(runs)})) if runs else "0"
    notes = [
        f"Runs per entry: {counts}. {DEVIATION} Bold is best, underlined second best.",
        metric_named(look.metric).note_under(protocol),
    ]
    if look.subject in method_names(by_condition):
        notes.append(_test_note(entries, look.subject))
    return tuple(note for note in notes if note)


def _test_note(entries: Entries, subject: str) -> str:
    text = (
        f"●/⊙/○: {subject} is significantly better/neither/worse by one-sided Wilcoxon rank-sum "
        "tests at the level 0.05 (exact, p < 0.05)."
    )
    verdicts = [one.verdict for line in entries.values() for one in line.values() if one.verdict]
    if "untested" in verdicts:
        text += (
            f" {verdicts.count('untested')} of {len(verdicts)} pairs have too few runs for any "
            "outcome to be significant and bear no mark; 4 runs of each method suffice."
        )
    return text


def problem_scores(
    records: Sequence[Record], metric: str
) -> tuple[list[str], list[str], np.ndarray, list[str]]:
    """Data sets, methods, scores (n_data, n_methods), and the methods that cannot be ranked.

    Rates of a data set are not independent of each other, so a data set counts once, with the
    mean of its conditions. Methods without a score in every cell have no rank.
    """
    only_protocol(records)
    by_condition = scores(records, metric)
    everyone = method_names(by_condition)
    methods = [name for name in everyone if all(name in some for some in by_condition.values())]
    gaps = [name for name in everyone if name not in methods]
    data = grouped(by_condition, lambda condition: condition.data)
    table = [
        [
            mean(summarise(by_condition[condition][name]).mean for condition in conditions)
            for name in methods
        ]
        for conditions in data.values()
    ]
    return list(data), methods, np.array(table, dtype=float).reshape(len(data), -1), gaps


def ranks_table(records: Sequence[Record], look: Look) -> Table:
    """Mean ranks over the data sets, with Friedman's test and Nemenyi's critical difference."""
    data, methods, table, gaps = problem_scores(records, look.metric)
    ranking = rank_methods(table)
    lines = [
        Line((methods[i],), _rank_entries(ranking, i))
        for i in np.argsort(ranking.mean_ranks, kind="stable")
    ]
    notes = [
        f"Friedman's test over {ranking.n_problems} data sets ({', '.join(data)}): chi-square "
        f"{ranking.statistic:.2f}, p {ranking.p_value:.3g} (approximate, few data sets). Mean "
        f"ranks differ at 0.05 when more than {ranking.critical_difference:.2f} apart (Nemenyi)."
    ]
    if gaps:
        notes.append(f"Without a score in every cell, and so without a rank: {', '.join(gaps)}.")
    return Table(
        f"Mean rank by {look.metric} over data sets under the protocol {only_protocol(records)!r}",
        ("method",),
        ("mean rank", "behind the best", "differs from the best"),
        tuple(lines),
        tuple(notes),
    )


def _rank_entries(ranking: Ranking, i: int) -> tuple[Entry, ...]:
    rank = float(ranking.mean_ranks[i])
    behind = rank - float(ranking.mean_ranks.min())
    differs = behind > ranking.critical_difference
    return (
        Entry(f"{rank:.2f}", rank, int(behind == 0)),
        Entry(f"{behind:.2f}", behind),
        Entry("yes" if differs else "no", float(differs)),
    )


def differences_table(records: Sequence[Record], look: Look) -> Table:
    """Ours beside the paper's, condition by condition, for the metrics the paper prints."""
    paper = look.required_paper()
    differences = compare_with_paper(records, paper)
    absent = len(not_run(differences, paper))
    return Table(
        "Ours beside the paper's printed values (%)",
        ("protocol", *HEADS, "method", "metric"),
        ("ours", "paper", "difference", "standard errors", "ours: AGF-TI is", "paper: AGF-TI is"),
        tuple(_difference_line(one) for one in differences),
        (
            f"{len(differences)} values are compared; {absent} printed values have no run here.",
            "Standard errors: the difference over its standard error, from the spread of both.",
            "PREC is what the paper prints so, macro recall, and macro precision in its table of "
            "deep baselines; ours beside it is the same, under any protocol.",
        ),
    )


def _difference_line(one: Difference) -> Line:
    errors = one.standard_errors
    printed = f"{one.paper.mean:.2f}"
    if one.paper.std is not None:
        printed += f" ± {one.paper.std:.2f}"
    return Line(
        (one.condition.protocol, *heads_of(one.condition), one.method, one.metric),
        (
            Entry(one.ours.text, one.ours.mean),
            Entry(printed, one.paper.mean),
            Entry(f"{one.difference:+.2f}", one.difference),
            GAP if errors is None else Entry(f"{errors:+.1f}", errors),
            Entry(one.verdict or "-"),
            Entry(one.paper.verdict or "-"),
        ),
    )
