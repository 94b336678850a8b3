"""Rules of the ledger about rounds, seconds and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import mean, median
from typing import Any

from viewmend.bench.runs import Record
from viewmend.bench.summaries import grouped, percent
from viewmend.bench.tables.runs import GIB, tensor_sizes, total_seconds

from .claims import Claim
from .judging import NOT_RUN, Judgement, Rule, Sources, judged


def rounds_settle(claim: Claim, sources: Sources) -> Judgement:
    """Traces whose last round changes no soft label by the tolerance or more."""
    records = sources.records(claim)
    if not records:
        return NOT_RUN
    tolerance = claim.options["tolerance"]
    lasts = [(_name(one), _rounds(one)[-1]) for one in records]
    told = [
        f"{name}: F changes by {last['change_F']:.0e} in round {last['iteration']}"
        for name, last in lasts
    ]
    share = mean(last["change_F"] < tolerance for _, last in lasts)
    return judged(sources.bars.of_some(share), "; ".join(told), records)


def accuracy_rises(claim: Claim, sources: Sources) -> Judgement:
    """Accuracy of the first round against that of the last, in traces that keep it."""
    records = [one for one in sources.records(claim) if "accuracy" in _rounds(one)[0]]
    if not records:
        return NOT_RUN
    ends = [
        (_name(one), *(percent(_rounds(one)[i]["accuracy"]) for i in (0, -1))) for one in records
    ]
    told = [f"{name}: {first:.1f} to {last:.1f}" for name, first, last in ends]
    share = mean(last - first >= sources.bars.gain for _, first, last in ends)
    return judged(sources.bars.of_some(share), "; ".join(told), records)


def weights_alternate(claim: Claim, sources: Sources) -> Judgement:
    """How often the first view weight changes direction: the min-max against the min-min."""
    subject, other = claim.options["subject"], claim.options["other"]
    records = sources.records(claim)
    by_data = grouped(records, lambda one: one.key.data)
    told, holds = [], []
    for data, runs in by_data.items():
        found = {one.key.method: _weights(one) for one in runs}
        if subject in found and other in found:
            turns = {name: _turns(weights) for name, weights in found.items()}
            ends = {name: max(weights[-1]) for name, weights in found.items()}
            holds.append(turns[subject] > turns[other])
            told.append(
                f"{data}: the first weight of {subject} changes direction {turns[subject]} times, "
                f"that of {other} {turns[other]} times; the largest weights end at "
                f"{ends[subject]:.2f} and {ends[other]:.2f}"
            )
    if not told:
        return NOT_RUN
    return judged(sources.bars.of_some(mean(holds)), "; ".join(told), records)


def inner_errors_small(claim: Claim, sources: Sources) -> Judgement:
    """The last squared change of weights and graph inside the first round's Algorithm 1."""
    records = [one for one in sources.records(claim) if _rounds(one)[0].get("inner")]
    if not records:
        return NOT_RUN
    told, holds = [], []
    for one in records:
        steps = _rounds(one)[0]["inner"]
        weights, graph = steps[-1]["alpha_error"], steps[-1]["P_error"]
        holds.append(max(weights, graph) <= claim.options["small"])
        told.append(f"{one.key.data}: {weights:.0e} and {graph:.0e} in step {len(steps)}")
    return judged(sources.bars.of_some(mean(holds)), "; ".join(told), records)


def order_of_seconds(claim: Claim, sources: Sources) -> Judgement:
    """Methods that are faster, or slower, than the subject as printed, data set by data set."""
    records = sources.records(claim)
    subject = claim.options["subject"]
    kept, of, told = 0, 0, []
    for data, runs in grouped(records, lambda one: one.key.data).items():
        seconds = {
            method: median(map(total_seconds, some))
            for method, some in grouped(runs, lambda one: one.key.method).items()
        }
        if subject not in seconds:
            continue
        told.append(f"{data} {seconds[subject]:.2f} s")
        printed = claim.options["faster"].get(data, ())
        signs = [
            (seconds[one] < seconds[subject]) == (one in printed)
            for one in claim.options["rivals"]
            if one in seconds
        ]
        kept, of = kept + sum(signs), of + len(signs)
    if not of:
        return NOT_RUN
    text = f"{'; '.join(told)}; {kept} of {of} methods on the printed side of it"
    return judged(sources.bars.of_share(kept / of), text, records)


def grows_with_samples(claim: Claim, sources: Sources) -> Judgement:
    """Seconds and memory of the tensor step from the fewest to the most samples, size by size."""
    records = sources.records(claim)
    by_size = grouped(records, lambda one: tensor_sizes(one)[1:])
    ratios, factor = [], 0.0
    for runs in by_size.values():
        by_n = grouped(runs, lambda one: tensor_sizes(one)[0])
        fewest, most = min(by_n), max(by_n)
        if most > fewest:
            factor = most / fewest
            seconds = [median(one.value("seconds") for one in by_n[n]) for n in (fewest, most)]
            ratios.append(seconds[1] / seconds[0])
    if not ratios:
        return NOT_RUN
    largest = max(records, key=lambda one: one.value("peak_bytes"))
    n, n_views, m = tensor_sizes(largest)
    text = (
        f"{min(ratios):.1f} to {max(ratios):.1f} times the seconds for {factor:g} times the "
        f"samples; {largest.value('seconds'):.2f} s and {largest.value('peak_bytes') / GIB:.1f} "
        f"GiB at {n} samples, {n_views} views, {m} anchors"
    )
    bar = claim.options["slack"] * factor
    share = mean(ratio <= bar for ratio in ratios)
    return judged(sources.bars.of_share(share), text, records)


def _rounds(record: Record) -> list[dict[str, Any]]:
    return record.value("history")


def _name(record: Record) -> str:
    return f"{record.key.data} ({record.key.protocol})"


def _weights(record: Record) -> list[list[float]]:
    return [one["alpha"] for one in _rounds(record) if one.get("alpha")]


def _turns(weights: Sequence[Sequence[float]], least: float = 1e-4) -> int:
    """How often the first weight goes back; moves below ``least`` are not seen."""
    first = [one[0] for one in weights]
    moves = [b - a for a, b in pairwise(first) if abs(b - a) > least]
    return sum(a * b < 0 for a, b in pairwise(moves))


TRACE_RULES: Mapping[str, Rule] = {
    "rounds settle": rounds_settle,
    "accuracy rises": accuracy_rises,
    "weights alternate": weights_alternate,
    "inner errors small": inner_errors_small,
    "order of seconds": order_of_seconds,
    "grows with samples": grows_with_samples,
}
