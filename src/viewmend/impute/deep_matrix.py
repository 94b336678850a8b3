"""Imputation by deep matrix factorisation.

J. Fan, J. Cheng, Matrix completion by deep matrix factorization, Neural Networks 98, 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from viewmend.backend.numba_networks import add_to_rows, subtract_targets, times_tanh_slope
from viewmend.backend.threads import parallel_map, row_blocks, serial_blas
from viewmend.data.container import MultiViewData
from viewmend.impute.base import ViewImputer
from viewmend.impute.irprop import Function, IRpropResult, minimise_irprop
from viewmend.parameters import Integer, OneOf, Real, Rule

# The scaled tanh of LeCun: a * tanh(b * t).
_A, _B = 1.7159, 2 / 3
# A fit this close is good enough, whatever its gradient.
_ENOUGH = 1e-5
# Samples are cut into at most so many blocks, of at least so many rows.
_BLOCKS, _BLOCK_ROWS = 4, 256


@dataclass(eq=False, repr=False)
class DeepMatrixFactorization(ViewImputer):
    """Missing views as a nonlinear function of a few latent variables.

    The views side by side, ``X`` (n x p), are explained by latent rows ``Z`` (n x q) through a
    network with one hidden layer, of which only observed entries ``O`` count::

        min over Z, W1, W2 of  1/(2n) |O * (X - g(Z))|^2 + weight_decay/2 (|W1|^2 + |W2|^2)
                               + latent_decay/(2n) |Z|^2
        g(Z) = [1, H] W2,  H = phi([1, Z] W1),  phi(t) = 1.7159 tanh(2t/3)

    with biases left out of the decay. All unknowns are found together by iRprop+ from ``Z = 0`` and
    random weights. New samples keep the weights and get latent rows of their own.

    The default decays suit rows of about unit length. The classifiers of `viewmend` scale rows to
    unit length.

    Parameters
    ----------
    n_components : int, default=10
        Number of latent variables, ``q``. The AGF-TI paper uses the number of classes.
    n_hidden : int, default=100
        Number of hidden units; ten per class in the AGF-TI paper.
    weight_decay, latent_decay : float, default=0.01
        Weights of the penalties on the weights of the network and on the latent rows.
    max_iter : int, default=500
        Largest number of steps.
    tol : float, default=1e-8
        Stop when the objective falls by less, or when all derivatives are smaller.
    random_state : int, Generator or None
        Seed for the initial weights.
    dtype : {"float32", "float64"}, default="float32"
        Number type of the network. "float32" is almost twice as fast and fits as well. Observed
        rows keep the precision of the input in both cases.
    view_sizes : sequence of int, optional
        Number of columns of every view, if ``X`` is one stacked array.

    Attributes
    ----------
    latent_ : array (n_samples, n_components)
        ``Z`` of the samples of fit.
    weights_ : list of array (n_components + 1, n_hidden) and (n_hidden + 1, n_features)
        ``W1`` and ``W2``; biases come first.
    history_ : tuple of float
        Objective at every round.
    n_iter_ : int
        Number of steps.
    status_ : {"converged", "max_iter"}
        Why the rounds ended.
    view_names_, view_n_features_, n_features_in_
    """

    n_components: int = 10
    n_hidden: int = 100
    weight_decay: float = 0.01
    latent_decay: float = 0.01
    max_iter: int = 500
    tol: float = 1e-8
    random_state: int | np.random.Generator | None = None
    dtype: str = "float32"
    view_sizes: Sequence[int] | None = None

    # 2: blocks of observed rows, factors of phi in the weights, single precision.
    version: ClassVar[int] = 2
    _rules: ClassVar[dict[str, Rule]] = {
        "n_components": Integer(1),
        "n_hidden": Integer(1),
        "weight_decay": Real(0),
        "latent_decay": Real(0),
        "max_iter": Integer(1),
        "tol": Real(0),
        "dtype": OneOf("float32", "float64"),
    }

    def _learn(self, data: MultiViewData) -> list[np.ndarray]:
        sizes = (self.n_components, self.n_hidden, sum(data.n_features))
        weights = random_weights(sizes, np.random.default_rng(self.random_state))
        latent = np.zeros((data.n_samples, self.n_components))
        network = FactorNetwork(
            data, self.weight_decay, self.latent_decay, self.n_hidden, self.dtype
        )
        start = [array.astype(self.dtype) for array in (latent, *weights)]
        minimum = self._minimise(network.loss, start)
        self.latent_, *self.weights_ = minimum.parameters
        self.history_, self.status_ = minimum.losses, minimum.status
        self.n_iter_ = len(minimum.losses) - 1
        return network.views(self.latent_, self.weights_)

    def _complete(self, data: MultiViewData) -> list[np.ndarray]:
        network = FactorNetwork(data, 0.0, self.latent_decay, self.n_hidden, self.dtype)
        start = np.zeros((data.n_samples, self.n_components), dtype=self.dtype)
        minimum = self._minimise(
            lambda unknown: network.latent_loss(unknown[0], self.weights_), [start]
        )
        return network.views(minimum.parameters[0], self.weights_)

    def _minimise(self, function: Function, start: list[np.ndarray]) -> IRpropResult:
        # On one thread also between the blocks, so that all numbers are the same on any machine
        # with the same linear algebra.
        with serial_blas():
            return minimise_irprop(
                function, start, max_iter=self.max_iter, tol=self.tol, enough=_ENOUGH
            )


def random_weights(sizes: Sequence[int], rng: np.random.Generator) -> list[np.ndarray]:
    """Weights between layers of the given sizes, biases first, as wide as Fan and Cheng start."""
    weights = []
    for fan_in, fan_out in pairwise(sizes):
        bound = 4 * np.sqrt(6 / (fan_in + fan_out))
        weights.append(rng.uniform(-bound, bound, size=(fan_in + 1, fan_out)))
    return weights


class FactorNetwork:
    """The objective of `DeepMatrixFactorization` on given data, with its gradients.

    Whole rows of a view are missing, so every view is one dense block of its observed rows: no
    mask, and nothing is computed that is not compared. Samples are taken in a few blocks, which are
    the same whatever the number of threads, and the large arrays are written in place. The factors
    of ``phi`` are kept with the weights, of which there are fewer than hidden units: inside a block
    the network is ``T = tanh([1, Z] V1)`` and ``[1, T] V2``.
    """

    def __init__(
        self,
        data: MultiViewData,
        weight_decay: float,
        latent_decay: float,
        n_hidden: int,
        dtype: str,
    ) -> None:
        self.weight_decay = weight_decay
        self.latent_decay = latent_decay
        self.n_samples = data.n_samples
        ends = np.cumsum(data.n_features)
        self.columns = [slice(end - d, end) for end, d in zip(ends, data.n_features, strict=True)]
        n_blocks = min(max(1, data.n_samples // _BLOCK_ROWS), _BLOCKS)
        rows = row_blocks(data.n_samples, 1, -(-data.n_samples // n_blocks))
        self.blocks = [SampleBlock(data, part, self.columns, n_hidden, dtype) for part in rows]

    def loss(self, unknown: list[np.ndarray]) -> tuple[float, list[np.ndarray]]:
        """Objective and its gradients for ``[Z, W1, W2]``."""
        Z, *weights = unknown
        V1, V2 = scaled_weights(*weights)
        by_Z = np.empty_like(Z)

        def part(block: SampleBlock) -> tuple[float, np.ndarray, np.ndarray]:
            squares = block.compare(Z, V1, V2)
            block.latent_gradient(Z, V1, self.latent_decay, by_Z)
            return squares, block.input_gradient(), block.output_gradient()

        squares, *parts = zip(*parallel_map(part, self.blocks), strict=True)
        loss = (sum(squares) + self.latent_decay * _square(Z)) / (2 * self.n_samples)
        # The chain rule takes the same factors as the weights did.
        gradients = list(scaled_weights(*(sum(blocks[1:], start=blocks[0]) for blocks in parts)))
        for W, gradient in zip(weights, gradients, strict=True):
            gradient /= self.n_samples
            loss += self.weight_decay / 2 * _square(W[1:])
            gradient[1:] += self.weight_decay * W[1:]
        by_Z /= self.n_samples
        return loss, [by_Z, *gradients]

    def latent_loss(
        self, Z: np.ndarray, weights: Sequence[np.ndarray]
    ) -> tuple[float, list[np.ndarray]]:
        """Objective, less the decay of the weights, and its gradient for ``Z`` alone."""
        V1, V2 = scaled_weights(*weights)
        gradient = np.empty_like(Z)

        def part(block: SampleBlock) -> float:
            squares = block.compare(Z, V1, V2)
            block.latent_gradient(Z, V1, self.latent_decay, gradient)
            return squares

        loss = sum(parallel_map(part, self.blocks)) + self.latent_decay * _square(Z)
        gradient /= self.n_samples
        return loss / (2 * self.n_samples), [gradient]

    def views(self, Z: np.ndarray, weights: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The views ``g(Z)``."""
        V1, V2 = scaled_weights(*weights)
        parts = parallel_map(lambda block: block.activate(Z, V1) @ V2[1:] + V2[0], self.blocks)
        full = np.concatenate(parts)
        return [full[:, columns] for columns in self.columns]


def scaled_weights(W1: np.ndarray, W2: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``V1, V2`` with ``[1, tanh([1, Z] V1)] V2 = [1, phi([1, Z] W1)] W2``."""
    V2 = _A * W2
    V2[0] = W2[0]
    return _B * W1, V2


class SampleBlock:
    """Some samples of a `FactorNetwork`, and n times their part of its gradients."""

    def __init__(
        self,
        data: MultiViewData,
        samples: slice,
        columns: Sequence[slice],
        n_hidden: int,
        dtype: str,
    ) -> None:
        self.samples = samples
        self.columns = columns
        data = data[samples]
        self.rows = [np.flatnonzero(seen) for seen in data.observed.T]
        self.targets = [data.rows_seen(v).astype(dtype) for v in range(data.n_views)]
        self._errors = [np.empty_like(target) for target in self.targets]
        self._T, self._by_T = np.empty((2, data.n_samples, n_hidden), dtype)
        self._seen = [self._T[rows] for rows in self.rows]
        self._by_V2 = np.empty((n_hidden + 1, sum(data.n_features)), dtype)

    def activate(self, Z: np.ndarray, V1: np.ndarray) -> np.ndarray:
        """``T``, in place."""
        rows = Z[self.samples]
        self._Z = np.column_stack([np.ones(len(rows), rows.dtype), rows])
        np.matmul(self._Z, V1, out=self._T)
        return np.tanh(self._T, out=self._T)

    def compare(self, Z: np.ndarray, V1: np.ndarray, V2: np.ndarray) -> float:
        """Squared errors; leaves them, and the gradient at the input of the hidden layer."""
        T, by_T, squares = self.activate(Z, V1), self._by_T, 0.0
        by_T.fill(0)
        parts = zip(self.rows, self._seen, self.columns, self.targets, self._errors, strict=True)
        for rows, seen, columns, target, error in parts:
            # Other modes than "clip" would fill a copy first.
            np.take(T, rows, axis=0, out=seen, mode="clip")
            np.matmul(seen, V2[1:, columns], out=error)
            squares += subtract_targets(error, V2[0, columns], target, self._by_V2[0, columns])
            add_to_rows(by_T, rows, error @ V2[1:, columns].T)
        times_tanh_slope(by_T, T)
        return squares

    def output_gradient(self) -> np.ndarray:
        """By ``V2``."""
        for seen, columns, error in zip(self._seen, self.columns, self._errors, strict=True):
            np.matmul(seen.T, error, out=self._by_V2[1:, columns])
        return self._by_V2

    def input_gradient(self) -> np.ndarray:
        """By ``V1``."""
        return self._Z.T @ self._by_T

    def latent_gradient(self, Z: np.ndarray, V1: np.ndarray, decay: float, out: np.ndarray) -> None:
        """By the latent rows of the block, with their decay, written to those of ``out``."""
        np.matmul(self._by_T, V1[1:].T, out=out[self.samples])
        out[self.samples] += decay * Z[self.samples]


def _square(array: np.ndarray) -> float:
    """Sum of squares, for any layout."""
    flat = array.ravel()
    return float(np.dot(flat, flat))
