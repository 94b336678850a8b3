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

# Where the module of an old name is now, both below ``viewmend``.
MOVED: Mapping[str, str] = {
    "backend.layers": "backend.numba_networks",
    "backend.rprop": "backend.numba_networks",
    "bench.data": "datasets.catalogue",
    "bench.drawing": "bench.charts.drawing",
    "bench.execute": "bench.runner",
    "bench.figures": "bench.catalogue",
    "bench.formats": "bench.tables.formats",
    "bench.keys": "bench.runs",
    "bench.opened": "bench.session",
    "bench.rules": "bench.schema",
    "bench.run_tables": "bench.tables.runs",
    "bench.score_charts": "bench.charts.scores",
    "bench.score_tables": "bench.tables.scores",
    "bench.tabular": "bench.tables.table",
    "bench.trace_charts": "bench.charts.traces",
    "callbacks.telling": "callbacks.progress",
    "containers": "data.container",
    "core.admm": "core.agfti.admm",
    "core.alignment": "core.agfti.alignment",
    "core.anchor_count": "core.agfti.anchor_count",
    "core.anchored": "baselines.maths.anchored",
    "core.anchors": "core.agfti.anchors",
    "core.bipartite": "core.agfti.bipartite",
    "core.calibration": "core.common.calibration",
    "core.canonical": "core.common.content_order",
    "core.evidence": "core.mend.evidence",
    "core.explanation": "core.mend.explanation",
    "core.flexible": "baselines.maths.flexible",
    "core.fusion": "core.agfti.fusion",
    "core.graph_fourier": "core.agfti.graph_fourier",
    "core.held_out": "core.common.held_out",
    "core.homophily": "core.mend.homophily",
    "core.induction": "core.agfti.induction",
    "core.kernel_features": "core.mend.kernel_features",
    "core.learned_graph": "baselines.maths.learned_graph",
    "core.linear": "core.common.linear_systems",
    "core.loo_ridge": "core.mend.loo_ridge",
    "core.mend_geometry": "core.mend.geometry",
    "core.mend_induction": "core.mend.induction",
    "core.nearest": "core.graphs.nearest",
    "core.neighbours": "core.graphs.neighbours",
    "core.objective": "core.agfti.objective",
    "core.poisson": "baselines.poisson",
    "core.priors": "core.common.class_shares",
    "core.propagation": "core.agfti.propagation",
    "core.released": "core.agfti.released",
    "core.representations": "core.mend.representations",
    "core.ridge": "baselines.maths.ridge",
    "core.scaling": "core.common.scaling",
    "core.simplex": "core.common.simplex",
    "core.spreading": "core.graphs.spreading",
    "core.state": "core.agfti.state",
    "core.tensor_nuclear": "core.agfti.tensor_nuclear",
    "core.view_gaussian": "core.mend.view_gaussian",
    "core.watchers": "callbacks.notify",
    "datasets.base": "datasets",
    "datasets.files": "data",
    "datasets.folders": "datasets",
    "datasets.mat": "data",
    "datasets.tables": "data.io.tables",
    "interop": "data",
    "interop.aligned": "data",
    "interop.arrays": "data.arrays",
    "interop.frames": "data.frames",
    "interop.results": "data.results",
    "interop.scverse": "data.scverse",
    "labels": "data.labels",
    "models.trust": "models.calibrated",
    "persistence.archive": "storage.archive",
    "persistence.arrays": "storage.arrays",
    "persistence.errors": "storage.errors",
    "persistence.replacing": "storage.atomic",
    "persistence.tree": "storage.tree",
    "reading": "data.io.reading_v01",
    "reading.contents": "data.io.contents",
    "reading.labels": "data.io.label_columns",
    "reading.numbers": "data.io.cleaning",
    "report.about": "report.model_sections",
    "report.case": "report.context",
    "report.outcome": "report.prediction_sections",
    "validation": "data.validation",
    "view_arrays": "data.input_arrays",
    "watching": "callbacks.notify",
}


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
        new = f"viewmend.{MOVED[module.__name__.partition('.')[2]]}"
        msg = f"{module.__name__} has moved to {new}; import from there"
        warnings.warn(msg, DeprecationWarning, stacklevel=2)
        target = importlib.import_module(new)

        def forward(name: str) -> Any:
            return getattr(target, name)

        module.__doc__ = target.__doc__
        module.__dict__["__all__"] = [name for name in dir(target) if not name.startswith("_")]
        module.__dict__["__getattr__"] = forward


def install() -> None:
    """Let Python's import statement find modules under their old names."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())


def old_names(module: str, classes: Mapping[str, type]) -> Callable[[str], type]:
    """The ``__getattr__`` of a module whose classes of version 0.1 are other classes now.

    Parameters
    ----------
    module : str
    classes : dict of type
        What stands for the class of an old name.
    """

    def find(name: str) -> type:
        if name not in classes:
            msg = f"module {module!r} has no attribute {name!r}"
            raise AttributeError(msg)
        msg = f"{module}.{name} is now {classes[name].__name__}; use that"
        warnings.warn(msg, DeprecationWarning, stacklevel=2)
        return classes[name]

    return find
