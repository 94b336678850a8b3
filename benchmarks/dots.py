"""Charts of results pages: one line per task, one dot per method."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from viewmend.plot.style import PALETTE, plot_style

# Of every panel: task, method, value.
Values = Mapping[str, Mapping[str, float]]


def draw_dots(path: Path, panels: Mapping[str, Values], label: str) -> None:
    """Write a picture with a panel per title, whose tasks stand in lines from top to bottom.

    The first method is drawn over the others. ``label`` says what the dots measure.
    """
    import matplotlib.pyplot as plt

    tasks = list(next(iter(panels.values())))
    size = (2.2 + 2.6 * len(panels), 0.9 + 0.24 * len(tasks))
    with plot_style():
        figure, axes = plt.subplots(
            1, len(panels), figsize=size, sharey=True, squeeze=False, layout="constrained"
        )
        for ax, (title, values) in zip(axes[0], panels.items(), strict=True):
            _draw_panel(ax, values)
            ax.set(title=title, xlabel=label)
        axes[0, 0].set_yticks(range(len(tasks)), tasks)
        axes[0, 0].invert_yaxis()
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=len(names), frameon=False)
        figure.savefig(path)
        plt.close(figure)


def _draw_panel(ax, values: Values) -> None:
    methods = list(next(iter(values.values())))
    places = range(len(values))
    ax.hlines(
        places,
        [min(of_task.values()) for of_task in values.values()],
        [max(of_task.values()) for of_task in values.values()],
        color="#CCCCCC",
        zorder=1,
    )
    for number, method in enumerate(methods):
        found = [of_task[method] for of_task in values.values()]
        size, depth = (42, 3) if number == 0 else (22, 2)
        ax.scatter(found, places, s=size, color=PALETTE[number], label=method, zorder=depth)
