"""GEGCN: graph convolutions on a graph that a generator makes and an evaluator criticises.

J. Lu, Z. Wu, L. Zhong, Z. Chen, H. Zhao, S. Wang: Generative essential graph convolutional network
for multi-view semi-supervised classification, IEEE Transactions on Multimedia 26, 2024.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array
from scipy.special import softmax
from sklearn.preprocessing import normalize

from viewmend.baselines.base import CompleteViewClassifier, Grid, Solution
from viewmend.baselines.gegcn_networks import GraphTask, Networks, first_weights
from viewmend.baselines.torch_support import DEVICES, TorchRun, binary_graph
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.exceptions import InvalidParameterError
from viewmend.impute.base import ViewImputer
from viewmend.parameters import Integer, OneOf, Real, Rule

# Fewest common neighbours of two samples whose edge stays.
MIN_COMMON = 2


@dataclass(eq=False, repr=False)
class GEGCNClassifier(CompleteViewClassifier):
    """Four networks in turn: embedding, graph generator, graph evaluator and classifier.

    With ``E`` the union of the views' pruned neighbour graphs ``A_v``:

    - Embedding: free coordinates ``Z = relu(W)`` of all samples, from which every view is decoded
      as ``relu(Z U_v^T + u_v)``, with loss ``R = 1/2 sum_v |X_v - relu(Z U_v^T + u_v)|^2``.
    - Generator: weight of each edge of ``E``, from the mean of the coordinates of its ends, through
      two layers; its sigmoid is the graph ``A``.
    - Evaluator: the score ``sigmoid(A V)_ii`` of every sample; trained to tell ``A_v`` from ``A``.
    - Classifier: edges of ``A`` below a learnt threshold fade, then two graph convolutions of
      ``Z``, with cross-entropy ``CE`` of the labelled samples.

    After pre-training the embedding by ``R``, each epoch takes one step of Adam per network, on
    ``CE + R``; ``CE - log score(A)``; the loss of the evaluator; and ``CE``.

    Needs every view of every sample; missing ones are imputed first. Needs PyTorch
    (``pip install '.[torch]'``).

    Parameters
    ----------
    n_neighbors : int, default=15
        Number of neighbours in each view, before edges whose ends have fewer than two common
        neighbours are dropped.
    n_components : int, default=128
        Number of coordinates of the embedding.
    n_hidden : int, default=64
        Number of units between the two graph convolutions.
    n_edge_hidden : int, default=32
        Number of units between the two layers of the generator.
    dropout : float in [0, 1), default=0.3
        Share of the hidden units that are dropped at each step.
    embedding_rate, generator_rate : float, default=1e-3
        Learning rates.
    evaluator_rate, classifier_rate : float, default=1e-2
        Learning rates.
    pretrain_iter : int, default=1000
        Number of epochs of the embedding alone.
    max_iter : int, default=700
        Number of epochs of all networks; there is no early stopping.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to compute. "auto" uses a GPU if PyTorch finds one.
    random_state : int or None, default=None
        Seed. On the CPU, fits with the same seed and number of threads give the same result.
    imputer, view_sizes
        As in `CompleteViewClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_, n_iter_, imputer_
        As in `CompleteViewClassifier`; no sample is unreachable, as the classifier also sees the
        coordinates of a sample without any edge.
    history_ : tuple of float
        ``CE + R`` of every epoch, before its step.
    pretraining_history_ : tuple of float
        ``R`` of every epoch of pre-training.
    embedding_ : array (n_samples, n_components)
        The coordinates ``Z``.
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

    n_neighbors: int = 15
    n_components: int = 128
    n_hidden: int = 64
    n_edge_hidden: int = 32
    dropout: float = 0.3
    embedding_rate: float = 1e-3
    generator_rate: float = 1e-3
    evaluator_rate: float = 1e-2
    classifier_rate: float = 1e-2
    pretrain_iter: int = 1000
    max_iter: int = 700
    device: str = "auto"
    imputer: ViewImputer | None = None
    random_state: int | np.random.Generator | None = None
    view_sizes: Sequence[int] | None = None

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
    grid: ClassVar[Grid] = {}
    script_grid: ClassVar[Grid] = {}

    def _solve(self, data: MultiViewData, labels: Labels, rng: np.random.Generator) -> Solution:
        views = [normalize(X_v) for X_v in data.views]
        graphs = [pruned_graph(X_v, self.n_neighbors) for X_v in views]
        labelled = np.flatnonzero(labels.codes >= 0)
        task = GraphTask(np.hstack(views), graphs, labelled, labels.codes[labelled])
        self._check_edges(task)
        sizes = self.n_components, self.n_edge_hidden, self.n_hidden, labels.n_classes
        weights = first_weights(task, sizes, rng)
        networks = Networks(task, weights, self.dropout, TorchRun.start(self.device, rng))
        optimisers = networks.optimisers(
            self.embedding_rate, self.generator_rate, self.evaluator_rate, self.classifier_rate
        )
        pretraining = [networks.pretrain(optimisers) for _ in range(self.pretrain_iter)]
        history = [networks.train(optimisers) for _ in range(self.max_iter)]
        logits, Z, graph = networks.outputs()
        extras = {
            "pretraining_history_": tuple(map(float, pretraining)),
            "embedding_": Z.astype(np.float64),
            "graph_": graph,
            "threshold_": networks.threshold().item(),
        }
        F = softmax(logits.astype(np.float64), axis=1)
        return Solution(F, None, tuple(map(float, history)), extras=extras)

    def _check_edges(self, task: GraphTask) -> None:
        """Raise `InvalidParameterError` if fewer than two are left: no graph to learn from."""
        n_edges = task.pattern.nnz // 2
        if n_edges < 2:
            msg = (
                f"n_neighbors={self.n_neighbors} of GEGCNClassifier must leave at least 2 edges "
                f"whose ends share {MIN_COMMON} neighbours, got {n_edges} on {len(task.X)} "
                f"samples; raise n_neighbors or take more samples"
            )
            raise InvalidParameterError(msg)


def pruned_graph(X_v: np.ndarray, k: int) -> csr_array:
    """Nearest neighbours, zero or one, without edges whose ends share fewer than two others."""
    A = binary_graph(X_v, k)
    # Entry (i, j) of A A counts the common neighbours of i and j, as the diagonal of A is zero.
    return csr_array(A.multiply(A @ A >= MIN_COMMON), dtype=np.float64)
