"""How many given labels are wrong, by confident learning: counts that need no noise model.

Northcutt, Jiang and Chuang (2021), as the package cleanlab has it. A sample is counted for the most
probable of the classes of which the model is at least as sure as it is, on average, of the samples
that were given this class. Thresholds per class make up for classes of which it is always sure, and
for those of which it never is.
"""

from __future__ import annotations

import numpy as np

from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.common.rows import Column, Rows, Sums
from viewmend.core.common.small_sums import beside, on_host, total

# No more is asked for, unlike in cleanlab: a model can be so sure of well separated classes, on
# average, that half of their samples, and most with a wrong label, fall short of it by a hair.
SURE = 0.9


def confident_counts(rows: Rows, Y: Column, P: Column) -> np.ndarray:
    """Labelled samples by given and by confidently found class, (n_classes, n_classes).

    Every sample counts once, as cleanlab calibrates it: rows sum to the numbers of given labels,
    shared out in the proportions of the samples that are counted at all.

    Parameters
    ----------
    rows : Rows
    Y : column of array (n_rows, n_classes)
        One-hot rows of labelled samples, zero rows of the others.
    P : column of array (n_rows, n_classes)
        Class shares of every sample, found without its own label.
    """
    sums = on_host(rows.sums(self_confidence_sums, Y, P, shared=None))
    given = sums["labels"]
    thresholds = np.minimum(sums["confidence"] / np.maximum(given, 1), SURE)
    counted = on_host(rows.sums(joint_sums, Y, P, shared=thresholds))["joint"]
    # A class none of whose labels is counted keeps them.
    counted += np.diag(counted.sum(axis=1) == 0)
    return np.asarray(counted * (given / counted.sum(axis=1))[:, None])


def noise_rate(counts: np.ndarray) -> float:
    """Share of the labels of `confident_counts` that are not of the class found."""
    whole = float(counts.sum())
    return (whole - float(np.trace(counts))) / whole if whole else 0.0


def unexpected_noise(rows: Rows, Y: Column, P: Column) -> float:
    """Share of the labels that are wrong beyond what class shares ``P`` themselves expect.

    Of labels that follow the shares, a part ``d`` is not of the class of largest share, which is
    less than one by as much on average. If a part ``e`` of all labels is wrong besides, ``d + e (1
    - d)`` are not. Hard classes, of which `noise_rate` takes many labels for wrong, make no noise
    here, and neither do shares that are not sure enough. Parameters as in `confident_counts`.
    """
    sums = on_host(rows.sums(disagreement_sums, Y, P, shared=None))
    labels = max(float(sums["labels"]), 1.0)
    found, expected = float(sums["found"]) / labels, float(sums["expected"]) / labels
    return max(found - expected, 0.0) / max(1 - expected, 1e-9)


# ------------------------------------------------------------------ tasks


def disagreement_sums(Y: Array, P: Array, _shared: None) -> Sums:
    """Numbers of labels, of those that are not of largest share, and of those expected to be."""
    xp = array_namespace(Y)
    labelled = xp.any(Y != 0, axis=1)
    other = labelled & (xp.argmax(Y, axis=1) != xp.argmax(P, axis=1))
    doubt = xp.where(labelled, 1 - xp.max(P, axis=1), xp.zeros_like(P[:, 0]))
    counted = {"labels": labelled, "found": other}
    return {name: xp.sum(xp.astype(x, xp.float64)) for name, x in counted.items()} | {
        "expected": total(doubt)
    }


def self_confidence_sums(Y: Array, P: Array, _shared: None) -> Sums:
    """Labels by class, and the sums of the shares that these classes have, both (n_classes,)."""
    return {"labels": total(Y), "confidence": total(Y * P)}


def joint_sums(Y: Array, P: Array, thresholds: np.ndarray) -> Sums:
    """Confidently found classes by given class, (n_classes, n_classes)."""
    xp = array_namespace(Y)
    sure = beside(thresholds, P) <= P
    found = xp.argmax(xp.where(sure, P, xp.full_like(P, -1.0)), axis=1)
    numbers = xp.arange(Y.shape[1], device=Y.device)
    hits = (found[:, None] == numbers) & xp.any(sure, axis=1, keepdims=True)
    return {"joint": xp.astype(Y.T, xp.float64) @ xp.astype(hits, xp.float64)}
