"""Sums over the pairs of a graph with their gradients: what the steps of GEGCN are made of.

Each is written twice: with PyTorch for any device, and compiled for the processor.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, triu

from viewmend.backend import edges
from viewmend.backend.torch_gpu import import_torch
from viewmend.baselines.torch_support import TorchRun, arrays_of

__all__ = ["CompiledPairs", "Pairs", "pairs_of", "shrink"]


def pairs_of(run: TorchRun, pattern: csr_array) -> Pairs:
    """Pairs whose sums are compiled where the run is on the processor."""
    return (CompiledPairs if run.device.type == "cpu" else Pairs)(run, pattern)


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
        self._starts = run.tensor(both.indptr.astype(np.int32))
        self._columns = run.tensor(both.indices.astype(np.int32))
        self._pairs = run.tensor(sided % max(upper.nnz, 1))
        self._sided = run.tensor(sided)
        self._upper_starts = run.tensor(upper.indptr.astype(np.int32))
        self.ones, self.no_loops = (
            run.tensor(np.full(size, value))
            for size, value in ((self.n_pairs, 1.0), (self.n_samples, 0.0))
        )

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

    # With gradients.

    def neighbour_sums(self, H: Any) -> Any:
        """Sums of ``h_j`` over the pairs of every sample, (n_samples, n_columns)."""
        return _neighbour_sums().apply(self, H)

    def convolutions(self, graph: tuple[Any, Any], H: Any, kept: Any, C: Any, rows: Any) -> Any:
        """Some rows of ``(A + D) [kept * relu((A + D) H)] C``, (n_rows, n_classes).

        ``graph`` is the values of the pairs of ``A`` and the diagonal of ``D`` (n_samples,);
        ``kept`` has the shape of ``H``. There are no gradients by ``D`` and ``kept``.
        """
        return _convolutions().apply(self, *graph, H, kept, C, rows)

    def row_sums(self, graphs: Any, sides: Any) -> Any:
        """Row sums (n_samples, n_graphs) of several graphs (n_pairs, n_graphs) times ``sides``.

        Of ``sides`` (2, n_pairs) the first row weighs the entries above the diagonal.
        """
        return _row_sums().apply(self, graphs, sides)

    def relu_of_sums(self, H: Any, weights: Any) -> Any:
        """``sum_c weights_c relu(h_ic + h_jc)`` of every pair, (n_pairs,)."""
        return _relu_of_sums().apply(self, H, weights)

    def normalised(self, A: Any, low: Any, ramp: float) -> tuple[Any, Any]:
        """``shrink(a_ij) root_i root_j`` of every pair, and the constants ``root`` (n_samples,).

        ``root_i = (1 + sum_j shrink(a_ij))^(-1/2)``. Gradients are by ``A`` and by ``low``.
        """
        shrunk = shrink(A, low, ramp)
        root = (1 + self._added(self._pairs, shrunk.detach()[:, None])[:, 0]).rsqrt()
        ends = root.index_select(0, self.first) * root.index_select(0, self.second)
        return shrunk * ends, root

    # Without gradients, for those above.

    def product(self, values: Any, loops: Any, H: Any) -> Any:
        """``(A + D) H``, with ``D`` the diagonal ``loops``."""
        entries = values.index_select(0, self._pairs)
        return self._added(self._columns, H, entries).addcmul_(loops[:, None], H)

    def rows_product(self, values: Any, loops: Any, H: Any, rows: Any) -> Any:
        """Some rows of `product`."""
        return self.product(values, loops, H).index_select(0, rows)

    def rows_gradients(
        self, values: Any, loops: Any, H: Any, rows: Any, grad: Any
    ) -> tuple[Any, Any]:
        """Gradients of `rows_product` by ``H`` and by the values."""
        whole = H.new_zeros(H.shape).index_copy_(0, rows, grad)
        return self.product(values, loops, whole), self.inner_products(whole, H)

    def inner_products(self, left: Any, right: Any) -> Any:
        """``<left_i, right_j> + <left_j, right_i>`` of every pair, (n_pairs,)."""
        there = left.index_select(0, self.first) * right.index_select(0, self.second)
        back = left.index_select(0, self.second) * right.index_select(0, self.first)
        return there.add_(back).sum(1)

    def relu_sums(self, H: Any, weights: Any) -> Any:
        """Values of `relu_of_sums`."""
        sums = H.index_select(0, self.first) + H.index_select(0, self.second)
        return sums.relu_() @ weights

    def relu_slopes(self, grad: Any, H: Any) -> Any:
        """Sums of ``grad_p [h_ic + h_jc > 0]`` over the pairs p = {i, j} of every sample i."""
        on = (H.index_select(0, self.first) + H.index_select(0, self.second)) > 0
        return self._added(self._pairs, on * grad[:, None])

    def side_sums(self, graphs: Any, sides: Any) -> Any:
        """Values of `row_sums`."""
        return self._added(self._sided, (sides[:, :, None] * graphs).flatten(0, 1))

    def pair_gradients(self, grad: Any, sides: Any) -> Any:
        """Gradient of `row_sums` by the graphs, (n_pairs, n_graphs)."""
        above, below = grad.index_select(0, self.first), grad.index_select(0, self.second)
        return above * sides[0][:, None] + below * sides[1][:, None]

    def side_gradients(self, grad: Any, graphs: Any) -> Any:
        """Gradient of `row_sums` by the sides, (2, n_pairs)."""
        ends = self._run.torch.stack([self.first, self.second])
        return (grad[ends.long()] * graphs).sum(2)

    def _added(self, chosen: Any, table: Any, weights: Any | None = None) -> Any:
        """Rows of a table, one chosen for each stored entry, added within each row."""
        # Several times faster than products with a sparse tensor, which is checked and converted
        # each time.
        return self._run.torch.nn.functional.embedding_bag(
            chosen, table, self._starts[:-1], mode="sum", per_sample_weights=weights
        )


class CompiledPairs(Pairs):
    """`Pairs` on the processor: the same sums in one pass over the pairs each."""

    def __init__(self, run: TorchRun, pattern: csr_array) -> None:
        super().__init__(run, pattern)
        starts, columns = self._starts.numpy(), self._columns.numpy()
        self._upper = self._upper_starts.numpy(), self.second.numpy()
        self._full = starts, columns, self._pairs.numpy()
        self._full_pairs, self._full_sided = (
            (starts, self._pairs.numpy()),
            (starts, self._sided.numpy()),
        )

    def product(self, values: Any, loops: Any, H: Any) -> Any:
        out = H.new_empty(H.shape)
        edges.graph_product(*self._full, *arrays_of(values, loops, H, out))
        return out

    def rows_product(self, values: Any, loops: Any, H: Any, rows: Any) -> Any:
        out = H.new_empty(len(rows), H.shape[1])
        edges.rows_product(*self._full, *arrays_of(values, loops, H, rows, out))
        return out

    def rows_gradients(
        self, values: Any, loops: Any, H: Any, rows: Any, grad: Any
    ) -> tuple[Any, Any]:
        by_h, by_values = H.new_zeros(H.shape), H.new_zeros(self.n_pairs)
        edges.rows_gradients(*self._full, *arrays_of(values, loops, H, rows, grad, by_h, by_values))
        return by_h, by_values

    def inner_products(self, left: Any, right: Any) -> Any:
        out = left.new_empty(self.n_pairs)
        edges.pair_products(*self._upper, *arrays_of(left, right, out))
        return out

    def relu_sums(self, H: Any, weights: Any) -> Any:
        out = H.new_empty(self.n_pairs)
        edges.relu_of_pairs(*self._upper, *arrays_of(H, weights, out))
        return out

    def relu_slopes(self, grad: Any, H: Any) -> Any:
        out = H.new_empty(H.shape)
        edges.relu_slopes(*self._full, *arrays_of(grad, H, out))
        return out

    def side_sums(self, graphs: Any, sides: Any) -> Any:
        out = graphs.new_empty(self.n_samples, graphs.shape[1])
        edges.side_sums(*self._full_sided, *arrays_of(graphs, sides.view(-1), out))
        return out

    def pair_gradients(self, grad: Any, sides: Any) -> Any:
        out = grad.new_empty(self.n_pairs, grad.shape[1])
        edges.pair_gradients(*self._upper, *arrays_of(grad, sides.view(-1), out))
        return out

    def side_gradients(self, grad: Any, graphs: Any) -> Any:
        out = grad.new_empty(2, self.n_pairs)
        edges.side_gradients(*self._upper, *arrays_of(grad, graphs, out.view(-1)))
        return out

    def normalised(self, A: Any, low: Any, ramp: float) -> tuple[Any, Any]:
        return _normalised().apply(self, A, low, ramp)

    def _bounds(self, low: Any, ramp: float) -> tuple[np.float32, np.float32]:
        start = np.float32(low.item())
        return start, start + np.float32(ramp)


def shrink(A: Any, low: Any, ramp: float) -> Any:
    """Zero below ``low``, a ramp up to ``low + ramp``, the identity above."""
    high = low + ramp
    return (high * (A - low).relu() - low * (A - high).relu()) / ramp


# The functions below are made on first use, since their base class is PyTorch's.


@functools.cache
def _neighbour_sums() -> Any:
    function: Any = import_torch().autograd.Function

    class NeighbourSums(function):
        @staticmethod
        def forward(ctx, pairs, H):
            ctx.pairs = pairs
            return pairs.product(pairs.ones, pairs.no_loops, H)

        @staticmethod
        def backward(ctx, grad):
            pairs = ctx.pairs
            return None, pairs.product(pairs.ones, pairs.no_loops, grad)

    return NeighbourSums


@functools.cache
def _convolutions() -> Any:
    torch = import_torch()
    function: Any = torch.autograd.Function

    class Convolutions(function):
        @staticmethod
        def forward(ctx, pairs, values, loops, H, kept, C, rows):
            hidden = pairs.product(values, loops, H).relu_().mul_(kept)
            inner = hidden @ C
            ctx.pairs = pairs
            ctx.save_for_backward(values, loops, H, kept, C, rows, hidden, inner)
            return pairs.rows_product(values, loops, inner, rows)

        @staticmethod
        def backward(ctx, grad):
            values, loops, H, kept, C, rows, hidden, inner = ctx.saved_tensors
            _, needs_values, _, needs_h, _, needs_c, _ = ctx.needs_input_grad
            pairs, by_h = ctx.pairs, None
            by_inner, by_values = pairs.rows_gradients(values, loops, inner, rows, grad)
            # A unit is on where it is positive and kept, and then counts as much as it is kept.
            by_first = torch.ops.aten.threshold_backward((by_inner @ C.T).mul_(kept), hidden, 0)
            if needs_values:
                by_values += pairs.inner_products(by_first, H)
            if needs_h:
                by_h = pairs.product(values, loops, by_first)
            by_c = hidden.T @ by_inner if needs_c else None
            return None, by_values, None, by_h, None, by_c, None

    return Convolutions


@functools.cache
def _row_sums() -> Any:
    function: Any = import_torch().autograd.Function

    class RowSums(function):
        @staticmethod
        def forward(ctx, pairs, graphs, sides):
            ctx.pairs = pairs
            ctx.save_for_backward(graphs, sides)
            return pairs.side_sums(graphs, sides)

        @staticmethod
        def backward(ctx, grad):
            graphs, sides = ctx.saved_tensors
            _, needs_graphs, needs_sides = ctx.needs_input_grad
            by_graphs = ctx.pairs.pair_gradients(grad, sides) if needs_graphs else None
            by_sides = ctx.pairs.side_gradients(grad, graphs) if needs_sides else None
            return None, by_graphs, by_sides

    return RowSums


@functools.cache
def _relu_of_sums() -> Any:
    function: Any = import_torch().autograd.Function

    class ReluOfSums(function):
        @staticmethod
        def forward(ctx, pairs, H, weights):
            ctx.pairs = pairs
            ctx.save_for_backward(H, weights)
            return pairs.relu_sums(H, weights)

        @staticmethod
        def backward(ctx, grad):
            H, weights = ctx.saved_tensors
            # Both gradients need the same sums over the pairs of a sample, and nothing per pair.
            total = ctx.pairs.relu_slopes(grad, H)
            return None, total * weights, (total * H).sum(0)

    return ReluOfSums


@functools.cache
def _normalised() -> Any:
    function: Any = import_torch().autograd.Function

    class Normalised(function):
        @staticmethod
        def forward(ctx, pairs, A, low, ramp):
            bounds = pairs._bounds(low, ramp)
            root, out = A.new_empty(pairs.n_samples), A.new_empty(pairs.n_pairs)
            edges.shrunk_degrees(*pairs._full_pairs, *arrays_of(A), *bounds, *arrays_of(root))
            edges.shrunk_graph(*pairs._upper, *arrays_of(A), *bounds, *arrays_of(root, out))
            ctx.pairs, ctx.bounds = pairs, bounds
            ctx.save_for_backward(A, root)
            ctx.mark_non_differentiable(root)
            return out, root

        @staticmethod
        def backward(ctx, grad, _):
            A, root = ctx.saved_tensors
            by_a, by_low = A.new_empty(A.shape), A.new_empty(root.shape)
            edges.shrink_gradients(
                *ctx.pairs._upper, *arrays_of(A), *ctx.bounds, *arrays_of(root, grad, by_a, by_low)
            )
            return None, by_a, by_low.sum(0, keepdim=True), None

    return Normalised
