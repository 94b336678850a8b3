"""What the compiled networks of GEGCN are made of: edges as a table, Adam and dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from viewmend.backend import edges, layers
from viewmend.backend.threads import parallel_map, row_blocks

__all__ = ["Adam", "Dropout", "Entries", "blocks_of", "side_by_side", "sigmoid"]

# Most rows that a thread takes at a time.
MOST_ROWS = 512


class Dropout(NamedTuple):
    """Hidden units to leave out: those whose ``bits`` are below ``cut``; others grow by ``scale``.

    Sixteen random bits are plenty for one unit, and drawing them is what takes the time.
    """

    bits: np.ndarray
    cut: np.uint16
    scale: np.float32

    @classmethod
    def draw(cls, shape: tuple[int, int], rate: float, rng: np.random.Generator) -> Dropout:
        """Each unit is left out with probability ``rate``; the mean of their factors is one."""
        size = shape[0] * shape[1]
        words = rng.integers(2**64, size=-(-size // 4), dtype=np.uint64)
        bits = words.view(np.uint16)[:size].reshape(shape)
        # The last of all numbers of 16 bits stays whatever the rate, which is below one.
        cut = np.uint16(min(round(2**16 * rate), 2**16 - 1))
        return cls(bits, cut, np.float32(1 / (1 - rate)))

    @classmethod
    def none(cls, shape: tuple[int, int]) -> Dropout:
        return cls(np.zeros(shape, np.uint16), np.uint16(0), np.float32(1))


def blocks_of(n_rows: int) -> list[slice]:
    """About equal blocks of rows: at least four where there are four rows, whatever the threads."""
    return row_blocks(n_rows, 1, min(MOST_ROWS, -(-n_rows // 4)))


def side_by_side(*tasks: Callable[[], Any]) -> list[Any]:
    """Results of tasks that do not need each other, begun in this order."""
    return parallel_map(lambda task: task(), tasks)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """``1 / (1 + exp(-x))``, in a form that cannot overflow."""
    half = np.float32(0.5)
    out = half * x
    np.tanh(out, out=out)
    out *= half
    out += half
    return out


class Entries:
    """The table of `viewmend.backend.edges` for a symmetric pattern without loops."""

    def __init__(self, pattern: csr_array) -> None:
        self.n_samples, counts = pattern.shape[0], np.diff(pattern.indptr)
        room = -(-counts // edges.EIGHT) * edges.EIGHT
        starts = np.concatenate([[0], np.cumsum(room)])
        shifts = np.repeat(starts[:-1] - pattern.indptr[:-1], counts)
        self._stored = shifts + np.arange(pattern.nnz)
        self._pattern = pattern
        self.size, self.n_edges = int(starts[-1]), pattern.nnz // 2
        columns = np.repeat(np.arange(self.n_samples), room)
        columns[self._stored] = pattern.indices
        mirrors = np.arange(self.size)
        numbered = csr_matrix((self._stored, pattern.indices, pattern.indptr), pattern.shape)
        mirrors[self._stored] = numbered.T.tocsr().data
        rows = np.repeat(np.arange(self.n_samples), counts)
        lower = np.bincount(rows[pattern.indices < rows], minlength=self.n_samples)
        uppers = (starts[:-1] + lower) // edges.FOUR * edges.FOUR
        table = starts, uppers, starts[:-1] + counts, columns, mirrors
        self.table = tuple(part.astype(np.int32) for part in table)
        self.degrees = counts.astype(np.float32)
        self.ones = self.spread(np.ones(pattern.nnz))

    def empty(self) -> np.ndarray:
        """Zero for every entry."""
        return np.zeros(self.size, dtype=np.float32)

    def spread(self, values: np.ndarray) -> np.ndarray:
        """Values of all stored entries, with zeros in the blanks."""
        out = self.empty()
        out[self._stored] = values
        return out

    def values_of(self, graph: csr_array) -> np.ndarray:
        """Entries of another sparse matrix, (size,)."""
        rows = np.repeat(np.arange(self.n_samples), np.diff(self._pattern.indptr))
        # The older sparse class, as the newer one answers differently from version to version.
        found = csr_matrix(graph)[rows, self._pattern.indices]
        return self.spread(np.asarray(found).ravel())

    def array(self, values: np.ndarray) -> csr_array:
        """SciPy's form of the values of a graph, (n_samples, n_samples)."""
        stored = values[self._stored].astype(np.float64)
        return csr_array((stored, self._pattern.indices, self._pattern.indptr), self._pattern.shape)


class Adam:
    """Adam on one array, with ``decay`` times the array added to its gradient."""

    def __init__(self, parameter: np.ndarray, rate: float, decay: float) -> None:
        self._state = parameter, np.zeros_like(parameter), np.zeros_like(parameter)
        self._rate, self._decay, self._n_steps = rate, decay, 0

    def step(self, gradient: np.ndarray) -> None:
        self.begin()
        self.step_rows(slice(None), gradient)

    def begin(self) -> None:
        """Of a step that is taken row by row."""
        self._n_steps += 1
        rate = self._rate / (1 - 0.9**self._n_steps)
        root = (1 - 0.999**self._n_steps) ** -0.5
        self._rates = np.float32(self._decay), np.float32(rate), np.float32(root)

    def step_rows(self, rows: slice, gradient: np.ndarray) -> None:
        """Of some rows, of which this is the gradient."""
        state = tuple(array[rows].reshape(-1) for array in self._state)
        flat = np.asarray(gradient, dtype=np.float32).reshape(-1)
        layers.take_adam_step(state, flat, self._rates)
