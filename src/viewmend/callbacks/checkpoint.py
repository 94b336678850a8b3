"""Save the rounds of a fit, and resume from them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from viewmend.backend.namespace import to_numpy
from viewmend.callbacks.checkpoint_file import CheckpointFile
from viewmend.callbacks.protocol import Fit, LoopProgress, ResumableProblem, RoundRecord
from viewmend.exceptions import CheckpointError, InvalidParameterError
from viewmend.parameters import Integer, short
from viewmend.storage.atomic import check_folder

# In the place of the class of a model in the archive.
ROUNDS, GEOMETRY = "Checkpoint", "Geometry"
# What the file of the geometry is called after that of the rounds.
GEOMETRY_ENDING = ".geometry"
_EVERY = Integer(1)


class Checkpoint:
    """Save the rounds of a fit in a file, and resume from it.

    A fit that finds the file resumes after the last round in it. On the same machine, the result is
    the same, bit for bit, as without interruption. The file can also extend a fit that had ended: a
    larger ``max_iter`` or ``n_rounds``, or a smaller ``tol``, add rounds. A fit on other data, or
    with other parameters that change the rounds, is refused. The file is replaced as a whole, so
    you can kill the process at any time. It contains no code, and it stays after the fit. Fits that
    run at the same time need a Checkpoint each, with a path of its own.

    For `MendClassifier`, a second file, ``path`` with the ending ``.geometry``, keeps what is
    computed before the first round: neighbours and kernel features, which take most of the time. It
    is written once and used by all fits on the same views. For `AGFTIClassifier`, anchors and
    graphs are computed again. Give the estimator a ``random_state``.

    Parameters
    ----------
    path : path
        File to write and to resume from.
    every : int, default=1
        Save after every this many rounds; the last round is always saved.
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 1) -> None:
        self.path = Path(path)
        self.every = every
        self._fit: Fit | None = None
        self._rounds: CheckpointFile | None = None
        self._history: list[RoundRecord] = []
        self._unsaved: Any = None

    @property
    def geometry_path(self) -> Path:
        """The second file of `MendClassifier`."""
        return self.path.with_name(self.path.name + GEOMETRY_ENDING)

    def on_fit_begin(self, fit: Fit) -> None:
        if fit.round_parameters is None:
            msg = (
                f"Checkpoint keeps the rounds of MendClassifier and AGFTIClassifier, got a fit of "
                f"{fit.name}; leave it out of set_callbacks"
            )
            raise InvalidParameterError(msg)
        if not _EVERY.accepts(self.every):
            msg = (
                f"every of Checkpoint must be {_EVERY.expected}, got {short(self.every)}; 1 keeps "
                f"each round"
            )
            raise InvalidParameterError(msg)
        check_folder(self.path)
        if self._fit is not None:
            msg = (
                f"this Checkpoint keeps the rounds of another fit, which is under way, in "
                f"{self.path}; give every fit a Checkpoint and a path of its own"
            )
            raise CheckpointError(msg)
        self._fit, self._rounds, self._history, self._unsaved = fit, None, [], None

    def kept_geometry(self, problem: ResumableProblem) -> Any:
        """The geometry in its file, if there is one; it must be of this problem."""
        # Outside a fit nothing is kept: a search or a user builds it for a purpose of their own.
        return None if self._fit is None else self._geometry_file(problem).read()

    def on_geometry(self, problem: ResumableProblem, geometry: Any) -> None:
        if self._fit is not None and not self.geometry_path.exists():
            self._geometry_file(problem).write(geometry)

    def starting_point(self, problem: ResumableProblem) -> LoopProgress | None:
        """The rounds in the file, if there is one; it must be of this problem."""
        if self._fit is None:
            return None
        self._rounds = CheckpointFile(self.path, ROUNDS, problem, self._fit.round_parameters or {})
        progress: LoopProgress | None = self._rounds.read()
        if progress is not None:
            self._check_length(progress, self._fit.max_rounds)
        return progress

    def on_resume(self, history: Sequence[RoundRecord]) -> None:
        self._history = list(history)

    def __call__(self, round_: RoundRecord, state: Any) -> None:
        if self._rounds is None:
            msg = (
                "Checkpoint keeps the rounds of a fit on data in memory, got rounds outside such a "
                "fit; leave Checkpoint out"
            )
            raise InvalidParameterError(msg)
        self._history.append(round_)
        self._unsaved = state
        if round_.iteration % self.every == 0:
            self._keep(self._rounds, state)

    def on_fit_end(self, fit: Fit, error: BaseException | None) -> None:
        if fit is not self._fit:
            # One that was refused.
            return
        # After an error the state may be that of half a round.
        if self._rounds is not None and self._unsaved is not None and error is None:
            self._keep(self._rounds, self._unsaved)
        self._fit, self._rounds, self._history, self._unsaved = None, None, [], None

    def _geometry_file(self, problem: ResumableProblem) -> CheckpointFile:
        return CheckpointFile(self.geometry_path, GEOMETRY, problem)

    def _keep(self, file: CheckpointFile, state: Any) -> None:
        file.write(file.problem.saved_type(state, tuple(self._history)).converted(to_numpy))
        self._unsaved = None

    def _check_length(self, progress: LoopProgress, max_rounds: int) -> None:
        """Raise if the fit would end before the round that it is to go on from."""
        n_rounds = len(progress.history)
        if n_rounds > max_rounds:
            msg = (
                f"{self.path} keeps {n_rounds} rounds, and this fit has at most {max_rounds}; "
                f"allow as many, delete the file to start again, or give Checkpoint another path"
            )
            raise CheckpointError(msg)
