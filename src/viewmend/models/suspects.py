"""Given labels that the rest of the data contradicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from viewmend.core.advice.label_noise import rank_labels, shares_without_own
from viewmend.models.fitted_state import MendState
from viewmend.models.naming import check_samples_kept, names_of_fit

__all__ = ["SuspectLabels", "SuspectsMixin"]


@dataclass(frozen=True, eq=False, repr=False)
class SuspectLabels:
    """Given labels by how strongly the rest of the data contradicts them, most suspect first.

    Attributes
    ----------
    samples : array (n_labels,) of int
        Rows of ``fit``: all that have a label and are in the graph.
    given : array (n_labels,)
        Their labels.
    suggested : array (n_labels,)
        The most probable classes by the rest of the data, which may be the given ones.
    scores : array (n_labels,)
        Between 0 and 1, in descending order: the probability of all other classes together, by the
        rest of the data. A class counts for more if its samples often have this label. The score
        does not count that most labels are right: where classes are hard to tell apart, right
        labels have scores above 0.5, too.
    noise_rate : float
        Estimated share of the labels that are wrong.
    counts : array (n_classes, n_classes)
        Estimated numbers of labels by given class (rows) and right class (columns).
    classes : array (n_classes,)
        The classes, in the order of the rows and columns of ``counts``.
    names : array (n_labels,)
        What the samples are called: by their identifiers, where ``fit`` saw any, or by their rows.
    """

    samples: np.ndarray
    given: np.ndarray
    suggested: np.ndarray
    scores: np.ndarray
    noise_rate: float
    counts: np.ndarray
    classes: np.ndarray
    names: np.ndarray

    @property
    def n_suspects(self) -> int:
        """Estimated number of wrong labels: check as many from the top of the list."""
        return round(self.noise_rate * len(self.samples))

    def summary(self, most: int = 10) -> str:
        """A line for the estimate, and one for each of the first suspects, at most ``most``."""
        head = (
            f"{self.n_suspects} of {len(self.samples)} labels may be wrong ({self.noise_rate:.1%})"
        )
        contradicted = np.flatnonzero(self.suggested != self.given)
        lines = [
            f"  sample {self.names[i]}: given {self.given[i]}, the rest of the data says "
            f"{self.suggested[i]} (score {self.scores[i]:.2f})"
            for i in contradicted[: min(most, self.n_suspects)]
        ]
        return "\n".join([head, *lines])

    def __repr__(self) -> str:
        return f"<SuspectLabels: {self.n_suspects} of {len(self.samples)}; print its summary()>"


def judged_labels(state: MendState, graph: csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n_labels,) of ``fit`` that have a label and are in the graph, in an order of content.

    And their class shares (n_labels, n_classes) without their own label.
    """
    places = np.flatnonzero(state.label_codes[state.order] >= 0)
    rows = state.order[places]
    edges = graph[rows][:, state.order]
    return rows, shares_without_own(state.induction, edges, places, state.class_weights)


class SuspectsMixin:
    """``suspect_labels`` of a `viewmend.MendClassifier`."""

    classes_: np.ndarray
    graph_: csr_array
    fitted_state_: MendState

    def suspect_labels(self) -> SuspectLabels:
        """Given labels, ranked by how strongly the rest of the data contradicts them.

        Every label is compared with the class that the neighbours of its sample, and regressions
        without the sample, predict. The number of wrong labels is estimated by confident learning
        (Northcutt, Jiang and Chuang 2021). This needs no further fit. To let a fit doubt such
        labels, set ``label_noise="auto"``.

        Returns
        -------
        SuspectLabels
            It covers the labelled samples in the graph. Samples without any view are not in the
            graph, and with more labels than ``graph_samples`` neither are some labelled samples.
        """
        check_is_fitted(self)
        check_samples_kept(self, "suspect_labels")
        state = self.fitted_state_
        rows, shares = judged_labels(state, self.graph_)
        ranked = rank_labels(state.label_codes[rows], shares)
        samples = rows[ranked.places]
        return SuspectLabels(
            samples=samples,
            given=self.classes_[state.label_codes[samples]],
            suggested=self.classes_[ranked.found],
            scores=ranked.scores,
            noise_rate=ranked.noise_rate,
            counts=ranked.counts,
            classes=self.classes_,
            names=names_of_fit(self)[samples],
        )
