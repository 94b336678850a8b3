"""Rounds of AGF-TI that outlive the process, and fits that go on from them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.backend.namespace import to_numpy
from viewmend.callbacks.protocol import Fit, LoopProgress, ResumableProblem, RoundRecord
from viewmend.exceptions import CheckpointError, InvalidParameterError
from viewmend.storage.archive import Document, read_archive, write_archive
from viewmend.storage.atomic import check_folder, replacing
from viewmend.storage.errors import ModelFileError, expect
from viewmend.storage.tree import Reader, Vocabulary, Writer
from viewmend.storage.types import check_types

# In the place of the class of a model in the archive.
KIND = "Checkpoint"


@dataclass(frozen=True, eq=False)
class SavedProgress:
    """The content of a file: rounds, in NumPy arrays, and what they depend on.

    That is told by the names of parameters, and of fields of the problem.
    """

    parameters: dict[str, str]
    problem: dict[str, str]
    progress: LoopProgress


class Checkpoint:
    """Keep the rounds of a fit of `AGFTIClassifier` in a file, and go on from there.

    A fit that finds the file goes on after the last round that it holds, to the same result, bit
    for bit on the same machine, as if nothing had happened; also when the last one had ended, so
    that a larger ``max_iter`` or a smaller ``tol`` add rounds. A fit of other data, or with other
    parameters that matter to the rounds, is refused. The file is replaced as a whole: kill the
    process at any time. It holds no code, and it stays when the fit has ended.

    Anchors and graphs, which come before the rounds, are computed again; give the estimator a
    ``random_state``. The stages of `MendClassifier`, less than a third of its time, are not worth
    a file.

    Parameters
    ----------
    path : path
    every : int, default=1
        Rounds between two files; the last round is always saved.
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 1) -> None:
        self.path = Path(path)
        self.every = every
        self._parameters: dict[str, str] = {}
        self._problem: ResumableProblem | None = None
        self._digests: dict[str, str] = {}
        self._history: list[RoundRecord] = []
        self._unsaved: Any = None

    def on_fit_begin(self, fit: Fit) -> None:
        if fit.round_parameters is None:
            msg = (
                f"Checkpoint keeps the rounds of AGFTIClassifier, got a fit of {fit.name}; leave "
                f"it out of set_callbacks"
            )
            raise InvalidParameterError(msg)
        if self.every < 1:
            msg = f"every of Checkpoint must be at least 1, got {self.every}; 1 keeps each round"
            raise InvalidParameterError(msg)
        check_folder(self.path)
        self._parameters = dict(fit.round_parameters)
        self._problem, self._digests, self._history, self._unsaved = None, {}, [], None

    def starting_point(self, problem: ResumableProblem) -> LoopProgress | None:
        """The rounds in the file, if there is one; it must be of this problem."""
        self._problem, self._digests = problem, _digests(problem)
        if not self.path.exists():
            return None
        with self.path.open("rb") as stream, self._read_errors():
            saved = _progress_of(read_archive(stream), problem)
        self._check_same(saved, problem)
        with self._read_errors():
            _check_shapes(saved.progress, problem)
        return saved.progress

    def on_resume(self, history: Sequence[RoundRecord]) -> None:
        self._history = list(history)

    def __call__(self, round_: RoundRecord, state: Any) -> None:
        if self._problem is None:
            msg = (
                "Checkpoint keeps the rounds of a fit of AGFTIClassifier on data in memory, got "
                "others, of which it does not know the problem; leave it out here"
            )
            raise InvalidParameterError(msg)
        self._history.append(round_)
        self._unsaved = state
        if round_.iteration % self.every == 0:
            self._keep(self._problem, state)

    def on_fit_end(self, _fit: Fit, error: BaseException | None) -> None:
        # After an error the state may be that of half a round.
        if self._problem is not None and self._unsaved is not None and error is None:
            self._keep(self._problem, self._unsaved)
        self._problem, self._history, self._unsaved = None, [], None

    def _check_same(self, saved: SavedProgress, problem: ResumableProblem) -> None:
        changed = _differing(saved.problem, self._digests)
        differences = (
            _changes(saved.parameters, self._parameters)
            or [words for name, words in problem.given_by_user.items() if name in changed]
            or [f"{name}, by another version of a library" for name in changed]
        )
        if differences:
            msg = (
                f"{self.path} keeps another fit than this one, different in "
                f"{'; '.join(differences)}. Delete the file to begin anew, give Checkpoint another "
                f"path, or fit as before"
            )
            raise CheckpointError(msg)

    def _keep(self, problem: ResumableProblem, state: Any) -> None:
        progress = problem.progress_type(state, tuple(self._history)).converted(to_numpy)
        write = Writer(Vocabulary(problem.progress_records))
        about = {"parameters": write(self._parameters), "problem": write(self._digests)}
        document = Document(KIND, about, {"progress": write(progress)}, write.arrays)
        with replacing(self.path) as stream:
            write_archive(stream, document)
        self._unsaved = None

    @contextmanager
    def _read_errors(self) -> Iterator[None]:
        """Errors of the archive name the file and what to do."""
        try:
            yield
        except (ModelFileError, RecursionError) as error:
            msg = (
                f"{self.path} is no checkpoint that can be read: {error}. Delete the file to begin "
                f"anew, or give Checkpoint another path"
            )
            raise CheckpointError(msg) from error


def _digests(problem: Any) -> dict[str, str]:
    """A few characters for each field of a problem that tell it from any other."""
    return {field.name: _digest(getattr(problem, field.name)) for field in fields(problem)}


def _digest(value: Any) -> str:
    if value is None or isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, frozenset):
        return repr(sorted(value))
    array = np.ascontiguousarray(to_numpy(value))
    content = hashlib.sha256(array.reshape(-1).view(np.uint8).data).hexdigest()
    return f"{array.dtype.str} {array.shape} {content}"


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        f"{name}, which was {before.get(name, 'absent')} and is {now.get(name, 'absent')}"
        for name in _differing(before, now)
    ]


def _differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def _check_shapes(progress: LoopProgress, problem: ResumableProblem) -> None:
    """Raise unless the arrays are those of the problem: compiled code does not look at bounds."""
    for name, shape in problem.state_shapes().items():
        array = getattr(progress.state, name)
        expect(array.shape == shape, f"shape of {name}", str(shape), array.shape)
        expect(array.dtype.kind == "f", f"dtype of {name}", "a float", array.dtype.str)


def _progress_of(document: Document, problem: ResumableProblem) -> SavedProgress:
    expect(document.class_name == KIND, "class", repr(KIND), document.class_name)
    read = Reader(document.arrays, Vocabulary(problem.progress_records))
    text = dict[str, str]
    about = _values(document.parameters, {"parameters": text, "problem": text}, read)
    values = _values(document.fitted, {"progress": problem.progress_type}, read)
    numbers = [round_.iteration for round_ in values["progress"].history]
    counted = len(numbers) > 0 and numbers == list(range(1, len(numbers) + 1))
    expect(counted, "rounds of the history", "counted from 1", numbers)
    return SavedProgress(**about, **values)


def _values(trees: Any, types: dict[str, Any], read: Reader) -> dict[str, Any]:
    expect(isinstance(trees, dict), "content", "an object", trees)
    expect(set(trees) == set(types), "keys", str(sorted(types)), sorted(trees))
    values = {name: read(tree) for name, tree in trees.items()}
    check_types(KIND, values, types)
    return values
