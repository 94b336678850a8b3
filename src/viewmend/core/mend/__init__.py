"""Mend, classes by graphs and regressions on the views. Its low-level entry::

    from viewmend.core.mend import (
        GeometrySettings, Labelling, MendSettings, RowsInMemory, build_geometry, mend, samples_of
    )

    settings = MendSettings()
    geometry = build_geometry(views, observed, GeometrySettings())
    samples = samples_of(RowsInMemory(), geometry, n_classes, settings.neighbours)
    stage = mend(samples, Labelling(Y, prior), settings).stage
    stage.classes   # (n_samples,)

Modules in reading order:

===================  ==================================================================
`recipe`             the stages, from neighbour graphs to classes
`stage`              settings, and what is known after a stage
`samples`            those of the graph, and those that hang on it
`labelling`          given labels, class shares, and the trust in them
`share_trust`        how far equal, labelled and scored class shares are trusted
`geometry`           what is computed without labels: neighbours and kernel features
`blocks`             what is known of some rows without labels
`representations`    scalings of a view, in each of which neighbours are searched
`homophily`          weights of graphs and edges by the classes that they join
`evidence`           class shares of every sample from the views it has
`kernel_features`    features of a view for regression, by Nyström's method
`loo_ridge`          ridge regression that predicts every sample without itself
`view_gaussian`      scores of all views as one Gaussian per class
`outside`            features and neighbours of rows outside the graph
`joining`            what rows outside the graph receive from it
`induction`          scores of new samples
`held_out`           scores of labelled samples without their label, for calibration
`explanation`        the labels and views that a score comes from
===================  ==================================================================
"""

from viewmend.core.common.rows import RowsInMemory
from viewmend.core.mend.geometry import GeometrySettings, build_geometry
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.recipe import mend
from viewmend.core.mend.samples import samples_of
from viewmend.core.mend.stage import MendSettings, Stage, StageRecord

__all__ = [
    "GeometrySettings",
    "Labelling",
    "MendSettings",
    "RowsInMemory",
    "Stage",
    "StageRecord",
    "build_geometry",
    "mend",
    "samples_of",
]
