"""The methods that take part, with their settings and grids."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sklearn.model_selection import ParameterGrid

from viewmend.baselines.registry import METHODS
from viewmend.impute import DeepMatrixFactorization
from viewmend.parameters import choose

__all__ = ["CONTESTANTS", "Contestant", "contestant", "implementation_of"]

# What completes the views for methods that need all of them.
_COMPLETION = DeepMatrixFactorization

Grid = Mapping[str, Sequence[Any]]

# Grids of which the released script has none thinner than the paper's, or none at all, thinned
# over their whole range.
THINNED: Mapping[str, Grid] = {
    "AGF-TI": {"low_rank_weight": (10.0, 100.0, 1000.0), "graph_smoothing": (2.0, 8.0, 32.0)},
    "SLIM": {"lam1": (1e-4, 1e-2, 1.0, 1e2, 1e4), "lam2": (1e-4, 1e-2, 1.0, 1e2, 1e4)},
    "CFMSC": {"lam": (1e-2, 1.0, 1e2), "beta": (0.1, 1.0, 10.0), "gamma": (1.0, 10.0, 100.0)},
}
# One setting for all data is what these are for.
UNTUNED: Grid = {}

# Anchors in the paper; on other data every method goes by its own rule.
ANCHORS: Mapping[str, Mapping[str, Any]] = {
    data: {"n_anchors": n_anchors}
    for data, n_anchors in {
        "CUB": 64,
        "UCI-Digit": 256,
        "UCI-Digit (embedded)": 256,
        "Caltech101-20": 256,
        "Caltech101-20 (surrogate)": 256,
        "OutScene": 256,
        "OutScene (surrogate)": 256,
        "OutScene (3 views)": 256,
        "MNIST-USPS": 256,
        "AwA": 512,
    }.items()
}

# Settings of its authors by data, under the names that `IMvGCNClassifier` has them.
IMVGCN_PRESETS = {
    "OutScene": "out_scene",
    "OutScene (surrogate)": "out_scene",
    "OutScene (3 views)": "out_scene",
    "Caltech101-20": "caltech101",
    "Caltech101-20 (surrogate)": "caltech101",
    "MNIST-USPS": "mnist",
    "MNIST (3 views)": "mnist",
    "AwA": "animals",
}


@dataclass(frozen=True)
class Contestant:
    """A method of the comparison.

    Attributes
    ----------
    path : str or callable
        Takes settings and makes the estimator; ``module:callable`` is imported on use.
    defaults : dict
        Settings that differ from the callable's own.
    by_data : dict of dict
        Settings that its authors or the paper have for single data sets; for protocols that tune
        on test labels alone.
    needs_imputation : bool
        Whether it takes complete views only, and so an ``imputer``.
    extra : str or None
        Module that it needs besides those of the package.
    thinned : dict or None
        Thinner grid; None stands for that of the released script.
    version : int
        Raised with every change of the method that gives other results; see `implementation_of`.
    """

    path: str | Callable[..., Any]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    by_data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    needs_imputation: bool = False
    extra: str | None = None
    thinned: Grid | None = None
    version: int = 1

    @property
    def implementation(self) -> str:
        """Versions of the method and of the completion it is given, empty where they are first."""
        own = [f"version {self.version}"] if self.version > 1 else []
        given = [f"{_COMPLETION.__name__} {_COMPLETION.version}"] if self.needs_imputation else []
        return ", ".join([*own, *given])

    @property
    def grid(self) -> list[dict[str, Any]]:
        """Settings tried in the paper; ``[{}]`` where there is nothing to tune."""
        return _settings(self._class_grid)

    @property
    def thinned_grid(self) -> list[dict[str, Any]]:
        """Settings tried by the released script, or fewer."""
        if self.thinned is not None:
            return _settings(self.thinned)
        return _settings(getattr(self._class, "script_grid", None) or self._class_grid)

    @property
    def maker(self) -> Callable[..., Any]:
        """The callable."""
        return pkgutil.resolve_name(self.path) if isinstance(self.path, str) else self.path

    def build(
        self, data: str | None, setting: Mapping[str, Any], seed: int, imputer: Any = None
    ) -> Any:
        """The estimator, seeded where it draws random numbers.

        Parameters
        ----------
        data : str or None
            Name of a data set whose row of ``by_data`` applies, None for the defaults alone.
        setting : dict
            Stands over all other settings.
        seed : int
        imputer : transformer or None

        Returns
        -------
        estimator
        """
        model = self.maker(**{**self.defaults, **self.by_data.get(data or "", {}), **setting})
        parameters = model.get_params(deep=False)
        random = {"random_state": seed} if "random_state" in parameters else {}
        return model.set_params(**random, **({} if imputer is None else {"imputer": imputer}))

    @property
    def _class(self) -> Any:
        # A constructor other than the class is one of its methods.
        return getattr(self.maker, "__self__", self.maker)

    @property
    def _class_grid(self) -> Grid:
        return getattr(self._class, "grid", {})


def contestant(name: str) -> Contestant:
    """A method by its name in `CONTESTANTS`, or, with its own defaults, by ``module:class``.

    Parameters
    ----------
    name : str

    Returns
    -------
    Contestant
    """
    if ":" in name and name not in CONTESTANTS:
        return Contestant(name)
    return choose(CONTESTANTS, name, "method")


def implementation_of(method: str, measure: str) -> str:
    """The part of a run's key that tells the code of a method from older code of the same name.

    Empty for methods that plugins bring: what they are is not known where they are not loaded. The
    measure "tnn_step" runs no method.
    """
    known = method in BUILT_IN and measure != "tnn_step"
    return CONTESTANTS[method].implementation if known else ""


def _settings(grid: Grid) -> list[dict[str, Any]]:
    return list(ParameterGrid({name: list(values) for name, values in grid.items()}))


def _baselines() -> dict[str, Contestant]:
    """The methods of `viewmend.baselines`, with what the paper and their authors set by data."""
    presets = METHODS["IMvGCN"].estimator.presets
    by_data: dict[str, Mapping[str, Mapping[str, Any]]] = {
        "AMSC": ANCHORS,
        "AMMSS": ANCHORS,
        # Its own rule gives the paper's number elsewhere.
        "FMSSL": {"CUB": {"n_anchors": 256}},
        "IMvGCN": {data: presets[name] for data, name in IMVGCN_PRESETS.items()},
    }
    return {
        name: Contestant(
            ":".join(method.path.rsplit(".", 1)),
            by_data=by_data.get(name, {}),
            needs_imputation=method.needs_imputation,
            extra=method.extra,
            thinned=THINNED.get(name),
        )
        for name, method in METHODS.items()
        if method.path.startswith("viewmend.baselines.")
    }


# 2: rounds go on until Z has come to G.
_AGFTI_VERSION = 2
_AGFTI = "viewmend.models.agfti:AGFTIClassifier"
_PUBLISHED = Contestant(
    f"{_AGFTI}.from_paper",
    by_data=ANCHORS,
    thinned=THINNED["AGF-TI"],
    version=_AGFTI_VERSION,
)

# Add a row to take part with a method of your own.
CONTESTANTS: dict[str, Contestant] = {
    "AGF-TI": _PUBLISHED,
    "AGF-TI (released code)": replace(_PUBLISHED, defaults={"compat": "released"}, version=1),
    "AGF-TI (order-free)": Contestant(_AGFTI, thinned=UNTUNED, version=_AGFTI_VERSION),
    "Mend": Contestant("viewmend.models.mend:MendClassifier", thinned=UNTUNED),
    **_baselines(),
}
BUILT_IN = frozenset(CONTESTANTS)
