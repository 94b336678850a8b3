"""From values to places on a picture: scales and their ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from viewmend.bench.charts import finite

__all__ = ["Scale", "scale_of"]

# Room beside the outermost values, as a share of their range.
MARGIN = 0.06


@dataclass(frozen=True)
class Scale:
    """A linear or logarithmic axis from ``low`` at ``start`` to ``high`` at ``end``.

    Attributes
    ----------
    low, high : float
        In the units of the data; positive where ``log``.
    start, end : float
        In the units of the picture.
    log : bool
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        """Where a value stands on the picture."""
        low, high, at = (self._measure(one) for one in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Round values within the axis, with their text."""
        return _log_ticks(self.low, self.high) if self.log else _linear_ticks(self.low, self.high)

    def _measure(self, value: float) -> float:
        return log10(value) if self.log else value


def scale_of(values: Sequence[float], start: float, end: float, log: bool = False) -> Scale:
    """A scale around the values that have a place on it.

    Parameters
    ----------
    values : sequence of float
        Those not finite, and on a log axis those not positive, are left out.
    start, end : float
        Of the axis on the picture.
    log : bool

    Returns
    -------
    Scale
    """
    kept = finite(values, positive=log) or [1.0]
    low, high = min(kept), max(kept)
    if log:
        factor = max((high / low) ** MARGIN, 1.1)
        return Scale(low / factor, high * factor, start, end, True)
    room = (high - low) * MARGIN or abs(high) * MARGIN or 1.0
    return Scale(low - room, high + room, start, end)


def _linear_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Three to seven multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / 7
    power = 10.0 ** floor(log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = ceil(low / step), floor(high / step)
    return [(i * step, f"{i * step:.6g}") for i in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Powers of ten, at most six of them; where there is none, the ends."""
    first, last = ceil(log10(low)), floor(log10(high))
    if first > last:
        return [(value, f"{value:.2g}") for value in (low, high)]
    stride = ceil((last - first + 1) / 6)
    return [(10.0**power, f"{10.0**power:g}") for power in range(first, last + 1, stride)]
