"""How complete data becomes a learning problem, by name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.datasets import LABEL_PROTOCOLS, MISSING_PROTOCOLS, Task
from viewmend.datasets.task import ROW_ORDERS, make_task
from viewmend.parameters import choose

__all__ = ["PROTOCOLS", "Protocol", "observed_pairs", "pose"]


@dataclass(frozen=True)
class Protocol:
    """What is hidden, in which order the rows come, and what settings are chosen by.

    Attributes
    ----------
    missing, labels, order : str
        Rows of the tables of `viewmend.datasets.hide`.
    tuned : bool
        Whether settings are chosen *on test labels*, as the paper does: such accuracies cannot be
        had in practice.
    precision : str
        What a table of this protocol prints as precision. The released code transposes its
        confusion matrix, so that the paper's PREC is the macro recall.
    summary : str
        One sentence for reports.
    """

    missing: str
    labels: str
    order: str
    tuned: bool
    precision: str
    summary: str


_PAPER = Protocol(
    missing="independent",
    labels="most_complete",
    order="released",
    tuned=True,
    precision="macro_recall",
    summary=(
        "Pairs of sample and view dropped independently, the most complete samples labelled, rows "
        "in the paper's order (labelled ones first, then by class), settings chosen on test "
        "labels, PREC is macro recall."
    ),
)

# Names that experiments give under `protocols`.
PROTOCOLS: dict[str, Protocol] = {
    "paper": _PAPER,
    "paper-shuffled": replace(
        _PAPER,
        order="shuffled",
        summary="As paper, with the same missing pairs and labels, but the rows are shuffled.",
    ),
    "honest": Protocol(
        missing="independent",
        labels="random",
        order="shuffled",
        tuned=False,
        precision="macro_precision",
        summary=(
            "Pairs of sample and view dropped independently, random labels of every class, rows "
            "shuffled, one setting per method that no test label has chosen."
        ),
    ),
}


def pose(
    source: MultiViewData, name: str, missing_rate: float, label_rate: float, seed: int
) -> Task:
    """The learning problem of a protocol, rates and a seed.

    As `viewmend.datasets.hide`, which it equals on complete data, but views that are missing from
    the start stay missing. For one seed all protocols hide the same pairs, and those that label
    alike the same labels.

    Parameters
    ----------
    source : MultiViewData
        All samples labelled with their true classes.
    name : str
        Row of `PROTOCOLS`.
    missing_rate : float in [0, 1)
    label_rate : float in (0, 1]
    seed : int

    Returns
    -------
    Task
        ``order`` counts the rows of the source.
    """
    protocol = choose(PROTOCOLS, name, "protocol")
    order_rng, _, label_rng = _streams(seed)
    observed = observed_pairs(source, protocol.missing, missing_rate, seed)
    y_true = source.required_labels()
    labelled = LABEL_PROTOCOLS[protocol.labels](y_true, label_rate, observed, label_rng)
    order = ROW_ORDERS[protocol.order](y_true.size, labelled, order_rng)
    return make_task(replace(source, observed=observed), labelled, order)


def observed_pairs(source: MultiViewData, missing: str, rate: float, seed: int) -> np.ndarray:
    """Pairs of sample and view that stay when others are hidden.

    Parameters
    ----------
    source : MultiViewData
        All samples labelled with their true classes.
    missing : str
        Row of `viewmend.datasets.MISSING_PROTOCOLS`.
    rate : float
    seed : int

    Returns
    -------
    array (n_samples, n_views) of bool
        In the order of the source.
    """
    _, rng, _ = _streams(seed)
    present = source.observed
    n_samples, n_views = present.shape
    kept = MISSING_PROTOCOLS[missing](n_samples, n_views, rate, rng) & present
    emptied = np.flatnonzero(~kept.any(axis=1))
    # The largest of random numbers is at each of the views that are there alike.
    scores = np.where(present[emptied], rng.random((emptied.size, n_views)), -1)
    kept[emptied, scores.argmax(axis=1)] = True
    return kept


def _streams(seed: int) -> list[np.random.Generator]:
    """Of row order, missing pairs and labels: changing one leaves the others as they were."""
    return np.random.default_rng(seed).spawn(3)
