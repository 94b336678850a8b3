"""What the compiled networks of GEGCN are made of: edges as a table, Adam and dropout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from viewmend.backend import edges
from viewmend.backend.threads import parallel_map, row_blocks

__all__ = ["Adam", "Dropout", "Entries", "blocks_of", "cross_entropy", "on_blocks", "sigmoid"]

# Most rows that a thread takes at a time, where they are much work and where they are little, and
# most parameters. Less than that takes no longer than waking a thread.
MOST_ROWS, MOST_LIGHT_ROWS, MOST_PARAMETERS = 512, 4096, 1 << 18


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


def on_blocks(work: Callable[[slice], Any], blocks: list[slice]) -> list[Any]:
    """`parallel_map`, which a single block does without."""
    return [work(blocks[0])] if len(blocks) == 1 else parallel_map(work, blocks)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """``1 / (1 + exp(-x))``, in a form that cannot overflow."""
    half = np.float32(0.5)
    return half + half * np.tanh(half * x)


def cross_entropy(logits: np.ndarray, known: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean of ``-log softmax`` at the known classes, and its gradient by the logits."""
    everyone = np.arange(len(known))
    logits = logits - logits.max(1, keepdims=True)
    masses = np.exp(logits)
    totals = masses.sum(1, keepdims=True)
    loss = np.mean(np.log(totals[:, 0]) - logits[everyone, known])
    slopes = masses / totals
    slopes[everyone, known] -= 1
    return float(loss), slopes / np.float32(len(known))


class Entries:
    """The table of `viewmend.backend.edges` for a symmetric pattern without loops."""

    def __init__(self, pattern: csr_array) -> None:
        self.n_samples, counts = pattern.shape[0], np.diff(pattern.indptr)
        room = -(-counts // edges.FOUR) * edges.FOUR
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
        table = starts, starts[:-1] + counts, columns, mirrors
        self.table = tuple(part.astype(np.int32) for part in table)
        self.degrees = counts.astype(np.float32)
        self.ones = self.spread(np.ones(pattern.nnz))
        self.blocks = blocks_of(self.n_samples)
        self.light_blocks = row_blocks(self.n_samples, 1, MOST_LIGHT_ROWS)

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

    def run(self, kernel: Any, *arguments: Any) -> None:
        """A kernel on all rows."""
        on_blocks(lambda rows: kernel(rows.start, rows.stop, self.table, *arguments), self.blocks)

    def run_light(self, kernel: Any, *arguments: Any) -> None:
        """A kernel with little work on all rows."""
        on_blocks(
            lambda rows: kernel(rows.start, rows.stop, self.table, *arguments), self.light_blocks
        )


class Adam:
    """Adam on one array, with ``decay`` times the array added to its gradient."""

    def __init__(self, parameter: np.ndarray, rate: float, decay: float) -> None:
        flat = parameter.reshape(-1)
        self._state = flat, np.zeros_like(flat), np.zeros_like(flat)
        self._blocks = row_blocks(flat.size, 1, MOST_PARAMETERS)
        self._rate, self._decay, self._n_steps = rate, decay, 0

    def step(self, gradient: np.ndarray) -> None:
        self._n_steps += 1
        rate = self._rate / (1 - 0.9**self._n_steps)
        root = (1 - 0.999**self._n_steps) ** -0.5
        rates = np.float32(self._decay), np.float32(rate), np.float32(root)
        flat = np.asarray(gradient, dtype=np.float32).reshape(-1)

        def step(part: slice) -> None:
            edges.take_adam_step(tuple(array[part] for array in self._state), flat[part], rates)

        on_blocks(step, self._blocks)
