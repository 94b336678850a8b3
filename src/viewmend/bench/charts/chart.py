"""What a figure shows, apart from how it is drawn.

A chart is data: panels of series with names and numbers. `viewmend.bench.charts.drawing` draws it,
for a picture file and for a page alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isfinite

from viewmend.plot.style import PALETTE

# Lengths of dashes and gaps in points (none is a full line), and marker.
LOOKS: tuple[tuple[tuple[float, ...], str], ...] = (((), "o"), ((5, 2), "s"), ((1.5, 1.5), "^"))


@dataclass(frozen=True)
class Stroke:
    """Colour, dashes and Matplotlib's marker of a series."""

    colour: str
    dashes: tuple[float, ...]
    marker: str


@dataclass(frozen=True)
class Series:
    """Points that belong together; series of one name have one colour in all panels."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    # Half-lengths of the error bars, along y or, in a panel of rows, along x; empty for none.
    error: tuple[float, ...] = ()
    # Whether these are the paper's printed values, drawn hollow.
    ghost: bool = False
    # What each point is about, where the axes do not tell; empty for none.
    notes: tuple[str, ...] = ()

    @property
    def turned(self) -> Series:
        """With x and y exchanged: points on rows."""
        return replace(self, x=self.y, y=self.x)


@dataclass(frozen=True)
class Panel:
    """Axes with series, of a kind.

    "lines" joins points; "bars" stands bars side by side at whole x; "rows" lays points on
    horizontal lines at whole y, the first on top; "dots" joins nothing and draws the diagonal.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: str = "lines"
    # Names of 0, 1, ...; empty for numbers.
    x_ticks: tuple[str, ...] = ()
    y_ticks: tuple[str, ...] = ()
    log_x: bool = False
    log_y: bool = False

    def tips(self, series: Series) -> tuple[str, ...]:
        """What each mark of a series stands for; points without a place on the axes have none."""
        points = enumerate(zip(series.x, series.y, strict=True))
        return tuple(
            self._tip(series, i)
            for i, (x, y) in points
            if isfinite(x + y) and (x > 0 or not self.log_x) and (y > 0 or not self.log_y)
        )

    def _tip(self, series: Series, i: int) -> str:
        x, y = series.x[i], series.y[i]
        if self.kind == "rows":
            value, place = x, self.y_ticks[int(y)]
        else:
            value = y
            place = self.x_ticks[int(x)] if self.x_ticks else f"{self.x_label} {_number(x)}"
        note = series.notes[i] if series.notes else place
        spread = f" ± {_number(series.error[i])}" if series.error else ""
        source = " (printed in the paper)" if series.ghost else ""
        return f"{series.name}, {note}: {_number(value)}{spread}{source}"


@dataclass(frozen=True)
class SurfacePanel:
    """A number for every pair of two parameters: ``values[j][i]`` at ``x_ticks[i], y_ticks[j]``.

    NaN where there is none.
    """

    title: str
    x_label: str
    y_label: str
    x_ticks: tuple[str, ...]
    y_ticks: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    kind: str = "surface"

    def tip(self, row: int, column: int) -> str:
        """What a tile stands for."""
        place = f"{self.x_label} {self.x_ticks[column]}, {self.y_label} {self.y_ticks[row]}"
        return f"{place}: {self.values[row][column]:.2f}"


@dataclass(frozen=True)
class RankPanel:
    """Mean ranks on a line, with bars under those that do not differ."""

    title: str
    # Best first, so that ranks ascend.
    names: tuple[str, ...]
    ranks: tuple[float, ...]
    # Critical difference.
    difference: float
    # First and last rank of each bar.
    groups: tuple[tuple[float, float], ...]
    kind: str = "ranks"


AnyPanel = Panel | SurfacePanel | RankPanel


@dataclass(frozen=True)
class Chart:
    """Panels of one kind that make one figure."""

    title: str
    panels: tuple[AnyPanel, ...]
    # What must be said below.
    caption: str = ""
    # Panels side by side; 0 leaves it to the drawing.
    columns: int = 0


def series_of(name: str, values: Mapping[float, float | None], ghost: bool = False) -> Series:
    """The values that there are, by their places."""
    points = {x: value for x, value in values.items() if value is not None}
    return Series(name, tuple(points), tuple(points.values()), ghost=ghost)


def with_points(series: Iterable[Series]) -> tuple[Series, ...]:
    """The series that are not empty."""
    return tuple(one for one in series if one.x)


def series_names(*panels: AnyPanel) -> list[str]:
    """Names of all series, in the order they came: the place of a name gives its colour."""
    drawn = [panel.series for panel in panels if isinstance(panel, Panel)]
    return list(dict.fromkeys(series.name for several in drawn for series in several))


def strokes(chart: Chart) -> dict[str, Stroke]:
    """How each series is drawn: beyond the palette, dashes and markers tell them apart."""
    return {
        name: Stroke(PALETTE[i % len(PALETTE)], *LOOKS[i // len(PALETTE) % len(LOOKS)])
        for i, name in enumerate(series_names(*chart.panels))
    }


def _number(value: float) -> str:
    if float(value).is_integer() and abs(value) < 1e6:
        return f"{value:g}"
    return f"{value:.2f}" if 0.1 <= abs(value) < 1e5 else f"{value:.3g}"
