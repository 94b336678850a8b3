"""AnnData and MuData as views: matrices with names of observations and variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from viewmend.data.given_views import GivenViews, column_names, names_in
from viewmend.exceptions import InvalidViewsError

# Name of the matrix of an AnnData itself, beside those of its ``obsm``.
MAIN_MATRIX = "X"

# Endings of what `viewmend.data.write_back` writes to ``obsm``; the second was that of 0.1.
WRITTEN_BACK = ("probabilities", "shares")


def anndata_views(adata: Any) -> GivenViews:
    """Every matrix of numbers in ``obsm`` is a view; without any, ``X`` is the only one.

    What `viewmend.data.write_back` left in ``obsm`` is no view: it comes from labels.
    """
    _check_in_memory(adata, "the AnnData")
    arrays = {
        key: entry
        for key, entry in adata.obsm.items()
        if _is_matrix_of_numbers(entry) and not is_written_back(adata, key)
    }
    found = {key: names_in(entry) for key, entry in arrays.items()}
    if not arrays:
        arrays = {MAIN_MATRIX: _main_matrix(adata, "the AnnData, which has no numbers in obsm")}
        found = {MAIN_MATRIX: column_names(adata.var_names)}
    columns = {name: names for name, names in found.items() if names is not None}
    return GivenViews(arrays, columns, adata.obs_names, has_names=True)


def mudata_views(mdata: Any) -> GivenViews:
    """The matrix ``X`` of every modality is a view; observations that it lacks are missing."""
    if getattr(mdata, "axis", 0) != 0:
        msg = (
            f"a MuData must have modalities that share observations (axis=0), got "
            f"axis={mdata.axis}; fit its modalities one by one"
        )
        raise InvalidViewsError(msg)
    arrays, observed, columns = {}, [], {}
    for name, adata in mdata.mod.items():
        _check_in_memory(adata, f"modality {name!r}")
        places = _places(adata, name, mdata.obs_names)
        matrix = _main_matrix(adata, f"modality {name!r}")
        in_order = np.array_equal(places, np.arange(adata.n_obs))
        arrays[name] = matrix if in_order else matrix[np.maximum(places, 0)]
        observed.append(places >= 0)
        columns[name] = column_names(adata.var_names)
    named = {name: names for name, names in columns.items() if names is not None}
    seen = np.column_stack(observed) if observed else None
    return GivenViews(arrays, named, mdata.obs_names, seen, has_names=True)


def _places(adata: Any, name: str, samples: Any) -> np.ndarray:
    """Row of every sample in a modality, (n_samples,), -1 where it has none."""
    for what, index in ((f"modality {name!r}", adata.obs_names), ("the MuData", samples)):
        if not index.is_unique:
            twice = index[index.duplicated()][0]
            msg = (
                f"{what} must have every observation once, but has {twice!r} more than once; call "
                f"obs_names_make_unique()"
            )
            raise InvalidViewsError(msg)
    places = np.asarray(adata.obs_names.get_indexer(samples))
    if np.sum(places >= 0) < adata.n_obs:
        msg = (
            f"the MuData must know the observations of all modalities, but lacks some of "
            f"{name!r}; call mdata.update()"
        )
        raise InvalidViewsError(msg)
    return places


def _main_matrix(adata: Any, title: str) -> Any:
    if adata.X is None:
        msg = f"{title} must have a matrix X, but it is None; name another matrix, as in use_rep="
        raise InvalidViewsError(msg)
    return adata.X


def _check_in_memory(adata: Any, title: str) -> None:
    if getattr(adata, "isbacked", False):
        msg = f"{title} must be in memory but lies in a file; pass to_memory() of it"
        raise InvalidViewsError(msg)


def _is_matrix_of_numbers(entry: Any) -> bool:
    """Whether an entry of ``obsm`` has columns that all are numbers."""
    types = entry.dtypes if hasattr(entry, "dtypes") else [getattr(entry, "dtype", np.dtype("O"))]
    kinds = {getattr(dtype, "kind", "O") for dtype in types}
    return len(entry.shape) == 2 and entry.shape[1] > 0 and kinds <= set("biuf")


def is_written_back(adata: Any, key: str) -> bool:
    """Whether an entry of ``obsm`` holds probabilities of classes that a model found."""
    name, _, ending = key.rpartition("_")
    summary = adata.uns.get(name) if ending in WRITTEN_BACK else None
    return isinstance(summary, dict) and "classes" in summary and "model" in summary
