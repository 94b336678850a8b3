"""Complete multi-view data from NumPy archives."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from viewmend.data.complete import (
    MultiViewDataset,
    check_complete_views,
    check_integer_labels,
)
from viewmend.exceptions import InvalidViewsError

__all__ = ["load_npz", "read_npz"]


def read_npz(path: str | Path) -> dict[str, np.ndarray]:
    """All arrays of a NumPy archive by their names; objects, which could hold code, are refused."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    # NumPy's words for pickles, and zipfile's for what is no archive.
    except (ValueError, zipfile.BadZipFile, EOFError, AttributeError) as error:
        msg = (
            f"{path} must be a NumPy archive of plain arrays ({error}); save it with "
            "np.savez_compressed(path, y=y, view_0=..., ...)"
        )
        raise InvalidViewsError(msg) from error


def load_npz(path: str | Path) -> MultiViewDataset:
    """Read a NumPy archive with the arrays ``view_0`` ... ``view_{V-1}`` and ``y``.

    Parameters
    ----------
    path : str or Path
        Archive whose views are (n_samples, n_features_v) of any real dtype and whose ``y``
        (n_samples,) holds non-negative integers.

    Returns
    -------
    MultiViewDataset
        Float64 views; named after the file.
    """
    path = Path(path)
    content = read_npz(path)
    keys = _view_keys(content, path)
    views = check_complete_views([content[key] for key in keys])
    return MultiViewDataset(
        name=path.stem,
        views=views,
        y=check_integer_labels(content["y"], len(views[0])),
        view_names=tuple(keys),
        description=f"{len(keys)} views read from {path.name}",
    )


def _view_keys(content: Mapping[str, np.ndarray], path: Path) -> list[str]:
    numbers = sorted(int(key[5:]) for key in content if re.fullmatch(r"view_(0|[1-9]\d*)", key))
    if "y" not in content or not numbers or numbers != list(range(len(numbers))):
        msg = (
            f"{path} must hold y and view_0, view_1, ... without a break but holds "
            f"{_listed(content)}; save it with np.savez_compressed(path, y=y, view_0=..., ...)"
        )
        raise InvalidViewsError(msg)
    return [f"view_{v}" for v in numbers]


def _listed(content: Mapping[str, np.ndarray]) -> str:
    return ", ".join(sorted(content)) or "nothing"
