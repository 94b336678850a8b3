"""Mend, classes by graphs and regressions on the views. Its low-level entry::

    from viewmend.core.mend import (
        GeometrySettings, Labelling, MendSettings, build_geometry, mend, view_graphs
    )

    settings = MendSettings()
    geometry = build_geometry(views, observed, GeometrySettings())
    graphs = view_graphs(geometry, n_classes, settings.neighbours)
    stage = mend(graphs, geometry, Labelling(Y, prior), settings).stage
    stage.classes   # (n_samples,)

Modules in reading order:

===================  ==================================================================
`recipe`             the stages, from neighbour graphs to classes
`labelling`          given labels, class shares, and the trust in them
`geometry`           what is computed without labels: neighbours and kernel features
`representations`    scalings of a view, in each of which neighbours are searched
`homophily`          weights of graphs and edges by the classes that they join
`evidence`           class shares of every sample from the views it has
`kernel_features`    features of a view for regression, by Nyström's method
`loo_ridge`          ridge regression that predicts every sample without itself
`view_gaussian`      scores of all views as one Gaussian per class
`induction`          scores of new samples
`held_out`           scores of labelled samples without their label, for calibration
`explanation`        the labels and views that a score comes from
===================  ==================================================================
"""

from viewmend.core.mend.geometry import GeometrySettings, build_geometry, view_graphs
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.recipe import MendSettings, Stage, StageRecord, mend

__all__ = [
    "GeometrySettings",
    "Labelling",
    "MendSettings",
    "Stage",
    "StageRecord",
    "build_geometry",
    "mend",
    "view_graphs",
]
