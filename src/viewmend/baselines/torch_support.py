"""What the methods on PyTorch share: an optional import, a device, seeds and sparse products.

PyTorch is an extra. It is imported when a method that needs it is fitted, never before.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, triu
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from viewmend.exceptions import InvalidParameterError

__all__ = ["DEVICES", "Pairs", "SparseConstant", "TorchRun", "binary_graph", "import_torch"]

# What the parameter `device` may be.
DEVICES = ("auto", "cpu", "cuda")


def import_torch() -> Any:
    """The module ``torch``.

    Raises
    ------
    ImportError
        If PyTorch is not installed.
    """
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError as error:
        msg = (
            "the methods IMvGCNClassifier and GEGCNClassifier need PyTorch, which is not "
            "installed; install it with: pip install viewmend[torch]"
        )
        raise ImportError(msg) from error


@dataclass(frozen=True, eq=False)
class TorchRun:
    """PyTorch, a device and random numbers of its own: what one fit draws on.

    Every random number comes from ``generator``; the global state of PyTorch is neither read nor
    changed.
    """

    torch: Any
    device: Any
    generator: Any

    @classmethod
    def start(cls, device: str, rng: np.random.Generator) -> TorchRun:
        """Choose the device and seed a generator on it from ``rng``.

        Parameters
        ----------
        device : {"auto", "cpu", "cuda"}
            "auto" is the GPU where there is one.
        rng : numpy.random.Generator
        """
        torch = import_torch()
        found = torch.cuda.is_available()
        if device == "cuda" and not found:
            msg = "device must be one that PyTorch finds, got 'cuda' and no GPU; use device='auto'"
            raise InvalidParameterError(msg)
        place = torch.device("cuda" if found and device != "cpu" else "cpu")
        generator = torch.Generator(place)
        generator.manual_seed(int(rng.integers(2**63 - 1)))
        return cls(torch, place, generator)

    def tensor(self, array: np.ndarray) -> Any:
        """Copy in single precision (integers and truth values as they are) on the device."""
        kind = np.float32 if array.dtype.kind == "f" else array.dtype
        return self.torch.as_tensor(np.array(array, dtype=kind, order="C"), device=self.device)

    def csr(self, indptr: Any, indices: Any, values: Any, n_columns: int) -> Any:
        """Sparse tensor of compressed rows, all given as tensors."""
        with warnings.catch_warnings():
            # PyTorch calls this layout a beta; the products used here are tested against dense.
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
            warnings.filterwarnings("ignore", message="Sparse invariant checks")
            return self.torch.sparse_csr_tensor(
                indptr, indices, values, (len(indptr) - 1, n_columns), check_invariants=False
            )

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Any:
        """Parameter with entries uniform between the bounds."""
        values = self.torch.empty(shape, device=self.device)
        return values.uniform_(low, high, generator=self.generator).requires_grad_()

    def glorot(self, n_in: int, n_out: int) -> Any:
        """Weights (n_in, n_out), uniform up to ``sqrt(6 / (n_in + n_out))``."""
        bound = (6 / (n_in + n_out)) ** 0.5
        return self.uniform(n_in, n_out, low=-bound, high=bound)

    def constant(self, *shape: int, value: float = 0.0) -> Any:
        """Parameter with all entries the same."""
        return self.torch.full(shape, value, device=self.device).requires_grad_()

    def dropout(self, H: Any, rate: float) -> Any:
        """Entries set to zero with probability ``rate``, the others scaled to the same mean."""
        if rate == 0:
            return H
        drawn = self.torch.rand(H.shape, generator=self.generator, device=self.device)
        return H * (drawn >= rate) / (1 - rate)

    def adam(self, parameters: list[Any], rate: float, decay: float = 0.0) -> Any:
        """Adam with ``decay`` times the parameters added to their gradients."""
        return self.torch.optim.Adam(parameters, lr=rate, weight_decay=decay)

    def step(self, optimiser: Any, loss: Any) -> None:
        """One step of an optimiser, with gradients of its own parameters only."""
        optimiser.zero_grad()
        loss.backward(inputs=optimiser.param_groups[0]["params"])
        optimiser.step()


def binary_graph(X: np.ndarray, k: int) -> csr_array:
    """Joins every sample to its k nearest others by angle: zero or one, symmetrised by maximum.

    Parameters
    ----------
    X : array (n_samples, n_features)
    k : int
        Lowered to ``n_samples - 1`` where there are fewer others.

    Returns
    -------
    sparse array (n_samples, n_samples) with zero diagonal
    """
    n_samples = X.shape[0]
    k = min(k, n_samples - 1)
    if k < 1:
        return csr_array((n_samples, n_samples))
    graph = NearestNeighbors(n_neighbors=k).fit(normalize(X)).kneighbors_graph()
    return csr_array(graph.maximum(graph.T))


class SparseConstant:
    """Constant sparse matrix on the device, to be multiplied with dense ones by ``@``."""

    def __init__(self, run: TorchRun, matrix: csr_array) -> None:
        self.forward, self.transpose = (
            run.csr(
                run.tensor(form.indptr),
                run.tensor(form.indices),
                run.tensor(form.data),
                form.shape[1],
            )
            for form in (matrix, csr_array(matrix.T))
        )

    def __matmul__(self, H: Any) -> Any:
        return _constant_product().apply(self, H)


class Pairs:
    """Symmetric matrices with zero diagonal, all with the same pattern, one value per pair.

    Parameters
    ----------
    run : TorchRun
    pattern : sparse array (n_samples, n_samples)
        Symmetric; its non-zero entries are the pairs.

    Attributes
    ----------
    first, second : tensor (n_pairs,) of int64
        Samples of every pair, in rising order of (first, second).
    """

    def __init__(self, run: TorchRun, pattern: csr_array) -> None:
        upper = csr_array(triu(pattern, k=1, format="csr"))
        upper.sort_indices()
        self.n_samples, self.n_pairs = pattern.shape[0], upper.nnz
        numbered = csr_array(
            (np.arange(1.0, upper.nnz + 1), upper.indices, upper.indptr), upper.shape
        )
        both = csr_array(numbered + numbered.T)
        both.sort_indices()
        rows = np.repeat(np.arange(self.n_samples), np.diff(upper.indptr))
        self._ends = (rows, upper.indices.astype(np.int64))
        self.first, self.second = (run.tensor(end) for end in self._ends)
        # Position among the pairs of every stored entry of the full matrix.
        self.entry = run.tensor(both.data.astype(np.int64) - 1)
        self.full = (run.tensor(both.indptr), run.tensor(both.indices))
        self.upper = (run.tensor(upper.indptr), run.tensor(upper.indices))
        # Row of a pair: one at its two ends. Faster than gathering rows, above all backwards.
        ends = (np.arange(self.n_pairs).repeat(2), np.stack(self._ends, axis=1).ravel())
        ones = np.ones(2 * self.n_pairs)
        incidence = csr_array((ones, ends), (self.n_pairs, self.n_samples))
        self._incidence = SparseConstant(run, incidence)
        self._run = run

    def values_of(self, graph: csr_array) -> Any:
        """Entries (n_pairs,) of a symmetric sparse matrix at the pairs."""
        # The older sparse class, as the newer one answers differently from version to version.
        return self._run.tensor(np.asarray(csr_matrix(graph)[self._ends]).ravel())

    def product(self, values: Any, H: Any) -> Any:
        """``A H`` (n_samples, n_columns), differentiable in the values of A and in H."""
        return _pair_product().apply(self, values, H)

    def row_sums(self, values: Any, mirrored: Any | None = None) -> Any:
        """Row sums (n_samples,); ``mirrored`` holds the values below the diagonal if others."""
        sums = values.new_zeros(self.n_samples).index_add(0, self.first, values)
        return sums.index_add(0, self.second, values if mirrored is None else mirrored)

    def sums_of_ends(self, H: Any) -> Any:
        """``h_i + h_j`` of every pair, (n_pairs, n_columns)."""
        return self._incidence @ H

    def array(self, values: Any) -> csr_array:
        """SciPy's form of `matrix`."""
        indptr, indices = (part.cpu().numpy() for part in self.full)
        stored = values.detach()[self.entry].double().cpu().numpy()
        return csr_array((stored, indices, indptr), (self.n_samples, self.n_samples))

    def matrix(self, values: Any) -> Any:
        """Sparse matrix (n_samples, n_samples) of one value per pair."""
        return self._run.csr(*self.full, values.index_select(0, self.entry), self.n_samples)

    def inner_products(self, left: Any, right: Any) -> Any:
        """``<left_i, right_j> + <left_j, right_i>`` for every pair, (n_pairs,)."""
        torch = self._run.torch
        zeros = self._run.csr(*self.upper, left.new_zeros(self.n_pairs), self.n_samples)
        rows, columns = torch.cat([left, right], 1), torch.cat([right, left], 1)
        return torch.sparse.sampled_addmm(zeros, rows, columns.T, beta=0).values()


@functools.cache
def _constant_product() -> Any:
    """The product of `SparseConstant`; made on first use, since its base class is PyTorch's."""
    function: Any = import_torch().autograd.Function

    class ConstantProduct(function):
        @staticmethod
        def forward(ctx, constant, H):
            ctx.constant = constant
            return constant.forward @ H

        @staticmethod
        def backward(ctx, grad):
            return None, ctx.constant.transpose @ grad.contiguous()

    return ConstantProduct


@functools.cache
def _pair_product() -> Any:
    """The product of `Pairs`; made on first use, since its base class is PyTorch's."""
    function: Any = import_torch().autograd.Function

    class PairProduct(function):
        @staticmethod
        def forward(ctx, pairs, values, H):
            ctx.pairs = pairs
            ctx.save_for_backward(values, H)
            return pairs.matrix(values) @ H

        @staticmethod
        def backward(ctx, grad):
            values, H = ctx.saved_tensors
            _, needs_values, needs_h = ctx.needs_input_grad
            grad = grad.contiguous()
            by_values = ctx.pairs.inner_products(grad, H) if needs_values else None
            by_h = ctx.pairs.matrix(values) @ grad if needs_h else None
            return None, by_values, by_h

    return PairProduct
