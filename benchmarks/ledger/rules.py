"""Rules of the ledger about scores: cells beside print, order of methods, gains, sensitivity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean

from viewmend.bench.runs import Record
from viewmend.bench.summaries import grouped, percent

from .beside import Beside
from .claims import Claim
from .judging import (
    NOT_RUN,
    PERCENT,
    Judgement,
    Rule,
    Sources,
    cell_means,
    judged,
    runs_text,
    slashed,
)
from .trace_rules import TRACE_RULES

# So many cells are told one by one; of more, how many reproduce.
FEW_CELLS = 6
TESTED = ("better", "tied", "worse")


def near_print(claim: Claim, sources: Sources) -> Judgement:
    """Means that lie near the printed ones."""
    rows, records = _beside_rows(claim, sources), sources.records(claim)
    if not rows:
        return NOT_RUN
    bars = sources.bars
    near = sum(bars.is_near(one.difference, one.standard_errors) for one in rows)
    wide = sum(abs(one.difference) <= bars.wide_points for one in rows)
    absent = claim.options.get("printed", len(rows)) - len(rows)
    counts = f"{near} of {len(rows)} cells reproduced" + f", {absent} not run" * (absent > 0)
    if len(rows) <= FEW_CELLS:
        text = f"{_told_by_method(rows)}: {counts} ({runs_text(records)})"
    else:
        text = f"{counts}, {wide} within {bars.wide_points:g} points ({runs_text(records)})"
    return judged(bars.of_share(near / len(rows)), text, records)


def _told_by_method(rows: Sequence[Beside]) -> str:
    """Means with strokes between, under the names of the methods where there are several."""
    by_method = grouped(rows, lambda one: one.method)
    told = [
        (f"{name} " if len(by_method) > 1 else "") + slashed([one.ours for one in some])
        for name, some in by_method.items()
    ]
    return ", ".join(told)


def same_marks(claim: Claim, sources: Sources) -> Judgement:
    """Tests of AGF-TI against every baseline that come out as printed."""
    least = sources.bars.runs_of_tests
    found = _beside_rows(claim, sources)
    rows = [one for one in found if one.verdict in TESTED and one.runs >= least]
    if not rows:
        few = Judgement("not run", f"fewer than {least} runs, of which no test says anything")
        return few if found else NOT_RUN
    same = sum(one.verdict == one.printed_verdict for one in rows)
    text = f"{same} of {len(rows)} tests come out as printed"
    return judged(sources.bars.of_share(same / len(rows)), text, sources.records(claim))


def highest(claim: Claim, sources: Sources) -> Judgement:
    """Cells in which the subject has the highest mean of the methods named."""
    subject, rivals = claim.options["subject"], claim.options["rivals"]
    records = sources.records(claim)
    cells = {
        cell: means
        for cell, means in cell_means(records, claim.options.get("metric", "ACC")).items()
        if subject in means and any(name in means for name in rivals)
    }
    if not cells:
        return NOT_RUN
    ahead = [_ahead(means, subject, rivals) for means in cells.values()]
    first = sum(margin > 0 for margin in ahead)
    text = (
        f"highest in {first} of {len(cells)} cells; ahead of the best baseline by "
        f"{min(ahead):+.1f} to {max(ahead):+.1f} ({runs_text(records)})"
    )
    return judged(sources.bars.of_share(first / len(cells)), text, records)


def gains(claim: Claim, sources: Sources) -> Judgement:
    """Points that the whole method has above one without a part, in every cell."""
    whole, without = claim.options["whole"], claim.options["without"]
    metric = claim.options.get("metric", "ACC")
    records = [one for one in sources.records(claim) if one.key.method in {whole, without}]
    found = {
        cell: means[whole] - means[without]
        for cell, means in cell_means(records, metric).items()
        if whole in means and without in means
    }
    if not found:
        return NOT_RUN
    told = [
        f"{data} ({protocol}) " + slashed([found[cell] for cell in cells], "+.1f")
        for (protocol, data), cells in grouped(found, lambda cell: cell[:2]).items()
    ]
    share = sum(gain >= sources.bars.gain for gain in found.values()) / len(found)
    text = "; ".join(told) + f" ({runs_text(records)})"
    return judged(sources.bars.of_some(share), text, records)


def like_more_labels(claim: Claim, sources: Sources) -> Judgement:
    """Baselines that need the largest label rate to be level with the subject at the smallest."""
    subject = claim.options["subject"]
    records = sources.records(claim)
    level, of = 0, 0
    for _, cells in grouped(cell_means(records).items(), lambda item: item[0][:3]).items():
        few, many = (means for _, means in (cells[0], cells[-1]))
        for name in claim.options["rivals"]:
            if subject in few and name in many:
                of += 1
                level += few[subject] >= many[name] - sources.bars.gain
    if not of:
        return NOT_RUN
    text = f"level with or above {level} of {of} baselines that have the most labels"
    verdict = "reproduced" if level > of / 2 else sources.bars.of_some(level / of)
    return judged(verdict, f"{text} ({runs_text(records)})", records)


def one_parameter_matters_more(claim: Claim, sources: Sources) -> Judgement:
    """The range of accuracy along one parameter against that along another, in every data set."""
    ours, other = claim.options["parameter"], claim.options["than"]
    records = sources.records(claim)
    ranges = {
        data: (_mean_range(runs, along=ours, at=other), _mean_range(runs, along=other, at=ours))
        for data, runs in _by_data(records).items()
    }
    if not ranges:
        return NOT_RUN
    told = [f"{data} {a:.1f} against {b:.1f}" for data, (a, b) in ranges.items()]
    share = mean(a > b for a, b in ranges.values())
    return judged(sources.bars.of_some(share), _joined(told, records), records)


def stable_region(claim: Claim, sources: Sources) -> Judgement:
    """How far accuracy falls inside a region of settings below the best of all settings."""
    region: Mapping[str, Sequence[float]] = claim.options["region"]
    records = sources.records(claim)
    depths = {}
    for data, runs in _by_data(records).items():
        inside = [one for one in runs if _inside(dict(one.key.setting), region)]
        if inside:
            depths[data] = max(map(_score, runs)) - min(map(_score, inside))
    if not depths:
        return NOT_RUN
    told = [f"{data} {depth:.1f} points" for data, depth in depths.items()]
    share = mean(depth <= sources.bars.points for depth in depths.values())
    return judged(sources.bars.of_some(share), _joined(told, records), records)


def best_value(claim: Claim, sources: Sources) -> Judgement:
    """What a printed best value of a parameter lacks to the best value of ours."""
    name, wanted = claim.options["parameter"], claim.options["best"]
    records = sources.records(claim)
    lacks = {}
    for data, runs in _by_data(records).items():
        curve = _curve(runs, name)
        at = wanted.get(data)
        if at in curve:
            best = max(curve, key=lambda value: curve[value])
            lacks[data] = (curve[best] - curve[at], best)
    if not lacks:
        return NOT_RUN
    told = [f"{data} {lack:.1f} below that at {best:g}" for data, (lack, best) in lacks.items()]
    share = mean(lack <= sources.bars.gain for lack, _ in lacks.values())
    return judged(sources.bars.of_some(share), _joined(told, records), records)


def inner_peak(claim: Claim, sources: Sources) -> Judgement:
    """Curves over a parameter that rise and then fall: the ends lie below the best."""
    name = claim.options["parameter"]
    records = sources.records(claim)
    told, peaks = [], []
    for data, runs in _by_data(records).items():
        curve = sorted(_curve(runs, name).items())
        best = max(score for _, score in curve)
        ends = (best - curve[0][1], best - curve[-1][1])
        peaks.append(min(ends) >= sources.bars.gain)
        told.append(f"{data} best at {max(curve, key=lambda point: point[1])[0]:g}")
    if not told:
        return NOT_RUN
    return judged(sources.bars.of_some(mean(peaks)), _joined(told, records), records)


def given(claim: Claim, sources: Sources) -> Judgement:
    """A verdict by mathematics: a test stands for it, and figures that were measured."""
    names: Sequence[str] = claim.options.get("figures", ())
    if any(name not in sources.theory for name in names):
        return NOT_RUN
    told = claim.options.get("ours", "").format(*(sources.theory[name] for name in names))
    revision = f"`{sources.theory_revision}`" if names else ""
    return Judgement(claim.options["verdict"], told, revision)


def unavailable(claim: Claim, _sources: Sources) -> Judgement:
    """What nobody here can make."""
    return Judgement("unavailable", claim.options["reason"])


def _beside_rows(claim: Claim, sources: Sources) -> list[Beside]:
    wanted = {"metric": ("ACC",), **claim.options.get("cells", {}), **claim.select}
    rows = [
        one
        for one in sources.beside
        if one.export == claim.export
        and all(
            getattr(one, name) in (value if isinstance(value, list | tuple) else (value,))
            for name, value in wanted.items()
        )
    ]
    return sorted(rows, key=lambda one: _place(one, wanted))


def _place(row: Beside, wanted: Mapping[str, object]) -> tuple:
    """In the order in which the claim names methods and data sets, then by rate."""
    named = []
    for name in ("method", "data"):
        values = wanted.get(name)
        named.append(values.index(getattr(row, name)) if isinstance(values, list) else 0)
    return *named, row.missing_rate


def _ahead(means: Mapping[str, float], subject: str, rivals: Sequence[str]) -> float:
    return means[subject] - max(means[name] for name in rivals if name in means)


def _by_data(records: Sequence[Record]) -> dict[str, list[Record]]:
    return grouped(records, lambda one: one.key.data)


def _score(record: Record) -> float:
    return percent(record.value(PERCENT["ACC"]))


def _curve(runs: Sequence[Record], name: str) -> dict[float, float]:
    values = grouped(runs, lambda one: dict(one.key.setting).get(name))
    return {value: mean(map(_score, some)) for value, some in values.items() if value is not None}


def _mean_range(runs: Sequence[Record], along: str, at: str) -> float:
    ranges = []
    for some in grouped(runs, lambda one: dict(one.key.setting).get(at)).values():
        curve = _curve(some, along)
        ranges.append(max(curve.values()) - min(curve.values()))
    return mean(ranges)


def _inside(setting: Mapping[str, float], region: Mapping[str, Sequence[float]]) -> bool:
    return all(low <= setting.get(name, low - 1) <= high for name, (low, high) in region.items())


def _joined(told: Sequence[str], records: Sequence[Record]) -> str:
    return f"{'; '.join(told)} ({runs_text(records)})"


RULES: Mapping[str, Rule] = {
    "near print": near_print,
    "same marks": same_marks,
    "highest": highest,
    "gains": gains,
    "like more labels": like_more_labels,
    "one parameter matters more": one_parameter_matters_more,
    "stable region": stable_region,
    "best value": best_value,
    "inner peak": inner_peak,
    "given": given,
    "unavailable": unavailable,
    **TRACE_RULES,
}
