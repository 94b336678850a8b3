"""Samples to label and views to measure, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viewmend.text import counted

__all__ = ["LabelSuggestions", "ViewSuggestions", "ViewWorth"]

# Labels of a summary that are listed.
MOST_LINES = 20
# Share of the best class above which a second one is not worth a word.
SURE = 0.95
# Probabilities below this would be shown as 0 %.
LEAST_SHOWN = 0.005
# Why there may be no suggestion at all.
NO_LABELS = (
    "no sample is left to suggest: every other one has a label, is a copy of one that has, is "
    "excluded, or is not in the graph"
)
NO_VIEWS = (
    "no missing view is worth measuring, or none that is left by exclusions and by the budget"
)


@dataclass(frozen=True, eq=False, repr=False)
class LabelSuggestions:
    """Samples whose label would help most, best first.

    Attributes
    ----------
    samples : array (n,) of int
        Rows of ``fit``. There may be fewer than requested, if no others can be labelled.
    scores : array (n,)
        Gain of each label per cost, when it was chosen, in units of the strategy. It is smaller for
        samples like those chosen before.
    reasons : tuple of str
        One sentence for each.
    strategy : str
        The strategy that chose the samples.
    names : array (n,)
        What the samples are called: by their identifiers, where ``fit`` saw any, or by their rows.
    """

    samples: np.ndarray
    scores: np.ndarray
    reasons: tuple[str, ...]
    strategy: str
    names: np.ndarray

    def summary(self) -> str:
        """One line per sample."""
        if len(self) == 0:
            return NO_LABELS
        pairs = zip(self.names.tolist(), self.reasons, strict=True)
        return "\n".join(f"sample {sample}: {reason}" for sample, reason in pairs)

    def __len__(self) -> int:
        return len(self.samples)

    def __repr__(self) -> str:
        first = ", ".join(map(str, self.names[:5].tolist()))
        more = ", ..." if len(self.samples) > 5 else ""
        listed = f": {first}{more}" if len(self) else ""
        return (
            f"<LabelSuggestions of {counted(len(self), 'sample')} by {self.strategy!r}{listed}; "
            f"print its summary()>"
        )


@dataclass(frozen=True)
class ViewWorth:
    """The total gain of measuring one view for the suggested samples.

    Attributes
    ----------
    view : str
        Name of the view.
    n_pairs : int
        Number of suggested pairs with this view.
    gain : float
        Expected number of further correct predictions among the measured samples.
    cost : float
        Their total cost.
    n_labels : int or None
        Number of labels, of the samples with the least certain class, that gain as much; None if
        all of them together gain less.
    """

    view: str
    n_pairs: int
    gain: float
    cost: float
    n_labels: int | None

    def __str__(self) -> str:
        samples = counted(self.n_pairs, "sample")
        told = f"{self.view}: {samples}, {self.gain:.1f} more correct predictions expected"
        if self.n_labels is None:
            return f"{told}, more than from labels of all samples"
        return f"{told}, as many as from {counted(self.n_labels, 'label')} or fewer"


@dataclass(frozen=True, eq=False, repr=False)
class ViewSuggestions:
    """Pairs of a sample and a view that are worth measuring, best first.

    Attributes
    ----------
    samples : array (n,) of int
        Rows of ``fit``, each at most once: measure one view, fit again, and ask for the next.
    views : array (n,) of str
        The view to measure for each.
    gains : array (n,)
        Expected rise of the probability that the sample gets its true class.
    costs : array (n,)
        Cost of each measurement.
    reasons : tuple of str
        One sentence for each.
    by_view : tuple of ViewWorth
        The suggested views, largest gain per cost first. The comparison with labels counts a label
        only for its own sample, so that labels are worth at least as much.
    names : array (n,)
        What the samples are called: by their identifiers, where ``fit`` saw any, or by their rows.
    """

    samples: np.ndarray
    views: np.ndarray
    gains: np.ndarray
    costs: np.ndarray
    reasons: tuple[str, ...]
    by_view: tuple[ViewWorth, ...]
    names: np.ndarray

    def summary(self) -> str:
        """A line per view, and one per pair for the first of them."""
        lines = list(map(str, self.by_view)) or [NO_VIEWS]
        rows = zip(self.names.tolist(), self.views.tolist(), self.reasons, strict=True)
        told = [f"  sample {sample}, {view}: {reason}" for sample, view, reason in rows]
        rest = len(told) - MOST_LINES
        more = [f"  and {rest} more"] if rest > 0 else []
        return "\n".join([*lines, *told[:MOST_LINES], *more])

    def __len__(self) -> int:
        return len(self.samples)

    def __repr__(self) -> str:
        parts = ", ".join(f"{worth.n_pairs} of {worth.view}" for worth in self.by_view)
        pairs = counted(len(self), "pair")
        return f"<ViewSuggestions of {pairs}: {parts or 'none'}; print its summary()>"


def reach_words(count: float) -> str:
    """How many samples a label would inform, in words."""
    some = counted(round(count), "sample")
    about = "hardly any sample" if count < 0.5 else f"about {some}"
    return f"similar to {about} that no label reaches yet"


def change_words(count: float) -> str:
    """How many predictions a label is expected to change, in words."""
    some = "hardly any prediction" if count < 0.05 else f"{count:.1f} predictions"
    return f"its label is expected to change {some}"


def doubt_words(shares: np.ndarray, classes: np.ndarray) -> str:
    """The two best classes of a sample with ``shares`` (n_classes,), in words."""
    best, second = np.argsort(-shares, kind="stable")[:2]
    if shares[best] >= SURE or shares[second] < LEAST_SHOWN:
        return f"so far predicted as {classes[best]} ({shares[best]:.0%})"
    return (
        f"between {classes[best]} ({shares[best]:.0%}) and {classes[second]} ({shares[second]:.0%})"
    )


def view_words(shares: np.ndarray, gain: float, classes: np.ndarray) -> str:
    """What a measurement is expected to do for a sample of these ``shares`` (n_classes,)."""
    now = shares.max()
    told = f"right with probability {now:.0%} now, {now + gain:.0%} if measured"
    return f"{doubt_words(shares, classes)}; {told}"


def label_worth(
    view: str, gains: np.ndarray, costs: np.ndarray, label_gains: np.ndarray
) -> ViewWorth:
    """The worth of some pairs of one ``view``, beside labels of ``label_gains`` (n_unlabelled,)."""
    gain = float(gains.sum())
    total = np.cumsum(-np.sort(-label_gains))
    n_labels = int(np.searchsorted(total, gain)) + 1
    return ViewWorth(
        view,
        len(gains),
        gain,
        float(costs.sum()),
        n_labels if n_labels <= len(total) else None,
    )
