"""Scores of Mend for labelled samples by shorter runs of the recipe that do not see their labels.

Leaving a label out of the finished graph would be cheaper, and is not enough: the regressions have
learned from its neighbours, which have learned from it. On pure noise, where a third of the classes
is found, that way found nine of ten held-out labels.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from viewmend.backend.namespace import Array, array_namespace
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.recipe import final_weights, stages
from viewmend.core.mend.samples import MendSamples
from viewmend.core.mend.stage import MendSettings

# Parts that the labels are dealt into, and rounds of the run without each of them: together less
# than half of a fit, and as good for a temperature as more of either.
N_FOLDS = 3
N_ROUNDS = 2
# Labels held out that suffice: with so many found or missed, further runs tell little more.
ENOUGH_LABELS = 200
# Samples without a label that prediction sets compare these runs with the fit by, at most.
MOST_COMPARED = 10_000


def scores_without(
    held_out: np.ndarray, samples: MendSamples, labelling: Labelling, settings: MendSettings
) -> Array:
    """Scores of all samples by a run that does not see the labels of those ``held_out``.

    The class shares of the labelling are kept, lest a class that lost a label be rarer than others.
    All samples are in memory, those held out are (n_held_out,) of int. Other parameters as in
    `viewmend.core.mend.recipe.mend`. Returns (n_samples, n_classes).
    """
    xp = array_namespace(labelling.Y)
    Y = xp.asarray(labelling.Y, copy=True)
    rows = xp.asarray(held_out, device=Y.device)
    Y[rows, :] = 0
    short = replace(settings, n_rounds=min(N_ROUNDS, settings.n_rounds))
    *_, last = stages(samples, replace(labelling, Y=Y), short)
    weights = xp.asarray(final_weights(last), dtype=last.P.dtype, device=Y.device)
    return last.P * weights
