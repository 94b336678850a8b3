"""The drawing of the first page: what goes into a fit, and what comes out of it.

``python scripts/site/drawing.py`` writes ``docs/assets/home.svg``. The samples are real: a few of
the embedded digits, of which some views and most labels are hidden.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from viewmend import MendClassifier
from viewmend.datasets import Task, hide, load_uci_digits
from viewmend.plot import PALETTE

OUT = Path(__file__).parents[2] / "docs" / "assets" / "home.svg"
CLASSES, SHOWN, CELLS = 4, 14, 6
VIEW_NAMES = ("view 1", "view 2", "view 3")
MISSING, GROUND = "#f1f3f5", "#26323b"
COLOURS = [PALETTE[i] for i in (0, 1, 2, 3)]


def main() -> None:
    task = small_task()
    model = MendClassifier().fit(task.data, task.y)
    rows = chosen(task, model)
    fig, ax = plt.subplots(figsize=(10.2, 4.3))
    draw_views(ax, task, rows)
    draw_labels(ax, 24.6, task.y[rows])
    draw_answers(ax, model, rows)
    finish(ax)
    plt.rcParams["svg.hashsalt"] = "viewmend"
    fig.savefig(OUT, metadata={"Date": None, "Creator": None}, bbox_inches="tight", pad_inches=0.05)


def small_task() -> Task:
    digits = load_uci_digits(["fou", "zer", "mor"])
    few = np.flatnonzero(digits.y >= 10 - CLASSES)[::2]
    views = [view[few] for view in digits.views]
    classes = digits.y[few] - (10 - CLASSES)
    return hide(views, classes, missing_rate=0.45, label_rate=0.05, random_state=3)


def chosen(task: Task, model: MendClassifier) -> np.ndarray:
    """Some samples: a label of each class, then others of all classes and confidences."""
    labelled = [np.flatnonzero(task.y == c)[0] for c in range(CLASSES)]
    others = np.flatnonzero(task.unlabelled)
    by_confidence = others[np.argsort(model.confidence_[others])]
    spread = by_confidence[np.linspace(0, others.size - 1, SHOWN - CLASSES).astype(int)]
    return np.random.default_rng(1).permutation([*labelled, *spread])


def draw_views(ax: Axes, task: Task, rows: np.ndarray) -> None:
    """Tables side by side: shades where a sample was measured, and holes where it was not."""
    for v, name in enumerate(VIEW_NAMES):
        left = v * 8
        ax.text(left + CELLS / 2, -0.7, name, ha="center", va="bottom", fontsize=12, color=GROUND)
        values = task.data.views[v][:, :: task.data.views[v].shape[1] // CELLS][:, :CELLS]
        seen = task.data.observed[:, v]
        ranks = values[seen].argsort(axis=0).argsort(axis=0) / seen.sum()
        shades = np.full(values.shape, np.nan)
        shades[seen] = ranks
        for at, row in enumerate(rows):
            for c in range(CELLS):
                shade = shades[row, c]
                colour = MISSING if np.isnan(shade) else plt.cm.GnBu(0.25 + 0.6 * shade)
                ax.add_patch(Rectangle((left + c, at), 0.92, 0.86, color=colour, lw=0))


def draw_labels(ax: Axes, left: float, labels: np.ndarray) -> None:
    ax.text(left + 0.5, -0.7, "label", ha="center", va="bottom", fontsize=12, color=GROUND)
    for at, label in enumerate(labels):
        if label >= 0:
            ax.add_patch(Rectangle((left, at), 0.95, 0.86, color=COLOURS[label], lw=0))
        else:
            ax.text(left + 0.5, at + 0.43, "?", ha="center", va="center", color="#7a8790")


def draw_answers(ax: Axes, model: MendClassifier, rows: np.ndarray) -> None:
    ends, look = ((26.6, SHOWN / 2), (32.4, SHOWN / 2)), {"arrowstyle": "-|>", "lw": 2}
    ax.add_patch(FancyArrowPatch(*ends, mutation_scale=22, color=GROUND, **look))
    ax.text(29.3, SHOWN / 2 - 0.5, "fit", ha="center", fontsize=13, color=GROUND)
    ax.text(33.5, -0.7, "class", ha="center", va="bottom", fontsize=12, color=GROUND)
    ax.text(36, -0.7, "probability", ha="left", va="bottom", fontsize=12, color=GROUND)
    for at, row in enumerate(rows):
        colour, sure = COLOURS[model.transduction_[row]], model.confidence_[row]
        ax.add_patch(Rectangle((33.1, at), 0.95, 0.86, color=colour, lw=0))
        ax.add_patch(Rectangle((36, at + 0.12), 6, 0.62, color=MISSING, lw=0))
        ax.add_patch(Rectangle((36, at + 0.12), 6 * sure, 0.62, color=colour, lw=0, alpha=0.75))


def finish(ax: Axes) -> None:
    text = {"ha": "center", "va": "top", "fontsize": 12, "color": "#4b5860"}
    ax.text(12.3, SHOWN + 0.5, "each table lacks some samples, few have a label", **text)
    ax.text(37.5, SHOWN + 0.5, "every sample gets a class", **text)
    ax.set(xlim=(-0.3, 42.5), ylim=(SHOWN + 2, -2.2))
    ax.axis("off")


if __name__ == "__main__":
    main()
