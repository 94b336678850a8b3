"""Which classes are taken for which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import confusion_matrix

from viewmend.plot.style import styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_confusion"]

# Above this share a cell is so dark that its number must be white.
DARK = 0.55


@styled
def plot_confusion(y_true: ArrayLike, y_pred: ArrayLike, classes: ArrayLike, ax: Axes) -> Axes:
    """Draw the confusion matrix in percent of each true class.

    Parameters
    ----------
    y_true, y_pred : array-like (n_samples,)
        Pass only the samples to be judged: the given labels of a transduction are always right.
    classes : array-like (n_classes,)
        Order of rows and columns.
    ax : matplotlib Axes

    Returns
    -------
    matplotlib Axes
    """
    names = np.asarray(classes)
    shares = confusion_matrix(y_true, y_pred, labels=names, normalize="true")
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    fontsize = min(9.0, 85 / len(names))
    for row, column in np.ndindex(shares.shape):
        share = shares[row, column]
        ax.text(
            column,
            row,
            f"{100 * share:.0f}",
            ha="center",
            va="center",
            fontsize=fontsize,
            color="white" if share > DARK else "black" if share >= 0.005 else "#bbbbbb",
        )
    ax.set_xticks(range(len(names)), labels=[str(name) for name in names])
    ax.set_yticks(range(len(names)), labels=[str(name) for name in names])
    ax.tick_params(length=0)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class (rows sum to 100%)")
    return ax
