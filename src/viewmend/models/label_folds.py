"""Which labelled samples are held out together."""

from __future__ import annotations

from functools import partial

import numpy as np

from viewmend.exceptions import InvalidLabelsError


def label_folds(
    codes: np.ndarray, order: np.ndarray, n_folds: int, groups: np.ndarray | None = None
) -> list[np.ndarray]:
    """Labelled samples in at most so many folds, none of them empty, dealt in the given order.

    A class is never held out as a whole, because a fit without it would not know it: a single
    label stays out of all folds, and so does a group with all labels of a class.

    Parameters
    ----------
    codes : array (n_samples,) of int
        Classes, -1 for unlabelled samples.
    order : array (n_samples,) of int
        The samples, as they are dealt.
    n_folds : int
    groups : array (n_samples,) of int, optional
        Samples of one group are in one fold, or in none.
    """
    known = order[codes[order] >= 0]
    dealt = _dealt if groups is None else partial(_grouped, groups=groups)
    folds = dealt(codes, known, n_folds)
    if not folds:
        kind = "label" if groups is None else "group with labels"
        msg = (
            f"every class has a single {kind}, so that none can be held out; label two samples of "
            f"some class{'' if groups is None else ' in different groups'}"
        )
        raise InvalidLabelsError(msg)
    return folds


def some_can_be_held_out(codes: np.ndarray, groups: np.ndarray | None = None) -> bool:
    """Whether `label_folds` finds any: a label, or a group, of classes that others have too."""
    known = np.flatnonzero(codes >= 0)
    units = known if groups is None else groups[known]
    pairs = np.unique(np.stack([codes[known], units]), axis=1)
    n_units = np.bincount(pairs[0])
    alone = pairs[1][n_units[pairs[0]] == 1]
    return bool(np.setdiff1d(units, alone).size)


def _dealt(codes: np.ndarray, known: np.ndarray, n_folds: int) -> list[np.ndarray]:
    """Labels like cards, class by class."""
    # Classes as they come, not by code: other names for them give the same folds.
    _, first, counts = np.unique(codes[known], return_index=True, return_counts=True)
    several = codes[known[np.sort(first[counts > 1])]]
    if len(several) == 0:
        return []
    # One row of cards: where a class ends the next one goes on, so that folds are of one size.
    cards = np.concatenate([known[codes[known] == code] for code in several])
    return [cards[turn::n_folds] for turn in range(min(n_folds, len(cards)))]


def _grouped(
    codes: np.ndarray, known: np.ndarray, n_folds: int, groups: np.ndarray
) -> list[np.ndarray]:
    """Groups, the largest first, each to the fold with the fewest labels of its main class."""
    hands: list[list[np.ndarray]] = [[] for _ in range(n_folds)]
    held = np.zeros((n_folds, codes.max(initial=0) + 1), dtype=np.int64)
    for block in sorted(_blocks(known, groups[known]), key=len, reverse=True):
        counts = np.bincount(codes[block], minlength=held.shape[1])
        main = _main_class(codes[block])
        fold = min(range(n_folds), key=lambda f: (held[f, main], held[f].sum(), f))
        hands[fold].append(block)
        held[fold] += counts
    all_labels = held.sum(axis=0)
    kept = (_leaving_a_label(codes, hand, all_labels) for hand in hands)
    return [np.concatenate(hand) for hand in kept if hand]


def _main_class(codes: np.ndarray) -> int:
    """The class of most labels of a group; of equals the one that comes first."""
    # Not that of the lowest code: other names for the classes give the same folds.
    classes, first, counts = np.unique(codes, return_index=True, return_counts=True)
    return int(classes[np.lexsort((first, -counts))[0]])


def _blocks(known: np.ndarray, groups: np.ndarray) -> list[np.ndarray]:
    """The labelled samples of every group, groups in the order in which they come first."""
    _, first, numbers, counts = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    as_they_come = np.argsort(first)
    together = np.argsort(np.argsort(as_they_come)[numbers], kind="stable")
    return np.split(known[together], np.cumsum(counts[as_they_come])[:-1])


def _leaving_a_label(
    codes: np.ndarray, hand: list[np.ndarray], all_labels: np.ndarray
) -> list[np.ndarray]:
    """The groups of a fold without those that would take the last label of a class with them."""
    left, kept = all_labels.copy(), []
    for block in hand:
        counts = np.bincount(codes[block], minlength=len(left))
        if ((left - counts) > 0)[counts > 0].all():
            kept.append(block)
            left = left - counts
    return kept
