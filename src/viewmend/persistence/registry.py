"""What a model file can hold: the classes, data classes and functions, and the types of fields.

Nothing is ever looked up in a module by a name from a file; only in these tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from scipy.sparse import csr_array

from viewmend.core.calibration import Calibration
from viewmend.core.evidence import Evidence
from viewmend.core.homophily import homophily_weights
from viewmend.core.induction import Induction
from viewmend.core.kernel_features import KernelFeatures, KernelMap
from viewmend.core.loo_ridge import LeaveOneOut
from viewmend.core.mend import Settings, Stage, StageRecord
from viewmend.core.mend_geometry import Geometry, NeighbourRule, View
from viewmend.core.mend_induction import MendInduction
from viewmend.core.nearest import Neighbours
from viewmend.core.representations import Representation
from viewmend.core.state import InnerStep, Round
from viewmend.core.view_gaussian import ViewGaussian
from viewmend.models.agfti import AGFTIClassifier
from viewmend.models.base import TwoStepClassifier
from viewmend.models.mend import MendClassifier
from viewmend.persistence.errors import expect

__all__ = ["FUNCTIONS", "LAYOUTS", "RECORDS", "RUNTIME", "Layout", "check_types", "record_types"]

RECORDS: dict[str, Any] = {
    record.__name__: record
    for record in (
        Calibration,
        Evidence,
        Geometry,
        Induction,
        InnerStep,
        KernelFeatures,
        KernelMap,
        LeaveOneOut,
        MendInduction,
        NeighbourRule,
        Neighbours,
        Representation,
        Round,
        Settings,
        Stage,
        StageRecord,
        View,
        ViewGaussian,
    )
}

FUNCTIONS: dict[str, Callable[..., Any]] = {"homophily_weights": homophily_weights}

# What a running model holds and a file does not: set them again after loading.
RUNTIME = frozenset({"_callbacks", "_metadata_request", "_skl_callbacks"})


@dataclass(frozen=True)
class Layout:
    """A class of models, and the types of its fitted attributes, some of which may be absent."""

    model: type[TwoStepClassifier]
    fitted: Mapping[str, Any]
    optional: frozenset[str] = frozenset()


_COMMON: dict[str, Any] = {
    "classes_": np.ndarray,
    "view_names_": tuple[str, ...],
    "view_n_features_": tuple[int, ...],
    "n_features_in_": int,
    "label_distributions_": np.ndarray,
    "confidence_": np.ndarray,
    "calibration_": Calibration,
    "transduction_": np.ndarray,
    "unreachable_": np.ndarray,
    "observed_": np.ndarray,
    "view_weights_": np.ndarray,
    "n_iter_": int,
    "status_": str,
    "_label_codes": np.ndarray,
    "_labelled_shares": np.ndarray,
    "_class_weights": np.ndarray | float,
}

LAYOUTS = {
    "AGFTIClassifier": Layout(
        AGFTIClassifier,
        {
            **_COMMON,
            "history_": tuple[Round, ...],
            "fused_graph_": np.ndarray,
            "view_graphs_": np.ndarray,
            "anchors_": tuple[np.ndarray, ...],
            "anchor_alignments_": np.ndarray,
            "_induction": Induction,
            "_input_device": str | None,
        },
        optional=frozenset({"_input_device"}),
    ),
    "MendClassifier": Layout(
        MendClassifier,
        {
            **_COMMON,
            "history_": tuple[StageRecord, ...],
            "class_prior_": np.ndarray,
            "graph_": csr_array,
            "graph_weights_": dict[str, dict[str, float]],
            "off_graph_": np.ndarray,
            "_induction": MendInduction,
            "_order": np.ndarray,
        },
        optional=frozenset({"view_weights_"}),
    ),
}


@cache
def record_types(record: Any) -> dict[str, Any]:
    """Types of the fields of a data class."""
    hints = get_type_hints(record)
    return {field.name: hints[field.name] for field in fields(record)}


def check_types(what: str, values: Mapping[str, Any], types: Mapping[str, Any]) -> None:
    """Raise unless every value has its type."""
    for name, value in values.items():
        expected = getattr(types[name], "__name__", str(types[name]))
        expect(_conforms(value, types[name]), f"{name} of {what}", f"of type {expected}", value)


def _conforms(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    check = _SHAPES_OF_TYPES.get(hint if origin is None else origin)
    return isinstance(value, hint) if check is None else check(value, get_args(hint))


def _is_tuple(value: Any, args: tuple[Any, ...]) -> bool:
    # All of them are tuple[X, ...].
    return isinstance(value, tuple) and all(_conforms(entry, args[0]) for entry in value)


def _is_dict(value: Any, args: tuple[Any, ...]) -> bool:
    return isinstance(value, dict) and all(
        _conforms(key, args[0]) and _conforms(entry, args[1]) for key, entry in value.items()
    )


def _is_union(value: Any, args: tuple[Any, ...]) -> bool:
    return any(_conforms(value, hint) for hint in args)


def _is_number(value: Any, _args: tuple[Any, ...]) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _is_integer(value: Any, _args: tuple[Any, ...]) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_array(value: Any, _args: tuple[Any, ...]) -> bool:
    return isinstance(value, np.ndarray)


def _is_function(value: Any, _args: tuple[Any, ...]) -> bool:
    return any(value is function for function in FUNCTIONS.values())


def _is_none(value: Any, _args: tuple[Any, ...]) -> bool:
    return value is None


_SHAPES_OF_TYPES: dict[Any, Callable[[Any, tuple[Any, ...]], bool]] = {
    tuple: _is_tuple,
    dict: _is_dict,
    Mapping: _is_dict,
    UnionType: _is_union,
    Union: _is_union,
    Callable: _is_function,
    NoneType: _is_none,
    float: _is_number,
    int: _is_integer,
    # Arrays of any library in `viewmend.core`, and NumPy's in a model.
    Any: _is_array,
}
