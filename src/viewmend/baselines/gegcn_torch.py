"""The four networks of GEGCN in PyTorch, with its own gradients, and what they are made of.

For a GPU, and as what the faster `viewmend.baselines.gegcn_steps` must agree with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from viewmend.baselines.torch_support import TorchRun

__all__ = [
    "DECAY",
    "EMBEDDING_DECAY",
    "RAMP",
    "STABILISER",
    "Outcome",
    "Problem",
    "Settings",
    "TorchNetworks",
    "Weights",
    "shrink",
]

# Weight decay of the embedding, and of the three other networks.
EMBEDDING_DECAY = 5e-5
DECAY = 5e-4
# Ends of the ramp of the shrinkage are s / 2 and s / 2 + RAMP.
RAMP = 0.1
# Added to the variances of the batch normalisation.
STABILISER = 1e-5


@dataclass(frozen=True, eq=False)
class Problem:
    """What is learnt from.

    Attributes
    ----------
    X : array (n_samples, n_features), single precision
        All views side by side.
    graphs : sequence of sparse array (n_samples, n_samples)
        Those of the views: zero or one, symmetric, with zero diagonal.
    rows, known : array (n_labelled,) of int
        Labelled samples, and their classes.
    """

    X: np.ndarray
    graphs: Sequence[csr_array]
    rows: np.ndarray
    known: np.ndarray

    @property
    def pattern(self) -> csr_array:
        """Edges of any view."""
        union = csr_array(sum(self.graphs[1:], start=self.graphs[0]))
        union.sort_indices()
        return union

    def reordered(self, order: np.ndarray) -> Problem:
        """The same with the samples in another order: first sample ``order[0]``, and so on."""
        graphs = [csr_array(A_v[order][:, order]) for A_v in self.graphs]
        return Problem(self.X[order], graphs, np.argsort(order)[self.rows], self.known)


class Settings(NamedTuple):
    """Learning rates of the networks, and the share of hidden units left out at a step."""

    embedding: float
    generator: float
    evaluator: float
    classifier: float
    dropout: float


@dataclass(frozen=True, eq=False)
class Weights:
    """Parameters of the four networks, in single precision.

    Attributes
    ----------
    W : (n_samples, n_components)
    U, u : (n_features, n_components), (n_features,)
        Decoders of all views.
    W1, scale, shift, W2, b2 : (2 n_components, m), (m,), (m,), (m,), (1,)
        Generator: linear, batch normalisation, linear. The first layer has no biases, as the
        normalisation would take them off again.
    critic : (n_entries,)
        Evaluator: ``V_ji`` of every stored entry (i, j) of the pattern, row by row.
    theta, C1, C2 : (1,), (n_components, n_hidden), (n_hidden, n_classes)
        Classifier.
    """

    W: Any
    U: Any
    u: Any
    W1: Any
    scale: Any
    shift: Any
    W2: Any
    b2: Any
    critic: Any
    theta: Any
    C1: Any
    C2: Any


class Outcome(NamedTuple):
    """Logits (n_samples, n_classes), coordinates, generated graph and threshold of its edges."""

    logits: np.ndarray
    Z: np.ndarray
    graph: csr_array
    threshold: float


class TorchNetworks:
    """The networks, and their steps one after the other.

    Parameters
    ----------
    problem : Problem
    weights : Weights
        Where all of them start.
    settings : Settings
    run : TorchRun
        Device, and random numbers of the units left out.
    """

    def __init__(
        self, problem: Problem, weights: Weights, settings: Settings, run: TorchRun
    ) -> None:
        self.run, self.dropout = run, settings.dropout
        arrays = {field.name: getattr(weights, field.name) for field in fields(Weights)}
        self.weights = Weights(**{k: run.tensor(w).requires_grad_() for k, w in arrays.items()})
        self.X, self.rows, self.known = map(run.tensor, (problem.X, problem.rows, problem.known))
        self._pattern = pattern = problem.pattern
        i = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        self.i, self.j = run.tensor(i), run.tensor(pattern.indices.astype(np.int64))
        self._starts = run.tensor(pattern.indptr[:-1].astype(np.int64))
        # The older sparse class, as the newer one answers differently from version to version.
        real = [np.asarray(csr_matrix(A_v)[i, pattern.indices]).ravel() for A_v in problem.graphs]
        self.real = [run.tensor(A_v) for A_v in real]
        self.embedding, self.generator, self.evaluator, self.classifier = self._optimisers(settings)

    def _optimisers(self, settings: Settings) -> list[Any]:
        w, adam = self.weights, self.run.adam
        return [
            adam([w.W, w.U, w.u], settings.embedding, EMBEDDING_DECAY),
            adam([w.W1, w.scale, w.shift, w.W2, w.b2], settings.generator, DECAY),
            adam([w.critic], settings.evaluator, DECAY),
            adam([w.theta, w.C1, w.C2], settings.classifier, DECAY),
        ]

    def pretrain(self) -> Any:
        """A step of the embedding on ``R``; its value before."""
        R = self.reconstruction(self.coordinates())
        self.run.step(self.embedding, R)
        return R.detach()

    def train(self) -> Any:
        """A step of each network in turn, with the others held fixed; ``CE + R`` before."""
        run, Z = self.run, self.coordinates()
        # The embedding is trained on the weights before the sigmoid, as the authors do.
        objective = self.mismatch(self.edges(Z), Z) + self.reconstruction(Z)
        run.step(self.embedding, objective)
        # From here on with the coordinates before that step.
        Z = Z.detach()
        A = self.edges(Z).sigmoid()
        run.step(self.generator, self.doubt(A) + self.mismatch(A, Z))
        A = self.edges(Z).sigmoid().detach()
        run.step(self.evaluator, self.critique(A))
        run.step(self.classifier, self.mismatch(A, Z))
        return objective.detach()

    def outcome(self) -> Outcome:
        """Of the networks as they are, with all hidden units."""
        with self.run.torch.no_grad():
            Z = self.coordinates()
            A = self.edges(Z).sigmoid()
            logits, Z, values = (x.cpu().numpy() for x in (self.logits(A, Z), Z, A.double()))
        parts = values, self._pattern.indices, self._pattern.indptr
        threshold = self.weights.theta.sigmoid().item() / 2
        return Outcome(logits, Z, csr_array(parts, self._pattern.shape), threshold)

    def coordinates(self) -> Any:
        """``Z = relu(W)``."""
        return self.weights.W.relu()

    def reconstruction(self, Z: Any) -> Any:
        """``R = 1/2 |X - relu(Z U^T + u)|^2``, views side by side."""
        return (self.X - (Z @ self.weights.U.T + self.weights.u).relu()).square().sum() / 2

    def edges(self, Z: Any) -> Any:
        """Weights of all entries of the graph before the sigmoid, (n_entries,)."""
        w = self.weights
        # An edge is its mean of coordinates written twice, so that a half of W1 reads each.
        upper, lower = w.W1.chunk(2)
        halves = Z @ (upper + lower) / 2
        units = halves.index_select(0, self.i) + halves.index_select(0, self.j)
        units = self.run.torch.nn.functional.batch_norm(
            units, None, None, w.scale, w.shift, training=True, eps=STABILISER
        )
        return units.relu() @ w.W2 + w.b2

    def logits(self, A: Any, Z: Any, dropout: float = 0.0) -> Any:
        """Two graph convolutions on the shrunk graph, (n_samples, n_classes)."""
        shrunk = shrink(A, self.weights.theta.sigmoid() / 2, RAMP)
        # Constants in all gradients: see the notes of `GEGCNClassifier`.
        roots = (1 + self._row_sums(shrunk.detach())).rsqrt()
        values, loops = shrunk * roots[self.i] * roots[self.j], roots.square()[:, None]
        hidden = (self._product(values, H := Z @ self.weights.C1) + loops * H).relu()
        inner = self.run.dropout(hidden, dropout) @ self.weights.C2
        return (self._product(values, inner) + loops * inner).relu()

    def mismatch(self, A: Any, Z: Any) -> Any:
        """``CE``, the cross-entropy of the labelled samples."""
        logits = self.logits(A, Z, self.dropout).index_select(0, self.rows)
        return self.run.torch.nn.functional.cross_entropy(logits, self.known)

    def doubt(self, A: Any) -> Any:
        """``-log score(A)``, the mean over samples: small where ``A`` is taken for real."""
        return self._softplus(-self._scores(A))

    def critique(self, A: Any) -> Any:
        """Loss of the evaluator: the views' graphs are real, the made one is not."""
        real = sum(self._softplus(-self._scores(A_v)) for A_v in self.real) / len(self.real)
        return (real + self._softplus(self._scores(A))) / 2

    def _scores(self, A: Any) -> Any:
        """``(A V)_ii``, of which the sigmoid is the score."""
        return self._row_sums(A * self.weights.critic)

    def _softplus(self, scores: Any) -> Any:
        return self.run.torch.nn.functional.softplus(scores).mean()

    def _row_sums(self, values: Any) -> Any:
        return self._product(values, self.X.new_ones(len(self.X), 1))[:, 0]

    def _product(self, values: Any, H: Any) -> Any:
        """``A H``."""
        return self.run.torch.nn.functional.embedding_bag(
            self.j, H, self._starts, mode="sum", per_sample_weights=values
        )


def shrink(A: Any, low: Any, ramp: float) -> Any:
    """Zero below ``low``, a ramp up to ``low + ramp``, the identity above."""
    high = low + ramp
    return (high * (A - low).relu() - low * (A - high).relu()) / ramp
