"""IMvGCN: graph convolutions with orthonormal weights, read as an optimisation problem.

Z. Wu, X. Lin, Z. Lin, Z. Chen, Y. Bai, S. Wang: Interpretable graph convolutional network for
multi-view semi-supervised learning, IEEE Transactions on Multimedia 25, 2023.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.special import softmax
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from viewmend.baselines.base import CompleteViewClassifier, Grid, Solution
from viewmend.baselines.torch_support import DEVICES, SparseConstant, Tensor, TorchRun, binary_graph
from viewmend.core.graphs.spreading import normalise_graph
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels
from viewmend.impute.base import ViewImputer
from viewmend.models.inductive import InductiveMixin
from viewmend.parameters import Each, Integer, OneOf, Real, Rule

# Keeps the Cholesky factor of nearly dependent weights finite.
RIDGE = 1e-4


@dataclass(eq=False, repr=False)
class IMvGCNClassifier(InductiveMixin, CompleteViewClassifier):
    """Two graph convolutions per view and one over their sum, with orthonormal weights.

    With ``Phi_v = (1 - lam) I + lam A_v`` of the normalised neighbour graph ``A_v`` and the mean
    ``Phi`` of these filters, the network is::

        H_v = tanh(Phi_v tanh(Phi_v X_v Q1_v) Q2_v),   O = tanh(Phi sum_v (H_v - mean) Q3_v)

    where ``Q = W C^{-T}`` with ``C C^T = W^T W + 1e-4 I``. With ``S = log softmax(O)`` and the
    cross-entropy of the labelled rows, Adam minimises on all samples at once::

        CE(S) + alpha (sum_v |X_v - S Q3_v^T Q2_v^T Q1_v^T|^2 + lam sum_v tr(S^T Phi_v S))

    Needs every view of every sample; missing ones are imputed first. Needs PyTorch
    (``pip install '.[torch]'``).

    Parameters
    ----------
    n_neighbors : int, default=30
        Number of neighbours in each view, including the sample itself.
    lam : float in [0, 1], default=0.5
        Weight of the neighbours in the filters.
    alpha : float, default=1e-5
        Weight of reconstruction and smoothness.
    width_divisors : pair of int, default=(8, 32)
        The hidden layers of a view have its number of columns divided by these, at least one unit
        per class.
    dropout : float in [0, 1), default=0.3
        Share of the hidden units that are dropped at each step of training.
    learning_rate : float, default=0.01
        Learning rate of Adam.
    max_iter : int, default=300
        Number of epochs; there is no early stopping.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to compute. "auto" uses a GPU if PyTorch finds one.
    random_state : int or None, default=None
        Seed. On the CPU, fits with the same seed and number of threads give the same result.
    imputer, view_sizes
        As in `CompleteViewClassifier`.

    Attributes
    ----------
    classes_, transduction_, label_distributions_, unreachable_, n_iter_, imputer_
        As in `CompleteViewClassifier`; no sample is unreachable, as weights need no path.
    history_ : tuple of float
        Loss of every epoch, before its step.
    weights_ : tuple of (array, array, array)
        ``Q1, Q2, Q3`` of every view.
    network_ : FittedNetwork
        What ``predict`` needs of the samples of ``fit``.

    Notes
    -----
    The dictionary `presets` holds the settings of the paper for other data, as in
    ``IMvGCNClassifier(**IMvGCNClassifier.presets["mnist"])``.

    ``predict`` is ours, as the paper labels only the samples of ``fit``. A new sample is joined to
    its nearest samples of ``fit`` in every view, and goes through the network with them; the
    graph, the hidden units and the column means of the samples of ``fit`` stay as they are.
    """

    n_neighbors: int = 30
    lam: float = 0.5
    alpha: float = 1e-5
    width_divisors: Sequence[int] = (8, 32)
    dropout: float = 0.3
    learning_rate: float = 0.01
    max_iter: int = 300
    device: str = "auto"
    imputer: ViewImputer | None = None
    random_state: int | np.random.Generator | None = None
    view_sizes: Sequence[int] | None = None

    _rules: ClassVar[dict[str, Rule]] = {
        "n_neighbors": Integer(1),
        "lam": Real(0, 1),
        "alpha": Real(0),
        "width_divisors": Each(Integer(1), size=2),
        "dropout": Real(0, 1, high_open=True),
        "learning_rate": Real(0, low_open=True),
        "max_iter": Integer(1),
        "device": OneOf(*DEVICES),
    }
    # The network is run with the settings of its authors; nothing is tuned.
    grid: ClassVar[Grid] = {}
    script_grid: ClassVar[Grid] = {}
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        data: {"learning_rate": rate, "max_iter": epochs, "alpha": alpha, "width_divisors": widths}
        for data, rate, epochs, alpha, widths in (
            ("default", 1e-2, 300, 1e-5, (8, 32)),
            ("out_scene", 1e-3, 300, 1e-4, (2, 8)),
            ("caltech101", 1e-2, 1500, 5e-7, (4, 16)),
            ("animals", 1e-2, 50, 1e-5, (8, 32)),
            ("mnist", 1e-2, 1500, 1e-5, (2, 32)),
        )
    }

    def _solve(self, data: MultiViewData, labels: Labels, rng: np.random.Generator) -> Solution:
        run = TorchRun.start(self.device, rng)
        graphs = [loop_graph(X_v, self.n_neighbors) for X_v in data.views]
        filters = [graph_filter(A, self.lam) for A in graphs]
        inputs = NetworkInputs.of(run, data.views, filters)
        W = initial_weights(run, data.n_features, self.width_divisors, labels.n_classes)
        targets = run.tensor(labels.codes)
        optimiser = run.adam([w for W_v in W for w in W_v], self.learning_rate)
        history = []
        for _ in range(self.max_iter):
            Q = [[orthonormalise(run.torch, w) for w in W_v] for W_v in W]
            O = outputs(run, inputs, Q, self.dropout)  # noqa: E741
            objective = loss(run.torch, inputs, Q, O, targets, self.alpha, self.lam)
            run.step(optimiser, objective)
            history.append(objective.item())
        weights = fitted_weights(run.torch, W)
        network = FittedNetwork.of(data.views, graphs, filters, weights)
        F = softmax(network.outputs, axis=1)
        extras = {"weights_": weights, "network_": network}
        return Solution(F, None, tuple(history), extras=extras)

    def _score_new(self, data: MultiViewData, _X: Any) -> np.ndarray:
        """Softmax of the network, new rows joined to their nearest samples of fit."""
        data = self._prepare_new(data)
        O = new_outputs(self.network_, data.views, self.weights_, self.n_neighbors, self.lam)  # noqa: E741
        return softmax(O, axis=1)


def loop_graph(X_v: np.ndarray, k: int) -> csr_array:
    """Neighbours zero or one, symmetrised by maximum, plus the identity.

    A sample is the first of its own ``k`` neighbours, so that the diagonal is two.
    """
    return csr_array(binary_graph(X_v, k - 1) + 2 * eye_array(X_v.shape[0]))


def graph_filter(A: csr_array, lam: float) -> csr_array:
    """``Phi = (1 - lam) I + lam D^{-1/2} A D^{-1/2}``."""
    return csr_array((1 - lam) * eye_array(A.shape[0]) + lam * normalise_graph(A))


@dataclass(frozen=True, eq=False)
class NetworkInputs:
    """Constants of the network on the device: views ``X_v``, ``Phi_v X_v``, filters, their mean."""

    views: list[Tensor]
    filtered: list[Tensor]
    filters: list[SparseConstant]
    mean_filter: SparseConstant

    @classmethod
    def of(
        cls, run: TorchRun, views: Sequence[np.ndarray], filters: Sequence[csr_array]
    ) -> NetworkInputs:
        mean_filter = csr_array(sum(filters[1:], start=filters[0]) / len(filters))
        return cls(
            [run.tensor(X_v) for X_v in views],
            [run.tensor(Phi @ X_v) for Phi, X_v in zip(filters, views, strict=True)],
            [SparseConstant(run, Phi) for Phi in filters],
            SparseConstant(run, mean_filter),
        )


def initial_weights(
    run: TorchRun, n_features: Sequence[int], divisors: Sequence[int], n_classes: int
) -> list[list[Tensor]]:
    """Glorot-uniform weights of the three layers of every view, as narrow as the classes allow."""
    weights = []
    for d in n_features:
        widths = [d, *(max(d // divisor, n_classes) for divisor in divisors), n_classes]
        weights.append([run.glorot(widths[i], widths[i + 1]) for i in range(3)])
    return weights


def orthonormalise(torch: Any, W: Tensor) -> Tensor:
    """``Q = W C^{-T}`` with ``C C^T = W^T W + 1e-4 I``: columns orthonormal up to the ridge."""
    gram = W.T @ W + RIDGE * torch.eye(W.shape[1], dtype=W.dtype, device=W.device)
    return torch.linalg.solve_triangular(torch.linalg.cholesky(gram), W.T, upper=False).T


def outputs(
    run: TorchRun, inputs: NetworkInputs, Q: Sequence[Sequence[Tensor]], dropout: float
) -> Tensor:
    """The network ``O`` (n_samples, n_classes) of the class docstring."""
    fused: Tensor = 0
    for X_filtered, Phi, (Q1, Q2, Q3) in zip(inputs.filtered, inputs.filters, Q, strict=True):
        hidden = run.dropout((X_filtered @ Q1).tanh(), dropout)
        # Narrow first: Phi (H Q) costs less than (Phi H) Q.
        H = run.dropout((Phi @ (hidden @ Q2)).tanh(), dropout)
        fused = fused + (H - H.mean(0)) @ Q3
    return (inputs.mean_filter @ fused).tanh()


def loss(
    torch: Any,
    inputs: NetworkInputs,
    Q: Sequence[Sequence[Tensor]],
    O: Tensor,  # noqa: E741
    targets: Tensor,
    alpha: float,
    lam: float,
) -> Tensor:
    """Cross-entropy of the labelled rows, reconstruction of the views, and smoothness.

    The sign of the last term is the one of the authors' program; a penalty of roughness would have
    the opposite one. Its weight is so small that this hardly matters.
    """
    S = O.log_softmax(1)
    fit = torch.nn.functional.nll_loss(S, targets, ignore_index=-1)
    gaps: Tensor = 0
    for X_v, Phi, (Q1, Q2, Q3) in zip(inputs.views, inputs.filters, Q, strict=True):
        gaps = gaps + (X_v - S @ (Q1 @ (Q2 @ Q3)).T).square().sum() + lam * (S * (Phi @ S)).sum()
    return fit + alpha * gaps


def fitted_weights(torch: Any, W: Sequence[Sequence[Tensor]]) -> tuple[tuple[np.ndarray, ...], ...]:
    """Orthonormal weights of every view after the last step, as arrays of double precision."""
    return tuple(
        tuple(orthonormalise(torch, w.detach().double()).cpu().numpy() for w in W_v) for W_v in W
    )


@dataclass(frozen=True, eq=False)
class FittedNetwork:
    """The network on the samples of fit, without dropout: what the layers of new samples see.

    Of every view the features, the row sums of its graph, the units (n_samples, n_hidden_v) of the
    first layer and the column means of the second; input and output of the last filter.
    """

    views: tuple[np.ndarray, ...]
    degrees: tuple[np.ndarray, ...]
    hidden: tuple[np.ndarray, ...]
    means: tuple[np.ndarray, ...]
    fused: np.ndarray
    outputs: np.ndarray

    @classmethod
    def of(
        cls,
        views: Sequence[np.ndarray],
        graphs: Sequence[csr_array],
        filters: Sequence[csr_array],
        weights: Sequence[Sequence[np.ndarray]],
    ) -> FittedNetwork:
        layers = list(zip(views, filters, weights, strict=True))
        hidden = [np.tanh(Phi @ (X_v @ Q[0])) for X_v, Phi, Q in layers]
        last = [np.tanh(Phi @ (H @ Q[1])) for (_, Phi, Q), H in zip(layers, hidden, strict=True)]
        means = [H.mean(axis=0) for H in last]
        fused = np.zeros((len(views[0]), weights[0][2].shape[1]))
        for H, mean, Q in zip(last, means, weights, strict=True):
            fused += (H - mean) @ Q[2]
        outputs = np.tanh(sum(Phi @ fused for Phi in filters) / len(filters))
        degrees = tuple(A.sum(axis=1) for A in graphs)
        return cls(tuple(views), degrees, tuple(hidden), tuple(means), fused, outputs)


def new_outputs(
    network: FittedNetwork,
    views: Sequence[np.ndarray],
    weights: Sequence[Sequence[np.ndarray]],
    k: int,
    lam: float,
) -> np.ndarray:
    """The network on new samples that see the samples of fit, (n_new, n_classes)."""
    filters, fused = [], np.zeros((len(views[0]), network.fused.shape[1]))
    for v, (X_new, (Q1, Q2, Q3)) in enumerate(zip(views, weights, strict=True)):
        loop, Phi = new_filter_rows(X_new, network.views[v], network.degrees[v], k, lam)
        H = np.tanh((loop * X_new + Phi @ network.views[v]) @ Q1)
        H = np.tanh((loop * H + Phi @ network.hidden[v]) @ Q2)
        fused += (H - network.means[v]) @ Q3
        filters.append((loop, Phi))
    return np.tanh(sum(loop * fused + Phi @ network.fused for loop, Phi in filters) / len(filters))


def new_filter_rows(
    X_new: np.ndarray, X_v: np.ndarray, degrees: np.ndarray, k: int, lam: float
) -> tuple[float, csr_array]:
    """Rows of ``Phi`` of new samples, each joined to itself and its ``k - 1`` nearest of fit.

    The diagonal entry, the same for all new samples, is apart from the rows (n_new, n_samples).
    """
    k = min(k, len(X_v) + 1)
    # As in `loop_graph`: the loop counts two, every neighbour one.
    degree = 2 + (k - 1)
    loop = (1 - lam) + lam * 2 / degree
    if k == 1:
        return loop, csr_array((len(X_new), len(X_v)))
    search = NearestNeighbors(n_neighbors=k - 1).fit(normalize(X_v))
    joined = csr_array(search.kneighbors_graph(normalize(X_new)))
    return loop, csr_array(lam * joined.multiply(1 / np.sqrt(degree * degrees)))
