"""The four networks of GEGCN on the processor, with gradients written by hand.

Sums over edges are compiled (`viewmend.backend.edges`), and all work is cut into blocks that are
the same whatever the number of threads. `viewmend.baselines.gegcn_torch` says the same in fewer
words, for a GPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from viewmend.backend import edges
from viewmend.backend.threads import serial_blas
from viewmend.baselines.gegcn_parts import (
    Adam,
    Dropout,
    Entries,
    blocks_of,
    cross_entropy,
    on_blocks,
    sigmoid,
)
from viewmend.baselines.gegcn_torch import (
    DECAY,
    EMBEDDING_DECAY,
    RAMP,
    STABILISER,
    Outcome,
    Problem,
    Settings,
    Weights,
)

__all__ = ["CompiledNetworks"]


class CompiledNetworks:
    """The networks and their steps, as `viewmend.baselines.gegcn_torch.TorchNetworks`.

    The weights given are where the networks start, and change with every step.
    """

    def __init__(
        self, problem: Problem, weights: Weights, settings: Settings, rng: np.random.Generator
    ) -> None:
        self.entries = entries = Entries(problem.pattern)
        self.embedding = Embedding(weights, problem.X, settings.embedding)
        self.generator = Generator(weights, entries, settings.generator)
        self.evaluator = Evaluator(weights, entries, problem.graphs, settings.evaluator)
        self.classifier = Classifier(weights, entries, problem, settings.classifier)
        self._rate, self._rng = settings.dropout, rng

    def pretrain(self) -> float:
        """A step of the embedding on ``R``; its value before."""
        with serial_blas():
            R = self.embedding.reconstruct()
            self.embedding.step()
        return R

    def train(self) -> float:
        """A step of each network in turn, with the others held fixed; ``CE + R`` before."""
        with serial_blas():
            embedding, generator, classifier = self.embedding, self.generator, self.classifier
            M = generator.first_layer()
            R = embedding.reconstruct((M, generator.halves), (classifier.C1, classifier.H))
            edge_weights = generator.weigh()
            # The embedding is trained on the weights before the sigmoid, as the authors do.
            CE = classifier.mismatch(edge_weights, self._dropout())
            by_halves, _ = generator.gradients(classifier.edge_gradient(edge_weights))
            embedding.step((by_halves, M), (classifier.unit_gradient(), classifier.C1))
            # From here on with the coordinates before that step.
            self._step_generator(sigmoid(edge_weights))
            generator.read(embedding.Z)
            A = sigmoid(generator.weigh())
            self.evaluator.step(A)
            classifier.mismatch(A, self._dropout())
            classifier.step(A, embedding.Z)
        return CE + R

    def outcome(self) -> Outcome:
        """Of the networks as they are, with all hidden units."""
        with serial_blas():
            Z = np.maximum(self.embedding.W, 0)
            self.generator.read(Z)
            np.matmul(Z, self.classifier.C1, out=self.classifier.H)
            A = sigmoid(self.generator.weigh())
            logits = self.classifier.logits(A)
        return Outcome(logits, Z, self.entries.array(A), self.classifier.threshold)

    def _step_generator(self, A: np.ndarray) -> None:
        """On ``CE - log score(A)``."""
        self.classifier.mismatch(A, self._dropout())
        by_A = self.classifier.edge_gradient(A)
        self.evaluator.add_doubt(A, by_A)
        by_A *= A * (1 - A)
        self.generator.step(self.embedding.Z, by_A)

    def _dropout(self) -> Dropout:
        return Dropout.draw(self.classifier.H.shape, self._rate, self._rng)


class Embedding:
    """Coordinates ``Z = relu(W)``, and the loss ``R = 1/2 |X - relu(Z U^T + u)|^2``."""

    def __init__(self, weights: Weights, X: np.ndarray, rate: float) -> None:
        self.X, self.W, self.U, self.u = X, weights.W, weights.U, weights.u
        self.Z, self._by_Z, self._gaps = map(np.empty_like, (self.W, self.W, X))
        self._blocks = blocks_of(len(X))
        self._adams = [Adam(w, rate, EMBEDDING_DECAY) for w in (self.W, self.U, self.u)]

    def reconstruct(self, *maps: tuple[np.ndarray, np.ndarray]) -> float:
        """``R``; leaves its gradients, and ``Z C`` in ``out`` for all maps ``(C, out)``."""
        parts = on_blocks(lambda rows: self._rows(rows, maps), self._blocks)
        squares, by_U, by_u = zip(*parts, strict=True)
        self._by_U, self._by_u = sum(by_U[1:], start=by_U[0]), sum(by_u[1:], start=by_u[0])
        return sum(squares) / 2

    def step(self, *products: tuple[np.ndarray, np.ndarray]) -> None:
        """With ``B C^T`` added to the gradient by ``Z`` for all products ``(B, C)``."""

        def add(rows: slice) -> None:
            by_Z = self._by_Z[rows]
            for B, C in products:
                by_Z += B[rows] @ C.T
            edges.where_positive(by_Z, self.Z[rows], np.float32(1))

        on_blocks(add, self._blocks)
        gradients = self._by_Z, self._by_U, self._by_u
        for adam, gradient in zip(self._adams, gradients, strict=True):
            adam.step(gradient)

    def _rows(self, rows: slice, maps: Any) -> tuple[float, np.ndarray, np.ndarray]:
        """Squares of the gaps of some rows, and their part of the gradients by ``U`` and ``u``."""
        gaps, by_u = self._gaps[rows], np.empty_like(self.u)
        Z = np.maximum(self.W[rows], 0, out=self.Z[rows])
        for C, out in maps:
            np.matmul(Z, C, out=out[rows])
        np.matmul(Z, self.U.T, out=gaps)
        squares = edges.decoder_gaps(gaps, self.u, self.X[rows], by_u)
        np.matmul(gaps, self.U, out=self._by_Z[rows])
        return squares, gaps.T @ Z, by_u


class Generator:
    """Weights of all edges before the sigmoid.

    The first layer and the normalisation over edges are linear in the mean of the ends, so that
    they are done once per sample: halves ``h_i``, with ``h_i + h_j`` the unit of an edge.
    """

    def __init__(self, weights: Weights, entries: Entries, rate: float) -> None:
        self.entries, self.W1 = entries, weights.W1
        self.scale, self.shift, self.W2, self.b2 = (
            getattr(weights, name) for name in ("scale", "shift", "W2", "b2")
        )
        shape = entries.n_samples, len(self.scale)
        self.halves, self._pull, self._slopes = (np.empty(shape, np.float32) for _ in range(3))
        parameters = self.W1, self.scale, self.shift, self.W2, self.b2
        self._adams = [Adam(w, rate, DECAY) for w in parameters]

    def first_layer(self) -> np.ndarray:
        """The first layer on a mean that is written twice, of which a half of ``W1`` reads each."""
        upper, lower = np.split(self.W1, 2)
        return (upper + lower) / 2

    def read(self, Z: np.ndarray) -> None:
        """Halves of all samples, from their coordinates."""
        np.matmul(Z, self.first_layer(), out=self.halves)

    def weigh(self) -> np.ndarray:
        """Weights of all entries, (size,), from the halves, which are centred."""
        entries, h = self.entries, self.halves
        h -= entries.degrees @ h / (2 * entries.n_edges)
        # The squares of h_i + h_j, added over all edges, are h times (degrees + neighbours) h.
        entries.run(edges.graph_product, (entries.ones, entries.degrees), h, self._pull)
        squares = np.einsum("ic,ic->c", h, self._pull)
        self._deviations = np.sqrt(np.maximum(squares, 0) / entries.n_edges + STABILISER)
        self._units = h * (self.scale / self._deviations) + self.shift / 2
        out = entries.empty()
        entries.run(edges.relu_of_sums, self._units, self.W2, out)
        out += self.b2
        return out

    def gradients(self, by_edges: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """By the halves before the normalisation, and by all parameters but ``W1``."""
        entries, h = self.entries, self.halves
        entries.run(edges.relu_slopes, by_edges, self._units, self._slopes)
        # All sums over edges follow from two sums over samples, as those of the pull are zero.
        slopes, along = self._slopes.sum(0), np.einsum("ic,ic->c", self._slopes, h)
        gain = self.scale / self._deviations
        by_scale = self.W2 * along / self._deviations
        by_h = self._slopes * (self.W2 * gain)
        by_h -= self._pull * (by_scale * gain / (entries.n_edges * self._deviations))
        by_h -= np.outer(entries.degrees, self.W2 * gain * slopes / (2 * entries.n_edges))
        by_W2 = gain * along + self.shift / 2 * slopes
        # Every edge has two entries.
        by_b2 = by_edges.sum(keepdims=True) / 2
        return by_h, [by_scale, self.W2 * slopes / 2, by_W2, by_b2]

    def step(self, Z: np.ndarray, by_edges: np.ndarray) -> None:
        by_h, others = self.gradients(by_edges)
        by_M = Z.T @ by_h
        for adam, gradient in zip(self._adams, [np.vstack([by_M, by_M]) / 2, *others], strict=True):
            adam.step(gradient)


class Evaluator:
    """Scores ``sigmoid(A V)_ii``: row sums of ``A`` times what the critic says of its entries."""

    def __init__(self, weights: Weights, entries: Entries, graphs: Any, rate: float) -> None:
        self.entries, self.critic = entries, entries.spread(weights.critic)
        self._graphs = np.stack([*(entries.values_of(graph) for graph in graphs), entries.empty()])
        self._scores, self._gradient = np.empty_like(entries.degrees), entries.empty()
        self._adam = Adam(self.critic, rate, DECAY)

    def add_doubt(self, A: np.ndarray, by_A: np.ndarray) -> None:
        """Add the gradient of the mean of ``-log score(A)``: small where ``A`` seems real."""
        self.entries.run_light(edges.row_scores, A, self.critic, self._scores)
        slopes = -sigmoid(-self._scores) / self.entries.n_samples
        self.entries.run_light(edges.add_doubts, self.critic, slopes, by_A)

    def step(self, A: np.ndarray) -> None:
        """The views' graphs are real, the made one is not."""
        self._graphs[-1] = A
        self.entries.run(edges.critic_gradients, self._graphs, self.critic, self._gradient)
        self._adam.step(self._gradient)


class Classifier:
    """Two graph convolutions of ``H = Z C1``, on the graph without its weak edges."""

    def __init__(self, weights: Weights, entries: Entries, problem: Problem, rate: float) -> None:
        self.entries, self.rows, self.known = entries, problem.rows, problem.known
        self.theta, self.C1, self.C2 = weights.theta, weights.C1, weights.C2
        wide, narrow = ((entries.n_samples, C.shape[1]) for C in (self.C1, self.C2))
        self.H, self._hidden, self._back, self._by_H = (np.empty(wide, np.float32) for _ in "1234")
        self._inner, self._by_inner = np.empty(narrow, np.float32), np.empty(narrow, np.float32)
        self._shrunk, self._values, self._by_values, self._by_A = (entries.empty() for _ in "1234")
        self._roots = np.empty_like(entries.degrees)
        self._adams = [Adam(w, rate, DECAY) for w in (self.theta, self.C1, self.C2)]

    @property
    def threshold(self) -> float:
        """Weight below which an edge is dropped."""
        return float(sigmoid(self.theta)[0]) / 2

    def logits(self, A: np.ndarray) -> np.ndarray:
        """Of all samples, (n_samples, n_classes), with all hidden units."""
        self._convolve(A, Dropout.none(self.H.shape))
        out = np.empty_like(self._inner)
        self.entries.run(edges.graph_product, self._graph, self._inner, out)
        return np.maximum(out, 0)

    def mismatch(self, A: np.ndarray, dropout: Dropout) -> float:
        """Cross-entropy of the labelled samples; leaves what its gradients are made from."""
        self._convolve(A, dropout)
        parts = self.entries.table, self._graph
        logits = np.empty((len(self.rows), self.C2.shape[1]), np.float32)
        edges.rows_product(*parts, self._inner, self.rows, logits)
        loss, slopes = cross_entropy(np.maximum(logits, 0), self.known)
        slopes *= logits > 0
        self._by_inner.fill(0)
        self._by_values.fill(0)
        sides = self._inner, slopes
        edges.rows_gradients(*parts, sides, self.rows, self._by_inner, self._by_values)

        def back(rows: slice) -> None:
            np.matmul(self._by_inner[rows], self.C2.T, out=self._back[rows])
            # A unit is on where it is positive and kept.
            edges.where_positive(self._back[rows], self._hidden[rows], dropout.scale)

        on_blocks(back, self.entries.light_blocks)
        return loss

    def unit_gradient(self) -> np.ndarray:
        """Of the last mismatch by ``H``."""
        self.entries.run(edges.graph_product, self._graph, self._back, self._by_H)
        return self._by_H

    def edge_gradient(self, A: np.ndarray) -> np.ndarray:
        """Of the last mismatch, which was of ``A``, by the edges; to be asked for once."""
        sides, graph, values = (self.H, self._back), (A, self._roots), self._by_values
        self.entries.run(edges.add_inner_products, A, self._bounds[0], sides, values)
        self.entries.run(edges.shrink_gradients, graph, self._bounds, values, self._by_A)
        return self._by_A

    def step(self, A: np.ndarray, Z: np.ndarray) -> None:
        """On the last mismatch, which was of ``A``."""
        graph, sides = (A, self._roots), (self.H, self._back)
        parts = self.entries.table, graph, self._bounds, self._by_values, sides
        by_theta = edges.threshold_gradient(*parts) * self.threshold * (1 - 2 * self.threshold)

        def gradient_rows(rows: slice) -> np.ndarray:
            ends = rows.start, rows.stop, self.entries.table
            edges.graph_product(*ends, self._graph, self._back, self._by_H)
            return Z[rows].T @ self._by_H[rows]

        by_C2 = self._hidden.T @ self._by_inner
        gradients = (
            np.array([by_theta]),
            sum(on_blocks(gradient_rows, self.entries.blocks)),
            by_C2,
        )
        for adam, gradient in zip(self._adams, gradients, strict=True):
            adam.step(gradient)

    def _convolve(self, A: np.ndarray, dropout: Dropout) -> None:
        """The normalised graph, the hidden units, and these times ``C2``."""
        table, roots, low = self.entries.table, self._roots, self.threshold
        self._bounds = np.float32(low), np.float32(low + RAMP)
        self.entries.run_light(edges.degree_roots, A, self._bounds, self._shrunk, roots)
        self._graph = self._values, roots * roots

        def convolve(rows: slice) -> None:
            ends, hidden = (rows.start, rows.stop, table), self._hidden[rows]
            edges.normalised_rows(*ends, self._shrunk, roots, self._values)
            edges.graph_product(*ends, self._graph, self.H, self._hidden)
            edges.drop_units(hidden, dropout.bits[rows], dropout.cut, dropout.scale)
            np.matmul(hidden, self.C2, out=self._inner[rows])

        on_blocks(convolve, self.entries.blocks)
