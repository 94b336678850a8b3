"""GEGCN: graph convolutions on a graph that a generator makes and an evaluator criticises.

J. Lu, Z. Wu, L. Zhong, Z. Chen, H. Zhao, S. Wang: Generative essential graph convolutional network
for multi-view semi-supervised classification, IEEE Transactions on Multimedia 26, 2024.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from viewmend.baselines.base import CompleteViewClassifier, Solution
from viewmend.baselines.torch_support import DEVICES, Pairs, TorchRun, binary_graph
from viewmend.containers import MultiViewData
from viewmend.exceptions import InvalidParameterError
from viewmend.labels import Labels
from viewmend.parameters import Integer, OneOf, Real, Rule

__all__ = ["GEGCNClassifier"]

# Weight decay of the embedding, and of the three other parts.
EMBEDDING_DECAY = 5e-5
DECAY = 5e-4
# Fewest common neighbours of two samples whose edge stays.
MIN_COMMON = 2
# Ends of the ramp of `shrink` are s / 2 and s / 2 + RAMP.
RAMP = 0.1
FIRST_THRESHOLD = -1.5


class GEGCNClassifier(CompleteViewClassifier):
    """Four networks in turn: embedding, graph generator, graph evaluator and classifier.

    With ``E`` the union of the views' pruned neighbour graphs ``A_v``:

    - Embedding: free coordinates ``Z = relu(W)`` of all samples, from which every view is decoded
      as ``relu(Z U_v + u_v)``, with loss ``R = 1/2 sum_v |X_v - relu(Z U_v + u_v)|^2``.
    - Generator: weight of each edge of ``E``, from the mean of the coordinates of its ends, through
      two layers; its sigmoid is the graph ``A``.
    - Evaluator: the score ``sigmoid(A V)_ii`` of every sample; trained to tell ``A_v`` from ``A``.
    - Classifier: edges of ``A`` below a learnt threshold fade, then two graph convolutions of
      ``Z``, with cross-entropy ``CE`` of the labelled samples.

    After pre-training the embedding by ``R``, each epoch takes one step of Adam per network, on
    ``CE + R``; ``CE - log score(A)``; the loss of the evaluator; and ``CE``.

    Needs every view of every sample; missing ones are imputed first. Needs PyTorch
    (``pip install viewmend[torch]``).

    Parameters
    ----------
    n_neighbors : int, default=15
        Neighbours in each view, before edges whose ends share fewer than two others are dropped.
    n_components : int, default=128
        Coordinates of the embedding.
    n_hidden : int, default=64
        Units between the two graph convolutions.
    n_edge_hidden : int, default=32
        Units between the two layers of the generator.
    dropout : float in [0, 1), default=0.3
        Share of the hidden units left out at each step.
    embedding_rate, generator_rate : float, default=1e-3
        Learning rates.
    evaluator_rate, classifier_rate : float, default=1e-2
    pretrain_iter : int, default=1000
        Epochs of the embedding alone.
    max_iter : int, default=700
        Epochs of all networks. There is no other stop: the last epoch counts.
    device : {"auto", "cpu", "cuda"}, default="auto"
        "auto" is the GPU where PyTorch finds one.
    imputer : transformer of `viewmend.impute`, optional
        None stands for deep matrix factorisation.
    random_state : int or None, default=None
        On the CPU, fits with the same seed and number of threads agree to the last bit.
    view_sizes : sequence of int, optional
        Columns of every view where ``X`` is one stacked array.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_
        As in `viewmend.AGFTIClassifier`; no sample is unreachable, as the classifier also sees the
        coordinates of a sample without any edge.
    history_ : tuple of float
        ``CE + R`` of every epoch, before its step.
    pretraining_history_ : tuple of float
        ``R`` of every epoch of pre-training.
    embedding_ : array (n_samples, n_components)
    graph_ : sparse array (n_samples, n_samples)
        The generated graph.
    threshold_ : float
        Weight below which the classifier drops an edge of it.

    Notes
    -----
    Of the evaluator's ``V`` (n, n) only the entries on ``E`` are kept: the others never meet an
    edge, so that no array (n, n) is needed and nothing changes.

    Where the paper leaves a choice or its program a fault, this is ours: columns with negative
    entries are raised to start at zero, as ``relu`` cannot reach below; the units left out at
    training are all there at prediction; edges are normalised over the batch at prediction too;
    weights start Glorot-uniform and biases at zero.
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_neighbors": Integer(1),
        "n_components": Integer(1),
        "n_hidden": Integer(1),
        "n_edge_hidden": Integer(1),
        "dropout": Real(0, 1, high_open=True),
        "embedding_rate": Real(0, low_open=True),
        "generator_rate": Real(0, low_open=True),
        "evaluator_rate": Real(0, low_open=True),
        "classifier_rate": Real(0, low_open=True),
        "pretrain_iter": Integer(0),
        "max_iter": Integer(1),
        "device": OneOf(*DEVICES),
    }
    # The network is run with the settings of its authors; nothing is tuned.
    grid: ClassVar[Mapping[str, Sequence[Any]]] = {}
    script_grid: ClassVar[Mapping[str, Sequence[Any]]] = {}

    def __init__(
        self,
        n_neighbors=15,
        n_components=128,
        n_hidden=64,
        n_edge_hidden=32,
        dropout=0.3,
        embedding_rate=1e-3,
        generator_rate=1e-3,
        evaluator_rate=1e-2,
        classifier_rate=1e-2,
        pretrain_iter=1000,
        max_iter=700,
        device="auto",
        imputer=None,
        random_state=None,
        view_sizes=None,
    ):
        self.n_neighbors = n_neighbors
        self.n_components = n_components
        self.n_hidden = n_hidden
        self.n_edge_hidden = n_edge_hidden
        self.dropout = dropout
        self.embedding_rate = embedding_rate
        self.generator_rate = generator_rate
        self.evaluator_rate = evaluator_rate
        self.classifier_rate = classifier_rate
        self.pretrain_iter = pretrain_iter
        self.max_iter = max_iter
        self.device = device
        self.imputer = imputer
        self.random_state = random_state
        self.view_sizes = view_sizes

    def _solve(self, data: MultiViewData, labels: Labels, rng: np.random.Generator) -> Solution:
        run = TorchRun.start(self.device, rng)
        graphs = [pruned_graph(X_v, self.n_neighbors) for X_v in data.views]
        pairs = self._pairs(run, graphs)
        views = [run.tensor(non_negative(X_v)) for X_v in data.views]
        networks = self._networks(run, pairs, data.n_features, labels.n_classes)
        embedding = run.adam(networks.embedding, self.embedding_rate, EMBEDDING_DECAY)
        pretraining = []
        for _ in range(self.pretrain_iter):
            R = reconstruction(networks, views)
            run.step(embedding, R)
            pretraining.append(R.item())
        view_edges = [pairs.values_of(A_v) for A_v in graphs]
        targets = run.tensor(labels.codes)
        history = self._train(networks, embedding, views, view_edges, targets)
        with run.torch.no_grad():
            A = networks.edges().sigmoid()
            F = networks.classify(A).softmax(1).double().cpu().numpy()
        extras = {
            "pretraining_history_": tuple(pretraining),
            "embedding_": networks.coordinates().detach().double().cpu().numpy(),
            "graph_": pairs.array(A),
            "threshold_": networks.theta.sigmoid().item() / 2,
        }
        return Solution(F, np.ones(len(F), dtype=bool), history, extras=extras)

    def _train(self, networks, embedding, views, view_edges, targets) -> tuple[float, ...]:
        """Steps of the four networks in turn, each with the others held fixed."""
        run = networks.run
        generator = run.adam(networks.generator, self.generator_rate, DECAY)
        evaluator = run.adam([networks.critic], self.evaluator_rate, DECAY)
        classifier = run.adam(networks.classifier, self.classifier_rate, DECAY)

        def mismatch(A):
            logits = networks.classify(A, self.dropout)
            return run.torch.nn.functional.cross_entropy(logits, targets, ignore_index=-1)

        history = []
        for _ in range(self.max_iter):
            # The embedding is trained on the weights before the sigmoid, as the authors do.
            objective = mismatch(networks.edges()) + reconstruction(networks, views)
            run.step(embedding, objective)
            A = networks.edges().sigmoid()
            run.step(generator, doubt(networks, A, 1.0) + mismatch(A))
            A = A.detach()
            run.step(evaluator, critique(networks, view_edges, A))
            run.step(classifier, mismatch(A))
            history.append(objective.item())
        return tuple(history)

    def _pairs(self, run: TorchRun, graphs: Sequence[csr_array]) -> Pairs:
        """Edges of any view.

        Raises
        ------
        InvalidParameterError
            If fewer than two are left, which is no graph to learn from.
        """
        pairs = Pairs(run, csr_array(sum(graphs[1:], start=graphs[0])))
        if pairs.n_pairs < 2:
            msg = (
                f"n_neighbors={self.n_neighbors} of GEGCNClassifier must leave at least 2 edges "
                f"whose ends share {MIN_COMMON} neighbours, got {pairs.n_pairs} on "
                f"{pairs.n_samples} samples; raise n_neighbors or take more samples"
            )
            raise InvalidParameterError(msg)
        return pairs

    def _networks(
        self, run: TorchRun, pairs: Pairs, n_features: Sequence[int], n_classes: int
    ) -> Networks:
        width = self.n_components
        return Networks(
            run,
            pairs,
            W=run.glorot(pairs.n_samples, width),
            decoders=[(run.glorot(width, d), run.constant(d)) for d in n_features],
            # An edge is its mean of coordinates written twice, so that a half of W1 reads each.
            W1=run.glorot(2 * width, self.n_edge_hidden),
            b1=run.constant(self.n_edge_hidden),
            scale=run.constant(self.n_edge_hidden, value=1.0),
            shift=run.constant(self.n_edge_hidden),
            W2=run.glorot(self.n_edge_hidden, 1),
            b2=run.constant(1),
            critic=run.uniform(2, pairs.n_pairs),
            theta=run.constant(1, value=FIRST_THRESHOLD),
            C1=run.glorot(width, self.n_hidden),
            C2=run.glorot(self.n_hidden, n_classes),
        )


def pruned_graph(X_v: np.ndarray, k: int) -> csr_array:
    """Nearest neighbours, zero or one, without edges whose ends share fewer than two others."""
    A = binary_graph(X_v, k)
    # Entry (i, j) of A A counts the common neighbours of i and j, as the diagonal of A is zero.
    kept = A.multiply(A @ A >= MIN_COMMON)
    return csr_array(kept, dtype=np.float64)


def non_negative(X_v: np.ndarray) -> np.ndarray:
    """Columns with negative entries raised so that they start at zero, the others unchanged."""
    return X_v - np.minimum(X_v.min(axis=0), 0)


@dataclass(frozen=True, eq=False)
class Networks:
    """Parameters of the four networks, and their forward passes.

    Attributes
    ----------
    W, decoders : (n_samples, n_components), [(U_v, u_v)]
        Embedding.
    W1, b1, scale, shift, W2, b2
        Generator: linear, batch normalisation, linear.
    critic : (2, n_pairs)
        Evaluator: ``V_ji`` and ``V_ij`` of every pair ``i < j``.
    theta, C1, C2
        Classifier: threshold and weights.
    """

    run: TorchRun
    pairs: Pairs
    W: Any
    decoders: list[tuple[Any, Any]]
    W1: Any
    b1: Any
    scale: Any
    shift: Any
    W2: Any
    b2: Any
    critic: Any
    theta: Any
    C1: Any
    C2: Any

    @property
    def embedding(self) -> list[Any]:
        return [self.W, *(part for decoder in self.decoders for part in decoder)]

    @property
    def generator(self) -> list[Any]:
        return [self.W1, self.b1, self.scale, self.shift, self.W2, self.b2]

    @property
    def classifier(self) -> list[Any]:
        return [self.theta, self.C1, self.C2]

    def coordinates(self) -> Any:
        """``Z = relu(W)``."""
        return self.W.relu()

    def edges(self) -> Any:
        """Weights of all pairs before the sigmoid, (n_pairs,)."""
        upper, lower = self.W1.chunk(2)
        # Linear in the mean of the ends, so that it is done once per sample, not per edge.
        ends = (self.coordinates() @ (upper + lower) + self.b1) / 2
        H = self.run.torch.nn.functional.batch_norm(
            self.pairs.sums_of_ends(ends), None, None, self.scale, self.shift, training=True
        )
        return (H.relu() @ self.W2 + self.b2)[:, 0]

    def evaluate(self, A: Any) -> Any:
        """Scores ``(A V)_ii`` of all samples before the sigmoid, (n_samples,)."""
        return self.pairs.row_sums(A * self.critic[0], A * self.critic[1])

    def classify(self, A: Any, dropout: float = 0.0) -> Any:
        """Logits (n_samples, n_classes) of two graph convolutions on the shrunk graph."""
        shrunk = shrink(A, self.theta)
        root = (1 + self.pairs.row_sums(shrunk)).rsqrt()[:, None]

        def convolve(H: Any) -> Any:
            return root * (self.pairs.product(shrunk, root * H) + root * H)

        hidden = convolve(self.coordinates() @ self.C1).relu()
        return convolve(self.run.dropout(hidden, dropout) @ self.C2).relu()


def shrink(A: Any, theta: Any) -> Any:
    """Zero below ``t1 = sigmoid(theta) / 2``, a ramp up to ``t2 = t1 + 0.1``, identity above."""
    t1 = theta.sigmoid() / 2
    t2 = t1 + RAMP
    return (t2 * (A - t1).relu() - t1 * (A - t2).relu()) / RAMP


def reconstruction(networks: Networks, views: Sequence[Any]) -> Any:
    """``R = 1/2 sum_v |X_v - relu(Z U_v + u_v)|^2``."""
    torch, Z = networks.run.torch, networks.coordinates()
    total: Any = 0
    for X_v, (U_v, u_v) in zip(views, networks.decoders, strict=True):
        decoded = torch.addmm(u_v, Z, U_v).relu()
        total = total + torch.nn.functional.mse_loss(decoded, X_v, reduction="sum") / 2
    return total


def doubt(networks: Networks, A: Any, truth: float) -> Any:
    """Binary cross-entropy of the evaluator's scores of a graph that is real (1) or made (0)."""
    logits = networks.evaluate(A)
    entropy = networks.run.torch.nn.functional.binary_cross_entropy_with_logits
    return entropy(logits, logits.new_full(logits.shape, truth))


def critique(networks: Networks, view_edges: Sequence[Any], A: Any) -> Any:
    """Loss of the evaluator: the views' graphs are real, the generated one is not."""
    real: Any = sum(doubt(networks, A_v, 1.0) for A_v in view_edges)
    return (real / len(view_edges) + doubt(networks, A, 0.0)) / 2
