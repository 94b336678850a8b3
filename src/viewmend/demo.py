"""The demonstration: Mend and three familiar tools on digits with half of the views hidden.

Nothing here prints; `viewmend.cli` does.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE, SpectralEmbedding
from sklearn.metrics import f1_score
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from viewmend.baselines import (
    LateFusionClassifier,
    MeanImputedLabelSpreading,
    MeanImputedLogistic,
)
from viewmend.core.agfti.admm import Callback
from viewmend.data.container import MultiViewData
from viewmend.datasets import Task, hide, load_uci_digits, make_multiview_blobs
from viewmend.exceptions import DataWarning
from viewmend.impute import ColumnMeanImputer
from viewmend.models.mend import MendClassifier
from viewmend.plot import (
    PALETTE,
    confusion_shares,
    plot_confusion,
    plot_coverage,
    plot_reliability,
    plot_style,
    reliability,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS = "MendClassifier"
RIVALS: dict[str, Callable[[], Any]] = {
    "late fusion": LateFusionClassifier,
    "logistic regression": MeanImputedLogistic,
    "label spreading": MeanImputedLabelSpreading,
}
# Ours dark and full, the others lighter.
COLOURS = (PALETTE[0], PALETTE[3], PALETTE[7], PALETTE[1])

# Coefficients of the Fourier transform, profiles, and Karhunen-Loève coefficients of the images.
VIEW_NAMES = ("Fourier", "profiles", "KL")

# Samples that are placed in the plane, at most: enough to see, and a matter of seconds.
MOST_PLACED = 700
NEAREST = 10


@dataclass(frozen=True)
class MethodScore:
    """Scores of one method on the unlabelled samples, and the seconds of its ``fit``.

    ``by_views`` is the accuracy on samples with 1, 2, ... views, NaN where there is no such sample.
    The macro F1 is the plain mean over the classes; a class that is never predicted counts as 0.
    """

    name: str
    accuracy: float
    by_views: tuple[float, ...]
    macro_f1: float
    seconds: float


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What was hidden, Mend fitted on what was left, and the scores of all methods, its first."""

    task: Task
    model: MendClassifier
    scores: tuple[MethodScore, ...]
    dataset: str = "the data"


def compile_kernels() -> None:
    """Fit on a few generated samples, so that the first fit is not timed with the compilation."""
    blobs = make_multiview_blobs(200, n_views=3, random_state=0)
    task = hide(blobs, missing_rate=0.5, label_rate=0.2, random_state=0)
    MendClassifier().fit(task.data, task.y)


def run_demo(
    seed: int = 0,
    missing_rate: float = 0.5,
    label_rate: float = 0.05,
    callback: Callback | None = None,
    dataset: MultiViewData | None = None,
) -> DemoResult:
    """Hide views and labels, fit Mend and three rivals, score them on the unlabelled samples.

    The rows are shuffled, because the digits are sorted by class, and a method must not profit
    from that. ``seed`` is of what is hidden and of the row order; a sample is hidden from a view
    with probability ``missing_rate``, and every class keeps the share ``label_rate`` of its labels.
    ``callback(round, state)`` is called after each stage of Mend. The data is that of UCI digits
    unless another is given.
    """
    complete = named_digits() if dataset is None else dataset
    task = hide(complete, missing_rate=missing_rate, label_rate=label_rate, random_state=seed)
    return run_on_task(task, callback=callback, dataset=complete.name)


def named_digits() -> MultiViewData:
    """The embedded digits, with names of views that can be guessed."""
    return replace(load_uci_digits(), names=VIEW_NAMES)


def run_on_task(
    task: Task, callback: Callback | None = None, dataset: str = "the data"
) -> DemoResult:
    """Fit Mend and three rivals on a task; ``task.y_true`` is read only after the fits."""
    model = MendClassifier()
    if callback is not None:
        model.set_callbacks(callback)
    methods = {OURS: model, **{name: make() for name, make in RIVALS.items()}}
    seconds = {OURS: _fit_seconds(model, task)}
    with warnings.catch_warnings():
        # Label spreading warns of samples that no label reaches; its score says as much.
        warnings.simplefilter("ignore", DataWarning)
        seconds |= {name: _fit_seconds(methods[name], task) for name in RIVALS}
    scores = tuple(
        _score(name, task, method.transduction_, seconds[name]) for name, method in methods.items()
    )
    return DemoResult(task, model, scores, dataset)


def _fit_seconds(method: Any, task: Task) -> float:
    start = time.perf_counter()
    method.fit(task.data, task.y)
    return time.perf_counter() - start


def _score(name: str, task: Task, transduction: np.ndarray, seconds: float) -> MethodScore:
    judged = task.unlabelled
    right = transduction == task.y_true
    n_views = task.data.observed.sum(axis=1)
    groups = [judged & (n_views == n) for n in range(1, task.data.n_views + 1)]
    by_views = tuple(float(right[rows].mean()) if rows.any() else np.nan for rows in groups)
    f1 = f1_score(task.y_true[judged], transduction[judged], average="macro", zero_division=0)
    return MethodScore(name, float(right[judged].mean()), by_views, float(f1), seconds)


def draw_demo(result: DemoResult) -> Figure:
    """Draw a fit in six panels, the title of each a sentence.

    Upper row: which views the samples have, accuracy by the number of views, confidence against
    accuracy. Lower row: the confusion matrix, and samples in the plane before and after the
    fit. Places depend on the model alone; true labels give colours and percentages. The figure is
    not known to pyplot; write it with ``savefig``.
    """
    with plot_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(15, 9.8), layout="constrained")
        figure.get_layout_engine().set(wspace=0.06, hspace=0.06)  # type: ignore[union-attr, call-arg]
        axes = figure.subplots(2, 3).ravel()
        figure.suptitle(_headline(result), fontsize=14, fontweight="bold")
        for draw, ax in zip(PANELS, axes, strict=False):
            draw(result, ax)
        _draw_before_and_after(result, axes[4], axes[5])
        for ax in axes:
            ax.set_title(ax.get_title(loc="left"), loc="left", fontsize=12, fontweight="bold")
    return figure


def _headline(result: DemoResult) -> str:
    task, (ours, *rivals) = result.task, result.scores
    best = max(rivals, key=lambda score: score.accuracy)
    hidden = 1 - task.data.observed.mean()
    return (
        f"{result.dataset}: {hidden:.0%} of the views hidden, {task.labelled.sum()} of "
        f"{task.data.n_samples} samples labelled. {ours.name} gets {ours.accuracy:.1%} of the rest "
        f"right, {best.name} {best.accuracy:.1%}."
    )


def _draw_coverage(result: DemoResult, ax: Axes) -> None:
    data = result.task.data
    plot_coverage(data.observed, data.names, ax)
    share = data.observed.all(axis=1).mean()
    ax.set_title(f"Which samples have which view:\n{share:.0%} have all {data.n_views}")
    ax.set_ylabel("groups of samples with the same views")


def _draw_accuracy_by_views(result: DemoResult, ax: Axes) -> None:
    groups = np.arange(1, result.task.data.n_views + 1)
    width = 0.84 / len(result.scores)
    for i, (score, colour) in enumerate(zip(result.scores, COLOURS, strict=True)):
        places = groups + (i - (len(result.scores) - 1) / 2) * width
        heights = 100 * np.nan_to_num(score.by_views)
        bars = ax.bar(places, heights, 0.92 * width, color=colour, label=score.name)
        ax.bar_label(bars, [f"{h:.0f}" if h else "" for h in heights], padding=2, fontsize=9)
    ax.set_xticks(groups, [_views(int(n)) for n in groups])
    ax.tick_params(axis="x", length=0)
    ax.set_ylim(0, 107)
    ax.set_yticks(range(0, 101, 20))
    ax.set_ylabel("unlabelled samples with the right class, percent")
    ax.set_xlabel("views that a sample has")
    ax.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    ax.set_title(_by_views_title(result))


def _by_views_title(result: DemoResult) -> str:
    """How our method does on the samples with the fewest views, beside the best of the others."""
    ours, *rivals = (score.by_views for score in result.scores)
    fewest = int(np.flatnonzero(~np.isnan(ours))[0])
    best = max(by_views[fewest] for by_views in rivals)
    return (
        f"Samples with only {_views(fewest + 1)}: {ours[fewest]:.0%} right,\n"
        f"{best:.0%} with the best of the other tools"
    )


def _views(n: int) -> str:
    return "1 view" if n == 1 else f"{n} views"


def _draw_reliability(result: DemoResult, ax: Axes) -> None:
    task, model = result.task, result.model
    judged = task.unlabelled
    right = (model.transduction_ == task.y_true)[judged]
    plot_reliability(model.confidence_[judged], right, ax)
    gap = 100 * reliability(model.confidence_[judged], right).error
    ax.set_title(f"Confidence against accuracy:\n{gap:.1f} points apart on average")
    ax.set_xlabel("confidence of the model (each dot: a tenth of the samples)")
    ax.set_ylabel("share of these with the right class")


def _draw_confusion(result: DemoResult, ax: Axes) -> None:
    task, model = result.task, result.model
    truth, found = (y[task.unlabelled] for y in (task.y_true, model.transduction_))
    plot_confusion(truth, found, model.classes_, ax)
    mistakes = confusion_shares(truth, found, model.classes_)[:, :-1]
    np.fill_diagonal(mistakes, 0)
    true, taken = np.unravel_index(mistakes.argmax(), mistakes.shape)
    ax.set_title(
        f"Confusion matrix. The most frequent mistake:\n{mistakes.max():.0%} of class "
        f"{model.classes_[true]} is classified as {model.classes_[taken]}"
    )


PANELS = (_draw_coverage, _draw_accuracy_by_views, _draw_reliability, _draw_confusion)


def _draw_before_and_after(result: DemoResult, before: Axes, after: Axes) -> None:
    task, model = result.task, result.model
    rows = np.arange(task.data.n_samples)[:MOST_PLACED]  # they are shuffled
    truth = task.y_true[rows]
    for ax, coordinates, words in (
        (before, filled_columns(task.data), "Before: gaps filled with column means"),
        (
            after,
            graph_coordinates(model.graph_, len(model.classes_)),
            "After: the graph that Mend makes",
        ),
    ):
        points = in_the_plane(coordinates[rows])
        _draw_points(ax, points, truth)
        ax.set_title(
            f"{words}.\n{alike_nearby(points, truth):.0%} of a sample's neighbours share its class"
        )
        ax.set_xlabel(f"colour: true class; {len(rows)} samples, placed by t-SNE")


def filled_columns(data: MultiViewData) -> np.ndarray:
    """Main components of all columns side by side, means in the place of missing views."""
    columns = StandardScaler().fit_transform(
        np.hstack(ColumnMeanImputer().fit_transform(data).views)
    )
    return PCA(min(30, *columns.shape), random_state=0).fit_transform(columns)


def graph_coordinates(graph: csr_array, n_classes: int) -> np.ndarray:
    """Coordinates in which samples that a graph joins lie together, of length one in the mean."""
    both = csr_array(graph + graph.T)
    # scikit-learn takes no wider indices.
    indices, indptr = both.indices.astype(np.int32), both.indptr.astype(np.int32)
    both = csr_array((both.data, indices, indptr), shape=both.shape)
    with warnings.catch_warnings():
        # Parts that nothing joins lie apart in the picture too.
        warnings.simplefilter("ignore", UserWarning)
        embedding = SpectralEmbedding(n_classes + 1, affinity="precomputed", random_state=0)
        return StandardScaler(with_mean=False).fit_transform(embedding.fit_transform(both))


def in_the_plane(coordinates: np.ndarray) -> np.ndarray:
    """Points (n_samples, 2) of t-SNE."""
    perplexity = min(30.0, (len(coordinates) - 1) / 3)
    placing = TSNE(perplexity=perplexity, max_iter=500, random_state=0)
    return placing.fit_transform(coordinates)


def alike_nearby(points: np.ndarray, y: np.ndarray) -> float:
    """Share of the ten nearest points of a sample that are of its class, in the mean."""
    nearest = NearestNeighbors(n_neighbors=min(NEAREST, len(y) - 1)).fit(points)
    return float(np.mean(y[nearest.kneighbors(return_distance=False)] == y[:, None]))


def _draw_points(ax: Axes, points: np.ndarray, y: np.ndarray) -> None:
    """Dots in the colours of the classes, and the name of each class in its middle."""
    classes = np.unique(y)
    colours = [PALETTE[code % len(PALETTE)] for code in range(len(classes))]
    for name, colour in zip(classes, colours, strict=True):
        across, up = points[y == name].T
        ax.scatter(across, up, s=11, color=colour, alpha=0.7, linewidths=0)
    for name, colour in zip(classes, colours, strict=True):
        across, up = np.median(points[y == name], axis=0)
        box = {"boxstyle": "circle,pad=0.2", "facecolor": "white", "edgecolor": colour}
        looks: dict[str, Any] = {"ha": "center", "va": "center", "fontweight": "bold", "bbox": box}
        ax.text(across, up, str(name), color=colour, **looks)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color("#cccccc")
