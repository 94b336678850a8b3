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

    def linear(self, n_in: int, n_out: int) -> tuple[Any, Any]:
        """Weights (n_in, n_out) and biases (n_out,), uniform up to ``1 / sqrt(n_in)``."""
        bound = n_in**-0.5
        weights = self.uniform(n_in, n_out, low=-bound, high=bound)
        return weights, self.uniform(n_out, low=-bound, high=bound)

    def glorot(self, n_in: int, n_out: int) -> Any:
        """Weights (n_in, n_out), uniform up to ``sqrt(6 / (n_in + n_out))``."""
        bound = (6 / (n_in + n_out)) ** 0.5
        return self.uniform(n_in, n_out, low=-bound, high=bound)

    def constant(self, *shape: int, value: float = 0.0) -> Any:
        """Parameter with all entries the same."""
        return self.torch.full(shape, value, device=self.device).requires_grad_()

    def kept(self, n_rows: int, n_columns: int, rate: float) -> Any:
        """Factors of dropout: zero with probability ``rate``, else ``1 / (1 - rate)``."""
        # Sixteen random bits are plenty for one factor, and drawing them is what takes the time.
        shape = (n_rows, -(-n_columns // 4))
        drawn = self.torch.empty(shape, dtype=self.torch.int64, device=self.device)
        drawn.random_(-(2**63), None, generator=self.generator)
        bits = drawn.view(self.torch.int16)[:, :n_columns]
        factors = self.torch.empty(bits.shape, device=self.device)
        return self.torch.ge(bits, round(2**16 * rate) - 2**15, out=factors).mul_(1 / (1 - rate))

    def dropout(self, H: Any, rate: float) -> Any:
        """Entries set to zero with probability ``rate``, the others scaled to the same mean."""
        return H * self.kept(H.shape[0], H.shape[1], rate) if rate else H

    def adam(self, parameters: list[Any], rate: float, decay: float = 0.0) -> Any:
        """Adam with ``decay`` times the parameters added to their gradients."""
        # Fused: one pass over the parameters where the plain one takes about ten.
        return self.torch.optim.Adam(parameters, lr=rate, weight_decay=decay, fused=True)

    def step(self, optimiser: Any, loss: Any, keep: bool = False) -> None:
        """One step of an optimiser, with gradients of its own parameters only.

        ``keep`` leaves what the gradients were made from, for the gradients of another loss.
        """
        optimiser.zero_grad()
        loss.backward(inputs=optimiser.param_groups[0]["params"], retain_graph=keep)
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
    first, second : tensor (n_pairs,)
        Samples of every pair, in rising order of (first, second).
    degrees : tensor (n_samples,)
        Pairs of every sample.
    """

    def __init__(self, run: TorchRun, pattern: csr_array) -> None:
        upper = csr_array(triu(pattern, k=1, format="csr"))
        upper.sort_indices()
        self.n_samples, self.n_pairs = pattern.shape[0], upper.nnz
        # Position among the pairs and, below the diagonal, n_pairs more; one more again, as a
        # zero would not be stored.
        numbers = np.arange(1.0, upper.nnz + 1)
        above = csr_array((numbers, upper.indices, upper.indptr), upper.shape)
        below = csr_array((numbers + upper.nnz, upper.indices, upper.indptr), upper.shape).T
        both = csr_array(above + below)
        both.sort_indices()
        sided = both.data.astype(np.int32) - 1
        rows = np.repeat(np.arange(self.n_samples, dtype=np.int32), np.diff(upper.indptr))
        self._run = run
        self.first, self.second = run.tensor(rows), run.tensor(upper.indices.astype(np.int32))
        self.degrees = run.tensor(np.diff(both.indptr).astype(float))
        # Stored entries of the full matrix, row by row: column, pair, and pair with its side.
        self._starts = run.tensor(both.indptr[:-1].astype(np.int32))
        self._columns = run.tensor(both.indices.astype(np.int32))
        self._pairs = run.tensor(sided % max(upper.nnz, 1))
        self._sided = run.tensor(sided)
        self._ends = run.torch.stack([self.first, self.second], 1)
        adjacency = csr_array((np.ones(both.nnz), both.indices, both.indptr), both.shape)
        self._adjacency = SparseConstant(run, adjacency)
        starts = run.tensor(upper.indptr.astype(np.int32))
        zeros = run.tensor(np.zeros(upper.nnz))
        self._upper = run.csr(starts, self.second, zeros, self.n_samples)

    def values_of(self, graph: csr_array) -> Any:
        """Entries (n_pairs,) of a symmetric sparse matrix at the pairs."""
        # The older sparse class, as the newer one answers differently from version to version.
        return self._run.tensor(np.asarray(csr_matrix(graph)[self._numpy_ends()]).ravel())

    def array(self, values: Any) -> csr_array:
        """SciPy's form of one value per pair, (n_samples, n_samples)."""
        stored = values.detach().double().cpu().numpy()
        upper = csr_array((stored, self._numpy_ends()), (self.n_samples, self.n_samples))
        return csr_array(upper + upper.T)

    def _numpy_ends(self) -> tuple[np.ndarray, np.ndarray]:
        return self.first.cpu().numpy().copy(), self.second.cpu().numpy().copy()

    def neighbour_sums(self, H: Any) -> Any:
        """Sums of ``h_j`` over the pairs of every sample, (n_samples, n_columns)."""
        return self._adjacency @ H

    def convolutions(self, values: Any, loops: Any, H: Any, kept: Any, C: Any) -> Any:
        """``(A + D) [kept * relu((A + D) H)] C``, (n_samples, n_classes), differentiable.

        ``D`` is diagonal with entries ``loops`` (n_samples,); ``kept`` has the shape of ``H``. Both
        are constants, without gradient.
        """
        return _convolutions().apply(self, values, loops[:, None], H, kept, C)

    def row_sums(self, values: Any, mirrored: Any | None = None) -> Any:
        """Row sums (n_samples, n_graphs) of several graphs, (n_pairs, n_graphs), differentiable.

        ``mirrored`` holds the values below the diagonal if others.
        """
        return _row_sums().apply(self, values, values if mirrored is None else mirrored)

    def relu_of_sums(self, H: Any, weights: Any) -> Any:
        """``sum_c weights_c relu(h_ic + h_jc)`` of every pair, (n_pairs,), differentiable."""
        return _relu_of_sums().apply(self, H, weights)

    def entries(self, values: Any) -> Any:
        """Value of every stored entry of the full matrix, (2 n_pairs,), without gradients."""
        return values.index_select(0, self._pairs)

    def plain_product(self, entries: Any, H: Any) -> Any:
        """``A H`` without gradients, of the entries of ``A``."""
        return self._added(self._columns, H, entries)

    def incident_sums(self, values: Any, H: Any) -> Any:
        """Sums of ``values_p h_p`` over the pairs p of every sample, without gradients."""
        return self._added(self._pairs, H, self.entries(values))

    def sums_of_ends(self, H: Any) -> Any:
        """``h_i + h_j`` of every pair, (n_pairs, n_columns), without gradients."""
        return self._run.torch.nn.functional.embedding_bag(self._ends, H, mode="sum")

    def inner_products(self, left: list[Any], right: list[Any]) -> Any:
        """``<left_i, right_j> + <left_j, right_i>`` for every pair, (n_pairs,).

        Both are given as blocks of columns.
        """
        torch = self._run.torch
        rows, columns = torch.cat([*left, *right], 1), torch.cat([*right, *left], 1)
        return torch.sparse.sampled_addmm(self._upper, rows, columns.T, beta=0).values()

    def _added(self, chosen: Any, table: Any, weights: Any | None = None) -> Any:
        """Rows of a table, one chosen for each stored entry, added within each row."""
        # Several times faster than products with a sparse tensor, which is checked and converted
        # each time.
        return self._run.torch.nn.functional.embedding_bag(
            chosen, table, self._starts, mode="sum", per_sample_weights=weights
        )


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
def _convolutions() -> Any:
    """`Pairs.convolutions`; made on first use, since its base class is PyTorch's."""
    function: Any = import_torch().autograd.Function

    class Convolutions(function):
        @staticmethod
        def forward(ctx, pairs, values, loops, H, kept, C):
            entries = pairs.entries(values)
            hidden = pairs.plain_product(entries, H).addcmul_(loops, H).relu_().mul_(kept)
            inner = hidden @ C
            ctx.pairs = pairs
            # A unit is on where it is positive and kept, and then counts as much as it is kept.
            ctx.save_for_backward(entries, loops, H, kept * hidden.sign(), C, hidden, inner)
            return pairs.plain_product(entries, inner).addcmul_(loops, inner)

        @staticmethod
        def backward(ctx, grad):
            entries, loops, H, slopes, C, hidden, inner = ctx.saved_tensors
            _, needs_values, _, needs_h, _, _ = ctx.needs_input_grad
            grad = grad.contiguous()
            by_inner = ctx.pairs.plain_product(entries, grad).addcmul_(loops, grad)
            by_first = (by_inner @ C.T).mul_(slopes)
            by_values = by_h = None
            if needs_values:
                # Both products are with the same graph: their gradients by it are added at once.
                by_values = ctx.pairs.inner_products([grad, by_first], [inner, H])
            if needs_h:
                by_h = ctx.pairs.plain_product(entries, by_first).addcmul_(loops, by_first)
            return None, by_values, None, by_h, None, hidden.T @ by_inner

    return Convolutions


@functools.cache
def _row_sums() -> Any:
    """`Pairs.row_sums`; made on first use, since its base class is PyTorch's."""
    torch = import_torch()
    function: Any = torch.autograd.Function

    class RowSums(function):
        @staticmethod
        def forward(ctx, pairs, values, mirrored):
            ctx.pairs = pairs
            return pairs._added(pairs._sided, torch.cat([values, mirrored]))

        @staticmethod
        def backward(ctx, grad):
            pairs = ctx.pairs
            return None, grad.index_select(0, pairs.first), grad.index_select(0, pairs.second)

    return RowSums


@functools.cache
def _relu_of_sums() -> Any:
    """`Pairs.relu_of_sums`; made on first use, since its base class is PyTorch's."""
    torch = import_torch()
    function: Any = torch.autograd.Function

    class ReluOfSums(function):
        @staticmethod
        def forward(ctx, pairs, H, weights):
            sums = pairs.sums_of_ends(H)
            found = sums.relu_() @ weights
            ctx.pairs = pairs
            # The array of the sums, which is large, is used again for the units that are on.
            ctx.save_for_backward(torch.gt(sums, 0, out=sums), H, weights)
            return found

        @staticmethod
        def backward(ctx, grad):
            on, H, weights = ctx.saved_tensors
            # Both gradients need the same sums over the pairs of a sample, and nothing per pair.
            total = ctx.pairs.incident_sums(grad.contiguous(), on)
            return None, total * weights, (total * H).sum(0)

    return ReluOfSums
