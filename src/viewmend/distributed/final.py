"""The labels that are given out: spread once more over the finished graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from dask.delayed import Delayed
from scipy.sparse.csgraph import connected_components

from viewmend.core.agfti.held_out import HeldOut, labels_without_own
from viewmend.core.agfti.propagation import LabelSums
from viewmend.core.common.held_out import held_out_samples
from viewmend.distributed import blocks as tasks
from viewmend.distributed.blocks import SharedProblem
from viewmend.distributed.rows import DaskRows
from viewmend.distributed.solver import BlockResult, anchor_labels_of


@dataclass(frozen=True, eq=False)
class FinalLabels:
    """What a fit gives out of its samples, in their order, and of its anchors."""

    F: np.ndarray  # (n_samples, n_classes)
    reachable: np.ndarray  # (n_samples,) of bool
    observed: np.ndarray  # (n_samples, n_views) of bool
    Q: np.ndarray  # (n_anchors, n_classes)
    scaled_Q: np.ndarray  # of the same shape
    sums: LabelSums
    free: np.ndarray  # column sums (n_anchors,) of ``P`` over the unlabelled samples


def spread_finally(blocks: list[Delayed], common: SharedProblem, runner: DaskRows) -> FinalLabels:
    """`viewmend.core.agfti.propagation.propagate_labels` and `reachable_samples` over blocks."""
    sums = runner.sums(tasks.final_sums, blocks, shared=common)
    Q, scaled_Q = anchor_labels_of(sums, common)
    reached = _reached_anchors(sums["joined"], sums["labelled"] > 0)
    rows = runner.gather(tasks.final_labels, blocks, shared=(common, scaled_Q, reached))
    F, reachable, observed = (np.concatenate(part) for part in zip(*rows, strict=True))
    label_sums = LabelSums(*(sums[name] for name in ("degrees", "gram", "pulled")))
    return FinalLabels(F, reachable, observed, Q, scaled_Q, label_sums, sums["free"])


def held_out_labels(
    result: BlockResult,
    starts: Sequence[int],
    labelled: tuple[np.ndarray, np.ndarray],
    final: FinalLabels,
    common: SharedProblem,
    runner: DaskRows,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`viewmend.core.agfti.held_out.propagated_without_own` over blocks that begin at ``starts``.

    ``labelled`` are the labelled samples (n_labelled,) in the order in which they are looked at,
    and their classes. Returns ``F`` and growth (n_held_out, n_classes), and codes (n_held_out,).
    """
    picked = held_out_samples(_one_hot(labelled[1], common.n_classes))
    samples, codes = (array[picked] for array in labelled)
    if not len(samples):
        # A label of each class: without it, the class would be unknown.
        none = np.empty((0, common.n_classes))
        return none, none, codes
    owners = np.searchsorted(starts, samples, side="right") - 1
    wanted = np.unique(owners)
    blocks = [result.blocks[i] for i in wanted]
    local = [samples[owners == i] - starts[i] for i in wanted]
    of_blocks = runner.gather(tasks.held_rows, blocks, local, shared=(common, result.current))
    # From the order of the blocks to that in which samples were picked.
    back = np.argsort(np.argsort(owners, kind="stable"))
    P, rows = (np.concatenate(part)[back] for part in zip(*of_blocks, strict=True))
    damping, strength = common.B_samples.astype(np.float64)
    held = HeldOut(P, _one_hot(codes, common.n_classes), np.full(len(codes), strength), rows)
    B_anchors = common.problem.B_anchors.astype(np.float64)
    F, growth = labels_without_own(final.sums, final.free, B_anchors, held, float(damping))
    return F, growth, codes


def _reached_anchors(joined: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """Anchors (n_anchors,) of bool that samples join, over others, to one of a labelled sample."""
    _, part = connected_components(joined, directed=False)
    return np.isin(part, part[labelled])


def _one_hot(codes: np.ndarray, n_classes: int) -> Any:
    return (codes[:, None] == np.arange(n_classes)).astype(np.float64)
