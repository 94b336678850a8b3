"""The demonstration: Mend, AGF-TI and two rivals on digits with half of the views hidden.

Nothing here prints; `viewmend.cli` does.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import precision_recall_fscore_support

from viewmend.baselines import MeanImputedLabelSpreading, UnionGraphClassifier
from viewmend.core.agfti.admm import Callback
from viewmend.data.container import MultiViewData
from viewmend.datasets import Task, hide, load_uci_digits
from viewmend.models.agfti import AGFTIClassifier
from viewmend.models.mend import MendClassifier
from viewmend.plot import (
    anchor_class_shares,
    embed_rows,
    plot_confusion,
    plot_convergence,
    plot_graph_embedding,
    plot_style,
    plot_view_weights,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


RIVALS: dict[str, Callable[[], Any]] = {
    "Mend": MendClassifier,
    "mean imputation": MeanImputedLabelSpreading,
    "union graph": UnionGraphClassifier,
}


@dataclass(frozen=True)
class MethodScore:
    """Scores of one method on the unlabelled samples, and the seconds of its ``fit``.

    Macro scores are plain means over the classes; the precision of a class that is never
    predicted counts as 0.
    """

    name: str
    accuracy: float
    macro_f1: float
    macro_precision: float
    macro_recall: float
    seconds: float


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What was hidden, AGF-TI fitted on what was left, and the scores of all methods, its first."""

    task: Task
    model: AGFTIClassifier
    scores: tuple[MethodScore, ...]
    dataset: str = "the data"


def run_demo(
    seed: int = 0,
    missing_rate: float = 0.5,
    label_rate: float = 0.05,
    callback: Callback | None = None,
    dataset: MultiViewData | None = None,
) -> DemoResult:
    """Hide views and labels, fit AGF-TI and three rivals, score them on the unlabelled samples.

    The rows are shuffled, because the digits are sorted by class, and a method must not profit
    from that. ``seed`` is of what is hidden, of the row order and of the anchors; a sample is
    hidden from a view with probability ``missing_rate``, and every class keeps the share
    ``label_rate`` of its labels. ``callback(round, state)`` is called after each round of AGF-TI.
    The data is that of UCI digits unless another is given.
    """
    complete = load_uci_digits() if dataset is None else dataset
    task = hide(complete, missing_rate=missing_rate, label_rate=label_rate, random_state=seed)
    return run_on_task(task, seed=seed, callback=callback, dataset=complete.name)


def run_on_task(
    task: Task, seed: int = 0, callback: Callback | None = None, dataset: str = "the data"
) -> DemoResult:
    """Fit AGF-TI and three rivals on a task; ``task.y_true`` is read only after the fits."""
    model = AGFTIClassifier(random_state=seed)
    if callback is not None:
        model.set_callbacks(callback)
    with warnings.catch_warnings():
        # Whoever reads the result finds the same in model.status_.
        warnings.simplefilter("ignore", ConvergenceWarning)
        seconds = [_fit_seconds(model, task)]
    rivals = {name: make() for name, make in RIVALS.items()}
    seconds += [_fit_seconds(rival, task) for rival in rivals.values()]
    methods = {"AGF-TI": model, **rivals}
    scores = tuple(
        _score(name, task, method.transduction_, spent)
        for (name, method), spent in zip(methods.items(), seconds, strict=True)
    )
    return DemoResult(task, model, scores, dataset)


def draw_demo(result: DemoResult) -> Figure:
    """Draw a fit in six panels: how it converged, what it got wrong, what imputation did.

    The lower row shows the view that misses the most samples three times: before imputation,
    after it, and in the fused graph brought back to the anchors of that view. Places depend on
    the model alone; true labels give colours and percentages. The figure is not known to pyplot;
    write it with ``savefig``.
    """
    with plot_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(14, 9.6), layout="constrained")
        upper, lower = np.asarray(figure.subfigures(2, 1, height_ratios=[1, 1.18]))
        figure.get_layout_engine().set(wspace=0.06)  # type: ignore[union-attr, call-arg]
        accuracies = ", ".join(f"{score.name} {score.accuracy:.1%}" for score in result.scores)
        figure.suptitle(
            f"{result.dataset}, accuracy on {result.task.unlabelled.sum()} unlabelled samples: "
            f"{accuracies}",
            fontsize=13,
            fontweight="bold",
        )
        _draw_fit(result, upper)
        _draw_graphs(result, lower)
    return figure


def _fit_seconds(method: Any, task: Task) -> float:
    start = time.perf_counter()
    method.fit(task.data, task.y)
    return time.perf_counter() - start


def _score(name: str, task: Task, transduction: np.ndarray, seconds: float) -> MethodScore:
    truth, told = task.y_true[task.unlabelled], transduction[task.unlabelled]
    precision, recall, f1, _ = precision_recall_fscore_support(
        truth, told, average="macro", zero_division=0
    )
    accuracy = float(np.mean(truth == told))
    return MethodScore(name, accuracy, float(f1), float(precision), float(recall), seconds)


def _draw_fit(result: DemoResult, figure: SubFigure) -> None:
    task, model = result.task, result.model
    convergence, weights, confusion = figure.subplots(1, 3)
    plot_convergence(model.history_, convergence, tol=model.tol)
    convergence.set_title(f"Convergence ({model.status_}, {model.n_iter_} rounds)")
    plot_view_weights(model.history_, model.view_names_, weights)
    weights.set_title("View weights over the rounds")
    judged = task.unlabelled
    plot_confusion(task.y_true[judged], model.transduction_[judged], model.classes_, confusion)
    confusion.set_title("Confusion of unlabelled samples, percent")


def _draw_graphs(result: DemoResult, figure: SubFigure) -> None:
    task, model = result.task, result.model
    view = int(np.argmin(task.data.observed.sum(axis=0)))
    missing = ~task.data.observed[:, view]
    # Rows over the anchors of the view: missing ones unknown, imputed, and fused. The alignment
    # turns the view's anchors into the fused ones; its transpose turns them back.
    imputed = model.view_graphs_[view]
    start = np.where(missing[:, None], 1 / imputed.shape[1], imputed)
    graphs = start, imputed, model.fused_graph_ @ model.anchor_alignments_[view].T
    points = embed_rows(*graphs, labels=model.transduction_, missing=missing)
    judged = missing & task.unlabelled
    shares = anchor_class_shares(graphs[0], model.transduction_, missing)
    leanings = [model.classes_[np.argmax(rows @ shares, axis=1)] for rows in graphs[1:]]
    right = [_percent(leaning[judged] == task.y_true[judged]) for leaning in leanings]
    titles = (
        f"Graph of view {task.data.names[view]!r} before imputation:\n"
        f"the {missing.sum()} samples without it share one point",
        f"After imputation:\n{right[0]} of them lean to their own class",
        f"In the fused graph:\n{right[1]} of them lean to their own class",
    )
    for ax, places, title in zip(figure.subplots(1, 3), points, titles, strict=True):
        plot_graph_embedding(places, task.y_true, missing, ax, title)
    figure.supxlabel(
        "Corners are classes. A sample lies at the mean of its anchors, an anchor between the "
        "classes predicted for the observed samples it serves.\nColour: true class. Leaning to a "
        "class: more weight on its anchors than on those of any other; counted on unlabelled "
        "samples.",
        fontsize=9,
    )


def _percent(right: np.ndarray) -> str:
    return f"{right.mean():.0%}" if len(right) else "none"
