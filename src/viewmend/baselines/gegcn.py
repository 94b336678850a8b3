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
from sklearn.preprocessing import normalize

from viewmend.baselines.base import CompleteViewClassifier, Solution
from viewmend.baselines.gegcn_steps import Pairs, pairs_of
from viewmend.baselines.torch_support import DEVICES, TorchRun, binary_graph, reconstruction
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
# Added to the variances of the batch normalisation.
STABILISER = 1e-5


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

    Missing views are imputed first. Needs PyTorch (``pip install viewmend[torch]``).

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
        Epochs of all networks; the last one counts.
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
    Of the evaluator's ``V`` (n, n) only the entries on ``E`` are kept, as no other meets an edge.

    Three traits of the authors' program matter, and are kept. The degrees that normalise the graph
    count as constants in all gradients; else the generator learns to bend the graph until the
    labelled samples fit, at the cost of all others. ``relu`` ends the classifier too: a class whose
    logit is zero for all its labelled samples gets no gradient and may stay unused, so that fits
    differ from seed to seed. And it ends the decoders, so that negative features enter the
    neighbour graphs only; raised to start at zero, they leave more classes unused.

    Where the paper leaves a choice or its program a fault, this is ours: rows have unit length
    also after imputation; the units left out at training are all there at prediction; edges are
    normalised over the batch at prediction too. ``W`` and the convolutions start Glorot-uniform,
    the other layers uniform up to one over the root of their inputs.
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
        views = [normalize(X_v) for X_v in data.views]
        graphs = [pruned_graph(X_v, self.n_neighbors) for X_v in views]
        pairs = self._pairs(run, graphs)
        X = run.tensor(np.hstack(views))
        networks = self._networks(run, pairs, X.shape[1], labels.n_classes)
        embedding = run.adam(networks.embedding, self.embedding_rate, EMBEDDING_DECAY)
        pretraining = X.new_empty(self.pretrain_iter)
        for epoch in range(self.pretrain_iter):
            R = networks.reconstruction(networks.coordinates(), X)
            run.step(embedding, R)
            pretraining[epoch] = R.detach()
        view_edges = run.torch.stack([pairs.values_of(A_v) for A_v in graphs], 1)
        targets = run.tensor(labels.codes)
        history = self._train(networks, embedding, X, view_edges, targets)
        with run.torch.no_grad():
            Z = networks.coordinates()
            A = networks.edges(Z).sigmoid()
            everyone = run.torch.arange(len(Z), device=run.device)
            F = networks.classify(A, Z @ networks.C1, everyone).softmax(1).double().cpu().numpy()
        extras = {
            "pretraining_history_": tuple(pretraining.tolist()),
            "embedding_": Z.double().cpu().numpy(),
            "graph_": pairs.array(A),
            "threshold_": networks.theta.sigmoid().item() / 2,
        }
        return Solution(F, np.ones(len(F), dtype=bool), tuple(history.tolist()), extras=extras)

    def _train(self, networks, embedding, X, view_edges, targets) -> Any:
        """Steps of the four networks in turn, each with the others held fixed; ``CE + R``."""
        run = networks.run
        generator = run.adam(networks.generator, self.generator_rate, DECAY)
        evaluator = run.adam([networks.critic], self.evaluator_rate, DECAY)
        classifier = run.adam(networks.classifier, self.classifier_rate, DECAY)
        labelled = (targets >= 0).nonzero()[:, 0]

        known = targets[labelled]

        def mismatch(A, H):
            logits = networks.classify(A, H, labelled, self.dropout)
            return run.torch.nn.functional.cross_entropy(logits, known)

        history = X.new_empty(self.max_iter)
        for epoch in range(self.max_iter):
            Z = networks.coordinates()
            edges = networks.edges(Z)
            # The embedding is trained on the weights before the sigmoid, as the authors do.
            H = Z @ networks.C1
            objective = mismatch(edges, H) + networks.reconstruction(Z, X)
            run.step(embedding, objective, keep=True)
            Z, A = Z.detach(), edges.sigmoid()
            run.step(generator, doubt(networks, A) + mismatch(A, H.detach()))
            with run.torch.no_grad():
                A = networks.edges(Z).sigmoid()
            run.step(evaluator, critique(networks, view_edges, A))
            run.step(classifier, mismatch(A, Z @ networks.C1))
            history[epoch] = objective.detach()
        return history

    def _pairs(self, run: TorchRun, graphs: Sequence[csr_array]) -> Pairs:
        """Edges of any view.

        Raises
        ------
        InvalidParameterError
            If fewer than two are left, which is no graph to learn from.
        """
        pairs = pairs_of(run, csr_array(sum(graphs[1:], start=graphs[0])))
        if pairs.n_pairs < 2:
            msg = (
                f"n_neighbors={self.n_neighbors} of GEGCNClassifier must leave at least 2 edges "
                f"whose ends share {MIN_COMMON} neighbours, got {pairs.n_pairs} on "
                f"{pairs.n_samples} samples; raise n_neighbors or take more samples"
            )
            raise InvalidParameterError(msg)
        return pairs

    def _networks(self, run: TorchRun, pairs: Pairs, n_features: int, n_classes: int) -> Networks:
        width = self.n_components
        U, u = run.linear(width, n_features)
        # An edge is its mean of coordinates written twice, so that a half of W1 reads each.
        W1, _ = run.linear(2 * width, self.n_edge_hidden)
        W2, b2 = run.linear(self.n_edge_hidden, 1)
        return Networks(
            run,
            pairs,
            W=run.glorot(pairs.n_samples, width),
            U=U,
            u=u,
            W1=W1,
            scale=run.constant(self.n_edge_hidden, value=1.0),
            shift=run.constant(self.n_edge_hidden),
            W2=W2,
            b2=b2,
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


@dataclass(frozen=True, eq=False)
class Networks:
    """Parameters of the four networks, and their forward passes.

    Attributes
    ----------
    W, U, u : (n_samples, n_components), (n_components, n_features), (n_features,)
        Embedding, with the decoders of all views side by side.
    W1, scale, shift, W2, b2
        Generator: linear, batch normalisation, linear. The first layer has no biases, as the
        normalisation would take them off again.
    critic : (2, n_pairs)
        Evaluator: ``V_ji`` and ``V_ij`` of every pair ``i < j``; its scores before the sigmoid are
        ``(A V)_ii``, the row sums of ``A`` times these.
    theta, C1, C2
        Classifier: threshold and weights.
    """

    run: TorchRun
    pairs: Pairs
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

    @property
    def embedding(self) -> list[Any]:
        return [self.W, self.U, self.u]

    @property
    def generator(self) -> list[Any]:
        return [self.W1, self.scale, self.shift, self.W2, self.b2]

    @property
    def classifier(self) -> list[Any]:
        return [self.theta, self.C1, self.C2]

    def coordinates(self) -> Any:
        """``Z = relu(W)``."""
        return self.W.relu()

    def reconstruction(self, Z: Any, X: Any) -> Any:
        """``R = 1/2 |X - relu(Z U + u)|^2``, views side by side."""
        return reconstruction(Z, self.U, self.u, X)

    def edges(self, Z: Any) -> Any:
        """Weights of all pairs before the sigmoid, (n_pairs,).

        The first layer and the normalisation over pairs are linear in the mean of the ends, so
        that they are done once per sample: halves ``h_i`` with ``h_i + h_j`` the unit of a pair.
        """
        pairs = self.pairs
        upper, lower = self.W1.chunk(2)
        halves = Z @ ((upper + lower) / 2)
        halves = halves - (pairs.degrees @ halves) / (2 * pairs.n_pairs)
        # The squares of h_i + h_j, added over all pairs.
        squares = pairs.degrees @ halves.square() + (halves * pairs.neighbour_sums(halves)).sum(0)
        deviations = (squares.clamp_min(0) / pairs.n_pairs + STABILISER).sqrt()
        halves = halves * (self.scale / deviations) + self.shift / 2
        return pairs.relu_of_sums(halves, self.W2[:, 0]) + self.b2

    def classify(self, A: Any, H: Any, rows: Any, dropout: float = 0.0) -> Any:
        """Logits (n_rows, n_classes) of some samples, by two graph convolutions.

        On the shrunk graph, of ``H = Z C1`` (n_samples, n_hidden).
        """
        # The roots are without gradient: see the notes of the class.
        graph, root = self.pairs.normalised(A, self.theta.sigmoid() / 2, RAMP)
        kept = self.run.kept(len(H), H.shape[1], dropout)
        return self.pairs.convolutions((graph, root * root), H, kept, self.C2, rows).relu()


def doubt(networks: Networks, A: Any) -> Any:
    """``-log score(A)``, the mean over samples: small where the evaluator takes ``A`` for real."""
    scores = networks.pairs.row_sums(A[:, None], networks.critic.detach())
    return networks.run.torch.nn.functional.softplus(-scores).mean()


def critique(networks: Networks, view_edges: Any, A: Any) -> Any:
    """Loss of the evaluator: the views' graphs (n_pairs, n_views) are real, the made one is not."""
    cat, softplus = networks.run.torch.cat, networks.run.torch.nn.functional.softplus
    scores = networks.pairs.row_sums(cat([view_edges, A[:, None]], 1), networks.critic)
    return (softplus(-scores[:, :-1]).mean() + softplus(scores[:, -1]).mean()) / 2
