"""What a fit tells of itself between and beside its rounds."""

import io
import itertools
import re

import numpy as np
import pytest
from rich.console import Console

from viewmend import AGFTIClassifier, MendClassifier
from viewmend.callbacks import LogRounds, ProgressBar
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidViewsError

BLOBS = make_multiview_blobs(90, n_views=2, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.2, random_state=0)


class Stages:
    """Writes down what begins, and rounds by their numbers."""

    def __init__(self):
        self.told = []

    def on_stage(self, name, done, total):
        self.told.append((name, done, total))

    def __call__(self, round_, _state):
        self.told.append(round_.iteration)


def mend(**parameters):
    two = {"representations": ("unit", "standard"), "n_rounds": 1}
    return MendClassifier(**(two | parameters))


def terminal():
    return Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)


def shown(console):
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue())


def test_every_part_of_the_work_on_a_view_is_told_before_the_first_round():
    stages = Stages()
    mend().set_callbacks(stages).fit(TASK.data, TASK.y)
    before = list(itertools.takewhile(lambda entry: entry != 1, stages.told))
    assert [entry for entry in before if " of view " in entry[0]] == [
        ("representations of view 1 of 2", 0, 6),
        ("neighbours of view 1 of 2", 1, 6),
        ("kernel features of view 1 of 2", 2, 6),
        ("representations of view 2 of 2", 3, 6),
        ("neighbours of view 2 of 2", 4, 6),
        ("kernel features of view 2 of 2", 5, 6),
    ]


def test_folds_of_a_cross_fit_are_told_after_the_last_round():
    stages = Stages()
    model = mend(calibration="cross_fit").set_callbacks(stages).fit(TASK.data, TASK.y)
    after = stages.told[stages.told.index(model.n_iter_) + 1 :]
    folds = [entry for entry in after if " of " in entry[0]]
    n_folds = folds[0][2]
    assert folds == [(f"calibration {k + 1} of {n_folds}", k, n_folds) for k in range(n_folds)]


@pytest.mark.parametrize("model", [mend(), AGFTIClassifier(max_iter=2, tol=10.0, random_state=0)])
def test_watching_changes_no_bit(model):
    plain = model.set_callbacks().fit(TASK.data, TASK.y).label_distributions_
    watched = model.set_callbacks(ProgressBar(terminal()), Stages()).fit(TASK.data, TASK.y)
    np.testing.assert_array_equal(watched.label_distributions_, plain)


def test_the_bar_names_each_part_and_keeps_its_clock():
    console = terminal()
    mend().set_callbacks(ProgressBar(console)).fit(TASK.data, TASK.y)
    text = shown(console)
    for words in ("neighbours of view 2 of 2", "kernel features", "round 2 of 3", "calibration"):
        assert f"MendClassifier: {words}" in text
    assert re.search(r"calibration.*\d:\d\d:\d\d", text)


def test_an_error_before_the_first_round_stands_below_the_bar():
    console = terminal()
    views = [view.copy() for view in TASK.data.views]
    views[0][0] = np.inf
    with pytest.raises(InvalidViewsError) as caught:
        mend().set_callbacks(ProgressBar(console)).fit(views, TASK.y)
    console.print("the error:", str(caught.value).split()[0])
    # The bar is wiped away (2K erases a line) and the cursor is back before the error is shown.
    last_wipe = console.file.getvalue().rfind("\x1b[2K")
    assert 0 <= last_wipe < console.file.getvalue().rfind("the error:")
    assert console.file.getvalue().count("\x1b[?25l") == console.file.getvalue().count("\x1b[?25h")


def test_the_log_has_a_line_per_part_with_seconds():
    stream = io.StringIO()
    mend().set_callbacks(LogRounds(stream)).fit(TASK.data, TASK.y)
    lines = stream.getvalue().splitlines()
    assert [line for line in lines if not re.match(r" *\d+\.\d s  \S", line)] == []
    assert sum("neighbours of view" in line for line in lines) == 2
    seconds = [float(line.split(" s ")[0]) for line in lines]
    assert seconds == sorted(seconds)
