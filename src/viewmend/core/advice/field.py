"""A Gaussian field on a graph: how much a label of one sample reveals about the others.

Labels that spread by ``K = (I - s S)^{-1}``, with the normalised graph ``S``, are the mean of a
Gaussian field of covariance ``K`` that some samples were observed of. In the slowest modes ``U`` of
the graph, ``S U = U diag(l)``, that is ``K = I + U diag(h) U^T`` with ``h = s l / (1 - s l)``: a
smooth field ``U z`` plus noise of variance one. Faster modes are left out. A label then changes a
small matrix alone, the covariance of ``z``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
from scipy.sparse import csr_array

from viewmend.core.graphs.graph import Graph
from viewmend.core.graphs.spreading import normalise_graph

# Modes that are looked for: as good as all of them for tens of labels.
MOST_MODES = 128
# Modes of smaller eigenvalues say nothing about other samples.
LEAST_EIGENVALUE = 0.05
# Graphs of so few samples are decomposed whole.
SMALL_GRAPH = 300
# Of the Krylov space: columns of a block, and how often the graph is applied to it.
BLOCK = (32, 8)


@dataclass(frozen=True, eq=False)
class GraphField:
    """``U z`` on the samples of a graph, of which some labels may be known.

    Attributes
    ----------
    modes : array (n_samples, n_modes)
        ``U``.
    covariance : array (n_modes, n_modes)
        Of ``z``, given the labels so far.
    variances : array (n_samples,)
        Of the field, diagonal of ``U covariance U^T``.
    reach : array (n_samples,)
        Covariance of every sample with the sum over all samples.
    """

    modes: np.ndarray
    covariance: np.ndarray
    variances: np.ndarray
    reach: np.ndarray

    @classmethod
    def of(cls, modes: np.ndarray, covariance: np.ndarray) -> GraphField:
        """With what follows from modes and covariance."""
        mapped = modes @ covariance
        variances = np.einsum("im,im->i", mapped, modes)
        return cls(modes, covariance, variances, mapped @ modes.sum(axis=0))

    def given(self, rows: np.ndarray) -> GraphField:
        """The field once the samples ``rows`` have a label."""
        if len(rows) == 0:
            return self
        seen = self.modes[rows]
        gain = seen @ self.covariance
        # Woodbury, on the smaller side: labels may be many, modes are not.
        inner = np.eye(len(self.covariance)) + self.covariance @ (seen.T @ seen)
        if len(rows) > len(self.covariance):
            covariance = np.linalg.solve(inner, self.covariance)
        else:
            noisy = seen @ gain.T + np.eye(len(rows))
            covariance = self.covariance - gain.T @ np.linalg.solve(noisy, gain)
        return GraphField.of(self.modes, (covariance + covariance.T) / 2)

    def given_one(self, row: int) -> GraphField:
        """The same for one sample, in a pass over the modes."""
        direction = self.covariance @ self.modes[row]
        noisy = 1 + self.variances[row]
        column = self.modes @ direction
        return replace(
            self,
            covariance=self.covariance - np.outer(direction, direction) / noisy,
            variances=np.maximum(self.variances - column**2 / noisy, 0),
            reach=self.reach - column * (self.reach[row] / noisy),
        )

    def told_by(self, row: int) -> float:
        """How many samples' worth of the field a label of this sample tells."""
        return max(float(self.reach[row] / (1 + self.variances[row])), 0.0)


def graph_field(W: csr_array, spreading: float, most_modes: int = MOST_MODES) -> GraphField:
    """The field of a symmetric graph ``W`` (n_samples, n_samples), before any label.

    ``spreading`` in [0, 1) says how far labels travel.
    """
    values, modes = _slow_modes(normalise_graph(W), most_modes)
    slow = values > LEAST_EIGENVALUE
    values = spreading * np.minimum(values[slow], 1.0)
    return GraphField.of(modes[:, slow], np.diag(values / (1 - values)))


def _slow_modes(S: csr_array, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Largest eigenvalues of a normalised graph and their vectors, (n_samples, n_modes).

    Those of many samples are Ritz pairs of a block Krylov space in single precision. The slowest
    ones are accurate; of the others, which matter little, it takes what it meets.
    """
    n_samples = S.shape[0]
    if n_samples <= max(SMALL_GRAPH, 2 * most):
        first = max(n_samples - most, 0)
        return scipy.linalg.eigh(S.toarray(), subset_by_index=(first, n_samples - 1))
    graph = Graph.from_scipy(S.astype(np.float32))
    space = _krylov_space(graph, *BLOCK)
    inner = (space.T @ graph.multiply(space)).astype(np.float64)
    values, vectors = scipy.linalg.eigh((inner + inner.T) / 2)
    kept = vectors[:, -most:].astype(np.float32)
    return values[-most:], (space @ kept).astype(np.float64)


def _krylov_space(graph: Graph, width: int, n_steps: int) -> np.ndarray:
    """Orthogonal columns (n_samples, width * (n_steps + 1)) of random vectors and their images."""
    # Any start does; this one is the same on every machine.
    start = np.random.default_rng(0).standard_normal((graph.n_columns, width), dtype=np.float32)
    blocks = [np.linalg.qr(start)[0]]
    for _ in range(n_steps):
        image = graph.multiply(blocks[-1])
        # Of a symmetric matrix, images are orthogonal to all but the last two blocks.
        for block in blocks[-2:]:
            image -= block @ (block.T @ image)
        blocks.append(np.linalg.qr(image)[0])
    return np.linalg.qr(np.concatenate(blocks, axis=1))[0]
