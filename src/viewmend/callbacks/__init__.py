"""What can watch a fit: progress, logs, time limits, checkpoints.

A callback is a callable. After every round of `AGFTIClassifier`, and every stage of
`MendClassifier`, it is called as ``callback(round, state)``: with a `viewmend.core.Round` and the
live `viewmend.core.State`, or a `viewmend.core.mend.StageRecord` and its
`viewmend.core.mend.Stage`. It must not change them. A true answer stops the fit, and the model is
usable as it then is; its ``status_`` is "stopped", or the answer itself where this is a string.

A callback may have any of these methods too:

``on_fit_begin(fit)``
    With a `Fit`: the estimator, and the number of its rounds at most.
``on_fit_end(fit, error)``
    In any case, with what was raised or None; in the reverse order of the callbacks.
``on_stage(name, done, total)``
    When a part of the fit begins: what it is, such as "neighbours of view 2 of 3", and how many
    pieces of that kind of work are done, of how many; ``total`` is None where nobody can tell.
    Rounds are not told so, but by the call after each.
``kept_geometry(problem)``
    Answers with a `viewmend.core.mend.geometry.MendGeometry` for Mend to use, or None.
``on_geometry(problem, geometry)``
    What Mend has computed before its first stage, or was answered.
``starting_point(problem)``
    Answers with a `viewmend.core.agfti.state.Progress` for AGF-TI to go on from, or a
    `viewmend.core.mend.recipe.MendProgress` for Mend, or None.
``on_rounds_begin()``
    Rounds begin, from the first one.
``on_resume(history)``
    They go on instead after these, which a callback knew.

Callbacks are attached by ``set_callbacks`` of an estimator, are not parameters, are not copied by
``clone`` and not saved. Those of `LabelSearchCV` watch the comparisons of its points, those of its
estimator the final fit. Without any, Ctrl-C raises KeyboardInterrupt and leaves the estimator
unfitted, as any error does; see `StopOnInterrupt`.

Callbacks of scikit-learn (1.9 or later), such as its ``ProgressBar``, can be attached as well, also
through its searches; they see a fit as a task, and its rounds as tasks in it. They get no
``fitted_estimator``, because there is none between two rounds.

Examples
--------
A callback of one's own, which counts the rounds in which the first view was the heaviest:

>>> from viewmend import AGFTIClassifier
>>> from viewmend.datasets import hide, make_multiview_blobs
>>> class FirstIsHeaviest:
...     def on_fit_begin(self, fit):
...         self.most, self.count = fit.max_rounds, 0
...
...     def __call__(self, round_, state):
...         self.count += round_.alpha[0] == max(round_.alpha)
...         return round_.iteration == 3  # True stops
>>> blobs = make_multiview_blobs(random_state=0)
>>> task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.1, random_state=0)
>>> watcher = FirstIsHeaviest()
>>> model = AGFTIClassifier(random_state=0).set_callbacks(watcher).fit(task.data, task.y)
>>> model.status_, model.n_iter_, watcher.most
('stopped', 3, 30)
"""

from viewmend.callbacks.checkpoint import Checkpoint
from viewmend.callbacks.progress import HistoryCSV, LogRounds, ProgressBar
from viewmend.callbacks.protocol import Fit
from viewmend.callbacks.stopping import EarlyStop, StopOnInterrupt, TimeLimit
from viewmend.exceptions import CheckpointError

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "EarlyStop",
    "Fit",
    "HistoryCSV",
    "LogRounds",
    "ProgressBar",
    "StopOnInterrupt",
    "TimeLimit",
]
