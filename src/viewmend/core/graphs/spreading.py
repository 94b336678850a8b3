"""Label spreading on a sparse graph between samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array
from scipy.sparse.csgraph import connected_components

from viewmend.backend.graphs import kernels_for
from viewmend.backend.namespace import Array, array_namespace, fetched
from viewmend.core.common.linear_systems import block_cg, column_ratio
from viewmend.core.graphs.graph import Graph

# Steps end when, between two looks, none changed the soft labels of a sample by more than this
# share of the largest of them: one of 20 000 samples is then in another class than in the end.
ENOUGH = 3e-3
# The same as a share of ``1 - spreading``, with which the differences between classes shrink, and
# the least that float32 can tell.
ENOUGH_OF_REST = 0.3
LEAST = 1e-5
# Degrees below the normal numbers of float32 have a few bits only, and no finite inverse.
LEAST_DEGREE = float(np.finfo(np.float32).tiny)
# Steps between two looks, steps before there are groups of samples, and the most steps.
STEPS_UNASKED = 2
ROUGH_STEPS = 4
MOST_STEPS = 1000


def normalise_graph(graph: csr_array) -> csr_array:
    """``D^{-1/2} W D^{-1/2}``; isolated samples keep a zero row."""
    degrees = graph.sum(axis=1)
    scale = np.divide(1, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    return csr_array(diags_array(scale) @ graph @ diags_array(scale))


def laplacian(graph: csr_array) -> csr_array:
    """``D - W`` of the symmetric part of a graph."""
    W = (graph + graph.T) / 2
    return csr_array(diags_array(W.sum(axis=1)) - W)


def weighted_sum(weights: np.ndarray, matrices: Sequence[csr_array]) -> csr_array:
    """``sum_v weights_v matrices_v``."""
    total = csr_array(matrices[0].shape)
    for weight, matrix in zip(weights, matrices, strict=True):
        total = total + weight * matrix
    return total


def label_gaps(graph: csr_array, F: np.ndarray, G: np.ndarray | None = None) -> np.ndarray:
    """``|f_i - g_j|^2`` for every stored entry of a graph, in the order of ``graph.data``.

    The graph is (n_rows, n_columns), ``F`` (n_rows, n_classes) and ``G`` (n_columns, n_classes),
    which is ``F`` itself for a graph between samples.
    """
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    gaps = F[rows] - (F if G is None else G)[graph.indices]
    return np.einsum("ij,ij->i", gaps, gaps)


def spread_labels(
    graph: csr_array, Y: np.ndarray, spreading: float, tol: float = 1e-6
) -> np.ndarray:
    """Solution of ``(I - spreading D^{-1/2} W D^{-1/2}) F = Y`` (Zhou et al. 2004).

    ``graph`` (n_samples, n_samples) holds the symmetric weights ``W``, ``Y`` (n_samples, n_classes)
    one-hot rows of labelled samples and zero rows of the others. The larger ``spreading``, in [0,
    1), the further labels travel. ``tol`` is the relative residual of the conjugate gradients.
    """
    # Eigenvalues of the normalised graph are at most 1, so the system is positive definite. Its
    # solution has no negative entry, but rounding may give it some.
    system = eye_array(graph.shape[0]) - spreading * normalise_graph(graph)
    return np.maximum(block_cg(csr_array(system), Y, tol), 0)


def spread_over(
    parts: Sequence[tuple[float, Graph]], Y: Array, spreading: float, start: Array | None = None
) -> Array:
    """Solution of ``(I - spreading D^{-1/2} W D^{-1/2}) F = Y`` for ``W = sum scale * graph``.

    Parameters
    ----------
    parts : sequence of (float, Graph (n_samples, n_samples))
        Scales, none of them negative, and symmetric graphs.
    Y : array (n_samples, n_columns)
        Labels; none of them negative. Columns do not depend on each other.
    spreading : float
        How far labels travel, in [0, 1).
    start : array (n_samples, n_columns), optional
        Soft labels of a similar graph, from where it is not far.

    Returns
    -------
    array (n_samples, n_columns) of float32
        Soft labels, none of them negative; zero for samples that no label of the column reaches.
    """
    if start is not None and tuple(start.shape) != tuple(Y.shape):
        msg = f"start must have the shape {tuple(Y.shape)} of the labels, got {tuple(start.shape)}"
        raise ValueError(msg)
    xp = array_namespace(Y)
    system = _System.of(parts, spreading)
    root = xp.sqrt(system.degrees)[:, None]
    B = root * xp.astype(Y, xp.float32)
    reached = _reached(parts, Y)
    if start is None:
        G = _solve(system, B, xp.zeros_like(B), _Groups.none(B), ROUGH_STEPS)
    else:
        G = xp.astype(start, xp.float32) * reached / root
    G = _solve(system, B, G, _Groups.of(system, G), MOST_STEPS)
    return xp.maximum(G, xp.zeros_like(G)) * root * reached


@dataclass(frozen=True)
class _System:
    """``(D - spreading W) G = D^{1/2} Y``, of which ``F = D^{1/2} G`` are the soft labels.

    ``W`` is the sum of the parts, ``degrees`` (n_samples,) of float32 the diagonal of ``D``.
    """

    parts: Sequence[tuple[float, Graph]]
    degrees: Array
    spreading: float

    @classmethod
    def of(cls, parts: Sequence[tuple[float, Graph]], spreading: float) -> _System:
        degrees = sum(scale * graph.row_sums() for scale, graph in parts)
        xp = array_namespace(degrees)
        # Without edges there is nothing to divide by, and the labels stay as they are; so it is
        # with edges that single precision hardly tells from none.
        degrees = xp.where(degrees > LEAST_DEGREE, degrees, xp.ones_like(degrees))
        return cls(parts, xp.astype(degrees, xp.float32), spreading)

    def multiply(self, G: Array) -> Array:
        out = self.degrees[:, None] * G
        for scale, graph in self.parts:
            graph.add_product(G, -self.spreading * scale, out)
        return out


@dataclass(frozen=True)
class _Groups:
    """Samples that nearly share their soft labels, whose error is found for all of them at once.

    ``groups`` (n_samples,) of int, -1 for none, are those of their largest label. ``inverse``
    (n_groups, n_groups) is that of the system with every group as one sample. Errors that are
    constant over a class are the slowest to fade otherwise.
    """

    groups: Array
    inverse: Array

    @classmethod
    def none(cls, G: Array) -> _Groups:
        """No group at all."""
        xp = array_namespace(G)
        inverse = xp.zeros((0, 0), dtype=xp.float64, device=G.device)
        return cls(xp.full(G.shape[:1], -1, dtype=xp.int32, device=G.device), inverse)

    @classmethod
    def of(cls, system: _System, G: Array) -> _Groups:
        """Of the largest label in each row of ``G`` (n_samples, n_columns), as many as columns."""
        xp, n_groups = array_namespace(G), G.shape[1]
        # Columns are scaled as for the classes: few labels make small numbers.
        shares = G * column_ratio(xp.ones_like(G[0]), xp.sum(G, axis=0))
        largest = xp.astype(xp.argmax(shares, axis=1), xp.int32)
        groups = xp.where(xp.max(shares, axis=1) > 0, largest, -xp.ones_like(largest))
        numbers = xp.arange(n_groups, dtype=xp.int32, device=G.device)
        members = xp.astype(groups[:, None] == numbers, xp.float32)
        coarse = kernels_for(G).group_sums(system.multiply(members), groups, n_groups)
        # A group without members stands for itself.
        eye = xp.eye(n_groups, dtype=xp.float64, device=G.device)
        return cls(groups, xp.linalg.inv(coarse + eye * (xp.sum(members, axis=0) == 0)))

    def corrections(self, R: Array) -> tuple[Array, Array]:
        """Of every group (n_groups, n_columns) for the residual, and their energy (n_columns,)."""
        sums = kernels_for(R).group_sums(R, self.groups, self.inverse.shape[0])
        corrections = self.inverse @ sums
        return corrections, (sums * corrections).sum(axis=0)


def _solve(system: _System, B: Array, G: Array, groups: _Groups, most_steps: int) -> Array:
    """Conjugate gradients for all columns at once, from ``G``; each has steps of its own.

    The error of a residual is guessed from the degrees and from the groups.
    """
    xp, kernels = array_namespace(B), kernels_for(B)
    enough = max(min(ENOUGH, ENOUGH_OF_REST * (1 - system.spreading)), LEAST)
    R = B - system.multiply(G)
    P, energy, changes = xp.zeros_like(R), xp.ones_like(B[0]), []
    for _ in range(most_steps):
        corrections, coarse_energy = groups.corrections(R)
        energy_before, energy = energy, kernels.energies(R, system.degrees) + coarse_energy
        beta = column_ratio(energy, energy_before)
        kernels.cg_direction(P, R, system.degrees, (groups.groups, corrections), beta)
        Q = system.multiply(P)
        steps = column_ratio(energy, kernels.column_dots(P, Q))
        changes.append(kernels.cg_step(G, R, P, Q, steps))
        # A GPU is idle while the host waits for a number, so that it looks at several at once.
        if len(changes) % STEPS_UNASKED == 0 and max(fetched(changes[-STEPS_UNASKED:])) < enough:
            break
    return G


def _reached(parts: Sequence[tuple[float, Graph]], Y: Array) -> Array:
    """Whether a label of a column reaches a sample: (n_samples, n_columns) or (1, n_columns)."""
    xp = array_namespace(Y)
    if any(scale > 0 and graph.is_connected for scale, graph in parts):
        return xp.astype(xp.any(Y > 0, axis=0, keepdims=True), xp.float32)
    reached = xp.astype(Y > 0, xp.float32)
    n_before, n_reached = -1.0, float(xp.sum(reached, dtype=xp.float64))
    while n_before < n_reached:
        for _ in range(STEPS_UNASKED):
            joined = sum(scale * graph.multiply(reached) for scale, graph in parts)
            reached = xp.astype(reached + joined > 0, xp.float32)
        n_before, n_reached = n_reached, float(xp.sum(reached, dtype=xp.float64))
    return reached


def reached_by_labels(parts: Sequence[tuple[float, Graph]], Y: Array) -> Array:
    """Samples (n_samples,) of bool that a path joins to some label of ``Y``."""
    xp = array_namespace(Y)
    some = xp.astype(xp.any(Y > 0, axis=1, keepdims=True), xp.float32)
    reached = _reached(parts, some)
    return xp.broadcast_to(reached > 0, some.shape)[:, 0]


def joined_to_label(graph: csr_array, labelled: np.ndarray) -> np.ndarray:
    """Nodes (n_nodes,) of bool that a path of the graph joins to some labelled node."""
    _, component = connected_components(graph, directed=False)
    return np.isin(component, component[labelled])
