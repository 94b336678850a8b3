"""How many anchors a view can carry."""

from __future__ import annotations

from typing import Literal

# Anchors where the user names no number: a quarter of the rows, as the paper's numbers are, but
# not so few that hardly any neighbour is left.
AUTO_SHARE, AUTO_LEAST = 4, 8


def largest_power_of_two(number: int) -> int:
    """Largest power of two that is at most ``number``, which is positive."""
    return 1 << (int(number).bit_length() - 1)


def graph_size(
    n_anchors: int | Literal["auto"], n_neighbors: int, n_rows: int, auto_most: int = 256
) -> tuple[int, int]:
    """Anchors and neighbours of an anchor graph: ``n_neighbors < n_anchors <= n_rows``.

    "auto" stands for the largest power of two that is at most ``auto_most`` and at most a quarter
    of ``n_rows``, the observed rows of the poorest view. A number beyond the rows is lowered to a
    power of two that fits, and ``n_neighbors`` where the anchors are fewer.
    """
    if n_anchors == "auto":
        share = max(n_rows // AUTO_SHARE, min(n_rows, AUTO_LEAST))
        n_anchors = largest_power_of_two(min(auto_most, share))
    elif n_anchors > n_rows:
        n_anchors = largest_power_of_two(n_rows)
    return n_anchors, min(n_neighbors, n_anchors - 1)
