"""How far to trust equal class shares, those of the labels and those of the scores.

There are three guesses at the shares ``p`` of ``c`` classes: all equal; those of ``n`` labels;
those of the classes that scores favour. How good each is, is not known, but they check one another.
For square roots of shares, whose chance error is the same for large and small classes, the model is

    2 sqrt(p) ~ N(2 sqrt(1/c), t),    of labels ~ N(2 sqrt(p), d),    of scores ~ N(2 sqrt(p), e)

independent by class. Labels and scores deviate alike from equal shares by ``t``, and each by its
own error besides. The marginal likelihood weighs hypotheses on ``t``, ``d`` and ``e``: labels dealt
out in the shares of the classes have ``d`` near zero, labels drawn at random ``d = 1/n``. Labels or
scores may also have nothing to do with ``p``, and be near equal shares by themselves.
"""

from __future__ import annotations

import numpy as np

# Relative standard deviation of class sizes: from all alike to a few that hold nearly all samples.
SIZE_SPREADS = (0.01, 0.2, 0.4, 0.8, 1.6)
# Relative error of the shares of the scores; with the last, they say nothing of the class sizes.
SCORE_ERRORS = (0.05, 0.1, 0.2, 0.4, 0.4)
SCORES_TELL = (1.0, 1.0, 1.0, 1.0, 0.0)
# How labels may have come about, with the probability of each before any is seen: dealt out in the
# shares of the classes; drawn at random; the same number for every class; in any numbers.
DEALT, DRAWN, EVEN, ANY = 0.58, 0.38, 0.02, 0.02

# Of equal shares, of the labels' shares, of the scores' shares; their sum is one.
Trust = tuple[float, float, float]


def share_trust(labelled: np.ndarray, n_labels: float, scored: np.ndarray) -> Trust:
    """Weights of three guesses in the expected class shares, given the last two of them.

    Parameters
    ----------
    labelled : array (n_classes,)
        Class shares among the labels, positive.
    n_labels : float
    scored : array (n_classes,)
        Class shares that the scores have by themselves, positive.

    Returns
    -------
    tuple of float
        Of equal shares, of ``labelled``, of ``scored``; they sum to one.
    """
    c = len(labelled)
    by_labels, by_scores = (2 * (np.sqrt(each) - c**-0.5) for each in (labelled, scored))
    chance, rounding = 1 / n_labels, c / (12 * n_labels**2)
    # Along the first axis: how labels came about. The last two ways have nothing to do with sizes.
    before = np.array([DEALT, DRAWN, EVEN, ANY])[:, None, None]
    labels_tell, scores_tell = np.array([1.0, 1.0, 0.0, 0.0])[:, None, None], np.array(SCORES_TELL)
    of_labels = np.array([rounding, chance, rounding, chance + 1 / c])[:, None, None]
    of_sizes = np.square(SIZE_SPREADS)[:, None] / c
    of_scores = np.square(SCORE_ERRORS) / c
    # The covariance [[a, b], [b, d]] of what labels and scores say of a class.
    a, d = labels_tell * of_sizes + of_labels, scores_tell * of_sizes + of_scores
    b = labels_tell * scores_tell * of_sizes
    determinant = a * d - b**2
    squares = d * (by_labels @ by_labels) + a * (by_scores @ by_scores)
    misfit = (squares - 2 * b * (by_labels @ by_scores)) / determinant
    logs = np.log(before) - ((c - 1) * np.log(determinant) + misfit) / 2
    probable = np.exp(logs - logs.max())
    # Given a hypothesis, every guess counts by one over its variance.
    told = 1 / of_sizes, labels_tell / of_labels, scores_tell / of_scores
    precisions = np.broadcast_arrays(*told, logs)[:3]
    weights = probable * precisions / sum(precisions)
    equal, labels, scores = weights.sum(axis=(1, 2, 3)) / probable.sum()
    return float(equal), float(labels), float(scores)
