"""Files of checkpoints: the archive of `viewmend.persistence` with rounds instead of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from viewmend.core import Problem, Round, State
from viewmend.core.state import Progress
from viewmend.exceptions import CheckpointError
from viewmend.persistence.archive import Document, read_archive, write_archive
from viewmend.persistence.errors import ModelFileError, expect
from viewmend.persistence.registry import check_types
from viewmend.persistence.replacing import replacing
from viewmend.persistence.tree import Reader, Writer

__all__ = ["Kept", "check_shapes", "read_kept", "write_kept"]

# In the place of the class of a model.
KIND = "Checkpoint"

_ABOUT: dict[str, Any] = {"parameters": dict[str, str], "problem": dict[str, str]}
_PROGRESS: dict[str, Any] = {
    "history": tuple[Round, ...],
    **{field.name: np.ndarray for field in fields(State)},
    "eta": float,
    "norm_G": float,
}


@dataclass(frozen=True, eq=False)
class Kept:
    """The content of a file.

    Attributes
    ----------
    parameters, problem : dict of str
        What the rounds depend on, by name of the parameter and of the field of `Problem`.
    progress : Progress
        Of NumPy arrays.
    """

    parameters: dict[str, str]
    problem: dict[str, str]
    progress: Progress


def write_kept(path: Path, kept: Kept) -> None:
    """Replace the file."""
    write = Writer()
    about = {"parameters": write(kept.parameters), "problem": write(kept.problem)}
    state = {name: write(value) for name, value in vars(kept.progress.state).items()}
    history = {"history": write(kept.progress.history)}
    document = Document(KIND, about, history | state, write.arrays)
    with replacing(path) as stream:
        write_archive(stream, document)


def read_kept(path: Path) -> Kept:
    """What a file holds.

    Raises
    ------
    CheckpointError
        If it is truncated, damaged, or of another kind.
    """
    with path.open("rb") as stream, _told_with(path):
        return _kept(read_archive(stream))


def check_shapes(path: Path, state: State, problem: Problem) -> None:
    """Raise unless the arrays are those of the problem: compiled code does not look at bounds."""
    (n_views, n, m), n_classes = problem.Z.shape, problem.Y.shape[1]
    shapes = {
        **dict.fromkeys(("Z", "G", "W"), (n_views, n, m)),
        "P": (n, m),
        "F": (n, n_classes),
        "Q": (m, n_classes),
        "T": (n_views, m, m),
        "alpha": (n_views,),
    }
    with _told_with(path):
        for name, shape in shapes.items():
            array = getattr(state, name)
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


def _kept(document: Document) -> Kept:
    expect(document.class_name == KIND, "class", repr(KIND), document.class_name)
    read = Reader(document.arrays)
    about = _values(document.parameters, _ABOUT, read)
    values = _values(document.fitted, _PROGRESS, read)
    history = values.pop("history")
    numbers = [round_.iteration for round_ in history]
    counted = len(history) > 0 and numbers == list(range(1, len(history) + 1))
    expect(counted, "rounds of the history", "counted from 1", numbers)
    return Kept(**about, progress=Progress(State(**values), history))


def _values(trees: Any, types: Mapping[str, Any], read: Reader) -> dict[str, Any]:
    expect(isinstance(trees, dict), "content", "an object", trees)
    expect(set(trees) == set(types), "keys", str(sorted(types)), sorted(trees))
    values = {name: read(tree) for name, tree in trees.items()}
    check_types(KIND, values, types)
    return values
