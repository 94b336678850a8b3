"""Plot of which classes are confused with each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from viewmend.core.common.class_shares import normalise_rows
from viewmend.exceptions import InvalidParameterError
from viewmend.parameters import short
from viewmend.plot.style import axes_or_new, styled
from viewmend.plot.tiles import draw_tiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def confusion_shares(
    y_true: Iterable[Any],
    y_pred: Iterable[Any],
    classes: Iterable[Any],
    abstained: ArrayLike | None = None,
) -> np.ndarray:
    """Share of each true class that is predicted as each class.

    Parameters
    ----------
    y_true, y_pred : array-like (n_samples,)
        True and predicted classes.
    classes : array-like (n_classes,)
        Order of rows and columns.
    abstained : array-like (n_samples,) of bool, optional
        Samples for which the model abstains.

    Returns
    -------
    array (n_classes, n_classes + 1)
        Rows sum to one, or to zero for a class without samples. The last column has the abstained
        samples, which are in no other one.
    """
    names = list(classes)
    rows, columns = class_positions(y_true, names), class_positions(y_pred, names)
    if abstained is not None:
        columns = np.where(np.asarray(abstained, dtype=bool), len(names), columns)
    counts = np.zeros((len(names), len(names) + 1))
    np.add.at(counts, (rows, columns), 1)
    return normalise_rows(counts)


def class_positions(y: Iterable[Any], classes: Iterable[Any]) -> np.ndarray:
    """Place of every label in ``classes``, (n_samples,) of int; labels are any hashables."""
    places = {name: place for place, name in enumerate(classes)}
    labels = list(y)
    strangers = [label for label in labels if label not in places]
    if strangers:
        msg = (
            f"labels must be among the {len(places)} classes, got {short(strangers[0])}; name "
            f"every label in classes, or leave these samples out"
        )
        raise InvalidParameterError(msg)
    return np.array([places[label] for label in labels], dtype=np.int64)


@styled
def plot_confusion(
    y_true: Iterable[Any],
    y_pred: Iterable[Any],
    classes: Iterable[Any],
    ax: Axes | None = None,
    abstained: ArrayLike | None = None,
) -> Axes:
    """Draw the confusion matrix in percent of each true class.

    Parameters
    ----------
    y_true, y_pred : array-like (n_samples,)
        True and predicted classes. Leave out samples with a given label, which are always right in
        a transduction.
    classes : array-like (n_classes,)
        Order of rows and columns.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure.
    abstained : array-like (n_samples,) of bool, optional
        Samples for which the model abstains, such as ``unreachable_`` or those of low confidence;
        they are counted in a column of their own.

    Returns
    -------
    matplotlib Axes
    """
    ax = axes_or_new(ax, (5.4, 5.0))
    names = list(classes)
    shares = confusion_shares(y_true, y_pred, names, abstained)
    shares = shares[:, :-1] if abstained is None else shares
    texts = np.vectorize(lambda share: f"{100 * share:.0f}", otypes=[object])(shares)
    draw_tiles(ax, shares, texts, (names, names))
    for text in ax.texts:
        if text.get_text() == "0":
            text.set_color("#bbbbbb")
    if abstained is not None:
        # Above its column, where it has room: below, it would turn all names of classes.
        end, above = (len(names) + 0.5, -0.5), (0, 4)
        ax.annotate("abstained", end, above, textcoords="offset points", ha="right", fontsize=9)
        ax.axvline(len(names) - 0.5, color="white", linewidth=3)
    ax.set_xlabel("predicted class")
    ax.set_ylabel("true class (rows sum to 100%)")
    return ax
