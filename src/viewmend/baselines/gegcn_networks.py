"""The four networks of GEGCN in PyTorch, where they start, and their steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from viewmend.baselines.torch_support import Tensor, TorchRun

# Where theta starts, of which the sigmoid is twice the threshold.
FIRST_THRESHOLD = -1.5
# The ramp of the shrinkage begins at the threshold and is as long as this.
RAMP = 0.1
# Weight decay of the embedding, and of the three other networks.
EMBEDDING_DECAY = 5e-5
DECAY = 5e-4


@dataclass(frozen=True, eq=False)
class GraphTask:
    """All views side by side, their graphs, and the positions and classes of labelled samples.

    A graph (n_samples, n_samples) is zero or one, symmetric, with zero diagonal.
    """

    X: np.ndarray
    graphs: Sequence[csr_array]
    labelled: np.ndarray
    classes: np.ndarray

    @property
    def pattern(self) -> csr_array:
        """Edges of any view."""
        union = csr_array(sum(self.graphs[1:], start=self.graphs[0]))
        union.sort_indices()
        return union


@dataclass(frozen=True, eq=False)
class Weights:
    """Parameters of the four networks: arrays at first, tensors inside `Networks`.

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


def first_weights(
    task: GraphTask, sizes: tuple[int, int, int, int], rng: np.random.Generator
) -> Weights:
    """Where the networks start.

    ``sizes`` are the coordinates of the embedding, the hidden units of the generator and of the
    classifier, and the classes.
    """
    width, n_edge_hidden, n_hidden, n_classes = sizes
    n_samples, n_features = task.X.shape

    def linear(*shape: int, n_in: int) -> np.ndarray:
        return rng.uniform(-(n_in**-0.5), n_in**-0.5, shape)

    def glorot(n_in: int, n_out: int) -> np.ndarray:
        bound = (6 / (n_in + n_out)) ** 0.5
        return rng.uniform(-bound, bound, (n_in, n_out))

    return Weights(
        W=glorot(n_samples, width),
        U=linear(n_features, width, n_in=width),
        u=linear(n_features, n_in=width),
        W1=linear(2 * width, n_edge_hidden, n_in=2 * width),
        scale=np.ones(n_edge_hidden),
        shift=np.zeros(n_edge_hidden),
        W2=linear(n_edge_hidden, n_in=n_edge_hidden),
        b2=linear(1, n_in=n_edge_hidden),
        critic=rng.uniform(size=task.pattern.nnz),
        theta=np.full(1, FIRST_THRESHOLD),
        C1=glorot(width, n_hidden),
        C2=glorot(n_hidden, n_classes),
    )


class Networks:
    """The four networks in single precision, and their steps one after the other.

    They start at ``weights``; ``run`` draws the units left out at a rate of ``dropout``. A graph
    is the tensor (n_entries,) of its entries on the pattern, row by row.
    """

    def __init__(self, task: GraphTask, weights: Weights, dropout: float, run: TorchRun) -> None:
        self.run, self.dropout = run, dropout
        tensors = {name: run.tensor(array) for name, array in vars(weights).items()}
        self.weights = Weights(**{name: w.requires_grad_() for name, w in tensors.items()})
        self.X, self.labelled, self.classes = map(run.tensor, (task.X, task.labelled, task.classes))
        self._pattern = pattern = task.pattern
        i = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        self.i, self.j = run.tensor(i), run.tensor(pattern.indices.astype(np.int64))
        self._starts = run.tensor(pattern.indptr[:-1].astype(np.int64))
        # The older sparse class, as the newer one answers differently from version to version.
        self.real = [
            run.tensor(np.asarray(csr_matrix(A_v)[i, pattern.indices]).ravel())
            for A_v in task.graphs
        ]

    def optimisers(
        self, embedding: float, generator: float, evaluator: float, classifier: float
    ) -> tuple[Any, Any, Any, Any]:
        """Adam with these learning rates, for every network."""
        w, adam = self.weights, self.run.adam
        return (
            adam([w.W, w.U, w.u], embedding, EMBEDDING_DECAY),
            adam([w.W1, w.scale, w.shift, w.W2, w.b2], generator, DECAY),
            adam([w.critic], evaluator, DECAY),
            adam([w.theta, w.C1, w.C2], classifier, DECAY),
        )

    def pretrain(self, optimisers: Sequence[Any]) -> Tensor:
        """A step of the embedding on ``R``; its value before."""
        R = self.reconstruction(self.coordinates())
        self.run.step(optimisers[0], R)
        return R.detach()

    def train(self, optimisers: Sequence[Any]) -> Tensor:
        """A step of each network in turn, with the others held fixed; ``CE + R`` before."""
        embedding, generator, evaluator, classifier = optimisers
        step, Z = self.run.step, self.coordinates()
        # The embedding is trained on the weights before the sigmoid, as the authors do.
        objective = self.mismatch(self.edges(Z), Z) + self.reconstruction(Z)
        step(embedding, objective)
        # From here on with the coordinates before that step.
        Z = Z.detach()
        A = self.edges(Z).sigmoid()
        step(generator, self.doubt(A) + self.mismatch(A, Z))
        A = self.edges(Z).sigmoid().detach()
        step(evaluator, self.critique(A))
        step(classifier, self.mismatch(A, Z))
        return objective.detach()

    def outputs(self) -> tuple[np.ndarray, np.ndarray, csr_array]:
        """Logits, coordinates and generated graph, with all hidden units."""
        with self.run.torch.no_grad():
            Z = self.coordinates()
            A = self.edges(Z).sigmoid()
            logits, Z, values = (x.cpu().numpy() for x in (self.logits(A, Z), Z, A.double()))
        parts = values, self._pattern.indices, self._pattern.indptr
        return logits, Z, csr_array(parts, self._pattern.shape)

    def coordinates(self) -> Tensor:
        """``Z = relu(W)``."""
        return self.weights.W.relu()

    def threshold(self) -> Tensor:
        """Weight below which the classifier drops an edge."""
        return self.weights.theta.sigmoid() / 2

    def reconstruction(self, Z: Tensor) -> Tensor:
        """``R = 1/2 |X - relu(Z U^T + u)|^2``, views side by side."""
        return (self.X - (Z @ self.weights.U.T + self.weights.u).relu()).square().sum() / 2

    def edges(self, Z: Tensor) -> Tensor:
        """The generated graph before the sigmoid."""
        w = self.weights
        # An edge is its mean of coordinates written twice, so that a half of W1 reads each.
        upper, lower = w.W1.chunk(2)
        halves = Z @ (upper + lower) / 2
        units = halves.index_select(0, self.i) + halves.index_select(0, self.j)
        units = self.run.torch.nn.functional.batch_norm(
            units, None, None, w.scale, w.shift, training=True
        )
        return units.relu() @ w.W2 + w.b2

    def logits(self, A: Tensor, Z: Tensor, dropout: float = 0.0) -> Tensor:
        """Two graph convolutions on the shrunk graph, (n_samples, n_classes)."""
        shrunk = shrink(A, self.threshold())
        # Constants in all gradients: see the notes of `GEGCNClassifier`.
        roots = (1 + self._row_sums(shrunk.detach())).rsqrt()
        values, loops = shrunk * roots[self.i] * roots[self.j], roots.square()[:, None]
        hidden = (self._product(values, H := Z @ self.weights.C1) + loops * H).relu()
        inner = self.run.dropout(hidden, dropout) @ self.weights.C2
        return (self._product(values, inner) + loops * inner).relu()

    def mismatch(self, A: Tensor, Z: Tensor) -> Tensor:
        """``CE``, the cross-entropy of the labelled samples."""
        logits = self.logits(A, Z, self.dropout).index_select(0, self.labelled)
        return self.run.torch.nn.functional.cross_entropy(logits, self.classes)

    def doubt(self, A: Tensor) -> Tensor:
        """``-log score(A)``, the mean over samples: small where ``A`` is taken for real."""
        return self._softplus(-self._scores(A))

    def critique(self, A: Tensor) -> Tensor:
        """Loss of the evaluator: the views' graphs are real, the made one is not."""
        real = sum(self.doubt(A_v) for A_v in self.real) / len(self.real)
        return (real + self._softplus(self._scores(A))) / 2

    def _scores(self, A: Tensor) -> Tensor:
        """``(A V)_ii``, of which the sigmoid is the score."""
        return self._row_sums(A * self.weights.critic)

    def _softplus(self, scores: Tensor) -> Tensor:
        return self.run.torch.nn.functional.softplus(scores).mean()

    def _row_sums(self, A: Tensor) -> Tensor:
        return self._product(A, self.X.new_ones(len(self.X), 1))[:, 0]

    def _product(self, A: Tensor, H: Tensor) -> Tensor:
        """``A H``."""
        return self.run.torch.nn.functional.embedding_bag(
            self.j, H, self._starts, mode="sum", per_sample_weights=A
        )


def shrink(A: Tensor, low: Tensor) -> Tensor:
    """Zero below ``low``, a ramp up to ``low + RAMP``, the identity above."""
    high = low + RAMP
    return (high * (A - low).relu() - low * (A - high).relu()) / RAMP
