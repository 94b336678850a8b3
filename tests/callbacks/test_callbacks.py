"""What watches a fit, when it is told, and how it ends the fit."""

import csv
import importlib.util
import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

import viewmend
from viewmend import AGFTIClassifier, LabelSearchCV, MendClassifier
from viewmend.callbacks import (
    EarlyStop,
    Fit,
    HistoryCSV,
    LogRounds,
    ProgressBar,
    StopOnInterrupt,
    TimeLimit,
)
from viewmend.callbacks.notify import reason_to_stop
from viewmend.core.mend.recipe import StageRecord
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError

pytestmark = pytest.mark.filterwarnings("ignore:AGFTIClassifier stopped at max_iter")

BLOBS = make_multiview_blobs(90, n_views=2, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.2, random_state=0)
N_LABELS = int((TASK.y >= 0).sum())

# A round that has a number and a change, as all records of rounds do.
STAGE = {"name": "evidence", "graph_weights": (1.0,), "view_r2": ()}


@pytest.fixture(autouse=True)
def interrupts_that_arrive():
    """Jobs in the background of a shell ignore Ctrl-C, and so do the processes they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def agfti(**parameters):
    return AGFTIClassifier(**({"random_state": 0, "max_iter": 4, "tol": 0.0} | parameters))


def mend(**parameters):
    return MendClassifier(**({"representations": ("unit",), "n_rounds": 2} | parameters))


def record(iteration, change=0.0):
    return StageRecord(iteration=iteration, change=change, **STAGE)


class Diary:
    """Writes down all it is told; answers as it was made to."""

    def __init__(self, name="", answers=None, pages=None):
        self.name, self.answers = name, answers or {}
        self.pages = [] if pages is None else pages

    def _write(self, *entry):
        self.pages.append((self.name, *entry) if self.name else entry)

    def on_fit_begin(self, fit):
        self._write("begin", fit.name, fit.max_rounds)

    def __call__(self, round_, _state):
        self._write(round_.iteration)
        return self.answers.get(round_.iteration)

    def on_fit_end(self, _fit, error):
        self._write("end", type(error).__name__)


# ------------------------------------------------------------------ hooks


@pytest.mark.parametrize(
    ("model", "name", "n_rounds"),
    [
        (agfti(), "AGFTIClassifier", 4),
        (mend(), "MendClassifier", 4),
        (mend(edge_power=1.0, n_rounds=1), "MendClassifier", 5),
        (mend(n_rounds=0), "MendClassifier", 2),
    ],
)
def test_begin_tells_the_name_and_the_rounds_there_will_be(model, name, n_rounds):
    diary = Diary()
    model.set_callbacks(diary).fit(TASK.data, TASK.y)
    rounds = [(i,) for i in range(1, n_rounds + 1)]
    assert diary.pages == [("begin", name, n_rounds), *rounds, ("end", "NoneType")]


def test_callbacks_begin_in_order_and_end_in_reverse_and_all_see_the_last_round():
    pages = []
    first, second = Diary("a", {2: True}, pages), Diary("b", pages=pages)
    model = agfti().set_callbacks(first, second).fit(TASK.data, TASK.y)
    assert [page[:2] for page in pages if page[1] != 1] == [
        ("a", "begin"), ("b", "begin"), ("a", 2), ("b", 2), ("b", "end"), ("a", "end"),
    ]  # fmt: skip
    assert model.status_ == "stopped"


def test_a_word_is_the_status_and_the_first_that_stops_has_it():
    assert reason_to_stop([lambda *_: None, lambda *_: "bored", lambda *_: True], 0, 0) == "bored"
    assert reason_to_stop([lambda *_: np.True_, lambda *_: "bored"], 0, 0) == "stopped"
    assert reason_to_stop([lambda *_: False, lambda *_: ""], 0, 0) is None
    for model in (agfti(), mend()):
        model.set_callbacks(Diary(answers={2: "bored"})).fit(TASK.data, TASK.y)
        assert (model.status_, model.n_iter_) == ("bored", 2)


def test_a_round_that_converges_is_not_called_stopped():
    model = agfti(tol=10.0).set_callbacks(Diary(answers={2: True})).fit(TASK.data, TASK.y)
    assert (model.status_, model.n_iter_) == ("converged", 2)


@pytest.mark.parametrize("make", [agfti, mend])
def test_an_error_reaches_every_ending_and_leaves_the_estimator_unfitted(make):
    def fail(_round, _state):
        raise OSError("no power")

    before, after = Diary(), Diary()
    model = make().fit(TASK.data, TASK.y).set_callbacks(before, fail, after)
    with pytest.raises(OSError, match="no power"):
        model.fit(TASK.data, TASK.y)
    assert before.pages[-1] == after.pages[-1] == ("end", "OSError")
    with pytest.raises(NotFittedError):
        model.predict(TASK.data)
    assert model.get_params() == make().get_params()
    assert (
        make().fit(TASK.data, TASK.y).status_
        == model.set_callbacks().fit(TASK.data, TASK.y).status_
    )


def test_input_that_is_refused_leaves_nothing_of_an_earlier_fit():
    diary = Diary()
    model = mend().fit(TASK.data, TASK.y).set_callbacks(diary)
    with pytest.raises(ValueError, match="label"):
        model.fit(TASK.data, np.full(90, -1))
    assert diary.pages == [("begin", "MendClassifier", 4), ("end", "InvalidLabelsError")]
    assert not [name for name in vars(model) if name.endswith("_")]


def test_who_did_not_begin_does_not_end():
    class Broken(Diary):
        def on_fit_begin(self, fit):
            super().on_fit_begin(fit)
            raise OSError("no paper")

    first, broken, last = Diary(), Broken(), Diary()
    with pytest.raises(OSError, match="no paper"):
        agfti().set_callbacks(first, broken, last).fit(TASK.data, TASK.y)
    assert [page[0] for page in first.pages] == ["begin", "end"]
    assert [page[0] for page in broken.pages] == ["begin", "end"]
    assert last.pages == []


def test_an_ending_that_fails_does_not_keep_others_from_theirs():
    class Broken(Diary):
        def on_fit_end(self, _fit, _error):
            raise OSError("no ink")

    diary = Diary()
    with pytest.raises(OSError, match="no ink"):
        mend().set_callbacks(diary, Broken()).fit(TASK.data, TASK.y)
    assert diary.pages[-1] == ("end", "OSError")


@pytest.mark.parametrize("bad", [TimeLimit, 3, "log", None])
def test_what_cannot_be_called_is_refused_at_once(bad):
    with pytest.raises(InvalidParameterError, match="must be a callable of a round and a state"):
        agfti().set_callbacks(bad)


# ------------------------------------------------------------------ stopping


class Clock:
    """Time that passes when it is told to."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def pass_after(self, **seconds):
        def wait(*_):
            self.now += seconds["each_round"]

        return wait


def test_time_counts_from_the_begin_of_the_fit(monkeypatch):
    clock = Clock(monkeypatch)

    class SlowStart:
        def on_fit_begin(self, _fit):
            clock.now += 100

        __call__ = staticmethod(clock.pass_after(each_round=1))

    limit = TimeLimit(102.5)
    model = agfti(max_iter=9)
    n_iters = [
        model.set_callbacks(*order).fit(TASK.data, TASK.y).n_iter_
        for order in [(limit, SlowStart()), (SlowStart(), limit), (limit, SlowStart())]
    ]
    # Begun before or after the slow start, told after or before the second passes; begun anew.
    assert n_iters == [4, 9, 4]


def test_time_without_a_fit_counts_from_the_first_round(monkeypatch):
    clock, limit = Clock(monkeypatch), TimeLimit(2.0)
    answers = []
    for _ in range(4):
        clock.now += 1
        answers.append(limit(record(1), None))
    assert answers == [False, False, True, True]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5]), max_size=12), st.integers(1, 4))
def test_early_stop_is_the_first_run_of_calm_rounds(changes, patience):
    stop = EarlyStop(patience, min_change=0.2)
    stop.on_fit_begin(Fit(None, 12))
    answers = [stop(record(i + 1, change), None) for i, change in enumerate(changes)]
    calm = "".join("c" if change < 0.2 else "." for change in changes)
    assert answers == [calm[: i + 1].endswith("c" * patience) for i in range(len(calm))]


def test_early_stop_begins_anew_with_every_fit():
    model = agfti(max_iter=9).set_callbacks(EarlyStop(patience=2, min_change=1e9))
    assert [model.fit(TASK.data, TASK.y).n_iter_ for _ in range(2)] == [2, 2]


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        *((TimeLimit, {"seconds": wrong}) for wrong in ("600", None, -1, np.nan, True)),
        *((EarlyStop, {"patience": wrong}) for wrong in (0, 1.5, "2")),
        # Nothing would be less than that.
        *((EarlyStop, {"min_change": wrong}) for wrong in (0, -1e-3, np.nan, "0.1")),
    ],
    ids=str,
)
def test_limits_that_are_none_are_refused_before_any_work(make, arguments):
    (name,) = arguments
    with pytest.raises(InvalidParameterError, match=f"{name} of {make.__name__} must be"):
        make(**arguments)


def test_no_limit_of_time_is_one_that_never_comes():
    assert agfti(max_iter=3).set_callbacks(TimeLimit(np.inf)).fit(TASK.data, TASK.y).n_iter_ == 3


# ------------------------------------------------------------------ Ctrl-C


def press(at):
    """Ctrl-C at the end of some rounds."""
    return lambda round_, _: signal.raise_signal(signal.SIGINT) if round_.iteration in at else None


@pytest.mark.parametrize("make", [agfti, mend])
def test_interrupt_raises_by_default_and_leaves_nothing_half_done(make):
    model = make().set_callbacks(press({2}))
    with pytest.raises(KeyboardInterrupt):
        model.fit(TASK.data, TASK.y)
    with pytest.raises(NotFittedError):
        model.predict(TASK.data)


@pytest.mark.parametrize("make", [agfti, mend])
def test_stop_on_interrupt_keeps_the_model_of_the_next_round(make):
    before = signal.getsignal(signal.SIGINT)
    model = make().set_callbacks(StopOnInterrupt(), press({2}))
    with pytest.warns(ConvergenceWarning, match="interrupted after 3 of at most 4 rounds"):
        model.fit(TASK.data, TASK.y)
    assert (model.status_, model.n_iter_) == ("interrupted", 3)
    assert signal.getsignal(signal.SIGINT) is before
    same = make().set_callbacks(Diary(answers={3: True})).fit(TASK.data, TASK.y)
    np.testing.assert_array_equal(model.predict_proba(TASK.data), same.predict_proba(TASK.data))


def test_stop_on_interrupt_lets_the_second_one_through():
    def press_twice(round_, _):
        if round_.iteration == 2:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        agfti().set_callbacks(StopOnInterrupt(), press_twice).fit(TASK.data, TASK.y)
    assert signal.getsignal(signal.SIGINT) is before


def test_stop_on_interrupt_raises_while_there_is_nothing_to_keep():
    """In the first round, or in what comes before."""
    with pytest.raises(KeyboardInterrupt):
        agfti().set_callbacks(press({1}), StopOnInterrupt()).fit(TASK.data, TASK.y)


def test_an_interrupt_too_late_to_shorten_the_fit_is_not_swallowed():
    model = agfti().set_callbacks(StopOnInterrupt(), press({4}))
    with pytest.raises(KeyboardInterrupt):
        model.fit(TASK.data, TASK.y)
    assert (model.status_, model.n_iter_) == ("max_iter", 4)


def test_stop_on_interrupt_is_idle_in_other_threads():
    models = []
    thread = threading.Thread(
        target=lambda: models.append(
            agfti(tol=10.0).set_callbacks(StopOnInterrupt()).fit(TASK.data, TASK.y)
        )
    )
    thread.start()
    thread.join()
    assert models[0].status_ == "converged"


INTERRUPTED = """
import os, signal, warnings
from viewmend import AGFTIClassifier
from viewmend.callbacks import StopOnInterrupt
from viewmend.datasets import hide, make_multiview_blobs
blobs = make_multiview_blobs(90, n_views=2, random_state=0)
task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.2, random_state=0)

# A byte comes through this pipe when a signal has arrived, whichever thread it was given to.
arrived, wakeup = os.pipe()
os.set_blocking(wakeup, False)
signal.set_wakeup_fd(wakeup)

def wait_in_round_3(round_, _):
    if round_.iteration == 3:
        print("ready", flush=True)
        os.read(arrived, 1)

warnings.simplefilter("ignore")
model = AGFTIClassifier(random_state=0, tol=0.0, max_iter=6)
model.set_callbacks(*[StopOnInterrupt()][: {kept}], wait_in_round_3)
try:
    model.fit(task.data, task.y)
except KeyboardInterrupt:
    print("raised", hasattr(model, "classes_"))
else:
    print("kept", model.status_, model.n_iter_, model.predict(task.data).shape)
"""


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.kills
def test_a_real_interrupt_from_outside(kept):
    code = INTERRUPTED.format(kept=int(kept))
    environment = os.environ | {"PYTHONPATH": str(Path(viewmend.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        last = process.stdout.read()
    assert process.returncode == 0
    assert last == ("kept interrupted 4 (90,)\n" if kept else "raised False\n")


# ------------------------------------------------------------------ telling


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_history_file_holds_every_number_of_every_round(tmp_path):
    path = tmp_path / "history.csv"
    model = agfti().set_callbacks(HistoryCSV(path)).fit(TASK.data, TASK.y)
    for row, round_ in zip(read(path), model.history_, strict=True):
        assert int(row.pop("iteration")) == round_.iteration
        assert int(row.pop("inner")) == len(round_.inner)
        expected = {
            **{f"change_{name}": getattr(round_, f"change_{name}") for name in ("F", "Q", "alpha")},
            **{f"alpha.{v}": weight for v, weight in enumerate(round_.alpha)},
            **{f"objective.{name}": value for name, value in round_.objective.items()},
            "primal_residual": round_.primal_residual,
        }
        assert {name: float(text) for name, text in row.items()} == expected


def test_history_file_of_stages_grows_columns(tmp_path):
    path = tmp_path / "history.csv"
    model = mend().set_callbacks(HistoryCSV(path)).fit(TASK.data, TASK.y)
    rows = read(path)
    assert [row["name"] for row in rows] == ["neighbours", "homophily", "evidence", "evidence"]
    explained = [row["view_r2.1"] for row in rows]
    assert explained[:2] == ["", ""]
    assert list(map(float, explained[2:])) == [stage.view_r2[1] for stage in model.history_[2:]]


def test_history_file_is_whole_after_every_round_and_begins_anew(tmp_path):
    path, lengths = tmp_path / "history.csv", []
    path.write_text("of an earlier fit")
    model = agfti(max_iter=3)
    model.set_callbacks(HistoryCSV(path), lambda *_: lengths.append(len(read(path))))
    model.fit(TASK.data, TASK.y).fit(TASK.data, TASK.y)
    assert lengths == [1, 2, 3, 1, 2, 3]


def test_history_file_needs_its_folder_before_the_fit(tmp_path):
    model = agfti().set_callbacks(HistoryCSV(tmp_path / "nowhere" / "history.csv"))
    with pytest.raises(InvalidParameterError, match=r"no folder '.*nowhere' for history\.csv"):
        model.fit(TASK.data, TASK.y)


def terminal(**options):
    from rich.console import Console

    return Console(file=io.StringIO(), width=80, **options)


def test_progress_bar_counts_rounds_on_a_terminal_and_is_silent_elsewhere():
    shown, hidden = terminal(force_terminal=True), terminal(force_terminal=False)
    agfti().set_callbacks(ProgressBar(shown), ProgressBar(hidden)).fit(TASK.data, TASK.y)
    text = shown.file.getvalue()
    assert "AGFTIClassifier" in text
    assert "round 1 of 4" in text
    assert hidden.file.getvalue() == ""


def test_progress_bar_gives_the_terminal_back_after_an_error():
    console = terminal(force_terminal=True)
    with pytest.raises(KeyboardInterrupt):
        agfti().set_callbacks(ProgressBar(console), press({2})).fit(TASK.data, TASK.y)
    assert console.file.getvalue().count("\x1b[?25l") == console.file.getvalue().count("\x1b[?25h")


def test_progress_bar_names_the_extra_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    with pytest.raises(ImportError, match=r"pip install .*\[cli\]'"):
        ProgressBar()


# ------------------------------------------------------------------ searches


GRID = {"spreading": [0.5, 0.9, 0.99], "homophily_power": [1.0, 4.0]}


def test_a_search_tells_of_every_comparison_and_its_estimator_of_the_final_fit():
    search_diary, fit_diary, stream = Diary(), Diary(), io.StringIO()
    estimator = mend(n_rounds=1).set_callbacks(fit_diary)
    search = LabelSearchCV(estimator, GRID, margin=100).set_callbacks(
        search_diary, LogRounds(stream)
    )
    search.fit(TASK.data, TASK.y)
    # Seven points, then the first and two others, then the first and the best.
    n_comparisons, end = 7 + 3 + 2, ("end", "NoneType")
    rounds = [(i,) for i in range(1, n_comparisons + 1)]
    assert search_diary.pages == [("begin", "LabelSearchCV", n_comparisons), *rounds, end]
    assert fit_diary.pages == [("begin", "MendClassifier", 3), (1,), (2,), (3,), end]
    lines = stream.getvalue().splitlines()
    assert "s  comparison   1  fold 1  accuracy " in lines[0]
    scores = [float(line.split("accuracy")[1].split("%")[0]) / 100 for line in lines[:7]]
    np.testing.assert_allclose(scores, search.cv_results_["split0_test_score"], atol=6e-4)


def test_a_search_that_is_stopped_ends_with_its_fold_and_fits():
    search = LabelSearchCV(mend(n_rounds=0), GRID).set_callbacks(Diary(answers={9: True}))
    search.fit(TASK.data, TASK.y)
    assert search.cv_results_["n_folds"].max() == 2
    assert "split2_test_score" not in search.cv_results_
    assert search.predict(TASK.data).shape == (90,)


# ------------------------------------------------------------------ scikit-learn's callbacks


class Tasks:
    """A callback of scikit-learn's protocol."""

    def __init__(self, stop_at=None):
        self.told, self.stop_at = [], stop_at

    def _write(self, hook, estimator, context):
        assert context.estimator_name == type(estimator).__name__
        self.told.append((hook, context.task_name, context.task_id, context.max_subtasks))

    def setup(self, estimator, context):
        self._write("setup", estimator, context)

    def on_fit_task_begin(self, estimator, context):
        self._write("begin", estimator, context)

    def on_fit_task_end(self, estimator, context):
        self._write("end", estimator, context)
        return context.task_name == "round" and context.task_id == self.stop_at

    def teardown(self, estimator, context):
        self._write("teardown", estimator, context)


@pytest.fixture
def sklearn_callbacks():
    return pytest.importorskip("sklearn.callback", reason="of scikit-learn 1.9")


def test_callbacks_of_scikit_learn_see_a_task_of_rounds_and_can_stop_it(sklearn_callbacks):
    tasks = Tasks(stop_at=1)
    model = agfti().set_callbacks(tasks, Diary()).fit(TASK.data, TASK.y)
    rounds = [(hook, "round", i, 0) for i in range(2) for hook in ("begin", "end")]
    fit = ("fit", 0, 4)
    assert tasks.told == [
        ("setup", *fit), ("begin", *fit), *rounds, ("end", *fit), ("teardown", *fit),
    ]  # fmt: skip
    assert (model.status_, model.n_iter_) == ("stopped", 2)


def test_callbacks_of_scikit_learn_are_torn_down_after_an_error(sklearn_callbacks):
    tasks = Tasks()
    with pytest.raises(KeyboardInterrupt):
        mend().set_callbacks(tasks, press({1})).fit(TASK.data, TASK.y)
    assert tasks.told[-1] == ("teardown", "fit", 0, 4)
    assert ("end", "fit", 0, 4) not in tasks.told


def test_clone_keeps_callbacks_of_scikit_learn_as_scikit_learn_does(sklearn_callbacks):
    tasks, diary = Tasks(), Diary()
    clone(mend().set_callbacks(tasks, diary)).fit(TASK.data, TASK.y)
    assert tasks.told[-1] == ("teardown", "fit", 0, 4)
    assert diary.pages == []


def test_callbacks_of_scikit_learn_see_the_comparisons_of_a_search(sklearn_callbacks):
    tasks = Tasks()
    LabelSearchCV(mend(), {"spreading": [0.9]}, cv=2).set_callbacks(tasks).fit(TASK.data, TASK.y)
    assert tasks.told[0] == ("setup", "fit", 0, 4)
    assert [task for task in tasks.told if task[:2] == ("end", "round")] == [
        ("end", "round", i, 0) for i in range(4)
    ]
    assert tasks.told[-1] == ("teardown", "fit", 0, 4)


def test_callbacks_work_with_scikit_learn_before_it_had_any(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    spec = importlib.util.spec_from_file_location(
        "watching_alone", viewmend.callbacks.notify.__file__
    )
    alone = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "watching_alone", alone)
    spec.loader.exec_module(alone)

    class Counter(alone.WatchedMixin):
        @alone.with_callbacks
        def fit(self):
            with self._watched(2):
                self.answers_ = [tell(record(1), None) for tell in self._all_callbacks()]
            return self

    diary = Diary(answers={1: True})
    assert Counter().set_callbacks(diary).fit().answers_ == [True]
    assert diary.pages == [("begin", "Counter", 2), (1,), ("end", "NoneType")]
    with pytest.raises(InvalidParameterError, match="must be a callable"):
        Counter().set_callbacks(Tasks())


def test_progress_bar_of_scikit_learn_goes_through_its_search(sklearn_callbacks, capsys):
    search = GridSearchCV(mend(view_sizes=(8, 8)), {"spreading": [0.9, 0.99]}, cv=2)
    search.set_callbacks(sklearn_callbacks.ProgressBar())
    search.fit(np.hstack(BLOBS.views), BLOBS.y)
    shown = capsys.readouterr().out
    assert "refit-with-best-params" in shown
    assert shown.count("MendClassifier - fit") == 5
    assert search.best_estimator_.status_ == "done"
    assert not hasattr(search.best_estimator_, "_skl_callbacks")


def test_models_with_callbacks_of_scikit_learn_are_saved_without(sklearn_callbacks, tmp_path):
    model = mend().set_callbacks(Tasks()).fit(TASK.data, TASK.y)
    viewmend.save(model, tmp_path / "model.vm")
    loaded = viewmend.load(tmp_path / "model.vm")
    np.testing.assert_array_equal(loaded.predict(TASK.data), model.predict(TASK.data))
