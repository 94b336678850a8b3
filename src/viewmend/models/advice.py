"""What to do next: which samples to label, and which views to measure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.utils.validation import check_is_fitted

from viewmend.backend.namespace import to_numpy
from viewmend.backend.threads import limited_threads, serial_blas
from viewmend.core.advice.batches import Batch, Likeness, choose_batch
from viewmend.core.advice.change import Answers
from viewmend.core.advice.labels import DEFAULT, STRATEGIES, Known
from viewmend.core.advice.views import choose_views, view_gains, view_temperatures
from viewmend.core.common.content_order import row_hashes
from viewmend.core.mend.geometry import MendView
from viewmend.core.mend.induction import FittedView, view_scores
from viewmend.exceptions import InvalidParameterError
from viewmend.models.advice_input import (
    check_budget,
    check_count,
    excluded_pairs,
    excluded_samples,
    label_costs,
    view_costs,
)
from viewmend.models.explanation import unjoined_shares
from viewmend.models.first_labels import first_graph
from viewmend.models.fitted_state import MendState
from viewmend.models.naming import names_of_fit
from viewmend.models.suggestions import (
    LabelSuggestions,
    ViewSuggestions,
    ViewWorth,
    change_words,
    doubt_words,
    label_worth,
    reach_words,
    view_words,
)
from viewmend.parameters import choose

__all__ = ["AdviceMixin"]


class AdviceMixin:
    """``suggest_labels``, ``suggest_views`` and ``suggest_first_labels`` of `MendClassifier`."""

    # Of MendClassifier.
    classes_: np.ndarray
    view_names_: tuple[str, ...]
    observed_: np.ndarray
    label_distributions_: np.ndarray
    graph_: csr_array
    fitted_state_: MendState
    n_jobs: int | None

    def suggest_labels(
        self,
        n: int = 10,
        strategy: str = DEFAULT,
        costs: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
    ) -> LabelSuggestions:
        """Samples whose label would help most, as one batch of samples that differ from each other.

        Parameters
        ----------
        n : int, default=10
            Number of suggestions.
        strategy : {"auto", "coverage", "margin", "entropy", "change"}, default="auto"
            "coverage" chooses samples whose label would inform many others that no label reaches
            yet, by the graph. "margin" and "entropy" choose the samples with the least certain
            class. "change" chooses the largest expected change of the predictions of all samples,
            in closed form on the graph. "auto" is coverage up to three labels per class, and then
            coverage times uncertainty.
        costs : array (n_samples,), optional
            Cost of a label for each sample of ``fit``, all positive. Gains are divided by costs.
        exclude : array (n_samples,) of bool, or array of int or str, optional
            Samples of ``fit`` that cannot be labelled, as a mask, as rows, or by identifiers, as in
            `explain`.

        Returns
        -------
        LabelSuggestions
            Its ``samples`` are rows of ``fit``, best first. Samples outside the graph (see
            ``graph_samples``), and those without any view, are not suggested.
        """
        check_count(n)
        check_is_fitted(self)
        plan = choose(STRATEGIES, strategy, "strategy")
        rows, names = _rows_of_graph(self.fitted_state_), names_of_fit(self)
        prices = label_costs(costs, names)[rows]
        known = known_of_fit(self, rows)
        likeness = Likeness(known.graph, twins(self.fitted_state_.induction.views, len(rows)))
        # A copy of a labelled sample tells nothing new either.
        allowed = likeness.unlike(known.codes >= 0) & ~excluded_samples(exclude, names)[rows]
        with limited_threads(self.n_jobs), serial_blas():
            ranking = plan.ranking(replace(known, rates=allowed / prices), n)
            batch = choose_batch(ranking, n, allowed, prices, likeness)
        told = change_words if strategy == "change" else reach_words
        shares = self.label_distributions_[rows[batch.rows]]
        reasons = _label_reasons(batch, told, [doubt_words(row, self.classes_) for row in shares])
        scores = batch.gains / prices[batch.rows]
        chosen = rows[batch.rows]
        return LabelSuggestions(chosen, scores, reasons, strategy, names[chosen])

    def suggest_first_labels(
        self,
        X: Any,
        n: int = 10,
        y: Any = None,
        mask: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        exclude: ArrayLike | None = None,
    ) -> LabelSuggestions:
        """Samples to label before there is a model: those that are similar to many others.

        ``fit`` needs labels of two classes. This method needs none: it uses only the views, with
        the parameters of this classifier, and does not change the classifier.

        Parameters
        ----------
        X, mask : views, in any form that ``fit`` takes, in memory
            The views, and which sample has which.
        n : int, default=10
            Number of suggestions.
        y : array (n_samples,), optional
            Labels that you already have, as in ``fit``, of any number of classes.
        costs, exclude
            As in `suggest_labels`.

        Returns
        -------
        LabelSuggestions
            Its ``samples`` are rows of ``X``, best first.
        """
        check_count(n)
        first = first_graph(self, X, y, mask)
        prices = label_costs(costs, first.names)[first.rows]
        known = Known(first.graph, first.spreading, first.codes)
        likeness = Likeness(known.graph, twins(first.views, len(first.rows)))
        excluded = excluded_samples(exclude, first.names)[first.rows]
        allowed = likeness.unlike(first.codes >= 0) & ~excluded
        with limited_threads(self.n_jobs), serial_blas():
            ranking = STRATEGIES["coverage"].ranking(known, n)
            batch = choose_batch(ranking, n, allowed, prices, likeness)
        reasons = _label_reasons(batch, reach_words, [])
        scores = batch.gains / prices[batch.rows]
        chosen = first.rows[batch.rows]
        return LabelSuggestions(chosen, scores, reasons, "coverage", first.names[chosen])

    def suggest_views(
        self,
        n: int | None = None,
        costs: Mapping[str, float] | ArrayLike | None = None,
        budget: float | None = None,
        exclude: ArrayLike | None = None,
    ) -> ViewSuggestions:
        """Missing views that are worth measuring, by the expected gain in accuracy.

        The class scores of a missing view are predicted from the class and the views that the
        sample has. This shows, before the view is measured, how well it would separate the most
        probable classes of the sample.

        Parameters
        ----------
        n : int, optional
            Number of pairs of a sample and a view; None for all with an expected gain.
        costs : dict of view to float, array (n_views,) or (n_samples, n_views), optional
            Cost of a measurement, all positive. Gains are divided by costs. Views that a dict
            leaves out cost 1.
        budget : float, optional
            Largest total cost of all pairs.
        exclude : array (n_samples, n_views) or (n_samples,) of bool, or of int or str, optional
            Pairs that cannot be measured, as a mask; or samples, as in `suggest_labels`.

        Returns
        -------
        ViewSuggestions
            Its ``samples`` and ``views`` are the pairs, best first. Samples with a label need no
            measurement and are not suggested.
        """
        if n is not None:
            check_count(n)
        check_budget(budget)
        check_is_fitted(self)
        rows = np.flatnonzero(_codes_of_fit(self.fitted_state_) < 0)
        views, names = self.view_names_, names_of_fit(self)
        prices = view_costs(costs, views, names)[rows]
        possible = ~self.observed_[rows] & ~excluded_pairs(exclude, views, names)[rows]
        with limited_threads(self.n_jobs), serial_blas():
            gains = np.where(possible, self._view_gains(rows), 0)
        found = choose_views(gains, prices, n, budget)
        pairs = _Pairs(rows[found.rows], found.views, found.gains, prices[found.rows, found.views])
        return self._told_views(pairs, rows)

    def _view_gains(self, rows: np.ndarray) -> np.ndarray:
        state = self.fitted_state_
        evidence = state.induction.evidence
        if evidence is None:
            msg = (
                "suggest_views needs the regressions on the views, which n_rounds=0 leaves out; "
                "fit with n_rounds=1 or more"
            )
            raise InvalidParameterError(msg)
        places = np.flatnonzero(state.label_codes[state.order] >= 0)
        judges = view_scores(state.induction, places), state.induction.observed[places]
        codes = state.label_codes[state.order[places]]
        temperatures = view_temperatures(evidence.gaussian, *judges, codes)
        # Rows of zeros are no measurement to the regressions.
        there = self.observed_ if state.zero_rows is None else self.observed_ & ~state.zero_rows
        shares = self.label_distributions_
        return view_gains(evidence.gaussian, temperatures, shares, there, rows)

    def _told_views(self, pairs: _Pairs, unlabelled: np.ndarray) -> ViewSuggestions:
        names = np.array(self.view_names_, dtype=object)
        # Once it has a label, the answer of a sample is right.
        label_gains = 1 - self.label_distributions_[unlabelled].max(axis=1)
        worths: list[ViewWorth] = []
        for v in np.unique(pairs.views):
            here = pairs.views == v
            worths.append(label_worth(names[v], pairs.gains[here], pairs.costs[here], label_gains))
        worths.sort(key=lambda worth: -worth.gain / worth.cost)
        reasons = tuple(
            view_words(self.label_distributions_[row], gain, self.classes_)
            for row, gain in zip(pairs.samples, pairs.gains, strict=True)
        )
        named = names[pairs.views].astype(str)
        called = names_of_fit(self)[pairs.samples]
        return ViewSuggestions(
            pairs.samples, named, pairs.gains, pairs.costs, reasons, tuple(worths), called
        )


def known_of_fit(model: Any, rows: np.ndarray) -> Known:
    """What is known of the samples of the graph, ``rows`` (n_graph,) of fit by their content."""
    state, fit = model.fitted_state_, model.fitted_state_.induction
    graph = model.graph_[rows][:, rows]
    # The order of summation must not depend on that of the samples in fit.
    graph.sort_indices()
    evidence = np.broadcast_to(state.class_weights, fit.F.shape).astype(np.float64)
    # Without regressions, samples that no label reaches get the shares of the labels as they are.
    prior = state.labelled_shares / state.class_weights
    if fit.evidence is not None:
        evidence = evidence * fit.evidence.P.astype(np.float64) ** fit.settings.evidence_power
        prior = unjoined_shares(model)
    return Known(
        graph,
        fit.settings.spreading,
        state.label_codes[rows],
        model.label_distributions_[rows],
        Answers(fit.F.astype(np.float64), evidence, prior, to_numpy(fit.mass)),
    )


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Samples and views by number, with gains and costs, (n,) each."""

    samples: np.ndarray
    views: np.ndarray
    gains: np.ndarray
    costs: np.ndarray


def _label_reasons(
    batch: Batch, told: Callable[[float], str], doubts: Sequence[str]
) -> tuple[str, ...]:
    """Reasons in words: what the label does for other samples, and the doubt about the sample."""
    tells = [told(count) if np.isfinite(count) else "" for count in batch.told]
    pairs = zip(tells, doubts or [""] * len(tells), strict=True)
    return tuple("; ".join(part for part in pair if part) for pair in pairs)


def twins(views: Sequence[MendView | FittedView], n_samples: int) -> np.ndarray:
    """Numbers (n_samples,) that are equal for samples of the same content in all views."""
    # View by view: the same row in another view is another sample.
    hashes = np.zeros((n_samples, len(views)), dtype=np.uint64)
    for v, view in enumerate(views):
        hashes[to_numpy(view.rows), v] = row_hashes(to_numpy(view.X))
    return np.unique(hashes, axis=0, return_inverse=True)[1].ravel()


def _codes_of_fit(state: MendState) -> np.ndarray:
    if len(state.label_codes) == 0:
        msg = (
            "suggestions need the samples of fit, which this model was saved without; save it "
            "with its samples, or fit again"
        )
        raise InvalidParameterError(msg)
    return state.label_codes


def _rows_of_graph(state: MendState) -> np.ndarray:
    _codes_of_fit(state)
    return state.order
