"""Label spreading on the union of per-view nearest-neighbour graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from viewmend.core.common.scaling import NORMALIZERS
from viewmend.core.graphs.neighbours import union_graph
from viewmend.core.graphs.spreading import joined_to_label, spread_labels
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels, check_class_prior
from viewmend.models.base import MultiViewClassifier, without_weights
from viewmend.parameters import Integer, OneOf, Real, Rule, check_parameters, fresh_fit


@dataclass(eq=False, repr=False)
class UnionGraphClassifier(MultiViewClassifier):
    """Label spreading over the sum of the views' neighbour graphs: a simple and strong baseline.

    In each view, samples are joined to their nearest neighbours. In the sum of these graphs,
    samples without a common view are connected through samples that have both views. Nothing is
    imputed.

    Parameters
    ----------
    n_neighbors : int, default=7
        Number of neighbours of a sample in each view.
    spreading : float in [0, 1), default=0.99
        How far labels spread over the graph; the larger, the further.
    class_prior : None, "labeled", array (n_classes,) or dict, default=None
        Total score of every class after spreading; None gives all classes the same (class-mass
        normalisation).
    normalize : {"l2", None}, default="l2"
        How the rows of every view are scaled.
    view_sizes : sequence of int, optional
        Number of columns of every view, if ``X`` is one stacked array.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_
        As in `viewmend.AGFTIClassifier`.
    graph_ : sparse array (n_samples, n_samples)
        The sum of the neighbour graphs of the views.
    """

    n_neighbors: int = 7
    spreading: float = 0.99
    class_prior: Any = None
    normalize: str | None = "l2"
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "n_neighbors": Integer(1),
        "spreading": Real(0, 1, high_open=True),
        "normalize": OneOf(*NORMALIZERS),
    }

    @without_weights
    def fit(self, X: Any, y: Any = None, mask: ArrayLike | None = None) -> Self:
        """Fit on labelled and unlabelled samples together; input as in `AGFTIClassifier`."""
        with fresh_fit(self):
            check_parameters(self, self._rules)
            samples = self.samples_to_fit(X, y, mask)
            self._fit_views(samples.data, samples.labels)
            samples.give_back(self)
        return self

    def _fit_views(self, data: MultiViewData, labels: Labels) -> None:
        prior = check_class_prior(self.class_prior, labels)
        views = [NORMALIZERS[self.normalize](view) for view in data.views]
        self.graph_ = union_graph(views, data.observed, self.n_neighbors)
        soft = spread_labels(self.graph_, labels.one_hot(), self.spreading)
        mass = soft.sum(axis=0)
        soft = soft * (np.ones_like(mass) if prior is None else prior) / mass
        self._store_transduction(soft, labels, joined_to_label(self.graph_, labels.labelled))
