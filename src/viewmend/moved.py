"""Modules and classes of version 0.1 under their old names, until version 0.3.

``import viewmend.interop`` gives what `viewmend.data` has, with a DeprecationWarning.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["MOVED", "install", "old_names"]

# Modules of ``core`` that keep their names in one of its rooms of today.
_ROOMS_OF_CORE: Mapping[str, str] = {
    "agfti": "admm alignment anchors bipartite fusion graph_fourier induction objective "
    "propagation released state tensor_nuclear",
    "mend": "evidence homophily kernel_features loo_ridge representations view_gaussian",
    "graphs": "nearest neighbours spreading",
    "common": "calibration",
}
# Where the module of an old name is now, both below ``viewmend``: those that users met in the
# documentation of version 0.1, or whose classes their pickles name.
MOVED: Mapping[str, str] = {
    "bench.data": "datasets.catalogue",
    "bench.keys": "bench.runs",
    "bench.rules": "bench.experiment",
    "containers": "data.container",
    **{
        f"core.{name}": f"core.{room}.{name}"
        for room, names in _ROOMS_OF_CORE.items()
        for name in names.split()
    },
    "core.canonical": "core.common.content_order",
    "core.mend_geometry": "core.mend.geometry",
    "core.mend_induction": "core.mend.induction",
    "core.priors": "core.common.class_shares",
    "datasets.base": "datasets",
    "datasets.folders": "datasets",
    "interop": "data",
    "interop.aligned": "data",
    "labels": "data.labels",
    "models.trust": "models.calibrated",
    "reading": "data",
    "reading.contents": "data.io.contents",
    "validation": "data.validation",
    "watching": "callbacks.notify",
}
# What has another name there: reading and joining were two steps.
RENAMED: Mapping[str, Mapping[str, str]] = {"reading": {"read_views": "read_view_tables"}}


class MovedModules(MetaPathFinder, Loader):
    """Finds a moved module after everything else has failed to, as a stand-in that forwards."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, old = fullname.partition(".")
        if package != "viewmend" or old not in MOVED:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__.partition(".")[2]
        new, renamed = f"viewmend.{MOVED[old]}", RENAMED.get(old, {})
        msg = f"{module.__name__} has moved to {new}; import from there"
        warnings.warn(msg, DeprecationWarning, stacklevel=2)
        target = importlib.import_module(new)

        def forward(name: str) -> Any:
            return getattr(target, renamed.get(name, name))

        module.__doc__ = target.__doc__
        module.__dict__["__all__"] = [name for name in dir(target) if not name.startswith("_")]
        module.__dict__["__getattr__"] = forward


def install() -> None:
    """Let Python's import statement find modules under their old names."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())


def old_names(module: str, classes: Mapping[str, type]) -> Callable[[str], type]:
    """The ``__getattr__`` of a module in which other classes stand for those of old names."""

    def find(name: str) -> type:
        if name not in classes:
            msg = f"module {module!r} has no attribute {name!r}"
            raise AttributeError(msg)
        msg = f"{module}.{name} is now {classes[name].__name__}; use that"
        warnings.warn(msg, DeprecationWarning, stacklevel=2)
        return classes[name]

    return find
