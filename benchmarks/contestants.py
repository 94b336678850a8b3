"""The methods of the honest comparison, each at one setting that no label has chosen."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from viewmend.baselines.registry import METHODS

SUBJECT = "MendClassifier"
MEND = "viewmend.models.mend:MendClassifier"


@dataclass(frozen=True)
class Contestant:
    """A method and its setting.

    Attributes
    ----------
    path : str
        ``module:callable``, imported on use; the callable makes the estimator.
    settings : dict
        Its arguments, besides ``random_state``.
    completion : bool
        Whether missing views are filled first, by the completion that all share.
    """

    path: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    completion: bool = False

    def build(self, seed: int, **more: Any) -> Any:
        """The estimator, seeded where it draws random numbers."""
        model = pkgutil.resolve_name(self.path)(**self.settings)
        known = {"random_state": seed} if "random_state" in model.get_params(deep=False) else {}
        return model.set_params(**known, **more)


def _registered() -> dict[str, Contestant]:
    """The registry's baselines at their default settings."""
    baselines = {n: m for n, m in METHODS.items() if m.path.startswith("viewmend.baselines.")}
    return {
        name: Contestant(":".join(method.path.rsplit(".", 1)), completion=method.needs_imputation)
        for name, method in baselines.items()
    }


def _contestants() -> dict[str, Contestant]:
    registered = _registered()
    union, poisson = registered.pop("union graph"), registered.pop("Poisson-MBO")
    neighbours = {"n_neighbors": 10}
    return {
        SUBJECT: Contestant(MEND),
        "AGF-TI": Contestant("viewmend.models.agfti:AGFTIClassifier"),
        "AGF-TI of the paper": Contestant("viewmend.models.agfti:AGFTIClassifier.from_paper"),
        "union graph": union,
        "Poisson-MBO": Contestant(poisson.path, neighbours | {"weights": "gaussian"}),
        "Poisson-MBO (uniform)": Contestant(poisson.path, neighbours | {"weights": "uniform"}),
        **registered,
    }


CONTESTANTS: dict[str, Contestant] = _contestants()

# What MendClassifier is without one of its parts, or with another value in its place.
ABLATIONS: dict[str, Contestant] = {
    f"Mend ({name})": Contestant(MEND, settings)
    for name, settings in {
        "graphs only": {"n_rounds": 0},
        "fixed k": {"n_neighbors": 10},
    }.items()
}
