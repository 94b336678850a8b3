"""The open questions about MendClassifier, each as a variant of its recipe.

A plugin of `mend_questions.toml`. Every variant sees the neighbours and kernels of the default, so
that a difference is due to what its name says.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from viewmend import AGFTIClassifier, MultiViewData
from viewmend.bench.methods import CONTESTANTS, Contestant
from viewmend.core.agfti.fusion import Game, fuse
from viewmend.core.common.content_order import canonical_order
from viewmend.core.graphs.neighbours import neighbour_graph
from viewmend.core.mend.geometry import (
    GeometrySettings,
    MendGeometry,
    NeighbourRule,
    build_geometry,
    view_graphs,
)
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.recipe import MendSettings, Stage, mend
from viewmend.data.labels import Labels, check_labels


@dataclass(frozen=True)
class Setup:
    """One task in canonical order, with everything that needs no label.

    Row ``i`` is row ``order[i]`` of the task.
    """

    data: MultiViewData
    geometry: MendGeometry
    labels: Labels
    order: np.ndarray

    @property
    def labelling(self) -> Labelling:
        return Labelling(self.labels.one_hot(), self.labels.shares(), trust=None)

    def graphs(self, settings: MendSettings) -> list[csr_array]:
        return view_graphs(self.geometry, self.labels.n_classes, settings.neighbours)

    def run(
        self, settings: MendSettings | None = None, labelling: Labelling | None = None
    ) -> Stage:
        settings = settings or MendSettings()
        graphs = self.graphs(settings)
        return mend(graphs, self.geometry, labelling or self.labelling, settings).stage


class Unbalanced(Labelling):
    """Classes by the largest score, whatever their shares."""

    def classes(self, P: np.ndarray) -> np.ndarray:
        found = np.where(P.any(axis=1), np.argmax(P, axis=1), -1)
        return np.where(self.Y.any(axis=1), np.argmax(self.Y, axis=1), found)


def shrunk(setup: Setup, pseudo_counts: float) -> Labelling:
    counts = setup.labels.counts() + pseudo_counts
    return Labelling(setup.labelling.Y, counts / counts.sum())


def adversarial_weights(
    graphs: Sequence[csr_array], _classes: np.ndarray, _power: float
) -> np.ndarray:
    """Weights of AGF-TI's min-max game over the same graphs, without label term.

    Needs dense arrays of all graphs: for a thousand samples at most.
    """
    Z = np.stack([graph.toarray() for graph in graphs])
    Z /= np.maximum(Z.sum(axis=2, keepdims=True), 1e-12)
    n_graphs, n_samples, _ = Z.shape
    game = Game(Z, np.zeros((n_samples, n_samples)), float(n_graphs**2), 4.0)
    alpha = fuse(game, np.full(n_graphs, 1 / n_graphs)).alpha
    return np.asarray((alpha / alpha.max()) ** 2)


def with_fused_graph(weight: float) -> Callable[[Setup], np.ndarray]:
    """AGF-TI's fused graph, as neighbours among its rows, beside the graphs of the views."""

    def run(setup: Setup) -> np.ndarray:
        model = AGFTIClassifier(random_state=0).fit(setup.data, setup.labels.codes)
        k = BASE.neighbours(len(setup.order), setup.labels.n_classes)
        graphs = [*setup.graphs(BASE), weight * neighbour_graph(model.fused_graph_, k)]
        return np.argmax(mend(graphs, setup.geometry, setup.labelling, BASE).stage.P, axis=1)

    return run


def fixed_neighbours(k: int) -> MendSettings:
    return MendSettings(neighbours=NeighbourRule(fewest=k, most=k))


BASE = MendSettings()


def scores_of(settings: MendSettings | None = None) -> Callable[[Setup], np.ndarray]:
    """The recipe with other settings."""
    return lambda setup: np.argmax(setup.run(settings).P, axis=1)


def with_labelling(make: Callable[[Setup], Labelling]) -> Callable[[Setup], np.ndarray]:
    """The recipe with other class shares."""
    return lambda setup: np.argmax(setup.run(labelling=make(setup)).P, axis=1)


VARIANTS: dict[str, Callable[[Setup], np.ndarray]] = {
    "default": scores_of(),
    "class sizes of the prior at the end": lambda setup: setup.run().classes,
    "no class shares at all": with_labelling(
        lambda setup: Unbalanced(setup.labelling.Y, setup.labelling.prior)
    ),
    "uniform prior": with_labelling(lambda setup: shrunk(setup, 1e9)),
    "prior shrunk by 1": with_labelling(lambda setup: shrunk(setup, 1)),
    "prior shrunk by 5": with_labelling(lambda setup: shrunk(setup, 5)),
    "label shares as the prior": with_labelling(lambda setup: shrunk(setup, 0)),
    "half of the prior from the scores": with_labelling(
        lambda setup: Labelling(setup.labelling.Y, setup.labelling.prior, 0.5)
    ),
    "equal graph weights": scores_of(replace(BASE, homophily_power=0.0)),
    "homophily to the fourth": scores_of(replace(BASE, homophily_power=4.0)),
    "fused graph of AGF-TI added, as one of the graphs": with_fused_graph(1.0),
    "fused graph of AGF-TI added, as heavy as six": with_fused_graph(6.0),
    "adversarial graph weights": scores_of(replace(BASE, weigh=adversarial_weights)),
    "edges guided, power 1": scores_of(replace(BASE, edge_power=1.0)),
    "edges guided, power 2": scores_of(replace(BASE, edge_power=2.0)),
    "no regressions": lambda setup: setup.run(replace(BASE, n_rounds=0)).classes,
    "one round": scores_of(replace(BASE, n_rounds=1)),
    "five rounds": scores_of(replace(BASE, n_rounds=5)),
    "twelve rounds": scores_of(replace(BASE, n_rounds=12)),
    "evidence to the power 1": scores_of(replace(BASE, evidence_power=1.0)),
    "no consensus graph": scores_of(replace(BASE, consensus_weight=1e-9)),
    "ten neighbours": scores_of(fixed_neighbours(10)),
}


def set_up(data: MultiViewData, y: np.ndarray) -> Setup:
    """Canonical order, and what needs no label, as `MendClassifier` does it."""
    labels = check_labels(y, data.n_samples)
    order = canonical_order(data.views, data.observed, labels.codes)
    ordered = data[order]
    codes = Labels(labels.classes, labels.codes[order])
    return Setup(ordered, _geometry(ordered), codes, order)


def _geometry(data: MultiViewData) -> MendGeometry:
    """Neighbours and kernels; those of the last task are at hand for its next variant."""
    digest = hashlib.blake2b()
    for array in (*data.views, data.observed):
        digest.update(np.ascontiguousarray(array))
    if digest.hexdigest() not in _LAST:
        _LAST.clear()
        geometry = build_geometry(data.views, data.observed, GeometrySettings())
        _LAST[digest.hexdigest()] = geometry
    return _LAST[digest.hexdigest()]


_LAST: dict[str, MendGeometry] = {}


class MendVariant(BaseEstimator):
    """A row of `VARIANTS` as an estimator."""

    def __init__(self, variant: str = "default"):
        self.variant = variant

    def fit(self, data: MultiViewData, y: np.ndarray) -> MendVariant:
        """Leave the classes of all samples in ``transduction_``."""
        setup = set_up(data, y)
        codes = VARIANTS[self.variant](setup)
        self.transduction_ = np.empty_like(y)
        self.transduction_[setup.order] = setup.labels.classes[codes]
        return self


for variant in VARIANTS:
    CONTESTANTS[f"Mend: {variant}"] = Contestant(MendVariant, {"variant": variant}, thinned={})
