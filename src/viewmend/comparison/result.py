"""What a comparison of methods says: a table, a picture, and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scipy.stats import binomtest

from viewmend.comparison.scores import ComparedMethod, PairedDifference, paired_difference
from viewmend.core.common.accuracy import COVERAGE
from viewmend.exceptions import InvalidParameterError
from viewmend.parameters import short
from viewmend.plot.comparison import plot_comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MethodComparison"]

# Accuracy that a simpler method may at most cost to be called as good.
MARGIN = 0.05
HEADINGS = ("method", "accuracy", "balanced accuracy", "seconds")


@dataclass(frozen=True, eq=False, repr=False)
class MethodComparison:
    """Methods on the same held-out labels, best first; those that failed last.

    ``found["Mend"]`` is the row of a method, ``"Mend" in found`` says whether there is one, and
    ``for row in found`` goes through all.

    Attributes
    ----------
    methods : tuple of ComparedMethod
        One row per method, by accuracy; of equal ones the simplest is first.
    simpler_first : tuple of str
        Their names in the order of simplicity.
    n_splits : int
        Parts of the labels, and so fits of every method.
    never_held_out : tuple
        Classes with a single label, which would be unknown without it.
    """

    methods: tuple[ComparedMethod, ...]
    simpler_first: tuple[str, ...]
    n_splits: int
    never_held_out: tuple[Any, ...] = ()

    def __getitem__(self, name: str) -> ComparedMethod:
        found = next((row for row in self.methods if row.name == name), None)
        if found is None:
            names = short([row.name for row in self.methods])
            msg = f"{short(name)} is none of the methods compared, {names}; name one of these"
            raise InvalidParameterError(msg)
        return found

    def __contains__(self, name: object) -> bool:
        return any(row.name == name for row in self.methods)

    def __iter__(self) -> Iterator[ComparedMethod]:
        return iter(self.methods)

    def __len__(self) -> int:
        return len(self.methods)

    @property
    def scored(self) -> tuple[ComparedMethod, ...]:
        """The methods that did not fail."""
        return tuple(row for row in self.methods if row.failure is None)

    @property
    def best(self) -> ComparedMethod | None:
        """The most accurate method; None where all failed."""
        return self.scored[0] if self.scored else None

    @property
    def recommended(self) -> ComparedMethod | None:
        """The simplest method that is as good as the best, as far as the labels show.

        A simpler method is as good if the interval of the paired difference contains zero and ends
        at 0.05 or below. If there is none, the best method itself.
        """
        if self.best is None:
            return None
        best = self.best
        return next((row for row in self._simpler() if _is_as_good(row, best)), best)

    @property
    def beats_guessing(self) -> bool:
        """Whether the labels show that the best method beats the most frequent class.

        By a binomial test at 2.5 %, times the number of methods that the best was chosen from.
        """
        if self.best is None:
            return False
        found = self.best.estimate
        right, labels = (round(found.weight * n) for n in (found.n_right, found.n_held_out))
        test = binomtest(right, labels, found.majority, alternative="greater")
        return bool(test.pvalue * len(self.scored) <= (1 - COVERAGE) / 2)

    def advice(self) -> str:
        """Which method to take, and why, in a sentence or two."""
        if self.best is None:
            return "No method could be fitted; the table says why."
        if not self.beats_guessing:
            return _guessing(self.best)
        return _compared(self.best, self._simpler())

    def table(self) -> str:
        """One line per method: accuracy and balanced accuracy with intervals at 95 %, seconds."""
        rows = [HEADINGS, *map(_cells, self.methods)]
        widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(len(HEADINGS))]
        # A failed method has a reason in the place of numbers, which needs no column.
        widths[1] = max(len(row[1]) for row in rows if len(row) == len(HEADINGS))
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()
            for row in rows
        )

    def summary(self) -> str:
        """The table, how it was made, and the advice."""
        return "\n".join([self.table(), "", *self.remarks(), self.advice()])

    def remarks(self) -> list[str]:
        """How the table was made, as sentences without a full stop."""
        if self.best is None:
            return []
        found = self.best.estimate
        lines = [
            f"{found.n_held_out} labels{found.of_groups} held out in {self.n_splits} parts; the "
            f"most frequent class has {found.majority:.2f} of them; intervals at 95 %, seconds of "
            f"one fit"
        ]
        if self.never_held_out:
            names = ", ".join(map(str, self.never_held_out))
            why = "a single label" if found.n_groups is None else "labels of a single group"
            lines.append(f"never held out, because they have {why}: {names}")
        return lines

    def records(self) -> list[dict[str, Any]]:
        """The rows as plain numbers and words, for a frame or a file."""
        return [row.record() for row in self.methods]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the accuracies with their intervals; see `viewmend.plot.plot_comparison`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            A new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        estimates = [row.estimate for row in self.scored]
        return plot_comparison(
            [row.name for row in self.scored],
            [found.accuracy for found in estimates],
            [found.interval for found in estimates],
            guessing=estimates[0].majority if estimates else None,
            ax=ax,
        )

    def __repr__(self) -> str:
        names = ", ".join(row.name for row in self.methods)
        return f"<MethodComparison of {names}; print its summary()>"

    def _simpler(self) -> list[ComparedMethod]:
        """Methods simpler than the best, simplest first."""
        if self.best is None:
            return []
        before = self.simpler_first[: self.simpler_first.index(self.best.name)]
        return [row for name in before if (row := self[name]) in self.scored]


def _lead(best: ComparedMethod, row: ComparedMethod) -> PairedDifference:
    return paired_difference(best.is_right, row.is_right, best.estimate.weight)


def _is_as_good(row: ComparedMethod, best: ComparedMethod) -> bool:
    lead = _lead(best, row)
    return lead.low <= 0 and lead.high <= MARGIN


def _by_how_much(best: ComparedMethod, row: ComparedMethod) -> str:
    return (
        f"{best.name} is better by {_lead(best, row)} on the same {len(row.is_right)} held-out "
        f"labels"
    )


def _compared(best: ComparedMethod, simpler: Sequence[ComparedMethod]) -> str:
    """The case for the best method and for simpler ones, which come simplest first."""
    if not simpler:
        return (
            f"No method predicts more held-out labels correctly than {best.name}, and none is "
            f"simpler."
        )
    as_good = [row for row in simpler if _is_as_good(row, best)]
    if as_good:
        return (
            f"{as_good[0].name} is as good as {best.name}, the best, and simpler: "
            f"{_by_how_much(best, as_good[0])}."
        )
    doubtful = [row for row in simpler if _lead(best, row).low <= 0]
    if doubtful:
        return (
            f"{best.name} is the best, but cannot be told apart from {doubtful[0].name}, "
            f"which is simpler: {_by_how_much(best, doubtful[0])}. More labels would decide."
        )
    closest = max(simpler, key=lambda row: int(row.is_right.sum()))
    return (
        f"{best.name} is the best, and no simpler method is as good. Of these {closest.name} comes "
        f"closest: {_by_how_much(best, closest)}."
    )


def _guessing(best: ComparedMethod) -> str:
    low, high = best.estimate.interval
    return (
        f"No method is shown to beat guessing: the most frequent class is right for "
        f"{best.estimate.majority:.2f} of the held-out labels, and the best method, {best.name}, "
        f"for {best.estimate.accuracy:.2f} ({low:.2f} to {high:.2f}). Label more samples, or look "
        f"for views that tell the classes apart."
    )


def _cells(row: ComparedMethod) -> tuple[str, ...]:
    """A row of the table, in the order of `HEADINGS`; two cells where the method failed."""
    if row.failure is not None:
        return row.name, f"failed: {row.failure}"
    low, high = row.interval or (0.0, 1.0)
    balanced_low, balanced_high = row.balanced_interval or (0.0, 1.0)
    return (
        row.name,
        f"{row.accuracy:.2f} ({low:.2f} to {high:.2f})",
        f"{row.balanced_accuracy:.2f} ({balanced_low:.2f} to {balanced_high:.2f})",
        f"{row.seconds:.2f}",
    )
