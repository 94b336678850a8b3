"""Save fitted models to files and load them."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from sklearn.utils.validation import check_is_fitted

from viewmend.exceptions import InvalidParameterError, VersionWarning
from viewmend.models.base import TwoStepClassifier
from viewmend.models.search import LabelSearchCV
from viewmend.parameters import short
from viewmend.persistence.consistency import check_model
from viewmend.persistence.registry import LAYOUTS, VOCABULARY, FileLayout
from viewmend.storage.archive import Document, read_archive, write_archive
from viewmend.storage.atomic import check_folder, replacing
from viewmend.storage.errors import DAMAGED, ModelFileError, expect
from viewmend.storage.tree import Reader, Writer
from viewmend.storage.types import check_types
from viewmend.version import __version__


def save(model: TwoStepClassifier | LabelSearchCV, file: str | os.PathLike[str] | BinaryIO) -> None:
    """Save a fitted model to a file that `load` reads. The file contains no code.

    The same model gives the same bytes. An existing file is replaced only when the new one is
    complete. Callbacks are not saved.

    Parameters
    ----------
    model : AGFTIClassifier, MendClassifier, or LabelSearchCV
        The fitted model. For a search, its best estimator is saved.
    file : path, or binary file open for writing
        Where to write the model; usually a path that ends in ``.vm``.

    Raises
    ------
    NotFittedError
    InvalidParameterError
        If there is no folder for the file, a folder in its place, or no binary file.
    ModelFileError
        If a label or a parameter is not a number, string, boolean, date, or tuple of these.
    """
    if isinstance(file, (str, os.PathLike)):
        check_folder(Path(file))
    else:
        _check_binary(file, "write")
    document = describe(model)
    # What cannot be read again is better found now than by whoever loads it.
    rebuild(document)
    if not isinstance(file, (str, os.PathLike)):
        write_archive(file, document, compact=True)
        return
    with replacing(Path(file)) as stream:
        write_archive(stream, document, compact=True)


def load(file: str | os.PathLike[str] | BinaryIO) -> TwoStepClassifier:
    """Load a model that `save` wrote; safe for files from any source.

    Predictions, ``transduction_``, ``label_distributions_`` and ``history_`` are those of the
    model that was saved, bit for bit on the same machine.

    Parameters
    ----------
    file : path, or seekable binary file open for reading
        The file that `save` wrote.

    Returns
    -------
    AGFTIClassifier or MendClassifier

    Raises
    ------
    ModelFileError
        If the file is truncated, damaged, of another kind, or of another schema, such as that of
        version 0.1.
    TooLargeError
        If its arrays would fill the memory.

    Warns
    -----
    VersionWarning
        If another minor version of viewmend saved the model.
    """
    if not isinstance(file, (str, os.PathLike)):
        _check_binary(file, "read")
        return _load(file)
    if Path(file).is_dir():
        msg = f"{file} is a folder, and no model; pass a file that viewmend.save wrote"
        raise ModelFileError(msg)
    with Path(file).open("rb") as stream:
        try:
            return _load(stream)
        except ModelFileError as error:
            msg = f"{file}: {error}"
            raise ModelFileError(msg) from error


def _check_binary(file: object, method: str) -> None:
    """Refuse what is neither a path nor a binary file, before the work."""
    if isinstance(file, io.TextIOBase) or not hasattr(file, method):
        msg = (
            f"file must be a path, or a file open in binary mode, got {short(file)} of type "
            f"{type(file).__name__}; pass a path such as 'model.vm'"
        )
        raise InvalidParameterError(msg)


def _load(stream: BinaryIO) -> TwoStepClassifier:
    document = read_archive(stream)
    written = document.versions["viewmend"]
    if written.split(".")[:2] != __version__.split(".")[:2]:
        msg = (
            f"the model was saved by viewmend {written} and is loaded by {__version__}, which may "
            f"predict other classes; fit again with this version, or use viewmend {written}"
        )
        warnings.warn(msg, VersionWarning, stacklevel=3)
    return rebuild(document)


def describe(model: TwoStepClassifier | LabelSearchCV) -> Document:
    """A fitted model as trees and arrays."""
    check_is_fitted(model)
    if isinstance(model, LabelSearchCV):
        return describe(model.best_estimator_)
    name = type(model).__name__
    layout = LAYOUTS.get(name)
    if layout is None or layout.model is not type(model):
        msg = f"model must be one of {sorted(LAYOUTS)} or a LabelSearchCV of them, got {name}"
        raise ModelFileError(msg)
    given = model.get_params(deep=False)
    # By scikit-learn's rule for what a fit leaves behind.
    fitted = {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_")}
    write = Writer(VOCABULARY)
    parameters = _written(name, given, write)
    return Document(name, parameters, _written(name, fitted, write), write.arrays)


def _written(owner: str, values: Mapping[str, Any], write: Writer) -> dict[str, Any]:
    trees = {}
    for name, value in values.items():
        try:
            trees[name] = write(value)
        except ModelFileError as error:
            msg = f"{name} of {owner}: {error}"
            raise ModelFileError(msg) from error
    return trees


def rebuild(document: Document) -> TwoStepClassifier:
    """The model that trees and arrays describe, if they do."""
    name = document.class_name
    known = isinstance(name, str) and name in LAYOUTS
    expect(known, "class", f"one of {sorted(LAYOUTS)}", name)
    layout, read = LAYOUTS[name], Reader(document.arrays, VOCABULARY)
    try:
        model = _with_parameters(layout, _values("parameters", document.parameters, read))
        _set_fitted(model, layout, _values("fitted", document.fitted, read))
    except RecursionError as error:
        msg = f"trees of a model file must be shallow, got one too deep to read; {DAMAGED}"
        raise ModelFileError(msg) from error
    unused = sorted(set(document.arrays) - read.used)
    expect(not unused, "arrays", "named by the trees", unused)
    try:
        check_model(model)
    except ModelFileError:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        # So strange that it could not even be compared.
        msg = f"the parts of a model must fit together, got others ({error}); {DAMAGED}"
        raise ModelFileError(msg) from error
    return model


def _values(what: str, trees: Any, read: Reader) -> dict[str, Any]:
    expect(isinstance(trees, dict), what, "an object", trees)
    return {name: read(tree) for name, tree in trees.items()}


def _with_parameters(layout: FileLayout, values: Mapping[str, Any]) -> TwoStepClassifier:
    model = layout.model()
    known = sorted(model.get_params(deep=False))
    expect(sorted(values) == known, "parameters", str(known), sorted(values))
    model.set_params(**values)
    try:
        model.validate_parameters()
    except InvalidParameterError as error:
        msg = f"parameters of a model file must be valid, got {error}; {DAMAGED}"
        raise ModelFileError(msg) from error
    return model


def _set_fitted(model: TwoStepClassifier, layout: FileLayout, values: Mapping[str, Any]) -> None:
    unknown = sorted(set(values) - set(layout.fitted))
    absent = sorted(set(layout.fitted) - set(values) - layout.optional)
    expect(not unknown, "fitted attributes", f"among {sorted(layout.fitted)}", unknown)
    expect(not absent, "fitted attributes", "complete", f"none of {absent}")
    check_types(type(model).__name__, values, layout.fitted)
    for name, value in values.items():
        setattr(model, name, value)
