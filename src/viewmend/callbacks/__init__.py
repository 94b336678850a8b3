"""Callbacks: show the progress of a fit, log it, limit its time, save it, or stop it.

A callback is a callable. After every round of `AGFTIClassifier`, and every stage of
`MendClassifier`, it is called as ``callback(round, state)``: with a `viewmend.core.Round` and the
live `viewmend.core.State`, or a `viewmend.core.mend.StageRecord` and its
`viewmend.core.mend.Stage`. It must not change them. If it returns a true value, the fit stops and
the model is usable; its ``status_`` is "stopped", or the returned value if that is a string.

A callback may also have any of these methods:

``on_fit_begin(fit)``
    Called with a `Fit`: the estimator, and the largest number of its rounds.
``on_fit_end(fit, error)``
    Always called at the end, with the exception or None; in reverse order of the callbacks.
``on_stage(name, done, total)``
    Called when a step of the fit begins, with its name, such as "neighbours of view 2 of 3", and
    how many of such steps are done, of how many; ``total`` is None if it is not known. Not called
    for rounds, which have the call after each round.
``kept_geometry(problem)``
    Returns a `viewmend.core.mend.geometry.MendGeometry` for Mend to use, or None.
``on_geometry(problem, geometry)``
    Called with what Mend has computed before its first stage, or got from ``kept_geometry``.
``starting_point(problem)``
    Returns a `viewmend.core.agfti.state.Progress` for AGF-TI to resume from, or a
    `viewmend.core.mend.recipe.MendProgress` for Mend, or None.
``on_rounds_begin()``
    Called when rounds begin with the first one.
``on_resume(history)``
    Called instead if rounds resume after those in ``history``.

Attach callbacks with ``set_callbacks`` of an estimator. They are not parameters; ``clone`` does not
copy them, and they are not saved. Callbacks of a `LabelSearchCV` follow its comparisons, those of
its estimator the final fit. Without any callback, Ctrl-C raises KeyboardInterrupt and leaves the
estimator unfitted, as any error does; see `StopOnInterrupt`.

Callbacks of scikit-learn (1.9 or later), such as its ``ProgressBar``, can be attached as well, also
through its searches. They see a fit as a task, and its rounds as subtasks. They get no
``fitted_estimator``, because there is none between two rounds.

Examples
--------
A callback that counts the rounds in which the first view had the largest weight:

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
