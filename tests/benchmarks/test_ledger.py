"""The ledger: its pages are those of the records, and its verdicts those of its rules."""

import csv
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
from ledger.__main__ import main, read_sources, written_pages
from ledger.beside import Beside, check_fresh, compared, read_beside, to_csv
from ledger.claims import Bars, Claim, ClaimTable, read_claims
from ledger.exports import read_export, revision_text
from ledger.judging import VERDICTS, Sources
from ledger.page import judge, page, summary
from ledger.rules import RULES
from ledger.templates import FIELDS, Filling, fill

from viewmend.bench.paper_values import PaperTables, PaperValue
from viewmend.bench.runs import Record, RunKey
from viewmend.bench.store import export_records
from viewmend.exceptions import InvalidParameterError

DOCS = Path(__file__).parents[2] / "docs" / "results"
NUMBER = re.compile(r"\d+(?:\.\d+)?")
BARS = Bars(3, 2, 7, reproduced=0.9, partly=0.5, gain=1, runs_of_tests=5)

in_checkout = pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not here")


def run(method, accuracy, repetition=0, setting=(), measure="fit", **changes):
    place = {"protocol": "paper", "data": "CUB", "missing_rate": 0.3, "label_rate": 0.05, **changes}
    key = RunKey(measure, method=method, setting=tuple(setting), repetition=repetition, **place)
    scores = dict.fromkeys(("accuracy", "macro_precision", "macro_recall", "macro_f1"), accuracy)
    return Record(key, "done", scores, {"fit": 1.0}, {"revision": "abc"})


def traced(method, alphas, **rounds):
    history = [
        {"iteration": i + 1, "alpha": [a, 1 - a], **{k: v[i] for k, v in rounds.items()}}
        for i, a in enumerate(alphas)
    ]
    one = run(method, 0.5, measure="trace")
    return replace(one, result={**one.result, "history": history})


def judged(rule, records, beside=(), select=None, **options):
    claim = Claim("x", "Tables", "", "", rule, export="e", select=select or {}, options=options)
    sources = Sources({"e": records} if records else {}, beside, {"k": "1.5"}, "abc", BARS)
    return RULES[rule](claim, sources)


@pytest.fixture(scope="module")
def sources():
    return read_sources(DOCS)


@pytest.fixture(scope="module")
def pages(sources):
    return written_pages(sources)


# ---------------------------------------------------------------- the committed pages


@in_checkout
def test_committed_pages_are_those_of_the_committed_records(pages):
    for name, text in pages.items():
        assert (DOCS / name).read_text() == text, f"{name}: run python -m benchmarks.ledger again"


@in_checkout
def test_every_number_of_the_ledger_is_of_a_record_or_of_the_claims(sources):
    table = read_claims()
    judgements = judge(table, sources)
    told = [*(f"{one.ours} {one.revision}" for one in judgements.values()), summary(judgements)]
    told += [str(value) for claim in table.claims for value in vars(claim).values()]
    told += [*table.parts.values(), *table.commands, *table.commands.values()]
    bars = table.bars
    told += [
        f"{value:g}" for value in (*vars(bars).values(), 100 * bars.reproduced, 100 * bars.partly)
    ]
    allowed = {number for text in told for number in NUMBER.findall(text)}
    assert set(NUMBER.findall(page(table, judgements))) <= allowed


@in_checkout
def test_means_of_the_ledger_are_those_of_the_csv_files(sources):
    """Once more, by nothing but the csv module."""
    table = read_claims()
    judgements = judge(table, sources)
    checked = 0
    for claim in table.claims:
        if claim.rule != "near print" or not isinstance(claim.select.get("method"), str):
            continue
        found, path = defaultdict(list), DOCS / "paper" / f"{claim.export}.csv"
        if not path.exists():
            continue
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                if all(row[name] == value for name, value in claim.select.items()):
                    found[row["missing_rate"]].append(float(row["result.accuracy"]))
        means = " / ".join(f"{100 * mean(found[rate]):.1f}" for rate in sorted(found))
        if means and "cells" not in claim.options:
            assert judgements[claim.id].ours.startswith(means)
            checked += 1
    assert checked


@in_checkout
def test_another_record_makes_another_page(sources, pages):
    table, records = read_claims(), list(sources.exports["main"])
    place = next(
        i for i, r in enumerate(records) if (r.key.method, r.key.protocol) == ("AGF-TI", "paper")
    )
    records[place] = replace(
        records[place], result={**records[place].result, "accuracy": 0.0, "macro_recall": 0.0}
    )
    other = replace(sources, exports={**sources.exports, "main": records})
    assert page(table, judge(table, other)) != pages["ledger.md"]
    with pytest.raises(InvalidParameterError, match="--paper"):
        check_fresh(sources.beside, other.exports)


@in_checkout
def test_printed_values_of_the_claims_are_those_of_the_paper(reference_dir):
    with (reference_dir / "paper" / "main_results.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "acc"]
    printed = {
        (row["dataset"], row["vmr_percent"]): row["mean"]
        for row in rows
        if row["method"] == "AGF-TI"
    }
    for claim in read_claims().claims:
        data = claim.select.get("data")
        if claim.id.startswith("table-2") and isinstance(data, str):
            assert claim.paper == " / ".join(
                f"{float(printed[data, rate]):.2f}" for rate in ("30", "50", "70")
            )


def test_the_claims_name_every_table_figure_and_theorem():
    claims = read_claims().claims
    for word, last in (("Table", 14), ("Fig", 15), ("Theorem", 6)):
        # A number belongs to the word before it: "Tables 2, 12", "Figs. 5, 8, 9".
        named = {
            int(number)
            for claim in claims
            for match in re.finditer(rf"{word}s?\.? ([\d, ]+)", claim.where)
            for number in NUMBER.findall(match[1])
        }
        # The table of the notation has nothing to judge.
        assert named == set(range(1, last + 1)) - ({5} if word == "Table" else set())
    assert {claim.rule for claim in claims} <= set(RULES)


# ---------------------------------------------------------------- bars and rules


def test_bars():
    assert BARS.is_near(3, None)
    assert BARS.is_near(-9, -2)
    assert not BARS.is_near(3.1, 2.1)
    assert [BARS.of_share(s) for s in (0.9, 0.89, 0.5, 0.49)] == [
        *("reproduced", "partly", "partly", "refuted")
    ]
    assert [BARS.of_some(s) for s in (0, 0.1, 1)] == ["refuted", "partly", "reproduced"]


def beside(method, difference, errors=None, runs=10, **changes):
    places = {"data": "CUB", "missing_rate": 0.3, "label_rate": 0.05, "metric": "ACC"}
    marks = {"verdict": "better", "printed_verdict": "better"}
    more = {"ours": 80 + difference, "difference": difference, "standard_errors": errors}
    return Beside("e", "paper", method=method, runs=runs, **{**places, **marks, **more, **changes})


def test_means_near_print():
    rows = [beside("a", -1), beside("a", 8, 1.9, missing_rate=0.5), beside("b", 5, 2.5)]
    found = judged("near print", [run("a", 0.8), run("b", 0.8)], rows, {"method": ["b", "a"]})
    assert found.verdict == "partly"
    assert found.ours == "b 85.0, a 79.0 / 88.0: 2 of 3 cells reproduced (1 run)"
    assert found.revision == "`abc`"
    assert judged("near print", []).verdict == "not run"


def test_tests_of_few_runs_do_not_count():
    rows = [beside("a", 0), beside("b", 0, verdict="tied"), beside("c", 0, runs=3)]
    assert judged("same marks", [run("a", 0.8)], rows).ours.startswith("1 of 2 tests")
    assert judged("same marks", [run("a", 0.8)], rows[2:]).verdict == "not run"


def test_highest_and_gains_count_cells():
    records = [
        *(run("us", 0.8), run("them", 0.7)),
        *(run("us", 0.6, missing_rate=0.5), run("them", 0.7, missing_rate=0.5)),
    ]
    found = judged("highest", records, subject="us", rivals=["them"])
    assert found.verdict == "partly"
    assert "highest in 1 of 2 cells; ahead of the best baseline by -10.0 to +10.0" in found.ours
    found = judged("gains", records, whole="us", without="them")
    assert (found.verdict, found.ours) == ("partly", "CUB (paper) +10.0 / -10.0 (1 run)")
    assert judged("gains", records[:1], whole="us", without="them").verdict == "not run"


def test_one_percent_against_eight():
    records = [run(name, score, label_rate=rate) for name, score, rate in (
        *(("us", 0.7, 0.01), ("us", 0.9, 0.08)),
        *(("a", 0.5, 0.01), ("a", 0.70, 0.08), ("b", 0.5, 0.01), ("b", 0.9, 0.08)),
        *(("c", 0.5, 0.01), ("c", 0.705, 0.08)),
    )]  # fmt: skip
    found = judged("like more labels", records, subject="us", rivals=["a", "b", "c"])
    # c is half a point above, which is no gain.
    assert found.ours.startswith("level with or above 2 of 3 baselines")
    assert found.verdict == "reproduced"


def surface(values):
    """Records over beta and rho; values in percent by pairs of them."""
    names = ("graph_smoothing", "low_rank_weight")
    return [
        run("AGF-TI", score / 100, setting=tuple(zip(names, place, strict=True)))
        for place, score in values.items()
    ]


def test_which_parameter_matters_more_and_where_it_is_stable():
    records = surface({(1, 1): 50, (2, 1): 80, (1, 10): 55, (2, 10): 82})
    names = {"parameter": "graph_smoothing", "than": "low_rank_weight"}
    found = judged("one parameter matters more", records, **names)
    assert found.ours == "CUB 28.5 against 3.5 (1 run)"
    assert found.verdict == "reproduced"
    region = {"graph_smoothing": [2, 4], "low_rank_weight": [1, 10]}
    assert judged("stable region", records, region=region).ours == "CUB 2.0 points (1 run)"
    region = {"graph_smoothing": [1, 4], "low_rank_weight": [1, 10]}
    assert judged("stable region", records, region=region).verdict == "refuted"


def test_best_values_and_peaks():
    records = [run("AGF-TI", s, setting=(("m", m),)) for m, s in ((1, 0.5), (2, 0.7), (4, 0.695))]
    assert judged("best value", records, parameter="m", best={"CUB": 4}).verdict == "reproduced"
    found = judged("best value", records, parameter="m", best={"CUB": 1})
    assert (found.verdict, found.ours) == ("refuted", "CUB 20.0 below that at 2 (1 run)")
    # The right end lies half a point below the best: no decline.
    assert judged("inner peak", records, parameter="m").verdict == "refuted"


def test_rounds():
    swings = traced("us", [0.5, 0.6, 0.5, 0.6], change_F=[1, 0.1, 1e-3, 1e-5])
    steady = traced("them", [0.5, 0.6, 0.7, 0.8], change_F=[1, 1, 1, 1])
    found = judged("weights alternate", [swings, steady], subject="us", other="them")
    assert found.verdict == "reproduced"
    assert "us changes direction 2 times, that of them 0 times" in found.ours
    assert found.ours.endswith("the largest weights end at 0.60 and 0.80")
    assert judged("rounds settle", [swings], tolerance=1e-4).verdict == "reproduced"
    assert judged("rounds settle", [swings, steady], tolerance=1e-4).verdict == "partly"
    assert judged("accuracy rises", [swings]).verdict == "not run"
    risen = traced("us", [0.5, 0.6], accuracy=[0.5, 0.9])
    assert judged("accuracy rises", [risen]).ours == "CUB (paper): 50.0 to 90.0"


def test_seconds_and_growth():
    timed = [
        replace(run(name, 0.5), timings={"fit": s}) for name, s in (("us", 2), ("a", 1), ("b", 3))
    ]
    options = {"subject": "us", "rivals": ["a", "b"]}
    assert judged("order of seconds", timed, faster={"CUB": ["a"]}, **options).verdict == (
        "reproduced"
    )
    assert judged("order of seconds", timed, faster={"CUB": ["b"]}, **options).verdict == "refuted"
    steps = [
        replace(
            run("AGF-TI", 0.5, setting=(("V", 2), ("m", 8), ("n", n)), measure="tnn_step"),
            result={"seconds": s, "peak_bytes": 2**30 * n / 10},
        )
        for n, s in ((10, 1.0), (100, 14.0))
    ]
    found = judged("grows with samples", steps, slack=1.5)
    assert found.verdict == "reproduced"
    assert "14.0 to 14.0 times the seconds for 10 times the samples" in found.ours
    assert judged("grows with samples", steps, slack=1.0).verdict == "refuted"


def test_a_theorem_without_its_figure_is_not_run():
    told = {"verdict": "refuted", "ours": "{} more"}
    assert judged("given", [], figures=["k"], **told).ours == "1.5 more"
    assert judged("given", [], figures=["absent"], **told).verdict == "not run"


def test_the_summary_counts_every_verdict():
    claims = tuple(
        Claim(str(i), "Tables", "", "", "given", options={"verdict": verdict})
        for i, verdict in enumerate(VERDICTS)
    )
    table = ClaimTable(BARS, {"Tables": ""}, {}, claims)
    told = summary(judge(table, Sources({}, (), {}, "", BARS)))
    assert told == (
        "**Of 5 claims of the AGF-TI paper: 1 reproduced, 1 partly, 1 refuted, 1 unavailable, "
        "1 not run.**"
    )


# ---------------------------------------------------------------- exports, print, templates


def test_an_export_comes_back_as_its_records(tmp_path):
    records = [run("a", 0.1, setting=(("k", 7), ("w", "x"))), traced("b", [0.5], change_F=[0.25])]
    export_records(records, tmp_path / "e.csv")
    back = read_export(tmp_path / "e.csv")
    assert [one.key for one in back] == [one.key for one in records]
    assert [dict(one.result) for one in back] == [one.result for one in records]
    assert revision_text(back) == "`abc`"
    lost = [replace(one, environment={"revision": "abc-dirty"}) for one in records]
    assert revision_text([*lost, *records[:1]]) == "`abc`, not known (2 records)"
    (tmp_path / "other.csv").write_text("data,seed\ncub,1\n")
    assert read_export(tmp_path / "other.csv") == read_export(tmp_path / "absent.csv") == []


def test_print_is_kept_as_a_difference(tmp_path):
    place = ("CUB", 0.3, 0.05, "AGF-TI", "ACC")
    paper = PaperTables({place: PaperValue(78.33, "accuracy", 3.46)})
    records = [
        run(name, score, i)
        for name, score in (("AGF-TI (released code)", 0.8), ("AGF-TI", 0.7))
        for i in range(2)
    ]
    rows = compared({"main": records}, paper)
    assert [(one.method, one.ours, one.difference) for one in rows] == [
        ("AGF-TI (released code)", 80.0, 1.67),
        ("AGF-TI", 70.0, -8.33),
    ]
    (tmp_path / "b.csv").write_text(to_csv(rows))
    assert read_beside(tmp_path / "b.csv") == rows
    check_fresh(rows, {"main": records})
    with pytest.raises(InvalidParameterError, match=r"main\.csv has 80\.00 of 1"):
        check_fresh(rows, {"main": records[:1]})


def test_a_claim_is_asked_of_both_programs():
    claims = {one.id: one for one in read_claims().claims}
    theirs, ours = (claims[f"table-3-weights{suffix}"] for suffix in ("", "-written"))
    assert theirs.options["without"] == "AGF-TI (released code) without weights"
    assert ours.options["without"] == "AGF-TI without weights"
    assert ours.paper == theirs.paper


def test_fields_of_a_template():
    records = [
        *(run("a", 0.8), run("b", 0.7), run("a", 0.6, missing_rate=0.5)),
        *(run("b", 0.9, missing_rate=0.5), run("a", 0.5, protocol="paper-shuffled")),
    ]
    filling = Filling(Sources({"e": records}, (), {"k": "1.5"}, "abc", BARS), {})
    text = "{{means|e|paper|CUB|a}}; {{overall|e|paper|b}}; {{place|e|paper|a|b|c}}; {{figure|k}}"
    assert fill(text, filling) == "80.0 / 60.0; 80.0; 1 of 1; 1.5"
    assert fill("{{first|e|paper|b}} {{lost|e|a|paper|paper-shuffled}}", filling) == (
        "1 of 2 30.0 to 30.0"
    )
    # Over the one cell that the other protocol has too, and over both.
    both = "{{overall|e|paper|a|paper-shuffled}} {{overall|e|paper|a}}"
    assert fill(both, filling) == "80.0 70.0"
    assert fill("{{means|absent|paper|CUB|a}}{{chart|f|absent|p|k|m|w}}", filling) == "not run"
    with pytest.raises(InvalidParameterError, match=f"one of {next(iter(FIELDS))}"):
        fill("{{nonsense}}", filling)


def test_the_command_writes_the_ledger(tmp_path, capsys):
    out = tmp_path / "docs" / "results"
    out.mkdir(parents=True)
    export_records([run("AGF-TI", 0.8, i) for i in range(2)], tmp_path / "main.csv")
    main(["--results", str(tmp_path), "--out", str(out)])
    text = (out / "ledger.md").read_text()
    assert "not run" in text
    assert "ledger.md" in capsys.readouterr().out
