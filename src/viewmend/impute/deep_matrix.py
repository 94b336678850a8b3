"""Imputation by deep matrix factorisation.

J. Fan, J. Cheng, Matrix completion by deep matrix factorization, Neural Networks 98, 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

import numpy as np

from viewmend.containers import MultiViewData
from viewmend.impute.base import ViewImputer
from viewmend.impute.irprop import minimise_irprop
from viewmend.parameters import Integer, OneOf, Real, Rule

__all__ = ["DeepMatrixFactorization"]

# The scaled tanh of LeCun: a * tanh(b * t).
_A, _B = 1.7159, 2 / 3
# A fit this close is good enough, whatever its gradient.
_ENOUGH = 1e-5


class DeepMatrixFactorization(ViewImputer):
    """Missing views as a nonlinear function of a few latent variables.

    The views side by side, ``X`` (n x p), are explained by latent rows ``Z`` (n x q) through a
    network with one hidden layer, of which only observed entries ``O`` count::

        min over Z, W1, W2 of  1/(2n) |O * (X - g(Z))|^2 + weight_decay/2 (|W1|^2 + |W2|^2)
                               + latent_decay/(2n) |Z|^2
        g(Z) = [1, H] W2,  H = phi([1, Z] W1),  phi(t) = 1.7159 tanh(2t/3)

    with biases left out of the decay. All unknowns are found together by iRprop+ from ``Z = 0`` and
    random weights. New samples keep the weights and get latent rows of their own.

    The decays suit rows of about unit length, as the classifiers of `viewmend` make them.

    Parameters
    ----------
    n_components : int, default=10
        Latent variables ``q``. The AGF-TI paper takes the number of classes.
    n_hidden : int, default=100
        Hidden units; ten per class in the AGF-TI paper.
    weight_decay, latent_decay : float, default=0.01
    max_iter : int, default=500
    tol : float, default=1e-8
        Stop where the objective falls by less, or all derivatives are smaller.
    random_state : int, Generator or None
        For the first weights.
    dtype : {"float32", "float64"}, default="float32"
        Arithmetic of the network. Single precision is almost twice as fast and fits as closely;
        observed rows keep the precision of the input either way.
    view_sizes : sequence of int, optional
        Columns of every view where ``X`` is one stacked array.

    Attributes
    ----------
    latent_ : array (n_samples, n_components)
        ``Z`` of the samples of fit.
    weights_ : list of array (n_components + 1, n_hidden) and (n_hidden + 1, n_features)
        ``W1`` and ``W2``; biases come first.
    history_ : tuple of float
        Objective at every round.
    n_iter_ : int
    status_ : {"converged", "max_iter"}
    view_names_, view_n_features_, n_features_in_
    """

    _rules: ClassVar[dict[str, Rule]] = {
        "n_components": Integer(1),
        "n_hidden": Integer(1),
        "weight_decay": Real(0),
        "latent_decay": Real(0),
        "max_iter": Integer(1),
        "tol": Real(0),
        "dtype": OneOf("float32", "float64"),
    }

    def __init__(
        self,
        n_components=10,
        n_hidden=100,
        weight_decay=0.01,
        latent_decay=0.01,
        max_iter=500,
        tol=1e-8,
        random_state=None,
        dtype="float32",
        view_sizes=None,
    ):
        self.n_components = n_components
        self.n_hidden = n_hidden
        self.weight_decay = weight_decay
        self.latent_decay = latent_decay
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.dtype = dtype
        self.view_sizes = view_sizes

    def _learn(self, data: MultiViewData) -> list[np.ndarray]:
        sizes = (self.n_components, self.n_hidden, sum(data.n_features))
        weights = random_weights(sizes, np.random.default_rng(self.random_state))
        latent = np.zeros((data.n_samples, self.n_components))
        network = Network(data, self.weight_decay, self.latent_decay, self.n_hidden, self.dtype)
        start = [array.astype(self.dtype) for array in (latent, *weights)]
        found = minimise_irprop(
            network.loss, start, max_iter=self.max_iter, tol=self.tol, enough=_ENOUGH
        )
        self.latent_, *self.weights_ = found.parameters
        self.history_, self.status_ = found.losses, found.status
        self.n_iter_ = len(found.losses) - 1
        return network.views(self.latent_, self.weights_)

    def _complete(self, data: MultiViewData) -> list[np.ndarray]:
        network = Network(data, 0.0, self.latent_decay, self.n_hidden, self.dtype)
        start = np.zeros((data.n_samples, self.n_components), dtype=self.dtype)
        found = minimise_irprop(
            lambda unknown: network.latent_loss(unknown[0], self.weights_),
            [start],
            max_iter=self.max_iter,
            tol=self.tol,
            enough=_ENOUGH,
        )
        return network.views(found.parameters[0], self.weights_)


def random_weights(sizes: Sequence[int], rng: np.random.Generator) -> list[np.ndarray]:
    """Weights between layers of the given sizes, biases first, as wide as Fan and Cheng start."""
    weights = []
    for fan_in, fan_out in pairwise(sizes):
        bound = 4 * np.sqrt(6 / (fan_in + fan_out))
        weights.append(rng.uniform(-bound, bound, size=(fan_in + 1, fan_out)))
    return weights


class Network:
    """The objective of `DeepMatrixFactorization` on given data, with its gradients.

    Whole rows of a view are missing, so every view is one dense block of its observed rows: no
    mask, and nothing is computed that is not compared. The large arrays are written in place.
    """

    def __init__(self, data: MultiViewData, weight_decay, latent_decay, n_hidden, dtype):
        self.weight_decay = weight_decay
        self.latent_decay = latent_decay
        self.n_samples = data.n_samples
        self.rows = [np.flatnonzero(seen) for seen in data.observed.T]
        ends = np.cumsum(data.n_features)
        self.columns = [slice(end - d, end) for end, d in zip(ends, data.n_features, strict=True)]
        self.targets = [data.rows_seen(v).astype(dtype) for v in range(data.n_views)]
        self._errors = [np.empty_like(target) for target in self.targets]
        # [1, H]: the first column feeds the biases of the output.
        self._hidden = np.ones((data.n_samples, n_hidden + 1), dtype)
        self._back = np.empty((data.n_samples, n_hidden), dtype)
        self._W2_gradient = np.empty((n_hidden + 1, sum(data.n_features)), dtype)

    def loss(self, unknown: list[np.ndarray]) -> tuple[float, list[np.ndarray]]:
        """Objective and its gradients for ``[Z, W1, W2]``."""
        Z, W1, W2 = unknown
        loss, back = self._forward_backward(Z, W1, W2, self._W2_gradient)
        W1_gradient = np.empty_like(W1)
        back.sum(axis=0, out=W1_gradient[0])
        np.matmul(Z.T, back, out=W1_gradient[1:])
        W1_gradient /= self.n_samples
        self._W2_gradient /= self.n_samples
        for W, gradient in ((W1, W1_gradient), (W2, self._W2_gradient)):
            loss += self.weight_decay / 2 * _square(W[1:])
            gradient[1:] += self.weight_decay * W[1:]
        return loss, [self._latent_gradient(Z, W1, back), W1_gradient, self._W2_gradient]

    def latent_loss(
        self, Z: np.ndarray, weights: Sequence[np.ndarray]
    ) -> tuple[float, list[np.ndarray]]:
        """Objective, less the decay of the weights, and its gradient for ``Z`` alone."""
        W1, W2 = weights
        loss, back = self._forward_backward(Z, W1, W2, None)
        return loss, [self._latent_gradient(Z, W1, back)]

    def views(self, Z: np.ndarray, weights: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The views ``g(Z)``."""
        W1, W2 = weights
        hidden = self._activate(Z, W1)
        return [hidden @ W2[:, columns] for columns in self.columns]

    def _activate(self, Z: np.ndarray, W1: np.ndarray) -> np.ndarray:
        """``[1, H]``, in place."""
        H = self._hidden[:, 1:]
        scaled = _B * W1
        np.matmul(Z, scaled[1:], out=H)
        H += scaled[0]
        np.tanh(H, out=H)
        H *= _A
        return self._hidden

    def _forward_backward(self, Z, W1, W2, W2_gradient) -> tuple[float, np.ndarray]:
        """Loss without weight decay, and n times its gradient at the input of the hidden layer.

        Fills ``W2_gradient`` with n times the gradient for W2, unless it is None.
        """
        hidden, back = self._activate(Z, W1), self._back
        back.fill(0)
        loss = self.latent_decay * _square(Z)
        parts = zip(self.rows, self.columns, self.targets, self._errors, strict=True)
        for rows, columns, target, error in parts:
            seen = hidden if len(rows) == self.n_samples else hidden[rows]
            np.matmul(seen, W2[:, columns], out=error)
            error -= target
            loss += _square(error)
            if W2_gradient is not None:
                np.matmul(seen.T, error, out=W2_gradient[:, columns])
            back[rows] += error @ W2[1:, columns].T
        H = hidden[:, 1:]
        np.multiply(H, H, out=H)
        H *= -_B / _A
        H += _A * _B
        back *= H
        return loss / (2 * self.n_samples), back

    def _latent_gradient(self, Z: np.ndarray, W1: np.ndarray, back: np.ndarray) -> np.ndarray:
        gradient = back @ W1[1:].T
        gradient += self.latent_decay * Z
        gradient /= self.n_samples
        return gradient


def _square(array: np.ndarray) -> float:
    """Sum of squares, for any layout."""
    flat = array.ravel()
    return float(np.dot(flat, flat))
