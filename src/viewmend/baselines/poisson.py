"""Poisson learning on the union of per-view neighbour graphs.

J. Calder, B. Cook, M. Thorpe, D. Slepčev, "Poisson learning: graph based semi-supervised learning
at very low label rates", ICML 2020. M. Jacobs, E. Merkurjev, S. Esedoḡlu, "Auction dynamics: a
volume constrained MBO scheme", Journal of Computational Physics 2018, for the class sizes.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from viewmend.baselines.base import BaselineClassifier, Solution
from viewmend.baselines.maths.poisson import poisson_labels, poisson_mbo
from viewmend.core.graphs.neighbours import EDGE_WEIGHTS, union_graph
from viewmend.core.graphs.spreading import joined_to_label
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels, check_class_prior
from viewmend.parameters import Integer, OneOf, Real, Rule

__all__ = ["PoissonClassifier", "PoissonMBOClassifier"]


class PoissonClassifier(BaselineClassifier):
    """Poisson learning: labels are sources and sinks of a potential on the graph.

    Solves ``L u = sum_j (y_j - ybar) delta_j`` on the sum of the views' neighbour graphs, each
    among the samples the view has; the class is ``argmax_c s_c u_c``. Unlike a label that holds
    its own sample only, a source shapes ``u`` everywhere, so a few labels suffice.

    Parameters
    ----------
    n_neighbors : int, default=10
    weights : {"gaussian", "closed_form", "uniform"}, default="gaussian"
        Edge weights: ``exp(-4 d^2 / d_k^2)`` with ``d_k`` the distance to the farthest of the
        neighbours, those of AGF-TI, or one.
    class_prior : None, "labeled", "uniform", array (n_classes,) or dict, default=None
        Shares of the classes; the potential of class ``c`` is scaled by ``s_c``, its share over
        its share of the labels. None leaves it unscaled.
    tol : float, default=1e-6
        Relative residual of the conjugate gradients.
    view_sizes : sequence of int, optional
        Columns of every view where ``X`` is one stacked array.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_
        As in `viewmend.AGFTIClassifier`. A component of the graph without a label is unreachable;
        one with labels of a single class gets that class.
    graph_ : sparse array (n_samples, n_samples)
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_neighbors": Integer(1),
        "weights": OneOf(*EDGE_WEIGHTS),
        "tol": Real(0, low_open=True),
    }
    grid: ClassVar = {"n_neighbors": (5, 10, 15), "weights": ("gaussian", "uniform")}

    def __init__(
        self, n_neighbors=10, weights="gaussian", class_prior=None, tol=1e-6, view_sizes=None
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.class_prior = class_prior
        self.tol = tol
        self.view_sizes = view_sizes

    def _solve(self, data: MultiViewData, labels: Labels, _rng: np.random.Generator) -> Solution:
        prior = check_class_prior(self.class_prior, labels)
        scale = 1.0 if prior is None else prior / labels.shares()
        W = union_graph(data.views, data.observed, self.n_neighbors, self.weights)
        F = scale * poisson_labels(W, labels.one_hot(), labels.labelled, self.tol)
        return Solution(F, joined_to_label(W, labels.labelled), extras={"graph_": W})


class PoissonMBOClassifier(BaselineClassifier):
    """Poisson learning with known class sizes (PoissonMBO).

    Minimises ``sum_ij w_ij |u_i - u_j|^2 / 4 - mu sum_j <y_j - ybar, u_j>`` over one-hot ``u``
    whose classes come in given shares. Starts from `PoissonClassifier` and alternates heat steps
    with thresholding under the volume constraint.

    Re-derived: the paper meets the class sizes by scaling the columns of ``u`` until the counts
    agree; here they are met by offsets, the dual variables of the sizes, after which no labelling
    of these sizes has a larger ``<u, heat>`` and the rounds descend.

    Parameters
    ----------
    n_neighbors, weights, view_sizes
        As in `PoissonClassifier`.
    class_prior : "labeled", "uniform", array (n_classes,), dict or None, default="labeled"
        Shares of the classes among the samples that a label reaches. "labeled", which None stands
        for too, is right where the labels are a fair sample of the classes.
    fidelity : float, default=1.0
        Strength of the sources, ``mu``.
    n_inner : int, default=40
        Heat steps per round; the energy is sure to fall where it is even.
    n_outer : int, default=20
        Most rounds; it ends earlier where no class changes.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_
        As in `viewmend.AGFTIClassifier`.
    graph_ : sparse array (n_samples, n_samples)
    history_ : tuple of float
        Energy of the classes that each round starts from; the first need not have the class sizes.
    n_iter_ : int
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_neighbors": Integer(1),
        "weights": OneOf(*EDGE_WEIGHTS),
        "fidelity": Real(0),
        "n_inner": Integer(1),
        "n_outer": Integer(1),
    }
    grid: ClassVar = {"n_neighbors": (5, 10, 15), "weights": ("gaussian", "uniform")}

    def __init__(
        self,
        n_neighbors=10,
        weights="gaussian",
        class_prior="labeled",
        fidelity=1.0,
        n_inner=40,
        n_outer=20,
        view_sizes=None,
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.class_prior = class_prior
        self.fidelity = fidelity
        self.n_inner = n_inner
        self.n_outer = n_outer
        self.view_sizes = view_sizes

    def _solve(self, data: MultiViewData, labels: Labels, _rng: np.random.Generator) -> Solution:
        prior = check_class_prior(self.class_prior, labels)
        prior = labels.shares() if prior is None else prior
        W = union_graph(data.views, data.observed, self.n_neighbors, self.weights)
        reachable = joined_to_label(W, labels.labelled)
        # Samples without a label in reach must not take up room in a class.
        rows = np.flatnonzero(reachable)
        found = poisson_mbo(
            W[rows][:, rows],
            labels.one_hot()[rows],
            labels.labelled[rows],
            prior,
            fidelity=self.fidelity,
            n_inner=self.n_inner,
            n_outer=self.n_outer,
        )
        F = np.zeros((data.n_samples, labels.n_classes))
        F[rows] = found.F
        return Solution(F, reachable, found.history, extras={"graph_": W})
