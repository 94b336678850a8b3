"""Which labelled samples are held out, one at a time, to check predictions from the others."""

from __future__ import annotations

import numpy as np

# A temperature is one number: more labels than this would not change it noticeably.
MOST_SAMPLES = 256


def held_out_samples(Y: np.ndarray, most: int = MOST_SAMPLES) -> np.ndarray:
    """At most ``most`` labelled samples to leave out one at a time, evenly spread over the rows.

    A class with a single label is left alone: without it, it would be unknown. ``Y`` (n_samples,
    n_classes) has one-hot rows of labelled samples, zero rows of the others.
    """
    # Y picks, for each sample, whether its class has a further label.
    rows = np.flatnonzero(Y @ (Y.sum(axis=0) > 1))
    steps = min(len(rows), most)
    # Integer arithmetic: the same rows everywhere, and none where there are none.
    return rows[np.arange(steps) * len(rows) // max(steps, 1)]


def unit_columns(rows: np.ndarray, n_samples: int) -> np.ndarray:
    """One column (n_samples, n_rows) per row, one there and zero elsewhere."""
    E = np.zeros((n_samples, len(rows)))
    E[rows, np.arange(len(rows))] = 1
    return E
