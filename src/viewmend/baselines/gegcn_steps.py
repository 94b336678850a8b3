"""The four networks of GEGCN on the processor, with gradients written by hand.

Sums over edges are compiled (`viewmend.backend.edges`). Steps that do not need each other run side
by side, and rows are cut in the same blocks whatever the number of threads.
`viewmend.baselines.gegcn_torch` says the same in fewer words, for a GPU.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from viewmend.backend import edges, layers
from viewmend.backend.threads import parallel_map, serial_blas
from viewmend.baselines.gegcn_parts import (
    Adam,
    Dropout,
    Entries,
    blocks_of,
    side_by_side,
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
        self.classifier = Classifier(weights, settings.classifier)
        # Two, as one may be at work for the embedding while the other is for the other networks.
        self._mismatches = [Mismatch(self.classifier, entries, problem) for _ in "12"]
        self._rate, self._rng = settings.dropout, rng

    def pretrain(self) -> float:
        """A step of the embedding on ``R``; its value before."""
        return self.embedding.pretrain()

    def train(self) -> float:
        """A step of each network in turn, with the others held fixed; ``CE + R`` before."""
        embedding, classifier, Z = self.embedding, self.classifier, self.embedding.Z
        weighing, H, dropouts = side_by_side(
            lambda: self.generator.weigh(Z), lambda: Z @ classifier.C1, self._dropouts
        )
        # All but the embedding know it as it was before its step.
        by_weights, (CE, products), *parts = side_by_side(
            lambda: self._step_others(Z, H, weighing, dropouts[1:]),
            lambda: self._mismatch_gradient(H, weighing, dropouts[0]),
            *(partial(embedding.reconstruct, rows) for rows in embedding.blocks),
        )
        R = embedding.step(parts, products)
        classifier.step(by_weights)
        return CE + R

    def outcome(self) -> Outcome:
        """Of the networks as they are, with all hidden units."""
        with serial_blas():
            Z = self.embedding.Z
            A = sigmoid(self.generator.weigh(Z).values)
            logits = self._mismatches[0].logits(A, Z @ self.classifier.C1)
        return Outcome(logits, Z.copy(), self.entries.array(A), self.classifier.threshold)

    def _mismatch_gradient(
        self, H: np.ndarray, weighing: Weighing, dropout: Dropout
    ) -> tuple[float, list[Product]]:
        """``CE``, and its gradient by ``Z`` as the sum of all ``B C^T``.

        Of the weights before the sigmoid, as the authors train the embedding.
        """
        mismatch = self._mismatches[0]
        CE = mismatch.measure(weighing.values, H, dropout)
        by_halves, _ = weighing.gradients(mismatch.by_edges())
        return CE, [(by_halves, weighing.M), (mismatch.by_units(), self.classifier.C1)]

    def _step_others(
        self, Z: np.ndarray, H: np.ndarray, weighing: Weighing, dropouts: list[Dropout]
    ) -> list[np.ndarray]:
        """Steps of the generator and of the evaluator; gradients by the classifier's weights."""
        mismatch, A = self._mismatches[1], sigmoid(weighing.values)
        mismatch.measure(A, H, dropouts[0])
        by_A = mismatch.by_edges()
        self.evaluator.add_doubt(A, by_A)
        by_A *= A * (1 - A)
        self.generator.step(weighing, Z, by_A)
        A = sigmoid(self.generator.weigh(Z).values)
        self.evaluator.step(A)
        mismatch.measure(A, H, dropouts[1])
        return mismatch.by_weights(Z)

    def _dropouts(self) -> list[Dropout]:
        """Of the three mismatches of an epoch."""
        shape = self.entries.n_samples, self.classifier.C1.shape[1]
        return [Dropout.draw(shape, self._rate, self._rng) for _ in "123"]


# Two matrices ``B, C`` that stand for ``B C^T``.
Product = tuple[np.ndarray, np.ndarray]
# Squares of the gaps of some rows, and their part of the gradients by the decoders.
Part = tuple[float, np.ndarray, np.ndarray]


class Embedding:
    """Coordinates ``Z = relu(W)``, and the loss ``R = 1/2 |X - relu(Z U^T + u)|^2``."""

    def __init__(self, weights: Weights, X: np.ndarray, rate: float) -> None:
        self.X, self.W, self.U, self.u = X, weights.W, weights.U, weights.u
        self.Z = np.maximum(self.W, 0)
        self._by_Z, self._gaps = np.empty_like(self.W), np.empty_like(X)
        self._ones = np.ones(len(X), np.float32)
        self.blocks = blocks_of(len(X))
        self._adams = [Adam(w, rate, EMBEDDING_DECAY) for w in (self.W, self.U, self.u)]

    def pretrain(self) -> float:
        """A step on ``R`` alone; its value before."""
        self._adams[0].begin()

        def step(rows: slice) -> Part:
            part = self.reconstruct(rows)
            self._step_rows(rows, [])
            return part

        return self._step_decoders(parallel_map(step, self.blocks))

    def reconstruct(self, rows: slice) -> Part:
        """Of some rows; leaves their gradient by ``Z``."""
        Z, gaps, by_u = self.Z[rows], self._gaps[rows], np.empty_like(self.u)
        np.matmul(Z, self.U.T, out=gaps)
        squares = layers.decoder_gaps(gaps, self.u, self.X[rows], by_u)
        np.matmul(gaps, self.U, out=self._by_Z[rows])
        return squares, gaps.T @ Z, by_u

    def step(self, parts: list[Part], products: list[Product]) -> float:
        """On ``R``, and what else has the gradient by ``Z`` that the products add up to."""
        self._adams[0].begin()
        parallel_map(lambda rows: self._step_rows(rows, products), self.blocks)
        return self._step_decoders(parts)

    def _step_rows(self, rows: slice, products: list[Product]) -> None:
        by_Z = self._by_Z[rows]
        for B, C in products:
            by_Z += B[rows] @ C.T
        layers.where_positive(by_Z, self.Z[rows], self._ones[rows])
        self._adams[0].step_rows(rows, by_Z)
        np.maximum(self.W[rows], 0, out=self.Z[rows])

    def _step_decoders(self, parts: list[Part]) -> float:
        """``R``."""
        squares, by_U, by_u = zip(*parts, strict=True)
        self._adams[1].step(sum(by_U[1:], start=by_U[0]))
        self._adams[2].step(sum(by_u[1:], start=by_u[0]))
        return sum(squares) / 2


class Generator:
    """Parameters of two layers, from the mean of an edge's ends to its weight."""

    def __init__(self, weights: Weights, entries: Entries, rate: float) -> None:
        self.entries, self.W1 = entries, weights.W1
        self.scale, self.shift, self.W2, self.b2 = (
            getattr(weights, name) for name in ("scale", "shift", "W2", "b2")
        )
        parameters = self.W1, self.scale, self.shift, self.W2, self.b2
        self._adams = [Adam(w, rate, DECAY) for w in parameters]

    def weigh(self, Z: np.ndarray) -> Weighing:
        return Weighing(self, Z)

    def step(self, weighing: Weighing, Z: np.ndarray, by_edges: np.ndarray) -> None:
        by_h, others = weighing.gradients(by_edges)
        by_M = Z.T @ by_h
        for adam, gradient in zip(self._adams, [np.vstack([by_M, by_M]) / 2, *others], strict=True):
            adam.step(gradient)


class Weighing:
    """``values``, the weights of all entries before the sigmoid, (size,); with their gradients.

    The first layer and the normalisation over edges are linear in the mean of the ends, so that
    they are done once per sample: halves ``h_i``, with ``h_i + h_j`` the unit of an edge. What the
    gradients need of the generator is copied, as its step may come first.
    """

    def __init__(self, generator: Generator, Z: np.ndarray) -> None:
        self.entries = entries = generator.entries
        # The first layer reads the mean twice, each time with a half of its weights.
        width = Z.shape[1]
        self.M = (generator.W1[:width] + generator.W1[width:]) / 2
        self._W2, self._shift = generator.W2.copy(), generator.shift.copy()
        self._h = h = Z @ self.M
        mean = entries.degrees @ h / (2 * entries.n_edges)
        layers.affine(h, np.ones_like(mean), -mean, h)
        # The squares of h_i + h_j, added over all edges, are h times (degrees + neighbours) h.
        self._pull = np.empty_like(h)
        edges.graph_product(entries.table, entries.ones, entries.degrees, h, self._pull)
        squares = layers.column_dots(h, self._pull)
        self._deviations = np.sqrt(np.maximum(squares, 0) / entries.n_edges + STABILISER)
        self._gain = generator.scale / self._deviations
        self._units = np.empty_like(h)
        layers.affine(h, self._gain, self._shift / 2, self._units)
        self.values = np.empty(entries.size, np.float32)
        edges.relu_of_sums(entries.table, self._units, self._W2, self.values)
        self.values += generator.b2

    def gradients(self, by_edges: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """By the halves before the normalisation, and by all parameters but ``W1``."""
        entries, W2, gain, by_h = self.entries, self._W2, self._gain, np.empty_like(self._h)
        edges.relu_slopes(entries.table, by_edges, self._units, by_h)
        # All sums over edges follow from two sums over samples, as those of the pull are zero.
        slopes, along = np.ones_like(entries.degrees) @ by_h, layers.column_dots(by_h, self._h)
        by_scale = W2 * along / self._deviations
        along_pull = -by_scale * gain / (entries.n_edges * self._deviations)
        along_degrees = -W2 * gain * slopes / (2 * entries.n_edges)
        layers.combine(by_h, self._pull, entries.degrees, (W2 * gain, along_pull, along_degrees))
        by_W2 = gain * along + self._shift / 2 * slopes
        # Every edge has two entries.
        by_b2 = by_edges.sum(keepdims=True) / 2
        return by_h, [by_scale, W2 * slopes / 2, by_W2, by_b2]


class Evaluator:
    """Scores ``sigmoid(A V)_ii``: row sums of ``A`` times what the critic says of its entries."""

    def __init__(self, weights: Weights, entries: Entries, graphs: Any, rate: float) -> None:
        self.entries, self.critic = entries, entries.spread(weights.critic)
        self._graphs = np.stack([*(entries.values_of(graph) for graph in graphs), entries.empty()])
        self._scores, self._gradient = np.empty_like(entries.degrees), entries.empty()
        self._adam = Adam(self.critic, rate, DECAY)

    def add_doubt(self, A: np.ndarray, by_A: np.ndarray) -> None:
        """Add the gradient of the mean of ``-log score(A)``: small where ``A`` seems real."""
        edges.row_scores(self.entries.table, A, self.critic, self._scores)
        slopes = -sigmoid(-self._scores) / self.entries.n_samples
        edges.add_doubts(self.entries.table, self.critic, slopes, by_A)

    def step(self, A: np.ndarray) -> None:
        """The views' graphs are real, the made one is not."""
        self._graphs[-1] = A
        edges.critic_gradients(self.entries.table, self._graphs, self.critic, self._gradient)
        self._adam.step(self._gradient)


class Classifier:
    """Parameters of two graph convolutions, and the threshold of the edges they see."""

    def __init__(self, weights: Weights, rate: float) -> None:
        self.theta, self.C1, self.C2 = weights.theta, weights.C1, weights.C2
        self._adams = [Adam(w, rate, DECAY) for w in (self.theta, self.C1, self.C2)]

    @property
    def threshold(self) -> float:
        """Weight below which an edge is dropped."""
        return float(sigmoid(self.theta)[0]) / 2

    def step(self, gradients: list[np.ndarray]) -> None:
        for adam, gradient in zip(self._adams, gradients, strict=True):
            adam.step(gradient)


class Mismatch:
    """Cross-entropy ``CE`` of the labelled samples by the classifier on one graph.

    The convolution of ``H`` is ``R (S + I) R H``, with ``S`` the graph without its weak edges and
    ``R`` one over the roots of its degrees, a diagonal that counts as constant. What is kept of
    ``H`` and of the hidden units is multiplied by ``R``, as the next product with ``S`` asks for.
    """

    def __init__(self, classifier: Classifier, entries: Entries, problem: Problem) -> None:
        self.classifier, self.entries = classifier, entries
        self.rows, self.known = problem.rows, problem.known
        wide, narrow = ((entries.n_samples, C.shape[1]) for C in (classifier.C1, classifier.C2))
        self._H, self._hidden, self._back, self._by_H = (np.empty(wide, np.float32) for _ in "1234")
        self._inner, self._by_inner = np.empty(narrow, np.float32), np.empty(narrow, np.float32)
        self._shrunk, self._by_shrunk, self._by_A = (entries.empty() for _ in "123")
        self._roots, self._ones = np.empty_like(entries.degrees), np.ones_like(entries.degrees)

    def logits(self, A: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Of all samples, (n_samples, n_classes), with all hidden units."""
        self._convolve(A, H, Dropout.none(H.shape))
        out = np.empty_like(self._inner)
        edges.graph_product(self.entries.table, self._shrunk, self._ones, self._inner, out)
        return np.maximum(out * self._roots[:, None], 0)

    def measure(self, A: np.ndarray, H: np.ndarray, dropout: Dropout) -> float:
        """``CE``; leaves what its gradients are made from."""
        self._convolve(A, H, dropout)
        parts, roots = (self.entries.table, self._shrunk), self._roots[self.rows, None]
        logits, slopes = np.empty((2, len(self.rows), self._inner.shape[1]), np.float32)
        edges.rows_product(*parts, self._inner, self.rows, logits)
        loss = layers.cross_entropy(logits * roots, self.known, slopes)
        self._by_inner.fill(0)
        sides = self._inner, slopes * roots
        edges.rows_gradients(*parts, sides, self.rows, self._by_inner, self._by_shrunk)
        np.matmul(self._by_inner, self.classifier.C2.T, out=self._back)
        # A unit is on where it is positive and kept.
        layers.where_positive(self._back, self._hidden, self._factors)
        return float(loss)

    def by_units(self) -> np.ndarray:
        """Gradient by ``H``."""
        parts = self.entries.table, self._shrunk, self._ones
        edges.graph_product(*parts, self._back, self._by_H)
        self._by_H *= self._roots[:, None]
        return self._by_H

    def by_edges(self) -> np.ndarray:
        """Gradient by the entries of ``A``, zero in blanks."""
        parts = self.entries.table, self._A, self._bounds, (self._H, self._back)
        edges.edge_gradients(*parts, self.rows, self._by_shrunk, self._by_A)
        return self._by_A

    def by_weights(self, Z: np.ndarray) -> list[np.ndarray]:
        """Gradients by ``theta``, ``C1`` and ``C2``."""
        parts = self.entries.table, self._A, self._bounds, (self._H, self._back)
        low = self.classifier.threshold
        by_theta = edges.threshold_gradient(*parts, self._by_shrunk) * low * (1 - 2 * low)
        by_C1, by_C2 = Z.T @ self.by_units(), self._hidden.T @ self._by_inner
        return [np.array([by_theta]), by_C1, by_C2]

    def _convolve(self, A: np.ndarray, H: np.ndarray, dropout: Dropout) -> None:
        """The graph ``S``, the hidden units, and these times ``C2``."""
        table, roots, low = self.entries.table, self._roots, self.classifier.threshold
        self._A, self._bounds = A, (np.float32(low), np.float32(low + RAMP))
        edges.shrink_graph(table, A, self._bounds, H, self._shrunk, roots, self._H)
        self._factors = roots * roots * dropout.scale
        drawn = self._factors, dropout.bits, dropout.cut
        edges.hidden_units(table, self._shrunk, self._H, *drawn, self._hidden)
        np.matmul(self._hidden, self.classifier.C2, out=self._inner)
