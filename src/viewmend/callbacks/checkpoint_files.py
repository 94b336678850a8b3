"""Files of checkpoints: an archive of `viewmend.storage` with rounds instead of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewmend.callbacks.protocol import Progress, ResumableProblem
from viewmend.exceptions import CheckpointError
from viewmend.storage.archive import Document, read_archive, write_archive
from viewmend.storage.atomic import replacing
from viewmend.storage.errors import ModelFileError, expect
from viewmend.storage.tree import Reader, Vocabulary, Writer
from viewmend.storage.types import check_types

__all__ = ["Kept", "check_shapes", "read_kept", "write_kept"]

# In the place of the class of a model.
KIND = "Checkpoint"


@dataclass(frozen=True, eq=False)
class Kept:
    """The content of a file.

    Attributes
    ----------
    parameters, problem : dict of str
        What the rounds depend on, by name of the parameter and of the field of the problem.
    progress : Progress
        Of NumPy arrays.
    """

    parameters: dict[str, str]
    problem: dict[str, str]
    progress: Progress


def write_kept(path: Path, kept: Kept, problem: ResumableProblem) -> None:
    """Replace the file."""
    write = Writer(Vocabulary(problem.progress_records))
    about = {"parameters": write(kept.parameters), "problem": write(kept.problem)}
    document = Document(KIND, about, {"progress": write(kept.progress)}, write.arrays)
    with replacing(path) as stream:
        write_archive(stream, document)


def read_kept(path: Path, problem: ResumableProblem) -> Kept:
    """What a file holds.

    Raises
    ------
    CheckpointError
        If it is truncated, damaged, or of another kind.
    """
    with path.open("rb") as stream, _told_with(path):
        return _kept(read_archive(stream), problem)


def check_shapes(path: Path, progress: Progress, problem: ResumableProblem) -> None:
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


def _kept(document: Document, problem: ResumableProblem) -> Kept:
    expect(document.class_name == KIND, "class", repr(KIND), document.class_name)
    read = Reader(document.arrays, Vocabulary(problem.progress_records))
    text = dict[str, str]
    about = _values(document.parameters, {"parameters": text, "problem": text}, read)
    values = _values(document.fitted, {"progress": problem.progress_type}, read)
    numbers = [round_.iteration for round_ in values["progress"].history]
    counted = len(numbers) > 0 and numbers == list(range(1, len(numbers) + 1))
    expect(counted, "rounds of the history", "counted from 1", numbers)
    return Kept(**about, **values)


def _values(trees: Any, types: dict[str, Any], read: Reader) -> dict[str, Any]:
    expect(isinstance(trees, dict), "content", "an object", trees)
    expect(set(trees) == set(types), "keys", str(sorted(types)), sorted(trees))
    values = {name: read(tree) for name, tree in trees.items()}
    check_types(KIND, values, types)
    return values
