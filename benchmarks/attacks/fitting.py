"""Small tasks, the two methods with all their digits, and the settings of threads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from viewmend import AGFTIClassifier, MendClassifier
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.datasets.task import Task

MODELS: dict[str, Callable[..., Any]] = {
    "Mend": MendClassifier,
    # A tolerance that small data reaches, so that no warning comes.
    "AGF-TI": lambda **parameters: AGFTIClassifier(random_state=0, tol=1e-3, **parameters),
    "AGF-TI as published": lambda **parameters: AGFTIClassifier.from_paper(
        random_state=0, tol=1e-2, **parameters
    ),
}


def make_task(n_samples: int, seed: int, n_features: tuple[int, int] = (15, 60)) -> Task:
    """Two views, with a third of the rows hidden and a tenth of the samples labelled.

    The neighbours of the first are searched in a tree, those of the second by products.
    """
    blobs = make_multiview_blobs(n_samples, n_features=n_features, random_state=seed)
    return hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.1, random_state=seed)


def make_model(method: str, **parameters: Any) -> Any:
    """A method by its name."""
    return MODELS[method](**parameters)


def digest(model: Any) -> str:
    """Of every bit of what a fit found of its samples."""
    bits = hashlib.sha256()
    for array in (model.label_distributions_, model.view_weights_, model.confidence_):
        bits.update(np.ascontiguousarray(array).tobytes())
    return bits.hexdigest()


def blas_threads() -> list[int]:
    """Threads of the libraries of linear algebra."""
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]
