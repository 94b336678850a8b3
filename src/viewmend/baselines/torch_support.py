"""What the methods on PyTorch share: an optional import, a device, seeds and sparse products.

PyTorch is an extra. It is imported when a method that needs it is fitted, never before.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from viewmend.backend.torch_gpu import import_torch
from viewmend.exceptions import InvalidParameterError

# Of PyTorch, whose classes cannot be named where it need not be installed.
Tensor: TypeAlias = Any

# What the parameter `device` may be; Where to compute. "auto" uses a GPU if PyTorch finds one.
DEVICES = ("auto", "cpu", "cuda")


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
        """Choose a device of `DEVICES`, and seed a generator on it from ``rng``."""
        torch = import_torch()
        has_gpu = torch.cuda.is_available()
        if device == "cuda" and not has_gpu:
            msg = "device must be one that PyTorch finds, got 'cuda' and no GPU; use device='auto'"
            raise InvalidParameterError(msg)
        chosen = torch.device("cuda" if has_gpu and device != "cpu" else "cpu")
        generator = torch.Generator(chosen)
        generator.manual_seed(int(rng.integers(2**63 - 1)))
        return cls(torch, chosen, generator)

    def tensor(self, array: np.ndarray) -> Tensor:
        """Copy in single precision (integers and truth values as they are) on the device."""
        kind = np.float32 if array.dtype.kind == "f" else array.dtype
        return self.torch.as_tensor(np.array(array, dtype=kind, order="C"), device=self.device)

    def csr(self, matrix: csr_array) -> Tensor:
        """Copy as a sparse tensor of compressed rows."""
        parts = map(self.tensor, (matrix.indptr, matrix.indices, matrix.data))
        with warnings.catch_warnings():
            # PyTorch calls this layout a beta; the products used here are tested against dense.
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
            warnings.filterwarnings("ignore", message="Sparse invariant checks")
            return self.torch.sparse_csr_tensor(*parts, matrix.shape, check_invariants=False)

    def glorot(self, n_in: int, n_out: int) -> Tensor:
        """Parameter (n_in, n_out), uniform up to ``sqrt(6 / (n_in + n_out))``."""
        bound = (6 / (n_in + n_out)) ** 0.5
        values = self.torch.empty((n_in, n_out), device=self.device)
        return values.uniform_(-bound, bound, generator=self.generator).requires_grad_()

    def dropout_factors(self, n_rows: int, n_columns: int, rate: float) -> Tensor:
        """Factors of dropout: zero with probability ``rate``, else ``1 / (1 - rate)``."""
        # Sixteen random bits are plenty for one factor, and drawing them is what takes the time.
        shape = (n_rows, -(-n_columns // 4))
        drawn = self.torch.empty(shape, dtype=self.torch.int64, device=self.device)
        drawn.random_(-(2**63), None, generator=self.generator)
        bits = drawn.view(self.torch.int16)[:, :n_columns]
        factors = self.torch.empty(bits.shape, device=self.device)
        return self.torch.ge(bits, round(2**16 * rate) - 2**15, out=factors).mul_(1 / (1 - rate))

    def dropout(self, H: Tensor, rate: float) -> Tensor:
        """Entries set to zero with probability ``rate``, the others scaled to the same mean."""
        return H * self.dropout_factors(H.shape[0], H.shape[1], rate) if rate else H

    def adam(self, parameters: list[Tensor], rate: float, decay: float = 0.0) -> Any:
        """Adam with ``decay`` times the parameters added to their gradients."""
        # Fused: one pass over the parameters where the plain one takes about ten.
        return self.torch.optim.Adam(parameters, lr=rate, weight_decay=decay, fused=True)

    def step(self, optimiser: Any, loss: Tensor) -> None:
        """One step of an optimiser, with gradients of its own parameters only."""
        optimiser.zero_grad()
        loss.backward(inputs=optimiser.param_groups[0]["params"])
        optimiser.step()


def binary_graph(X: np.ndarray, k: int) -> csr_array:
    """Joins every row to its k nearest others by angle: zero or one, symmetrised by maximum.

    Where there are fewer than ``k`` others, all of them; the diagonal is zero.
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
        self.forward, self.transpose = run.csr(matrix), run.csr(csr_array(matrix.T))

    def __matmul__(self, H: Tensor) -> Tensor:
        return _constant_product().apply(self, H)


@functools.cache
def _constant_product() -> Any:
    """The product of `SparseConstant`; made on first use, since its base class is PyTorch's."""
    function: Any = import_torch().autograd.Function

    class ConstantProduct(function):
        @staticmethod
        def forward(ctx: Any, constant: SparseConstant, H: Tensor) -> Tensor:
            ctx.constant = constant
            return constant.forward @ H

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
            return None, ctx.constant.transpose @ grad.contiguous()

    return ConstantProduct
