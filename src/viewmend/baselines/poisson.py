"""Poisson learning on the union of per-view neighbour graphs.

J. Calder, B. Cook, M. Thorpe, D. Slepčev, "Poisson learning: graph based semi-supervised learning
at very low label rates", ICML 2020. M. Jacobs, E. Merkurjev, S. Esedoḡlu, "Auction dynamics: a
volume constrained MBO scheme", Journal of Computational Physics 2018, for the class sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import connected_components

from viewmend.baselines.base import BaselineClassifier, Grid, Solution
from viewmend.core.common.class_shares import class_weights
from viewmend.core.common.linear_systems import block_cg
from viewmend.core.common.rows import RowsInMemory
from viewmend.core.common.simplex import project_simplex
from viewmend.core.graphs.neighbours import EDGE_WEIGHTS, union_graph
from viewmend.core.graphs.spreading import joined_to_label, laplacian, normalise_graph
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels, check_class_prior
from viewmend.parameters import Integer, OneOf, Real, Rule


@dataclass(eq=False, repr=False)
class PoissonClassifier(BaselineClassifier):
    """Poisson learning: labels are sources and sinks of a potential on the graph.

    Solves ``L u = sum_j (y_j - ybar) delta_j`` on the sum of the views' neighbour graphs, each
    among the samples the view has; the class is ``argmax_c s_c u_c``. A source changes ``u``
    everywhere and not only near its own sample, so that a few labels suffice.

    Parameters
    ----------
    weights : {"gaussian", "closed_form", "uniform"}, default="gaussian"
        Edge weights: ``exp(-4 d^2 / d_k^2)`` with ``d_k`` the distance to the farthest of the
        neighbours, those of AGF-TI, or one.
    class_prior : None, "labeled", "uniform", array (n_classes,) or dict, default=None
        Class shares. The potential of class ``c`` is scaled by ``s_c``, its share divided by its
        share of the labels. None does not scale.
    tol : float, default=1e-6
        Relative residual of the conjugate gradients.
    n_neighbors, view_sizes
        As in `BaselineClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_
        As in `viewmend.AGFTIClassifier`. A component of the graph without a label is unreachable;
        one with labels of a single class gets that class.
    graph_ : sparse array (n_samples, n_samples)
        The sum of the neighbour graphs of the views.
    """

    n_neighbors: int = 10
    weights: str = "gaussian"
    class_prior: Any = None
    tol: float = 1e-6
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "n_neighbors": Integer(1),
        "weights": OneOf(*EDGE_WEIGHTS),
        "tol": Real(0, low_open=True),
    }
    grid: ClassVar[Grid] = {"n_neighbors": (5, 10, 15), "weights": ("gaussian", "uniform")}

    def _solve(self, data: MultiViewData, labels: Labels, _rng: np.random.Generator) -> Solution:
        prior = check_class_prior(self.class_prior, labels)
        scale = 1.0 if prior is None else prior / labels.shares()
        W = union_graph(data.views, data.observed, self.n_neighbors, self.weights)
        F = scale * poisson_labels(W, labels.one_hot(), labels.labelled, self.tol)
        return Solution(F, joined_to_label(W, labels.labelled), extras={"graph_": W})


@dataclass(eq=False, repr=False)
class PoissonMBOClassifier(BaselineClassifier):
    """Poisson learning with known class sizes (PoissonMBO).

    Minimises ``sum_ij w_ij |u_i - u_j|^2 / 4 - mu sum_j <y_j - ybar, u_j>`` over one-hot ``u``
    whose classes come in given shares. Starts from `PoissonClassifier` and alternates heat steps
    with thresholding under the volume constraint.

    Re-derived: the paper scales the columns of ``u`` until the class sizes agree. Here offsets are
    added, the dual variables of the sizes. Then no labelling of these sizes has a larger ``<u,
    heat>``, and the objective falls in every round.

    Parameters
    ----------
    n_neighbors, weights, view_sizes
        As in `PoissonClassifier`.
    class_prior : "labeled", "uniform", array (n_classes,), dict or None, default="labeled"
        Class shares among the samples that a label reaches. "labeled", or None, takes those of the
        labels: right if labels were drawn within each class.
    fidelity : float, default=1.0
        Strength of the sources, ``mu``.
    n_inner : int, default=40
        Heat steps per round. With an even number the energy always falls.
    n_outer : int, default=20
        Largest number of rounds; the fit ends earlier when no class changes.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_
        As in `viewmend.AGFTIClassifier`.
    graph_ : sparse array (n_samples, n_samples)
        The sum of the neighbour graphs of the views.
    history_ : tuple of float
        Energy of the classes that each round starts from; the first need not have the class sizes.
    n_iter_ : int
        Number of rounds.
    """

    n_neighbors: int = 10
    weights: str = "gaussian"
    class_prior: Any = "labeled"
    fidelity: float = 1.0
    n_inner: int = 40
    n_outer: int = 20
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "n_neighbors": Integer(1),
        "weights": OneOf(*EDGE_WEIGHTS),
        "fidelity": Real(0),
        "n_inner": Integer(1),
        "n_outer": Integer(1),
    }
    grid: ClassVar[Grid] = {"n_neighbors": (5, 10, 15), "weights": ("gaussian", "uniform")}

    def _solve(self, data: MultiViewData, labels: Labels, _rng: np.random.Generator) -> Solution:
        prior = check_class_prior(self.class_prior, labels)
        prior = labels.shares() if prior is None else prior
        W = union_graph(data.views, data.observed, self.n_neighbors, self.weights)
        reachable = joined_to_label(W, labels.labelled)
        # Samples without a label in reach must not take up room in a class.
        rows = np.flatnonzero(reachable)
        labelling = poisson_mbo(
            W[rows][:, rows],
            labels.one_hot()[rows],
            labels.labelled[rows],
            prior,
            fidelity=self.fidelity,
            n_inner=self.n_inner,
            n_outer=self.n_outer,
        )
        F = np.zeros((data.n_samples, labels.n_classes))
        F[rows] = labelling.F
        return Solution(F, reachable, labelling.history, extras={"graph_": W})


@dataclass(frozen=True, eq=False)
class Labelling:
    """Rows (n_samples, n_classes) on the simplex, largest at the class; energy at every start."""

    F: np.ndarray
    history: tuple[float, ...]


def label_sources(graph: csr_array, Y: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """``sum_j (y_j - ybar) delta_j``, with ``ybar`` the mean label of the component of ``j``.

    The paper has a connected graph and one mean. The Laplacian maps onto functions of mean zero
    on every component, so each component takes its own mean to remain solvable. The result
    (n_samples, n_classes) is zero on unlabelled rows; columns sum to zero within a component.
    """
    return np.where(labelled[:, None], Y - _component_means(graph, Y, labelled), 0.0)


def poisson_potential(graph: csr_array, B: np.ndarray, tol: float = 1e-6) -> np.ndarray:
    """Solution of ``L U = B`` with ``sum_i d_i u_i = 0`` on every component.

    Solved as ``(I - D^{-1/2} W D^{-1/2}) V = D^{-1/2} B`` with ``U = D^{-1/2} V``: singular, but
    conjugate gradients never leave the range of the matrix, in which the right-hand side lies.
    The graph ``W`` has no diagonal, ``B`` (n_samples, n_classes) comes from `label_sources`, and
    isolated samples have zero rows in ``U``.
    """
    degrees = graph.sum(axis=1)
    scale = np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    system = csr_array(eye_array(len(degrees)) - normalise_graph(graph))
    U = scale[:, None] * block_cg(system, scale[:, None] * B, tol)
    return U - _component_means(graph, U, degrees)


def poisson_labels(
    graph: csr_array, Y: np.ndarray, labelled: np.ndarray, tol: float = 1e-6
) -> np.ndarray:
    """Positive part of the Poisson potential.

    Rows of the potential sum to zero, so the largest entry is in the positive part. It vanishes
    on components all of whose labels are of one class; these get that class. Components without
    a label have zero rows.
    """
    F = np.maximum(poisson_potential(graph, label_sources(graph, Y, labelled), tol), 0)
    shares = _component_means(graph, Y, labelled)
    one_class = shares.max(axis=1, keepdims=True) == 1
    return np.where(one_class, shares, F)


def heat_flow(
    graph: csr_array, U: np.ndarray, B: np.ndarray, fidelity: float, n_steps: int
) -> np.ndarray:
    """``n_steps`` of ``U <- U - t (L U - fidelity B)``, with ``t`` the inverse largest degree.

    ``fidelity`` is the strength of the sources ``B``, ``mu`` in the paper.
    """
    # At most twice the largest degree is an eigenvalue of L, so this step is stable.
    step = 1 / max(graph.sum(axis=1).max(), np.finfo(float).tiny)
    diffusion = csr_array(eye_array(graph.shape[0]) - step * laplacian(graph))
    source = step * fidelity * B
    for _ in range(n_steps):
        U = diffusion @ U + source
    return U


def volume_offsets(U: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Offsets ``b`` such that the classes ``argmax_c U_ic + b_c`` come in the shares ``prior``.

    These classes maximise ``sum_i U_{i, class of i}`` among all labellings of these class sizes;
    ``b`` are the dual variables of the sizes, found by `class_weights` to within a sample or so of
    the sizes asked. The paper scales columns instead, for which no such optimality holds.
    """
    return np.log(class_weights(RowsInMemory(), np.exp(U - U.max(axis=1, keepdims=True)), prior))


def poisson_mbo(
    graph: csr_array,
    Y: np.ndarray,
    labelled: np.ndarray,
    prior: np.ndarray,
    *,
    fidelity: float = 1.0,
    n_inner: int = 40,
    n_outer: int = 20,
) -> Labelling:
    """Minimise cut minus sources over labellings whose class sizes follow ``prior``.

    Alternates a heat flow ``U = A U_0 + G`` from the one-hot classes ``U_0`` (`heat_flow`) and
    thresholding under the volume constraint (`volume_offsets`). With ``A`` positive semi-definite
    this is ascent on the convex ``tr(U_0^T A U_0) / 2 + tr(G^T U_0)``, the energy its negative.
    Every component of the graph has a label. ``n_inner``, the steps of the heat flow, makes ``A``
    positive semi-definite where it is even; ``n_outer`` bounds the rounds.
    """
    B = label_sources(graph, Y, labelled)
    G = heat_flow(graph, np.zeros_like(B), B, fidelity, n_inner)
    classes = np.argmax(poisson_labels(graph, Y, labelled), axis=1)
    history = []
    for _ in range(n_outer):
        U_0 = np.eye(Y.shape[1])[classes]
        U = heat_flow(graph, U_0, B, fidelity, n_inner)
        history.append(-float(np.vdot(U_0, U + G)) / 2)
        scores = U + volume_offsets(U, prior)
        classes_old, classes = classes, np.argmax(scores, axis=1)
        if np.array_equal(classes, classes_old):
            break
    return Labelling(project_simplex(scores), tuple(history))


def _component_means(graph: csr_array, values: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Mean of ``values`` weighted by ``mass`` over the component of a row; zero without mass."""
    n_components, component = connected_components(graph, directed=False)
    where = (component, np.arange(len(component)))
    sums = csr_array((mass.astype(np.float64), where), shape=(n_components, len(component)))
    total = sums.sum(axis=1)[:, None]
    means = np.divide(sums @ values, total, out=np.zeros_like(sums @ values), where=total > 0)
    return np.asarray(means[component])
