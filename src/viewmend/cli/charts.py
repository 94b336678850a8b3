"""Pictures that commands write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from viewmend.plot.style import plot_style
from viewmend.storage.atomic import replacing


def write_chart(path: Path, n_bars: int, draw: Callable[[Any], object]) -> None:
    """Write what ``draw`` makes of some axes, in the format that the name of the file ends in."""
    from matplotlib.figure import Figure

    with plot_style(), replacing(path) as stream:
        figure = Figure(figsize=(5.4, 0.36 * n_bars + 1.2), layout="constrained")
        draw(figure.subplots())
        figure.savefig(stream, format=path.suffix[1:].lower())
