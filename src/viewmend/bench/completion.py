"""Views completed by deep matrix factorisation, once per mask and kept on disk.

Eleven of the paper's methods need complete views and share one completion per run; it takes longer
than most of them. It knows neither labels nor, but for rounding, the order of the rows, so the
protocols share it too.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from viewmend.backend.threads import limited_threads
from viewmend.bench.protocols import observed_pairs
from viewmend.core.common.scaling import unit_rows
from viewmend.data.container import MultiViewData
from viewmend.datasets.catalogue import digest
from viewmend.impute import DeepMatrixFactorization
from viewmend.storage.atomic import replacing
from viewmend.storage.locks import wait_for_lock

Made = TypeVar("Made")

# What reading a file that is not whole may raise.
BROKEN = (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile)


@dataclass(frozen=True, eq=False)
class Completion:
    """Complete views, in the order of the source's rows."""

    # Unit rows where observed, as the imputer made them elsewhere.
    data: MultiViewData
    # How long that took when it was made, on one thread.
    seconds: float
    # Names of the warnings on the way, sorted.
    warned: tuple[str, ...]


class FixedCompletion(BaseEstimator):
    """An imputer that returns a completion made before, for the samples it was made of."""

    def __init__(self, completed: MultiViewData) -> None:
        self.completed = completed

    def __sklearn_clone__(self) -> FixedCompletion:
        # It holds no state, and the views are large.
        return self

    def fit_transform(self, _data: object, _y: object = None) -> MultiViewData:
        """The completion, whatever the data."""
        return self.completed


def completed(
    source: MultiViewData, missing: str, rate: float, seed: int, cache_dir: str | Path
) -> Completion:
    """Complete the views of a mask, or read what was completed before.

    Of several processes that want the same completion one makes it and the others wait; one that
    is killed leaves nothing behind that they could mistake for a whole one. The true classes of the
    source are not given to the imputer; ``missing`` is a row of
    `viewmend.datasets.MISSING_PROTOCOLS`, ``seed`` that of the mask and of the imputer.
    """
    observed = observed_pairs(source, missing, rate, seed)
    given = _masked_unit_rows(source, observed)
    imputer = imputer_of(np.unique(source.required_labels()).size, seed)
    path = Path(cache_dir) / "completions" / f"{_digest(source, observed, imputer)}.npz"
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.with_suffix(".lock")):
        try:
            return _read(path, given)
        except BROKEN:
            _write(path, given, _complete(given, imputer))
    return _read(path, given)


def imputer_of(n_classes: int, seed: int) -> DeepMatrixFactorization:
    """Deep matrix factorisation with the sizes of the paper."""
    return DeepMatrixFactorization(
        n_components=n_classes, n_hidden=10 * n_classes, random_state=seed
    )


def _masked_unit_rows(data: MultiViewData, observed: np.ndarray) -> MultiViewData:
    views = tuple(
        np.where(seen[:, None], unit_rows(view), np.nan)
        for view, seen in zip(data.views, observed.T, strict=True)
    )
    return replace(data, views=views, observed=observed, y=None)


def _complete(given: MultiViewData, imputer: DeepMatrixFactorization) -> Completion:
    with limited_threads(1):
        data, seconds, warned = timed(lambda: imputer.fit_transform(given))
    return Completion(data, seconds, tuple(sorted(warned)))


def timed(work: Callable[[], Made]) -> tuple[Made, float, set[str]]:
    """What a piece of work makes, the seconds it takes, and the names of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        made = work()
        seconds = time.perf_counter() - start
    return made, seconds, {warning.category.__name__ for warning in caught}


def _digest(source: MultiViewData, observed: np.ndarray, imputer: DeepMatrixFactorization) -> str:
    """Stands for all that the completion depends on."""
    settings = json.dumps(imputer.get_params(), sort_keys=True)
    # Parameters do not tell one implementation from the next.
    made_by = f"{type(imputer).__name__} {imputer.version}"
    found = hashlib.blake2b(f"{digest(source)} {made_by} {settings}".encode(), digest_size=8)
    found.update(np.packbits(observed).data)
    return found.hexdigest()


def _write(path: Path, given: MultiViewData, completion: Completion) -> None:
    """Keep the rows that are not as they were given; the file is whole or not there."""
    warned = np.array(completion.warned, dtype=np.str_)
    arrays: dict[str, Any] = {"seconds": completion.seconds, "warned": warned}
    for v, (before, after) in enumerate(zip(given.views, completion.data.views, strict=True)):
        filled = np.flatnonzero(~np.all(before == after, axis=1))
        # The imputer's own precision.
        arrays |= {f"rows_{v}": filled, f"fill_{v}": after[filled].astype(np.float32)}
    with replacing(path) as file:
        np.savez(file, **arrays)


def _read(path: Path, given: MultiViewData) -> Completion:
    # Of a file that is not whole NumPy would leave the handle open.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        views = tuple(view.copy() for view in given.views)
        for v, view in enumerate(views):
            view[stored[f"rows_{v}"]] = stored[f"fill_{v}"]
        data = replace(given, views=views, observed=np.ones_like(given.observed))
        return Completion(data, float(stored["seconds"]), tuple(stored["warned"].tolist()))


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock that the end of the process frees, however it ends."""
    with path.open("w") as file:
        wait_for_lock(file.fileno())
        yield
