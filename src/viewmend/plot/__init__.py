"""Pictures of a fit; each function draws one thing into the axes it is given.

Matplotlib comes with the extra ``plot`` and is imported only when something is drawn.
"""

from viewmend.plot.confusion import plot_confusion
from viewmend.plot.embedding import anchor_class_shares, embed_rows, plot_graph_embedding
from viewmend.plot.rounds import plot_convergence, plot_view_weights
from viewmend.plot.style import PALETTE, plot_style

__all__ = [
    "PALETTE",
    "anchor_class_shares",
    "embed_rows",
    "plot_confusion",
    "plot_convergence",
    "plot_graph_embedding",
    "plot_style",
    "plot_view_weights",
]
