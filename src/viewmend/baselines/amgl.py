"""AMGL: harmonic labels on a sum of graphs with automatic weights.

F. Nie, J. Li, X. Li, "Parameter-free auto-weighted multiple graph learning: a framework for
multiview clustering and semi-supervised classification", IJCAI 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array, eye_array

from viewmend.baselines.base import ROUND_RULES, CompleteViewClassifier, Solution
from viewmend.core.common.linear_systems import harmonic_labels
from viewmend.core.graphs.neighbours import neighbour_graph
from viewmend.core.graphs.spreading import joined_to_label, normalise_graph, weighted_sum
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.impute.base import ViewImputer
from viewmend.parameters import Rule


@dataclass(eq=False, repr=False)
class AMGLClassifier(CompleteViewClassifier):
    """Auto-weighted multiple graph learning; needs complete views or an imputer.

    Minimises ``sum_v sqrt(tr(F^T L_v F))`` with ``F = Y`` on labelled rows, where ``L_v`` is the
    normalised Laplacian of the symmetric neighbour graph of view v. Because of the root, view v has
    the weight ``1 / (2 sqrt(tr(F^T L_v F)))``, without any parameter to tune.

    Parameters
    ----------
    n_neighbors : int, default=7
        Number of neighbours in each view. The authors use 5, the AGF-TI paper 7.
    tol : float, default=1e-8
        Relative decrease of the objective below which the rounds end.
    max_iter, imputer, random_state, view_sizes
        As in `CompleteViewClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_, history_, n_iter_, imputer_
        As in `CompleteViewClassifier`.
    view_weights_ : array (n_views,)
        Weights of the views; they sum to one, and only their ratios matter.
    """

    n_neighbors: int = 7
    max_iter: int = 100
    tol: float = 1e-8
    imputer: ViewImputer | None = None
    random_state: int | np.random.Generator | None = None
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = ROUND_RULES

    def _solve(self, data: MultiViewData, labels: Labels, _rng: np.random.Generator) -> Solution:
        Y = labels.one_hot()
        graphs = [neighbour_graph(X_v, self.n_neighbors) for X_v in data.views]
        laplacians = [normalised_laplacian(graph) for graph in graphs]
        alpha = np.full(data.n_views, 1 / data.n_views)
        history: list[float] = []
        for _ in range(self.max_iter):
            F = harmonic_labels(weighted_sum(alpha, laplacians), Y, labels.labelled)
            roots = root_energies(laplacians, F)
            alpha = self_weights(roots)
            history.append(roots.sum())
            if len(history) > 2 and history[-2] - history[-1] <= self.tol * history[-1]:
                break
        reachable = joined_to_label(weighted_sum(alpha, graphs), labels.labelled)
        return Solution(F, reachable, tuple(history), alpha)


def normalised_laplacian(graph: csr_array) -> csr_array:
    """``I - D^{-1/2} W D^{-1/2}``."""
    return csr_array(eye_array(graph.shape[0]) - normalise_graph(graph))


def root_energies(laplacians: Sequence[csr_array], F: np.ndarray) -> np.ndarray:
    """``sqrt(tr(F^T L_v F))`` of every view, kept off zero, where a weight would be infinite."""
    energies = np.array([np.einsum("ij,ij->", F, L_v @ F) for L_v in laplacians])
    return np.sqrt(np.maximum(energies, 1e-12))


def self_weights(roots: np.ndarray) -> np.ndarray:
    """``alpha_v ~ 1 / (2 sqrt(tr(F^T L_v F)))``, the slope of the root, scaled to sum one."""
    slopes = 1 / (2 * roots)
    return slopes / slopes.sum()
