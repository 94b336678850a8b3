"""The store: records are whole or absent, and a run has one process at a time."""

import json
import math
import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import viewmend
from viewmend.bench.runs import InvalidRecordError, Record, RunKey, setting_of
from viewmend.bench.store import ResultStore
from viewmend.exceptions import DataWarning

KEY = RunKey("fit", "honest", "CUB", 0.5, 0.05, "Mend", (), 0)
RECORD = Record(KEY, "done", {"accuracy": 0.75}, {"fit": 1.5}, {"numpy": "2.0"})


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "results")


values = st.one_of(
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.booleans(),
    st.none(),
    st.tuples(st.integers(), st.floats(allow_nan=False)),
)


@settings(max_examples=40, deadline=None)
@given(
    parameters=st.dictionaries(st.text(), values, max_size=4),
    rate=st.floats(0, 0.99),
    result=st.dictionaries(st.text(), st.one_of(st.floats(allow_nan=False), st.text())),
)
def test_what_is_written_is_read(tmp_path_factory, parameters, rate, result):
    store = ResultStore(tmp_path_factory.mktemp("results"))
    key = replace(KEY, missing_rate=rate, setting=setting_of(parameters))
    record = Record(key, "done", result)
    store.write(record)
    assert store.get(key) == record
    assert store.records() == [record]


def test_a_later_record_takes_the_place_of_an_earlier_one(store):
    store.write(replace(RECORD, status="error", message="no luck"))
    store.write(RECORD)
    assert store.records() == [RECORD]


def test_settings_have_records_of_their_own(store):
    other = replace(RECORD, key=replace(KEY, setting=(("a", 1),)))
    store.write(RECORD)
    assert store.get(other.key) is None
    store.write(other)
    assert sorted(map(str, store.records())) == sorted(map(str, [RECORD, other]))


def test_a_name_with_another_meaning_is_another_run(store):
    """Also a record from before meanings were kept, which is still read as the run it was."""
    now, before, nameless = (replace(KEY, rules=text) for text in ("labels: a", "labels: b", ""))
    assert len({key.digest for key in (now, before, nameless)}) == 3
    assert nameless.digest == "ffd50c28fef341d1"
    for key in (before, nameless):
        store.write(Record(key, "done", {"accuracy": 0.5}))
    assert store.get(now) is None
    assert {record.key for record in store.records()} == {before, nameless}


def test_numbers_of_numpy_become_plain_numbers(store):
    result = {"accuracy": np.float32(0.5), "n": np.int64(3), "weights": np.array([0.25, 0.75])}
    store.write(replace(RECORD, result=result))
    assert store.get(KEY).result == {"accuracy": 0.5, "n": 3, "weights": [0.25, 0.75]}


def test_not_a_number_is_kept(store):
    store.write(replace(RECORD, result={"change": math.nan}))
    assert math.isnan(store.get(KEY).result["change"])


def test_what_cannot_be_written_leaves_the_old_record(store):
    store.write(RECORD)
    with pytest.raises(TypeError, match="here is a object"):
        store.write(replace(RECORD, result={"model": object()}))
    assert store.records() == [RECORD]


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"key": {"measure": "f',
        "[]",
        '{"status": "done"}',
        json.dumps(replace(RECORD, status="perhaps").to_dict()),
        json.dumps(replace(RECORD, key=replace(KEY, repetition=1)).to_dict()),
        json.dumps(RECORD.to_dict() | {"colour": "red"}),
        "[" * 100_000,
        json.dumps(RECORD.to_dict() | {"message": "\ud800"}),
        json.dumps(RECORD.to_dict() | {"timings": {"fit": -1.0}}),
        json.dumps(RECORD.to_dict() | {"environment": []}),
    ],
    ids=[
        *("empty", "cut", "list", "no key", "status", "other key", "unknown field"),
        *("deep", "surrogate", "negative seconds", "environment"),
    ],
)
def test_broken_files_are_named_and_the_rest_is_read(store, text):
    whole = replace(RECORD, key=replace(KEY, method="AMGL"))
    store.write(whole)
    store.write(RECORD)
    file = store.runs / f"{KEY.digest}.json"
    file.write_text(text)
    with pytest.warns(DataWarning, match=file.name):
        assert store.records() == [whole]
    with pytest.warns(DataWarning, match="remove the file"):
        assert store.get(KEY) is None
    store.write(RECORD)
    assert store.get(KEY) == RECORD


@pytest.mark.parametrize("name", ["accuracy", "macro_f1", "observed_pairs"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.5, "0.5", True, None, [0.5]])
def test_shares_that_cannot_be_are_not_believed(store, name, value):
    """Neither where somebody changed a record, nor from a measure that went wrong."""
    store.write(RECORD)
    file = store.runs / f"{KEY.digest}.json"
    file.write_text(json.dumps(RECORD.to_dict() | {"result": {name: value}}))
    with pytest.warns(DataWarning, match=rf"{file.name}.*{name} of result must be a number in"):
        assert store.records() == []
    with pytest.raises(InvalidRecordError, match=f"{name} of result must be a number in"):
        store.write(replace(RECORD, result={name: value}))


@pytest.mark.parametrize(
    "history",
    [
        [{"iteration": 1, "alpha": [0.5]}, {"iteration": 2, "alpha": [0.5, 0.5]}],
        [{"iteration": "one"}],
        [{"iteration": 1, "inner": [{"alpha_error": "small"}]}],
        [1],
        "none",
    ],
)
def test_rounds_that_no_figure_could_show_are_not_believed(store, history):
    with pytest.raises(InvalidRecordError, match="history of result must be a list of rounds"):
        store.write(replace(RECORD, result={"history": history}))


def test_text_that_is_not_unicode_is_no_record(store):
    store.write(RECORD)
    (store.runs / f"{KEY.digest}.json").write_bytes(b"\xff\xfe\xff")
    with pytest.warns(DataWarning, match="remove the file"):
        assert store.records() == []


def test_locks_that_hold_something_else_are_no_runs(store):
    store.claims.mkdir(parents=True)
    for i, content in enumerate([b"\xff", b"[]", b"{}", b'{"setting": 1}', b"[" * 100_000]):
        (store.claims / f"{i}.lock").write_bytes(content)
    assert store.interrupted() == store.running() == []


def test_a_folder_that_is_not_there_holds_nothing(store):
    assert store.records() == store.running() == store.interrupted() == []
    assert store.get(KEY) is None
    assert not store.folder.exists()


def test_records_can_be_read_by_others(store):
    """A draft of restricted mode would keep a shared folder to one user."""
    umask = os.umask(0o022)
    try:
        store.write(RECORD)
    finally:
        os.umask(umask)
    (file,) = store.runs.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_a_claimed_run_is_refused_until_it_is_let_go(store):
    with store.claim(KEY) as mine, store.claim(KEY) as again:
        assert (mine, again) == (True, False)
        with store.claim(replace(KEY, repetition=1)) as other:
            assert other
        assert store.running() == [KEY]
    with store.claim(KEY) as mine:
        assert mine
    assert store.running() == store.interrupted() == []
    assert not list(store.claims.iterdir())


def test_an_error_lets_go_of_the_claim(store):
    with pytest.raises(KeyboardInterrupt), store.claim(KEY):
        raise KeyboardInterrupt
    with store.claim(KEY) as mine:
        assert mine


def test_a_claim_on_a_lock_that_was_removed_meanwhile_does_not_count(store, monkeypatch):
    """Between opening a lock file and locking it, its owner may remove it and others open anew."""
    from viewmend.bench import store as module

    lock = module.try_lock

    def lock_late(handle):
        (store.claims / f"{KEY.digest}.lock").unlink()
        return lock(handle)

    monkeypatch.setattr(module, "try_lock", lock_late)
    with store.claim(KEY) as mine:
        assert not mine


CLAIM_AND_WAIT = """
import json, sys, time
from viewmend.bench.runs import RunKey
from viewmend.bench.store import ResultStore

store, key = ResultStore(sys.argv[1]), RunKey.from_dict(json.loads(sys.argv[2]))
with store.claim(key):
    store.drafts.mkdir(parents=True)
    (store.drafts / f"{key.digest}-half.json").write_text('{"key": ')
    print("claimed", flush=True)
    time.sleep(600)
"""


@pytest.mark.kills
def test_kill_frees_the_claim_and_its_draft_goes_with_the_next_one(store):
    """In a new process, for a copy of this one would share its threads' locks."""
    environment = os.environ | {"PYTHONPATH": str(Path(viewmend.__file__).parents[1])}
    command = [sys.executable, "-c", CLAIM_AND_WAIT, str(store.folder), KEY.text]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"claimed\n"
    with store.claim(KEY) as mine:
        assert not mine
    assert (store.running(), store.interrupted()) == ([KEY], [])
    process.kill()
    process.communicate()
    assert (store.running(), store.interrupted()) == ([], [KEY])
    assert store.records() == []
    with store.claim(KEY) as mine:
        assert mine
        store.write(RECORD)
    assert store.interrupted() == []
    assert not list(store.drafts.iterdir())
    assert store.records() == [RECORD]


def test_forgotten_runs_are_to_do_again_but_not_those_in_hand(store):
    store.write(RECORD)
    with store.claim(KEY):
        store.forget(KEY)
        assert store.get(KEY) == RECORD
    store.forget(KEY)
    assert store.get(KEY) is None


def test_a_lock_left_after_the_record_is_not_a_run_cut_short(store):
    """As by a process killed between the two: the run is done."""
    store.claims.mkdir(parents=True)
    (store.claims / f"{KEY.digest}.lock").write_text(KEY.text)
    assert store.interrupted() == [KEY]
    store.write(RECORD)
    assert store.interrupted() == []
