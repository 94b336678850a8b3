"""How complete data becomes a learning problem, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from viewmend.data.container import MultiViewData
from viewmend.datasets import LABEL_PROTOCOLS, MISSING_PROTOCOLS, Task
from viewmend.datasets.task import ROW_ORDERS, make_task
from viewmend.parameters import choose

__all__ = ["PROTOCOLS", "Protocol", "altered", "observed_pairs", "pose"]

# The largest class of imbalanced data over the smallest.
IMBALANCE = 10.0

# Labels of every class under the protocol that asks what more labels could give.
LIMIT_SHARE = 0.9


@dataclass(frozen=True)
class Protocol:
    """What is hidden, in which order the rows come, and what settings are chosen by.

    Attributes
    ----------
    missing, order : str
        Rows of the tables of `viewmend.datasets.hide`.
    labels : str
        Row of `LABEL_RULES`.
    tuned : bool
        Whether settings are chosen *on test labels*, as the paper does: such accuracies cannot be
        had in practice. Settings that the paper or the authors of a method have for single data
        sets count among these. Otherwise every method has its defaults.
    precision : str
        What a table of this protocol prints as precision. The released code transposes its
        confusion matrix, so that the paper's PREC is the macro recall.
    summary : str
        One sentence for reports.
    labels_per_class : int or None
        This many labels in every class instead of the share that the label rate gives.
    label_share : float or None
        Share of every class to label, rounded up, instead of the label rate.
    alteration : str or None
        Row of `ALTERATIONS`: what is done to the complete data first.
    """

    missing: str
    labels: str
    order: str
    tuned: bool
    precision: str
    summary: str
    labels_per_class: int | None = None
    label_share: float | None = None
    alteration: str | None = None

    @property
    def rules(self) -> str:
        """All that a result depends on, in words: the part of a run's key that a name hides.

        Records made under a name that had another meaning are thereby told apart.
        """
        labels = self.labels
        if self.labels_per_class is not None:
            labels += f" ({self.labels_per_class} per class)"
        if self.label_share is not None:
            labels += f" ({self.label_share:g} of every class)"
        return ", ".join(
            [
                f"missing: {self.missing}",
                f"labels: {labels}",
                f"rows: {self.order}",
                f"settings: {'chosen on test labels' if self.tuned else 'defaults'}",
                *([] if self.alteration is None else [f"data: {self.alteration}"]),
            ]
        )


def regardless_of_class(
    y: np.ndarray, rate: float, _observed: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Label a share of all samples whatever their class, then one of every class left out.

    Gives the rows to label. The class shares of these labels are random: they need not be near
    those of the data.
    """
    drawn = rng.choice(y.size, size=round(rate * y.size), replace=False)
    left_out = np.setdiff1d(y, y[drawn])
    extra = [rng.choice(np.flatnonzero(y == label)) for label in left_out]
    return np.concatenate([drawn, np.array(extra, dtype=drawn.dtype)])


# Which samples keep their labels; all but the last draw within classes.
LABEL_RULES = {**LABEL_PROTOCOLS, "regardless_of_class": regardless_of_class}


def _first_two_views(data: MultiViewData, _rng: np.random.Generator) -> MultiViewData:
    two = replace(
        data,
        views=data.views[:2],
        observed=data.observed[:, :2],
        names=data.names[:2],
        columns=None if data.columns is None else data.columns[:2],
    )
    return two[np.flatnonzero(two.observed.any(axis=1))]


def _with_useless_view(data: MultiViewData, rng: np.random.Generator) -> MultiViewData:
    """One view, drawn at random, becomes standard normal noise of the same shape."""
    useless = rng.integers(len(data.views))
    noise = rng.standard_normal(data.views[useless].shape)
    views = (*data.views[:useless], noise, *data.views[useless + 1 :])
    return replace(data, views=views)


def _imbalanced(data: MultiViewData, rng: np.random.Generator) -> MultiViewData:
    """Random samples of every class, so that class sizes fall geometrically by `IMBALANCE` in all.

    Large classes stay large, equal ones are ranked at random, and the sizes are the largest that
    the data has room for.
    """
    y = data.required_labels()
    classes, counts = np.unique(y, return_counts=True)
    ranked = rng.permutation(classes.size)
    ranked = ranked[np.argsort(-counts[ranked], kind="stable")]
    shares = IMBALANCE ** -np.linspace(0, 1, classes.size)
    sizes = np.rint(np.min(counts[ranked] / shares) * shares).astype(int)
    drawn = [
        rng.choice(np.flatnonzero(y == classes[c]), size=size, replace=False)
        for c, size in zip(ranked, sizes, strict=True)
    ]
    return data[np.sort(np.concatenate(drawn))]


ALTERATIONS: Mapping[str, Callable[[MultiViewData, np.random.Generator], MultiViewData]] = {
    "first two views": _first_two_views,
    "one view replaced by noise": _with_useless_view,
    "classes of unequal size": _imbalanced,
}

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
_PAPER_TEXT = replace(
    _PAPER,
    missing="samples",
    labels="random",
    summary=(
        "As the paper's text says, and unlike its released code: a share of the samples loses 1 "
        "to V - 1 views, the others are complete, and labels are drawn at random within classes. "
        "Rows, settings and PREC as paper."
    ),
)
_HONEST = Protocol(
    missing="independent",
    labels="random",
    order="shuffled",
    tuned=False,
    precision="macro_precision",
    summary=(
        "Pairs of sample and view dropped independently, labels drawn at random within classes, "
        "rows shuffled, every method at its defaults."
    ),
)
_BASES = {
    "honest": _HONEST,
    "most-complete": replace(
        _HONEST,
        labels="most_complete",
        summary="As honest, but the most complete samples of every class are labelled.",
    ),
}
# What is different, and how a report says it.
_VARIATIONS: Mapping[str, tuple[dict[str, Any], str]] = {
    "whole-samples": (
        {"missing": "samples"},
        "a share of the samples loses views, as the paper's text says, the others are complete",
    ),
    "one-label": ({"labels_per_class": 1}, "one label per class, whatever the label rate"),
    "two-labels": ({"labels_per_class": 2}, "two labels per class, whatever the label rate"),
    "two-views": ({"alteration": "first two views"}, "the first two views alone"),
    "useless-view": (
        {"alteration": "one view replaced by noise"},
        "one view, drawn at random, is noise",
    ),
    "imbalanced": (
        {"alteration": "classes of unequal size"},
        "classes thinned at random, the largest ten times as large as the smallest",
    ),
}

# Names that experiments give under `protocols`.
PROTOCOLS: dict[str, Protocol] = {
    "paper": _PAPER,
    "paper-shuffled": replace(
        _PAPER,
        order="shuffled",
        summary="As paper, with the same missing pairs and labels, but the rows are shuffled.",
    ),
    "paper-text": _PAPER_TEXT,
    "paper-text-shuffled": replace(
        _PAPER_TEXT,
        order="shuffled",
        summary="As paper-text, with the same missing pairs and labels, but rows are shuffled.",
    ),
    **_BASES,
    "random-labels": replace(
        _HONEST,
        labels="regardless_of_class",
        summary="As honest, but labels are drawn from all samples without regard to class.",
    ),
    "honest-limit": replace(
        _HONEST,
        label_share=LIMIT_SHARE,
        summary=(
            "As honest, with the same missing pairs, but nine tenths of every class are labelled, "
            "those of honest among them, and the last tenth is judged: what a method could hope "
            "for if labels were not scarce."
        ),
    ),
    **{
        f"{base}-{name}": replace(protocol, **changes, summary=f"As {base}, but {said}.")
        for base, protocol in _BASES.items()
        for name, (changes, said) in _VARIATIONS.items()
    },
}


def pose(
    source: MultiViewData, name: str, missing_rate: float, label_rate: float, seed: int
) -> Task:
    """The learning problem of a protocol, rates and a seed.

    As `viewmend.datasets.hide`, which it equals on complete data that is not altered, but views
    that are missing from the start stay missing. For one seed the protocols that drop pairs alike
    and leave the data as it is hide the same pairs, and those that label alike the same labels.

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
        ``order`` counts the rows of the source as `altered` gives it.
    """
    protocol = choose(PROTOCOLS, name, "protocol")
    source = altered(source, name, seed)
    order_rng, _, label_rng = _streams(seed)
    observed = observed_pairs(source, protocol.missing, missing_rate, seed)
    y_true = source.required_labels()
    labelled = _labelled_rows(protocol, y_true, label_rate, observed, label_rng)
    order = ROW_ORDERS[protocol.order](y_true.size, labelled, order_rng)
    return make_task(replace(source, observed=observed), labelled, order)


def altered(source: MultiViewData, name: str, seed: int) -> MultiViewData:
    """The source after the alteration of a protocol, itself where there is none.

    Parameters
    ----------
    source : MultiViewData
    name : str
        Row of `PROTOCOLS`.
    seed : int

    Returns
    -------
    MultiViewData
    """
    alteration = PROTOCOLS[name].alteration
    if alteration is None:
        return source
    # Apart from the streams of what is hidden, which go on as without the alteration.
    rng = np.random.default_rng([seed, 1]).spawn(1)[0]
    return ALTERATIONS[alteration](source, rng)


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
    observed = MISSING_PROTOCOLS[missing](n_samples, n_views, rate, rng) & present
    emptied = np.flatnonzero(~observed.any(axis=1))
    # The largest of random numbers is at each of the views that are there alike.
    scores = np.where(present[emptied], rng.random((emptied.size, n_views)), -1)
    observed[emptied, scores.argmax(axis=1)] = True
    return observed


def _labelled_rows(
    protocol: Protocol, y: np.ndarray, rate: float, observed: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    rule, n_labels = LABEL_RULES[protocol.labels], protocol.labels_per_class
    if n_labels is None:
        share = rate if protocol.label_share is None else protocol.label_share
        return rule(y, share, observed, rng)
    # With all samples labelled, the rule tells the order in which those of a class come.
    ranked = rule(y, 1.0, observed, rng)
    return np.concatenate([ranked[y[ranked] == label][:n_labels] for label in np.unique(y)])


def _streams(seed: int) -> list[np.random.Generator]:
    """Of row order, missing pairs and labels: changing one leaves the others as they were."""
    return np.random.default_rng(seed).spawn(3)
