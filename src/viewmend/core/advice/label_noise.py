"""Classes of labelled samples predicted from the rest of the data, and labels that contradict them.

Labels spread by ``(I - a S) F = Y``, so that ``F - Y = a S F`` is what the neighbours of a sample
say of it; its regressions predict every sample without itself. Together they are the scores of the
fit without the direct part of the sample's own label. That part is nearly all of it: on data sets
with flipped labels these scores rank the flips as well as those of fits that hold the labels out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit, logsumexp

from viewmend.core.common.class_shares import log_shares, normalise_rows
from viewmend.core.common.confident_learning import confident_counts, noise_rate
from viewmend.core.common.rows import RowsInMemory
from viewmend.core.mend.evidence import combine
from viewmend.core.mend.induction import MendInduction
from viewmend.core.mend.joining import inverse_roots
from viewmend.core.mend.samples import scaled_columns

# Labels of a class for which it counts that wrong labels are of all kinds equally often.
EVEN_LABELS = 100.0


@dataclass(frozen=True, eq=False)
class RankedLabels:
    """Labels by how strongly the rest of the data contradicts them, most suspect first.

    ``places`` (n_labels,) are where they stood, ``found`` (n_labels,) the classes that the rest
    speaks for, and ``scores`` (n_labels,) the probability of other classes against the given one.
    ``counts`` (n_classes, n_classes) are those of `confident_counts`.
    """

    places: np.ndarray
    found: np.ndarray
    scores: np.ndarray
    counts: np.ndarray

    @property
    def noise_rate(self) -> float:
        """Share of the labels that are estimated to be wrong."""
        return noise_rate(self.counts)


def shares_without_own(
    fit: MendInduction, edges: csr_array, places: np.ndarray, class_weights: np.ndarray | float
) -> np.ndarray:
    """Class shares (n_rows, n_classes) of samples of a fit, without their own labels.

    Parameters
    ----------
    fit : MendInduction
    edges : sparse array (n_rows, n_samples)
        Rows of the graph that the labels last spread over.
    places : array (n_rows,) of int
        Which samples these are.
    class_weights : array (n_classes,) or float
        What scores are multiplied by.
    """
    per_root = inverse_roots(fit.degrees)[:, None]
    told = edges @ (fit.F * per_root) * per_root[places]
    scores = scaled_columns(told, fit.mass)
    if fit.evidence is not None:
        scores = combine(scores, fit.evidence.P[places], fit.prior, fit.settings.evidence_power)
    return np.asarray(normalise_rows(scores * class_weights), dtype=np.float64)


def rank_labels(codes: np.ndarray, shares: np.ndarray) -> RankedLabels:
    """Labels ``codes`` (n_labels,) beside class ``shares`` (n_labels, n_classes) without them.

    By the odds of all other classes against the given one. A class counts for more whose samples
    are often given this label: it is then the likelier error.
    """
    given = codes[:, None] == np.arange(shares.shape[1])
    counts = confident_counts(RowsInMemory(), given.astype(float), shares)
    logs = log_shares(shares) + np.log(error_ratios(counts))[codes]
    odds = logsumexp(np.where(given, -np.inf, logs), axis=1) - logs[given]
    # The given class may be found where all others together are more probable than it.
    found = np.argmax(logs, axis=1)
    order = np.argsort(-odds, kind="stable")
    return RankedLabels(order, found[order], expit(odds)[order], counts)


def error_ratios(counts: np.ndarray) -> np.ndarray:
    """How often labels (rows) are given to samples of a class (columns), over what is usual.

    Usual is, for right labels and for every kind of wrong ones, what errors of this rate that are
    of all kinds equally often lead to. ``counts`` (n_classes, n_classes) are those of
    `confident_counts`; where they are few, the ratios are close to one.
    """
    n_classes, whole = len(counts), counts.sum()
    # As if one more label were right, and one wrong: neither is impossible.
    rate = (whole - np.trace(counts) + 1) / (whole + 2)
    usual = np.where(np.eye(n_classes, dtype=bool), 1 - rate, rate / (n_classes - 1))
    return np.asarray((counts / usual + EVEN_LABELS) / (counts.sum(axis=0) + EVEN_LABELS))
