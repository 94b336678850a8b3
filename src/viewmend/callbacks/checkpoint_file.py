"""The file of a checkpoint: a result, and what it follows from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from viewmend.backend.namespace import to_numpy
from viewmend.callbacks.protocol import ResumableProblem
from viewmend.exceptions import CheckpointError
from viewmend.storage.archive import Document, read_archive, write_archive
from viewmend.storage.atomic import replacing
from viewmend.storage.errors import ModelFileError, expect
from viewmend.storage.tree import Reader, Vocabulary, Writer
from viewmend.storage.types import check_types


@dataclass(frozen=True, eq=False)
class CheckpointFile:
    """Where the result of a problem is kept, in NumPy arrays.

    The problem and the ``parameters`` it was solved with, as text, are kept with it by digests and
    names, and must be the same when it is read.
    """

    path: Path
    kind: str
    problem: ResumableProblem
    parameters: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _digests(self) -> dict[str, str]:
        """A few characters for each field of the problem that tell it from any other."""
        names = [each.name for each in fields(self.problem)]  # type: ignore[arg-type]
        return {name: _digest(getattr(self.problem, name)) for name in names}

    def write(self, result: Any) -> None:
        """Replace the file as a whole."""
        write = Writer(Vocabulary(self.problem.saved_records))
        about = {"parameters": write(dict(self.parameters)), "problem": write(self._digests)}
        document = Document(self.kind, about, {"result": write(result)}, write.arrays)
        with replacing(self.path) as stream:
            write_archive(stream, document)

    def read(self) -> Any:
        """The result, which must be of this problem; None where there is no file."""
        if not self.path.exists():
            return None
        with self._read_errors(), self.path.open("rb") as stream:
            document = read_archive(stream)
            expect(document.class_name == self.kind, "class", repr(self.kind), document.class_name)
            read = Reader(document.arrays, Vocabulary(self.problem.saved_records))
            about = {"parameters": dict[str, str], "problem": dict[str, str]}
            before = self._values(document.parameters, about, read)
        self._check_same(before["parameters"], before["problem"])
        with self._read_errors():
            saved = self._values(document.fitted, {"result": self.problem.saved_type}, read)
            result = saved["result"]
            _check_counted(getattr(result, "history", None))
            self.problem.check_saved(result)
        return result

    def _values(self, trees: Any, types: dict[str, Any], read: Reader) -> dict[str, Any]:
        expect(isinstance(trees, dict), "content", "an object", trees)
        expect(set(trees) == set(types), "keys", str(sorted(types)), sorted(trees))
        values = {name: read(tree) for name, tree in trees.items()}
        check_types(self.kind, values, types)
        return values

    def _check_same(self, parameters: Mapping[str, str], problem: Mapping[str, str]) -> None:
        changed, words = _differing(problem, self._digests), self.problem.given_by_user
        differences = (
            _changes(parameters, self.parameters)
            or list(dict.fromkeys(words[name] for name in words if name in changed))
            or [f"{name}, by another version of a library" for name in changed]
        )
        if differences:
            msg = (
                f"{self.path} keeps another fit than this one, different in "
                f"{'; '.join(differences)}. Delete the file to start again, give Checkpoint "
                f"another path, or fit as before"
            )
            raise CheckpointError(msg)

    @contextmanager
    def _read_errors(self) -> Iterator[None]:
        """Errors of the archive name the file and what to do."""
        try:
            yield
        except (ModelFileError, RecursionError) as error:
            # The archive's own remedy, after the semicolon, is that of a model.
            reason = str(error).partition("; ")[0]
            msg = (
                f"{self.path} is no checkpoint that can be read: {reason}. Delete the file to "
                f"start again, or give Checkpoint another path"
            )
            raise CheckpointError(msg) from error


def _check_counted(history: tuple[Any, ...] | None) -> None:
    """Raise unless the rounds of a loop are all there."""
    if history is None:
        return
    numbers = [round_.iteration for round_ in history]
    counted = len(numbers) > 0 and numbers == list(range(1, len(numbers) + 1))
    expect(counted, "rounds of the history", "counted from 1", numbers)


def _digest(value: Any) -> str:
    """Text that is the same for equal values only."""
    if value is None or isinstance(value, (int, float, str)):
        return repr(value)
    if isinstance(value, frozenset):
        return repr(sorted(value))
    if is_dataclass(value):
        return _joint(f"{each.name}={_digest(getattr(value, each.name))}" for each in fields(value))
    if isinstance(value, Mapping):
        return _joint(f"{key}={_digest(entry)}" for key, entry in value.items())
    if isinstance(value, (tuple, list)):
        return _joint(map(_digest, value))
    if issparse(value):
        return _digest((value.shape, value.data, value.indices, value.indptr))
    array = np.ascontiguousarray(to_numpy(value))
    content = hashlib.sha256(array.reshape(-1).view(np.uint8).data).hexdigest()
    return f"{array.dtype.str} {array.shape} {content}"


def _joint(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        f"{name}, which was {before.get(name, 'absent')} and is {now.get(name, 'absent')}"
        for name in _differing(before, now)
    ]


def _differing(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]
