"""The page of honest accuracy, from records of ``viewmend bench`` of one committed revision.

for name in honest limit other_labels mend_ablation; do
    viewmend bench run benchmarks/honest/$name.toml --results STORE --data DIR --jobs 14
done
python -m benchmarks.honest.page --results STORE --out docs/results

It writes honest.md with its picture, and honest.csv with every run that the page shows.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from viewmend.bench.catalogue import FIGURES, TABLES
from viewmend.bench.charts.drawing import draw_chart
from viewmend.bench.environment import check_publishable
from viewmend.bench.paper_values import Look
from viewmend.bench.plan import Plan
from viewmend.bench.runner import open_experiment
from viewmend.bench.runs import Record, environments_of
from viewmend.bench.summaries import done, scores
from viewmend.bench.tables.paired import comparisons_of
from viewmend.bench.tables.table import write_table
from viewmend.exceptions import InvalidParameterError
from viewmend.storage.atomic import replacing, write_text

from .limit import limit_table, overall_share, ways

__all__ = ["main", "page"]

HERE = Path(__file__).parent
LOOK = Look("ACC", "Mend", None)
FIELDS = ("accuracy", "macro_precision", "macro_recall", "macro_f1")

HEAD = """\
# Honest accuracy

{summary}

![Accuracy of every method by data set and missing rate](honest.png)

Rows are shuffled, every (sample, view) pair is dropped independently at the missing rate (VMR; a
sample that would lose all views gets one back), 5 % of the samples have labels (LAR), and every
method has its defaults for all data. Accuracy is measured on the samples without a label. A *cell*
is a data set at a missing rate. What the protocols mean: [Benchmarks](../bench.md#protocols).
Data sets marked *surrogate* have our own descriptors of the paper's images.

**What was chosen on what.** No fit sees a test label. These figures are repetitions {numbers}. A
repetition's seed is a hash of data set, rates and number, and all methods share its masks and
labels. Where two variants of `MendClassifier` had to be compared by their accuracy, this was done
on other draws: repetitions 100 to 119, or seeds 100 to 119 of `viewmend.datasets.hide`. There are
two exceptions. Defaults that are older than this rule (kernel width, number of rounds) were also
compared on seeds 0 to 9 of an older script, which are other draws than these, but of the same
six data sets ([older records](honest_older.md)). And no data set was held out completely, so
expect a little less on your data.

{origin} Every run is in [honest.csv](honest.csv).
"""

TRIED = """\
## What was tried and did not help

- Rounds that begin with regressions on the given labels only, if these predict more held-out labels
  than the graphs do: better on some two-class tasks, worse on others, no gain on average (revision
  316dba9, reverted in fff3200).
- For rare classes, a choice between the rounds and a regression on the labels, by held-out labels:
  with four labels of a class, the choice is little better than chance.
- For rare classes, fewer rounds, or a mean of rounds and labels at the end: worse than
  [using the labels in every round](../mend.md#rare-classes-without-a-group).
- Label-guided edges, adversarial graph weights, the fourth power of homophily, the fused graph of
  AGF-TI as one more graph, twelve rounds: no difference beyond chance
  ([older records](honest_older.md#open-questions-settled-by-experiment)).
"""

LIMIT_TITLE = "How near is the limit?"


@dataclass(frozen=True)
class Section:
    """A part of the page: tables of one protocol of an experiment."""

    title: str
    file: str
    protocol: str
    # Rows of `viewmend.bench.catalogue.TABLES`.
    kinds: tuple[str, ...]


MAIN = Section(
    "Labels drawn at random within classes",
    "honest.toml",
    "honest",
    ("intervals", "rivals", "paired"),
)
LIMIT = Section(LIMIT_TITLE, "limit.toml", "honest-limit", ())
RANDOM = Section(
    "Labels drawn without regard to class",
    "other_labels.toml",
    "random-labels",
    ("intervals", "rivals", "paired"),
)
SECTIONS = (
    MAIN,
    LIMIT,
    RANDOM,
    Section(
        "Labels on the most complete samples",
        "other_labels.toml",
        "most-complete",
        ("intervals", "rivals"),
    ),
    Section("What the parts are worth", "mend_ablation.toml", "honest", ("rivals",)),
)


@dataclass(frozen=True)
class Filled:
    """A section and its records, and how many runs are not done."""

    section: Section
    records: tuple[Record, ...]
    lacking: int


def filled_sections(
    results: Path, repetitions: int | None = None, first_repetition: int | None = None
) -> dict[Section, Filled]:
    """The sections of which there are records."""
    found = {}
    for section in SECTIONS:
        session = open_experiment(
            HERE / section.file,
            results,
            Path(),
            (section.protocol,),
            repetitions,
            first_repetition=first_repetition,
        )
        plan = Plan(session.experiment, session.store.records())
        records = tuple(done(plan.final_records()))
        kinds = TABLES.suitable(records, LOOK)
        if records and all(kind in kinds for kind in section.kinds):
            found[section] = Filled(section, records, len(plan.final_runs()) - len(records))
    return found


def page(filled: dict[Section, Filled], note: str = "") -> str:
    """The page as Markdown, with a ``note`` on how the runs were made."""
    if MAIN not in filled:
        msg = (
            f"there is no record of {MAIN.file} that compares {LOOK.subject} with another method; "
            "do its runs with viewmend bench run"
        )
        raise InvalidParameterError(msg)
    records = [record for part in filled.values() for record in part.records]
    origin = " ".join([_origin(records), *([note] if note else [])])
    head = HEAD.format(summary=_summary(filled), numbers=_numbers(records), origin=origin)
    return "\n".join([head, *(_section_text(part, filled) for part in filled.values()), TRIED])


def table_of_runs(filled: Iterable[Filled]) -> str:
    """Every run as a line of CSV, once."""
    runs = {
        (k.protocol, k.data, k.missing_rate, k.repetition, k.method): record
        for part in filled
        for record in part.records
        for k in [record.key]
    }
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("protocol", "data", "missing", "repetition", "method", *FIELDS, "fit_seconds"))
    for key, record in sorted(runs.items()):
        scored = (f"{record.value(name):.4f}" for name in FIELDS)
        writer.writerow((*key, *scored, f"{record.value('fit'):.3f}"))
    return text.getvalue()


def _section_text(part: Filled, filled: dict[Section, Filled]) -> str:
    lines = [f"## {part.section.title}", ""]
    if part.lacking:
        lines += [f"*{part.lacking} runs of this section are not done.*", ""]
    if part.section is LIMIT:
        lines.append(write_table(limit_table(ways(filled[MAIN].records, part.records)), "markdown"))
    for kind in part.section.kinds:
        lines.append(write_table(TABLES.build(kind, part.records, LOOK), "markdown"))
    return "\n".join(lines)


def _summary(filled: dict[Section, Filled]) -> str:
    """The page in a few sentences."""
    main = filled[MAIN].records
    sentences = [
        f"**In short.** The mean accuracy of `MendClassifier()` over {_extent(main)} is "
        f"{_mean(main, LOOK.subject):.1f} %. The mean differences are {_ahead(main)}."
    ]
    if LIMIT in filled:
        share = overall_share(ways(main, filled[LIMIT].records))
        sentences.append(
            f"It covers {share:.0f} % of the way from the union graph to the accuracy with labels "
            f"for nine tenths of the samples."
        )
    if RANDOM in filled:
        records = filled[RANDOM].records
        sentences.append(
            f"With labels drawn without regard to class, its mean accuracy is "
            f"{_mean(records, LOOK.subject):.1f} %, and the mean differences are {_ahead(records)}."
        )
    return " ".join(sentences)


def _ahead(records: Sequence[Record]) -> str:
    parts = []
    for other, one in comparisons_of(records, LOOK).items():
        wins, cells = one.cell_counts.wins, len(one.differences)
        gap = mean(one.means.values())
        parts.append(f"{gap:+.1f} points to {other} (better in {wins} of {cells} cells)")
    return ", ".join(parts)


def _mean(records: Sequence[Record], method: str) -> float:
    return mean(mean(line[method]) for line in scores(records, LOOK.metric).values())


def _extent(records: Sequence[Record]) -> str:
    data = {record.key.data for record in records}
    rates = {record.key.missing_rate for record in records}
    return f"{len(data)} data sets and {len(rates)} missing rates"


def _numbers(records: Sequence[Record]) -> str:
    numbers = sorted({record.key.repetition for record in records})
    return f"{numbers[0]} to {numbers[-1]}"


def _origin(records: Sequence[Record]) -> str:
    """Revision, versions and machine; records of several revisions are refused."""
    environments = environments_of(records)
    revisions = {str(one["revision"]) for one in environments}
    if len(revisions) > 1:
        msg = (
            f"the records are of several revisions ({', '.join(sorted(revisions))}), but a page "
            "compares methods of one; do all runs in an empty folder"
        )
        raise InvalidParameterError(msg)
    machines = {str(one["machine"]["processor"]) for one in environments}
    versions = ", ".join(f"{k} {v}" for k, v in environments[0]["versions"].items() if k != "torch")
    return (
        f"Revision `{revisions.pop()}`, one thread per fit on {' and '.join(sorted(machines))}; "
        f"{versions}."
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the page and its table of runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="folder of the records")
    parser.add_argument("--out", type=Path, required=True, help="folder of the page")
    parser.add_argument("--repetitions", type=int, help="instead of those of the experiments")
    parser.add_argument("--first-repetition", type=int, help="the same")
    parser.add_argument("--note", default="", help="how the runs were made, for the page")
    options = parser.parse_args(arguments)
    filled = filled_sections(options.results, options.repetitions, options.first_repetition)
    text = page(filled, options.note)
    records = [record for part in filled.values() for record in part.records]
    check_publishable(environments_of(records), options.out)
    options.out.mkdir(parents=True, exist_ok=True)
    write_text(options.out / "honest.md", text)
    write_text(options.out / "honest.csv", table_of_runs(filled.values()))
    with replacing(options.out / "honest.png") as stream:
        draw_chart(FIGURES.build("scores", filled[MAIN].records, LOOK)).savefig(stream)
    print(f"{len(records)} records: {options.out / 'honest.md'}")


if __name__ == "__main__":
    main()
