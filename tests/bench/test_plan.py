"""The plan: which runs are known when, which setting wins, and what stands in the tables."""

from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewmend.bench.experiment import Experiment, LeftOut, Row
from viewmend.bench.methods import CONTESTANTS, Contestant
from viewmend.bench.plan import Count, Plan
from viewmend.bench.protocols import PROTOCOLS
from viewmend.bench.runs import Record, derived_seed
from viewmend.impute import DeepMatrixFactorization

GRID = {"a": (1, 2, 3), "b": (0.5, 0.25)}
N_GRID = 6
EXPERIMENT = Experiment(
    name="small",
    title="Small",
    measure="fit",
    protocols=("paper", "honest"),
    data=("CUB", "AwA"),
    missing_rates=(0.3, 0.5),
    label_rates=(0.05,),
    rows=(Row("tuned", "tuned"), Row("plain", "plain")),
    repetitions=3,
)


class Shelf:
    """A store in memory."""

    def __init__(self, records=()):
        self.kept = {record.key.digest: record for record in records}

    def records(self):
        return list(self.kept.values())

    def write(self, record):
        assert record.key.digest not in self.kept, "a run is done once"
        self.kept[record.key.digest] = record


@pytest.fixture(autouse=True, scope="module")
def _methods():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CONTESTANTS, "tuned", Contestant("no.module:Tuned", thinned=GRID))
        patch.setitem(CONTESTANTS, "plain", Contestant("no.module:Plain", thinned={}))
        yield


def scored(key, accuracy=0.5, macro_f1=0.5):
    return Record(key, "done", {"accuracy": accuracy, "macro_f1": macro_f1})


def failed(key):
    return Record(key, "error", message="no luck")


def carry_out(experiment, answer, shelf=None):
    """Records of an experiment whose runs end as ``answer`` says, and the waves they came in."""
    shelf, waves = shelf or Shelf(), []
    while runs := Plan(experiment, shelf.records()).unfinished_runs():
        for key in runs:
            shelf.write(answer(key))
        waves.append(runs)
    return shelf.records(), waves


def small(**changes):
    only = {"protocols": ("paper",), "data": ("CUB",), "missing_rates": (0.5,)}
    return replace(EXPERIMENT, **{**only, "rows": EXPERIMENT.rows[:1], **changes})


merits = st.lists(st.sampled_from([0.0, 0.25, 0.5, None]), min_size=N_GRID, max_size=N_GRID)


@settings(max_examples=60, deadline=None)
@given(merits, merits)
def test_the_winner_is_the_first_best_trial_and_is_repeated(accuracies, f1s):
    experiment = small()
    trials = Plan(experiment, []).unfinished_runs()
    assert len(trials) == N_GRID
    pairs = dict(
        zip((key.digest for key in trials), zip(accuracies, f1s, strict=True), strict=True)
    )

    def answer(key):
        pair = pairs.get(key.digest, (0.9, 0.9))
        return failed(key) if None in pair else scored(key, *pair)

    records, waves = carry_out(experiment, answer)
    best, winner = -1.0, None
    for key in trials:
        pair = pairs[key.digest]
        if None not in pair and sum(pair) > best:
            best, winner = sum(pair), key
    chosen = Plan(experiment, records).chosen_settings()
    if winner is None:
        assert (chosen, Plan(experiment, records).final_runs(), len(waves)) == ({}, [], 1)
        return
    assert chosen == {("paper", "CUB", 0.5, 0.05, "tuned"): winner.setting}
    finals = [replace(winner, repetition=i) for i in range(3)]
    assert Plan(experiment, records).final_runs() == finals
    assert waves == [trials, finals[1:]]


def test_grid_and_parameters_of_the_trials():
    experiment = small(settings={"tuned": {"b": 7.0, "c": "x"}})
    found = {key.setting for key in Plan(experiment, []).known_runs()}
    assert found == {(("a", a), ("b", 7.0), ("c", "x")) for a in GRID["a"]}


def test_runs_say_what_their_protocol_meant(monkeypatch):
    experiment = replace(EXPERIMENT, protocols=("honest",))
    before = Plan(experiment, []).final_runs()
    assert {key.rules for key in before} == {PROTOCOLS["honest"].rules}
    other = replace(PROTOCOLS["honest"], labels="most_complete")
    monkeypatch.setitem(PROTOCOLS, "honest", other)
    records = [Record(key, "done", {"accuracy": 1.0, "macro_f1": 1.0}) for key in before]
    # Runs under the old meaning do not count.
    assert Plan(experiment, records).final_records() == []


def test_runs_of_older_code_do_not_count(monkeypatch):
    """Neither those of another version of the method nor of the imputer it depends on."""
    experiment = replace(EXPERIMENT, protocols=("honest",), rows=(Row("AMGL", "AMGL"),))
    before = Plan(experiment, []).final_runs()
    assert {key.implementation for key in before} == {"DeepMatrixFactorization 2"}
    records = [Record(key, "done", {"accuracy": 1.0, "macro_f1": 1.0}) for key in before]
    assert Plan(experiment, records).final_records() == records
    with monkeypatch.context() as patch:
        patch.setattr(DeepMatrixFactorization, "version", 3)
        assert Plan(experiment, records).final_records() == []
    monkeypatch.setitem(CONTESTANTS, "AMGL", replace(CONTESTANTS["AMGL"], version=2))
    assert Plan(experiment, records).final_records() == []


def test_honest_protocol_knows_all_runs_at_once_and_tunes_nothing():
    experiment = replace(EXPERIMENT, protocols=("honest",))
    known = Plan(experiment, []).known_runs()
    assert len(known) == 2 * 2 * 2 * 3
    assert {key.setting for key in known} == {()}
    records, waves = carry_out(experiment, scored)
    assert len(waves) == 1
    assert Plan(experiment, records).chosen_settings() == {}


def test_what_tuning_found_changes_nothing_under_the_honest_protocol():
    def good_at_three(key):
        return scored(key, accuracy=1.0 if ("a", 3) in key.setting else 0.1)

    plain, _ = carry_out(EXPERIMENT, scored)
    other, _ = carry_out(EXPERIMENT, good_at_three)

    def honest(records):
        return [k for k in Plan(EXPERIMENT, records).final_runs() if k.protocol == "honest"]

    assert honest(plain) == honest(other)
    assert Plan(EXPERIMENT, plain).final_runs() != Plan(EXPERIMENT, other).final_runs()


def test_no_grids_means_no_trials():
    known = Plan(small(grids="none"), []).known_runs()
    assert {key.setting for key in known} == {()}


def test_runs_on_the_same_mask_follow_each_other():
    _, waves = carry_out(EXPERIMENT, scored)
    for runs in waves:
        masks = [mask for mask, _ in groupby(derived_seed(key, "mask") for key in runs)]
        assert len(masks) == len(set(masks))
        blocks = [block for block, _ in groupby((key.data, key.missing_rate) for key in runs)]
        assert len(blocks) == len(set(blocks))


def test_plan_does_not_depend_on_the_order_of_the_records():
    records, _ = carry_out(EXPERIMENT, scored)
    kept = records[::3]
    there, back = Plan(EXPERIMENT, kept), Plan(EXPERIMENT, kept[::-1])
    assert there.unfinished_runs() == back.unfinished_runs()
    assert Plan(EXPERIMENT, records).final_runs() == Plan(EXPERIMENT, records[::-1]).final_runs()


@pytest.mark.parametrize("step", [1, 4, 7])
def test_a_plan_cut_anywhere_goes_on_to_the_same_records(step):
    whole, _ = carry_out(EXPERIMENT, scored)
    resumed, _ = carry_out(EXPERIMENT, scored, Shelf(whole[::step]))
    assert {r.key for r in resumed} == {r.key for r in whole}
    assert len(resumed) == len(whole)


def test_counts_tell_beforehand_how_many_runs_there_will_be():
    experiment = replace(
        EXPERIMENT, left_out=(LeftOut("plain", "AwA", "takes too long"),), measure="trace"
    )
    before = Plan(experiment, []).counts()
    records, _ = carry_out(experiment, scored)
    assert sum(before.values(), Count()).to_do == len(records)
    after = Plan(experiment, records).counts()
    assert {name: count.done for name, count in after.items()} == {
        name: count.to_do for name, count in before.items()
    }
    assert after["plain"].left_out == 2 * 2 * 3
    assert sum(after.values(), Count()).to_do == 0


def test_counts_of_fits_take_the_winning_trial_for_repetition_0():
    experiment = small()
    total = N_GRID + 2
    assert Plan(experiment, []).counts()["tuned"] == Count(to_do=total)
    records, _ = carry_out(experiment, scored)
    assert Plan(experiment, records[:4]).counts()["tuned"] == Count(done=4, to_do=total - 4)
    assert Plan(experiment, records).counts()["tuned"] == Count(done=total)


def test_where_every_trial_failed_nothing_is_left_to_do():
    experiment = small()
    records, waves = carry_out(experiment, failed)
    assert (len(records), len(waves)) == (N_GRID, 1)
    assert Plan(experiment, records).counts()["tuned"] == Count(failed=N_GRID)
    assert Plan(experiment, records).final_runs() == []
    assert [r.status for r in Plan(experiment, records).final_records()] == ["error"] * N_GRID
    assert Plan(experiment, records[1:]).final_records() == []  # before all trials ended


def test_traces_are_taken_at_the_setting_that_fits_chose():
    experiment = small(measure="trace")

    def best_at_two(key):
        return scored(key, accuracy=float(("a", 2) in key.setting and ("b", 0.25) in key.setting))

    records, waves = carry_out(experiment, best_at_two)
    assert [key.measure for key in waves[0]] == ["fit"] * N_GRID
    assert [(key.measure, dict(key.setting), key.repetition) for key in waves[1]] == [
        ("trace", {"a": 2, "b": 0.25}, i) for i in range(3)
    ]
    assert {r.key.measure for r in Plan(experiment, records).final_records()} == {"trace"}


def test_variants_are_tuned_apart_and_stand_under_their_own_name():
    without = Row("tuned without b", "tuned", (("ablation", "b"),))
    experiment = small(rows=(EXPERIMENT.rows[0], without))

    def answer(key):
        ablated, large = ("ablation", "b") in key.setting, ("a", 3) in key.setting
        return scored(key, accuracy=float(ablated == large))

    records, _ = carry_out(experiment, answer)
    chosen = {name[-1]: dict(s) for name, s in Plan(experiment, records).chosen_settings().items()}
    assert chosen["tuned"]["a"] != 3
    assert (chosen["tuned without b"]["a"], chosen["tuned without b"]["ablation"]) == (3, "b")
    assert {key.method for key in Plan(experiment, records).final_runs()} == {"tuned"}
    found = Plan(experiment, records).final_records()
    assert [r.key.method for r in found] == ["tuned"] * 3 + ["tuned without b"] * 3
    assert all(r.result["accuracy"] == 1 for r in found)


def test_points_of_a_sweep_all_stand_in_the_table_and_none_is_tuned():
    points = tuple(Row("tuned", "tuned", (("a", a),), tuned=False, data=("AwA",)) for a in (1, 9))
    experiment = replace(EXPERIMENT, rows=points, protocols=("paper",))
    records, waves = carry_out(experiment, scored)
    assert len(waves) == 1
    assert {key.data for key in waves[0]} == {"AwA"}
    assert len(Plan(experiment, records).final_records()) == 2 * 2 * 3
    settings = {key.setting for key in Plan(experiment, records).final_runs()}
    assert settings == {(("a", 1),), (("a", 9),)}


def test_a_run_that_two_rows_ask_for_is_done_once():
    points = tuple(Row("tuned", "tuned", (("a", a), ("b", 0.5)), tuned=False) for a in GRID["a"])
    experiment = small(rows=(*EXPERIMENT.rows, *points))
    known = Plan(experiment, []).known_runs()
    assert len({key.digest for key in known}) == len(known)
    carry_out(experiment, scored)


def test_left_out_cells_are_not_run_but_told():
    out = LeftOut("tuned", "AwA", "20 GB")
    experiment = replace(EXPERIMENT, left_out=(out,))
    records, _ = carry_out(experiment, scored)
    assert not [r for r in records if (r.key.method, r.key.data) == ("tuned", "AwA")]
    told = [r for r in Plan(experiment, records).final_records() if r.status == "left_out"]
    assert {(r.key.method, r.key.data, r.message) for r in told} == {("tuned", "AwA", "20 GB")}
    assert len(told) == 2 * 2  # per protocol and missing rate


def test_other_repetitions_than_the_first_ones():
    later = replace(EXPERIMENT, first_repetition=100)
    assert {key.repetition for key in Plan(later, ()).final_runs()} == {100, 101, 102}
    # Settings are tried in repetition 0, which is none of these.
    groups = len(later.data) * len(later.missing_rates)
    assert Plan(later, ()).counts()["tuned"] == Count(to_do=groups * (N_GRID + 3 + 3))
    shelf = Shelf()
    while runs := Plan(later, shelf.records()).unfinished_runs():
        for key in runs:
            shelf.write(scored(key))
    assert Plan(later, shelf.records()).counts()["tuned"] == Count(done=groups * (N_GRID + 3 + 3))
