"""Views from AnnData and MuData, and results back into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from viewmend.data.annotated import MAIN_MATRIX, WRITTEN_BACK
from viewmend.data.arrays import as_table
from viewmend.data.class_names import class_texts
from viewmend.data.container import MultiViewData
from viewmend.data.input_arrays import view_title, width
from viewmend.data.joining import all_ids, check_room, column_labels, identifiers, join
from viewmend.data.results import ids_of_fit, result_frame
from viewmend.exceptions import InvalidLabelsError, InvalidViewsError
from viewmend.parameters import short
from viewmend.protocols import FittedClassifier

if TYPE_CHECKING:
    import pandas as pd


def from_mudata(
    mdata: Any,
    labels: str | None = None,
    use_rep: str | Mapping[str, str] | None = None,
    *,
    unlabelled: Any = None,
    like: MultiViewData | None = None,
) -> MultiViewData:
    """One view per modality; observations that are not in a modality do not have this view.

    Parameters
    ----------
    mdata : MuData
        Its modalities must share observations (``axis=0``).
    labels : str, optional
        Column of labels in ``mdata.obs`` or, if it is not there, in the ``obs`` of the modalities.
    use_rep : str or dict of modality to str, optional
        Entry of ``obsm`` to use in place of the matrix ``X``, such as "X_pca". Modalities that a
        dict leaves out use ``X``.
    unlabelled : optional
        Value of ``labels`` that means no label, such as "Unknown"; empty cells always do.
    like : MultiViewData, optional
        Data that a model was fitted on: variables are put in the same order.

    Returns
    -------
    MultiViewData
        Samples in the order of ``mdata.obs_names``.
    """
    if not hasattr(mdata, "mod") or getattr(mdata, "axis", 0) != 0:
        got = f"axis={mdata.axis}" if hasattr(mdata, "mod") else f"a {type(mdata).__name__}"
        msg = (
            f"from_mudata needs a MuData whose modalities share observations (axis=0), got {got}; "
            f"use from_anndata for an AnnData"
        )
        raise InvalidViewsError(msg)
    keys = _representations(list(mdata.mod), use_rep)
    sources = {name: (adata, keys[name]) for name, adata in mdata.mod.items()}
    return _joined(mdata, sources, labels, unlabelled, like)


def from_anndata(
    adata: Any,
    views: Sequence[str] | Mapping[str, str],
    labels: str | None = None,
    *,
    unlabelled: Any = None,
    like: MultiViewData | None = None,
) -> MultiViewData:
    """One view per named matrix of an AnnData; a row of NaN is a missing view.

    Parameters
    ----------
    adata : AnnData
        The container of the matrices.
    views : sequence of str, or dict of view name to str
        Entries of ``adata.obsm``; "X" is the matrix ``adata.X``.
    labels, unlabelled, like
        As in `from_mudata`; labels are a column of ``adata.obs``.

    Returns
    -------
    MultiViewData
        Samples in the order of ``adata.obs_names``.
    """
    if not hasattr(adata, "obsm") or hasattr(adata, "mod"):
        msg = (
            f"from_anndata needs an AnnData, got a {type(adata).__name__}; use from_mudata for a "
            f"MuData and from_frames for frames"
        )
        raise InvalidViewsError(msg)
    keys = views if isinstance(views, Mapping) else {key: key for key in views}
    if isinstance(views, str) or not keys:
        msg = (
            f"views must be a list or dict of at least one entry of obsm, got {views!r}; choose "
            f"among {[MAIN_MATRIX, *adata.obsm]}, as in views=['X_pca']"
        )
        raise InvalidViewsError(msg)
    sources = {name: (adata, key) for name, key in keys.items()}
    return _joined(adata, sources, labels, unlabelled, like)


def write_back(
    container: Any,
    model: FittedClassifier,
    ids: Sequence[Any] | None = None,
    *,
    new: Any = None,
    key: str = "viewmend",
) -> None:
    """Write the results of a fitted model into the container of the observations, in place.

    ``obs[key]`` is the class, a categorical, and ``obs[key + "_confidence"]`` its probability.
    ``obsm[key + "_probabilities"]`` (n_obs, n_classes) has those of all classes, in the order of
    ``uns[key]["classes"]``. ``uns[key]`` also has the model, its parameters, and the views with
    their weights. Everything can be saved as .h5mu or .h5ad. Observations that the model did not
    get are empty.

    Parameters
    ----------
    container : AnnData or MuData
        The container to write to.
    model : fitted classifier of this library
        The model whose results are wanted.
    ids : sequence (n_samples,), optional
        Names of the observations of ``fit``, in its order; if left out, the identifiers that it
        saw, or all of ``container.obs_names`` if it saw none.
    new : MultiViewData, or views in any form that ``predict`` takes, optional
        New observations to predict, in place of those of ``fit``.
    key : str
        Name of the entries; existing entries of this name are replaced.
    """
    names = identifiers(container.obs_names, "obs_names")
    known = ids_of_fit(model) if ids is None else ids
    results = result_frame(model, names if known is None else known, new=new)
    strangers = results.index.difference(names)
    if strangers.size:
        msg = (
            f"results must be of observations of the container, but {strangers.size} of them, such "
            f"as {short(strangers[0])}, are not in obs_names; pass the container they came from"
        )
        raise InvalidViewsError(msg)
    results = results.reindex(names).set_axis(container.obs_names, axis=0)
    container.obs[key] = _storable_classes(results["class"])
    container.obs[f"{key}_confidence"] = results["confidence"]
    container.obsm[f"{key}_{WRITTEN_BACK[0]}"] = results.iloc[:, 2:].to_numpy(dtype=np.float64)
    container.uns[key] = _summary(model)


def _representations(
    modalities: Sequence[str], use_rep: str | Mapping[str, str] | None
) -> dict[str, str]:
    """Matrix to use of every modality."""
    if not isinstance(use_rep, Mapping):
        return dict.fromkeys(modalities, use_rep or MAIN_MATRIX)
    strange = [name for name in use_rep if name not in modalities]
    if strange:
        msg = (
            f"use_rep names {short(strange)}, but the modalities are {short(list(modalities))}; "
            f"use their names"
        )
        raise InvalidViewsError(msg)
    return {name: use_rep.get(name, MAIN_MATRIX) for name in modalities}


def _joined(
    container: Any,
    sources: Mapping[str, tuple[Any, str]],
    labels: str | None,
    unlabelled: Any,
    like: MultiViewData | None,
) -> MultiViewData:
    """Views by name, each from a matrix of an AnnData, in the order of the container."""
    ids = identifiers(container.obs_names, "obs_names")
    known = None if labels is None else _obs_labels(container, labels, unlabelled)
    tables = annotated_tables(sources)
    strangers = all_ids({name: table.index for name, table in tables.items()}).difference(ids)
    if strangers.size:
        msg = (
            f"mdata.obs_names must hold the observations of all modalities, but lacks "
            f"{strangers.size} of them, such as {short(strangers[0])}; call mdata.update()"
        )
        raise InvalidViewsError(msg)
    return join(tables, ids, known, like)


def annotated_tables(sources: Mapping[str, tuple[Any, str]]) -> dict[str, pd.DataFrame]:
    """Views as tables under the names of their observations.

    ``sources`` tells where each view lies: in an AnnData, in ``X`` or under a name of ``obsm``.
    """
    arrays = {name: _array(adata, key, name) for name, (adata, key) in sources.items()}
    indices = {
        name: identifiers(adata.obs_names, f"obs_names of view {name!r}")
        for name, (adata, _) in sources.items()
    }
    widths = {name: width(array, view_title(name)) for name, array in arrays.items()}
    check_room(len(all_ids(indices)), widths)
    return {
        name: as_table(
            arrays[name], indices[name], name, adata.var_names if key == MAIN_MATRIX else None
        )
        for name, (adata, key) in sources.items()
    }


def _array(adata: Any, key: str, name: str) -> Any:
    if key == MAIN_MATRIX and adata.X is not None:
        return adata.X
    if key not in adata.obsm:
        msg = (
            f"view {name!r} must be X or an entry of obsm, but {key!r} is not among "
            f"{[MAIN_MATRIX] * (adata.X is not None) + list(adata.obsm)}; choose one of these"
        )
        raise InvalidViewsError(msg)
    return adata.obsm[key]


def _obs_labels(container: Any, column: str, unlabelled: Any, kind: str = "label") -> pd.Series:
    """Labels in the ``obs`` of the container or, failing that, of its modalities.

    ``kind`` as in `column_labels`.
    """
    tables = {"obs": container.obs}
    if column not in container.obs.columns:
        tables |= {name: adata.obs for name, adata in getattr(container, "mod", {}).items()}
    labels = column_labels(tables, column, "obs", kind).astype(object)
    if unlabelled is None:
        return labels
    if not (labels == unlabelled).any():
        msg = (
            f"unlabelled={unlabelled!r} must be a value of the column {column!r}, which holds "
            f"{short(sorted(map(str, labels.unique())))}; leave it out if empty cells mark them"
        )
        raise InvalidLabelsError(msg)
    return labels[labels != unlabelled]


def labels_in_obs(container: Any, column: str, kind: str = "label") -> np.ndarray:
    """Labels (n_obs,) in a column of the ``obs`` of an AnnData or MuData, NaN where there is none.

    A MuData may have them in the ``obs`` of its modalities. Other ``kind`` as in `column_labels`.
    """
    labels = _obs_labels(container, column, None, kind)
    return labels.reindex(container.obs_names).to_numpy(dtype=object)


def _storable_classes(prediction: pd.Series) -> pd.Series:
    """Categories that the file formats know: numbers or text."""
    categories = prediction.cat.categories
    if categories.inferred_type in {"string", "integer", "floating", "boolean"}:
        return prediction
    return prediction.cat.rename_categories(class_texts(categories))


def _summary(model: FittedClassifier) -> dict[str, Any]:
    """The model in words that the file formats know."""
    summary: dict[str, Any] = {
        "model": type(model).__name__,
        "parameters": {name: repr(value) for name, value in model.get_params(deep=False).items()},
        "classes": np.array(class_texts(model.classes_), dtype=object),
        "views": np.array([str(name) for name in model.view_names_], dtype=object),
    }
    if hasattr(model, "view_weights_"):
        summary["view_weights"] = np.asarray(model.view_weights_, dtype=np.float64)
    return summary
