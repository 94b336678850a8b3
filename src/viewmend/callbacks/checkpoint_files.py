"""Files of checkpoints: an archive of `viewmend.storage` with rounds instead of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewmend.callbacks.protocol import LoopProgress, ResumableProblem
from viewmend.exceptions import CheckpointError
from viewmend.storage.archive import Document, read_archive, write_archive
from viewmend.storage.atomic import replacing
from viewmend.storage.errors import ModelFileError, expect
from viewmend.storage.tree import Reader, Vocabulary, Writer
from viewmend.storage.types import check_types

__all__ = ["SavedProgress", "check_shapes", "read_progress", "write_progress"]

# In the place of the class of a model.
KIND = "Checkpoint"


@dataclass(frozen=True, eq=False)
class SavedProgress:
    """The content of a file.

    Attributes
    ----------
    parameters, problem : dict of str
        What the rounds depend on, by name of the parameter and of the field of the problem.
    progress : LoopProgress
        Of NumPy arrays.
    """

    parameters: dict[str, str]
    problem: dict[str, str]
    progress: LoopProgress


def write_progress(path: Path, saved: SavedProgress, problem: ResumableProblem) -> None:
    """Replace the file."""
    write = Writer(Vocabulary(problem.progress_records))
    about = {"parameters": write(saved.parameters), "problem": write(saved.problem)}
    document = Document(KIND, about, {"progress": write(saved.progress)}, write.arrays)
    with replacing(path) as stream:
        write_archive(stream, document)


def read_progress(path: Path, problem: ResumableProblem) -> SavedProgress:
    """What a file holds.

    Raises
    ------
    CheckpointError
        If it is truncated, damaged, or of another kind.
    """
    with path.open("rb") as stream, _told_with(path):
        return _progress_of(read_archive(stream), problem)


def check_shapes(path: Path, progress: LoopProgress, problem: ResumableProblem) -> None:
    """Raise unless the arrays are those of the problem: compiled code does not look at bounds."""
    with _told_with(path):
        for name, shape in problem.state_shapes().items():
            array = getattr(progress.state, name)
            expect(array.shape == shape, f"shape of {name}", str(shape), array.shape)
            expect(array.dtype.kind == "f", f"dtype of {name}", "a float", array.dtype.str)


@contextmanager
def _told_with(path: Path) -> Iterator[None]:
    """Errors of the archive name the file and what to do."""
    try:
        yield
    except (ModelFileError, RecursionError) as error:
        msg = (
            f"{path} is no checkpoint that can be read: {error}. Delete the file to begin anew, or "
            f"give Checkpoint another path"
        )
        raise CheckpointError(msg) from error


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
