"""Plots of data and fits. Each function draws one plot, into given axes or a new figure.

Matplotlib comes with the extra ``plot`` and is imported only when something is drawn.
"""

from viewmend.plot.bars import plot_class_counts, plot_weight_bars
from viewmend.plot.columns import plot_columns
from viewmend.plot.comparison import plot_comparison
from viewmend.plot.confidence import (
    Reliability,
    plot_class_confidence,
    plot_confidence,
    plot_reliability,
    reliability,
)
from viewmend.plot.confusion import confusion_shares, plot_confusion
from viewmend.plot.coverage import plot_coverage, plot_overlap, view_patterns
from viewmend.plot.embedding import (
    anchor_class_shares,
    embed_graph,
    embed_rows,
    plot_graph_embedding,
    plot_imputation,
    plot_sample_graph,
)
from viewmend.plot.rounds import plot_convergence, plot_view_weights
from viewmend.plot.sensitivity import plot_sensitivity
from viewmend.plot.style import PALETTE, plot_style

__all__ = [
    "PALETTE",
    "Reliability",
    "anchor_class_shares",
    "confusion_shares",
    "embed_graph",
    "embed_rows",
    "plot_class_confidence",
    "plot_class_counts",
    "plot_columns",
    "plot_comparison",
    "plot_confidence",
    "plot_confusion",
    "plot_convergence",
    "plot_coverage",
    "plot_graph_embedding",
    "plot_imputation",
    "plot_overlap",
    "plot_reliability",
    "plot_sample_graph",
    "plot_sensitivity",
    "plot_style",
    "plot_view_weights",
    "plot_weight_bars",
    "reliability",
    "view_patterns",
]
