"""Rows in any number of blocks, for tests that a cut of the rows does not show."""

from functools import reduce

import numpy as np


class CutRows:
    """Columns are lists of blocks, and sums are added up in their order."""

    def __init__(self):
        self.passes = 0

    def map(self, task, *columns, shared):
        return [task(*blocks, shared) for blocks in zip(*columns, strict=True)]

    def sums(self, task, *columns, shared):
        self.passes += 1
        return _add_up(self.map(task, *columns, shared=shared))

    def both(self, task, *columns, shared):
        answers = self.map(task, *columns, shared=shared)
        return [block for block, _ in answers], _add_up([sums for _, sums in answers])

    def gather(self, task, *columns, shared):
        return self.map(task, *columns, shared=shared)


def _add_up(parts):
    return {name: reduce(np.add, [part[name] for part in parts]) for name in parts[0]}


def cuts(rng, n_rows, n_blocks):
    """Slices that cover the rows; some may be empty."""
    ends = np.sort(rng.integers(n_rows + 1, size=n_blocks - 1))
    starts = np.r_[0, ends]
    return [slice(a, b) for a, b in zip(starts, np.r_[ends, n_rows], strict=True)]
