"""The page of the ledger, as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from .claims import WRITTEN, Bars, Claim, ClaimTable
from .judging import VERDICTS, Judgement, Sources
from .rules import RULES

Judgements = Mapping[str, Judgement]

HEAD = """\
# The ledger

{summary}

![Verdicts on the claims of the paper](paper/ledger.png)

Every line below is a claim of the paper: what it says, what it prints, what we measured, and a
verdict, which a fixed rule derives from the records. The records are the CSV files of
[docs/results/paper](paper.md) and the figures of the [theory page](../theory.md). This command
makes the page from them:

```bash
python -m benchmarks.ledger --results docs/results --out docs/results
```

A test makes the page again and compares.

**The rules.** A mean is reproduced if it lies within {points:g} points of the printed one, or
within {errors:g} standard errors of the difference. A claim about many cells (data set and missing
rate) is *reproduced* if it holds in at least {reproduced:.0f} % of them, *partly* from
{partly:.0f} % on, and *refuted* below that. A part of the method helps in a cell if it gains at
least {gain:g} point. A claim that it helps everywhere is *partly* reproduced if it helps somewhere,
and *refuted* if it helps nowhere. Rank-sum tests are used from {runs} runs of each method on.
*Unavailable* is what we cannot measure, with the reason; *not run* has no record yet. Theorems are
judged by mathematics: the verdict is ours, and the counterexample or the proof is a test
(`tests/core/agfti/test_theory.py`).

**The programs.** AGF-TI is the authors' program (`compat="released"`), with which the paper's
figures were made. *As written* is the algorithm of the paper's text, whose steps we solve exactly
([what differs](../algorithm.md)).

**The protocols.** `paper` is what the released code does: pairs of sample and view dropped
independently, the most complete samples labelled, rows sorted by class, settings chosen on test
labels. `paper-shuffled` is the same on shuffled rows, `paper-text` is what the paper's text says,
`honest` uses only what is known in practice ([protocols](../bench.md#protocols)).
"""


def judge(table: ClaimTable, sources: Sources) -> dict[str, Judgement]:
    """The verdict on every claim, by its id."""
    return {claim.id: RULES[claim.rule](claim, sources) for claim in table.claims}


def page(table: ClaimTable, judgements: Judgements) -> str:
    """The page as Markdown."""
    parts = [_head(table.bars, judgements)]
    for title, sentence in table.parts.items():
        claims = [claim for claim in table.claims if claim.part == title]
        parts.append(f"## {title}\n\n{sentence}\n\n{_lines(claims, judgements)}")
    parts.append(_commands(table))
    return "\n".join(parts)


def _head(bars: Bars, judgements: Judgements) -> str:
    return HEAD.format(
        summary=summary(judgements),
        points=bars.points,
        errors=bars.standard_errors,
        reproduced=100 * bars.reproduced,
        partly=100 * bars.partly,
        gain=bars.gain,
        runs=bars.runs_of_tests,
    )


def summary(judgements: Judgements) -> str:
    """How many claims have which verdict, and of those asked again of the algorithm as written."""
    again = {name: one for name, one in judgements.items() if name.endswith(WRITTEN)}
    first = [one for name, one in judgements.items() if name not in again]
    told = f"**Of {len(first)} claims of the AGF-TI paper: {_counts(first)}.**"
    if again:
        told += (
            f" {len(again)} of them are also judged for the algorithm as written: "
            f"{_counts(list(again.values()))}."
        )
    return told


def _counts(judgements: list[Judgement]) -> str:
    counts = Counter(one.verdict for one in judgements)
    return ", ".join(f"{counts[name]} {name}" for name in VERDICTS if counts[name])


def _lines(claims: list[Claim], judgements: Judgements) -> str:
    header = ("where", "the paper says", "printed", "ours", "verdict", "made by", "revision")
    lines = [_line(claim, judgements[claim.id]) for claim in claims]
    body = [f"| {' | '.join(cells)} |" for cells in (header, ("---",) * len(header), *lines)]
    return "\n".join(body) + "\n"


def _line(claim: Claim, judgement: Judgement) -> tuple[str, ...]:
    ours = " ".join(filter(None, (_sentence(judgement.ours), claim.note)))
    made_by = f"[{claim.export}](#commands)" if claim.export else ""
    return (
        claim.where,
        claim.says,
        claim.paper,
        ours,
        f"**{judgement.verdict}**",
        made_by,
        judgement.revision,
    )


def _sentence(text: str) -> str:
    return f"{text}." if text and not text.endswith(".") else text


def _commands(table: ClaimTable) -> str:
    used = {claim.export for claim in table.claims}
    lines = [f"| {name} | `{text}` |" for name, text in table.commands.items() if name in used]
    return "\n".join(
        [
            "## Commands",
            "",
            "Each command writes records, and can be stopped and started again. `viewmend bench "
            "export` makes the CSV file of the same name.",
            "",
            "| | |",
            "| --- | --- |",
            *lines,
            "",
        ]
    )
