"""Why a sample got its class: the labels and views behind it, in numbers and in words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from viewmend.core.agfti.explanation import fusion_shares, propagation_influence
from viewmend.core.agfti.fusion import aligned_graphs
from viewmend.core.common.class_shares import normalise_rows
from viewmend.core.mend.explanation import evidence_parts, spreading_influence
from viewmend.core.mend.induction import MendInduction, label_parts, view_scores
from viewmend.core.mend.labelling import doubted_rows, label_likelihood
from viewmend.data.input_arrays import some_of
from viewmend.data.labels import Labels
from viewmend.exceptions import InvalidParameterError
from viewmend.models.agfti_problem import final_diagonals
from viewmend.models.decisions import decide
from viewmend.models.fitted_state import FittedAGFTI, FittedMend
from viewmend.models.mend_problem import known_prior
from viewmend.models.naming import names_of_fit

__all__ = ["Explanation", "explain_mended", "explain_propagated"]

ExplainedModel = FittedAGFTI | FittedMend


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Where the classes of some samples come from, of ``fit`` or new ones.

    Attributes
    ----------
    samples : array (n_samples,) of int
        Rows of ``fit`` that are explained, or rows of the new samples.
    names, supporter_names : array (n_samples,), (n_labelled,)
        What samples are called: by their identifiers, where these are known, or by their rows.
    labels, rivals : array (n_samples,)
        Their classes, and the best of the other classes.
    confidence : array (n_samples,)
        Calibrated probability of the class.
    supporters, supporter_labels : array (n_labelled,)
        Labelled rows of ``fit``, and the classes they were given.
    support : array (n_samples, n_labelled)
        Share of each labelled sample in the graph score of a sample. Over the labels of one class
        it sums to ``graph_shares``, unless labels are in doubt. Rows of zeros if the graph joins a
        sample to no label.
    graph_shares : array (n_samples, n_classes)
        Class probabilities from the graph alone, before calibration.
    view_shares : array (n_samples, n_views)
        Share of each view in the edges of the sample; zero for missing views.
    borrowed : array (n_samples,)
        The rest of its edges: from imputed rows in AGF-TI, from the consensus graph in
        `MendClassifier`. Zero for samples without any edge, such as those without any view.
    log_odds : array (n_samples, n_reasons)
        What each reason adds to ``log(p_class / p_rival)``, the log odds of the class against the
        next best one. Rows sum to it, or to more where a share is so small that calibration
        replaces it by 1e-12 of the largest.
    reasons : tuple of str
        Names of the reasons: "graph"; the names of the views and "prior", if there are regressions;
        "given label" if labels are in doubt: "graph" then leaves out the own label of the sample;
        and "zero rows" if some sample has a row of zeros.
    view_names : tuple of str
        Names of the views.
    """

    samples: np.ndarray
    names: np.ndarray
    labels: np.ndarray
    rivals: np.ndarray
    confidence: np.ndarray
    supporters: np.ndarray
    supporter_names: np.ndarray
    supporter_labels: np.ndarray
    support: np.ndarray
    graph_shares: np.ndarray
    view_shares: np.ndarray
    borrowed: np.ndarray
    log_odds: np.ndarray
    reasons: tuple[str, ...]
    view_names: tuple[str, ...]

    def summary(self, most: int = 3) -> str:
        """Some lines for every sample, with ``most`` labels at most: those that count most."""
        return "\n".join(self.lines(most))

    def lines(self, most: int = 3) -> list[str]:
        """Those of the summary, in which a name may hold the end of a line itself."""
        return [line for i in range(len(self.samples)) for line in self._told(i, most)]

    def __repr__(self) -> str:
        return f"<Explanation of {len(self.samples)} samples; print its summary()>"

    def _told(self, i: int, most: int) -> list[str]:
        strongest = np.argsort(-self.support[i], kind="stable")[:most]
        labels = [
            f"sample {self.supporter_names[j]} of class {self.supporter_labels[j]} "
            f"({self.support[i, j]:.0%})"
            for j in strongest
            if self.support[i, j] > 0
        ]
        views = [
            f"{name} {share:.0%}"
            for name, share in zip(self.view_names, self.view_shares[i], strict=True)
        ]
        reasons = [
            f"{name} {odds:+z.1f}"
            for name, odds in zip(self.reasons, self.log_odds[i], strict=True)
        ]
        return [
            f"sample {self.names[i]}: class {self.labels[i]}, confidence {self.confidence[i]:.0%}",
            f"  labels that count most: {', '.join(labels) or 'none'}",
            f"  edges through: {', '.join([*views, f'borrowed {self.borrowed[i]:.0%}'])}",
            f"  log odds against {self.rivals[i]}: {', '.join(reasons)}",
        ]


def explain_propagated(model: FittedAGFTI, rows: np.ndarray) -> Explanation:
    """Explain classes of a fitted `AGFTIClassifier`: all soft labels come from the graph.

    Exact for the final fused graph. How labels shaped this graph is not part of the explanation.
    """
    P, labelled = model.fused_graph_.astype(np.float64), model.fitted_state_.label_codes >= 0
    B_samples, B_anchors = final_diagonals(model, labelled, P[None])
    influence = propagation_influence(P, B_samples, B_anchors, rows, np.flatnonzero(labelled))
    aligned = aligned_graphs(model.view_graphs_[:, rows], model.anchor_alignments_)
    shares = fusion_shares(P[rows], aligned, model.view_weights_)
    # A sample that was set apart is in no graph: not even its own label supports its class.
    influence[_set_apart(model, rows)] = 0
    view_shares = np.where(model.observed_[rows], shares, 0)
    n_classes = len(model.classes_)
    nothing = np.zeros((len(rows), 0, n_classes))
    votes = np.eye(n_classes)[model.fitted_state_.label_codes[labelled]]
    unjoined = model.fitted_state_.labelled_shares
    graph = Graphed(influence, votes, view_shares, unjoined)
    return explanation_of(model, _answered_in_fit(model, rows), graph, nothing, ())


def explain_mended(model: FittedMend, rows: np.ndarray) -> Explanation:
    """Explain classes of a fitted `MendClassifier`: its last spreading, and the evidence.

    Exact for the last graph and the last regressions. How labels and views shaped these in earlier
    rounds is not part of the explanation.
    """
    state, fit = model.fitted_state_, model.fitted_state_.induction
    places, apart = state.places(rows), _set_apart(model, rows)
    _check_in_graph(names_of_fit(model)[rows[(places < 0) & ~apart]])
    labelled = np.flatnonzero(state.label_codes >= 0)
    influence = spreading_influence(model.graph_, fit.settings.spreading, rows, labelled)
    votes = scaled_votes(model, labelled)
    parts = _evidence_parts(fit, places)
    reasons = (*model.view_names_, "prior")[: parts.shape[1]]
    if not model.keeps_labels():
        # What others say of a sample is what the graph says less its own label.
        influence -= rows[:, None] == labelled
        parts = np.concatenate([parts, _label_logs(model, rows)], axis=1)
        reasons = (*reasons, "given label")
    view_shares = _edge_shares(fit, places)
    # A sample that was set apart has no place: not even its own label supports its class.
    for array in (influence, parts, view_shares):
        array[apart] = 0
    graph = Graphed(influence, votes, view_shares, unjoined_shares(model))
    return explanation_of(model, _answered_in_fit(model, rows), graph, parts, reasons)


def unjoined_shares(model: FittedMend) -> np.ndarray:
    """What stands in for soft labels in the fit where the graph joins a sample to no label."""
    state = model.fitted_state_
    fitted = Labels(model.classes_, state.label_codes[state.order])
    prior = known_prior(model.class_prior, fitted)
    return fitted.shares() if prior is None else prior


def scaled_votes(model: FittedMend, labelled: np.ndarray) -> np.ndarray:
    """The same over the mass of their classes, by which columns of the soft labels are scaled."""
    votes, mass = _votes(model, labelled), model.fitted_state_.induction.mass
    return np.divide(votes, mass, out=np.zeros_like(votes), where=mass > 0)


def _votes(model: FittedMend, labelled: np.ndarray) -> np.ndarray:
    """What the labels of samples counted when they were last spread, (n_labelled, n_classes)."""
    state, evidence = model.fitted_state_, model.fitted_state_.induction.evidence
    Y = np.eye(len(model.classes_))[state.label_codes[labelled]]
    if evidence is None or model.keeps_labels():
        return Y
    places = state.places(labelled)
    return np.where(
        (places >= 0)[:, None], doubted_rows(Y, evidence.P[places], model.label_noise_), Y
    )


def _label_logs(model: FittedMend, rows: np.ndarray) -> np.ndarray:
    """What its own label adds to the logarithms of a sample, (n_rows, 1, n_classes)."""
    codes = model.fitted_state_.label_codes[rows]
    told = label_likelihood(np.eye(len(model.classes_))[codes], model.label_noise_)
    logs = np.log(np.maximum(told, np.finfo(float).tiny))
    return np.where((codes >= 0)[:, None], logs, 0)[:, None]


def _check_in_graph(outside: np.ndarray) -> None:
    """Refuse to explain samples outside the graph, of these names."""
    if len(outside):
        msg = (
            f"explain needs samples of the graph that labels spread over, but {len(outside)} are "
            f"not in the graph (samples {some_of(outside)}); pass their views to explain_new, ask "
            f"for samples at fitted_state_.order, or fit again with a larger graph_samples"
        )
        raise InvalidParameterError(msg)


def _set_apart(model: ExplainedModel, rows: np.ndarray) -> np.ndarray:
    """Samples among ``rows`` that have no view, or nothing but zeros, and were not fitted."""
    observed, zero = model.observed_[rows], model.fitted_state_.zero_rows
    return ~(observed if zero is None else observed & ~zero[rows]).any(axis=1)


def _edge_shares(fit: MendInduction, places: np.ndarray) -> np.ndarray:
    """Share (n_rows, n_views) of each view in the edges of samples, the others being consensus."""
    degrees, total = fit.view_degrees[places], fit.degrees[places][:, None]
    return np.divide(degrees, total, out=np.zeros_like(degrees), where=total > 0)


def _evidence_parts(fit: MendInduction, places: np.ndarray) -> np.ndarray:
    """Of `scored_parts`, or (n_rows, 0, n_classes) where there is no evidence."""
    if fit.evidence is None:
        return np.zeros((len(places), 0, len(fit.prior)))
    Z, by_labels = view_scores(fit, places), label_parts(fit, places)
    return scored_parts(fit, Z, fit.observed[places], by_labels)


def scored_parts(
    fit: MendInduction, Z: np.ndarray, observed: np.ndarray, by_labels: np.ndarray
) -> np.ndarray:
    """What views and prior add to the logarithms, (n_rows, n_views + 1, n_classes).

    For scores ``Z`` (n_rows, n_views, n_classes) of samples ``observed`` (n_rows, n_views), and
    what given labels alone add to the result, of its shape.
    """
    assert fit.evidence is not None, "asked for where there is evidence"
    weights = np.array([v.regression.weight for v in fit.views if v.regression is not None])
    parts = evidence_parts(Z, observed, weights, fit.evidence.gaussian) + by_labels
    return np.asarray(parts * fit.settings.evidence_power)


@dataclass(frozen=True, eq=False)
class Graphed:
    """What the graph has to do with the classes of some samples.

    The ``influence`` (n_rows, n_labelled) of the labels multiplies their ``votes`` (n_labelled,
    n_classes); ``unjoined`` (n_classes,) stands in where the graph joins a sample to no label.
    ``view_shares`` (n_rows, n_views) are those of the views in the edges.
    """

    influence: np.ndarray
    votes: np.ndarray
    view_shares: np.ndarray
    unjoined: np.ndarray


@dataclass(frozen=True, eq=False)
class Answered:
    """Samples whose classes are explained.

    Their ``rows`` and ``names`` (n_rows,), class ``shares`` (n_rows, n_classes), and the ``codes``
    (n_rows,) of their classes. Those ``apart`` were not compared with others; their shares, and
    those of ``untempered`` samples, have no temperature. ``zero_logs`` are what rows of zeros add
    to the logarithms, (n_rows, 1, n_classes), or 0 for 1 where there are none.
    """

    rows: np.ndarray
    names: np.ndarray
    shares: np.ndarray
    codes: np.ndarray
    apart: np.ndarray
    untempered: np.ndarray
    zero_logs: np.ndarray

    @property
    def rivals(self) -> np.ndarray:
        """Codes (n_rows,) of the best of the other classes."""
        shares = self.shares.copy()
        shares[np.arange(len(shares)), self.codes] = -1
        return np.argmax(shares, axis=1)


def _answered_in_fit(model: ExplainedModel, rows: np.ndarray) -> Answered:
    shares, apart = model.label_distributions_[rows], _set_apart(model, rows)
    given = model.fitted_state_.label_codes[rows]
    kept = (given >= 0) & (model.keeps_labels() | ~model.observed_[rows].any(axis=1))
    codes = np.where(kept, given, decide(shares, model.decision_weights_))
    untempered = model.unreachable_[rows] | apart
    zero_logs = _zero_row_logs(model, rows)
    names = names_of_fit(model)[rows]
    return Answered(rows, names, shares, codes, apart, untempered, zero_logs)


def explanation_of(
    model: ExplainedModel,
    answered: Answered,
    graph: Graphed,
    parts: np.ndarray,
    names: tuple[str, ...],
) -> Explanation:
    """Words for the parts of the logarithms of the shares.

    ``parts`` (n_rows, n_reasons - 1, n_classes) are what else than the graph adds to the
    logarithms, and ``names`` (n_reasons - 1,) what they are called.
    """
    state, supporters = model.fitted_state_, np.flatnonzero(model.fitted_state_.label_codes >= 0)
    votes, view_shares = graph.votes * state.class_weights, graph.view_shares
    support = normalise_rows(graph.influence * votes.sum(axis=1))
    joined = support.any(axis=1, keepdims=True)
    unjoined = np.where(answered.apart[:, None], state.labelled_shares, graph.unjoined)
    graph_shares = np.where(joined, support @ normalise_rows(votes), unjoined)
    graph_logs = np.log(np.maximum(graph_shares, np.finfo(float).tiny))
    logs = np.concatenate([graph_logs[:, None], parts], axis=1)
    logs /= np.where(answered.untempered, 1, model.calibration_.temperature)[:, None, None]
    logs = np.concatenate([logs, answered.zero_logs], axis=1)
    turn, codes, rivals = np.arange(len(answered.rows)), answered.codes, answered.rivals
    return Explanation(
        samples=answered.rows,
        names=answered.names,
        labels=model.classes_[codes],
        rivals=model.classes_[rivals],
        confidence=answered.shares[turn, codes],
        supporters=supporters,
        supporter_names=names_of_fit(model)[supporters],
        supporter_labels=model.classes_[state.label_codes[supporters]],
        support=support,
        graph_shares=graph_shares,
        view_shares=view_shares,
        # Rounding must leave nothing below zero.
        borrowed=np.where(answered.apart, 0, np.maximum(1 - view_shares.sum(axis=1), 0)),
        log_odds=logs[turn, :, codes] - logs[turn, :, rivals],
        reasons=("graph", *names, *["zero rows"] * answered.zero_logs.shape[1]),
        view_names=model.view_names_,
    )


def _zero_row_logs(model: ExplainedModel, rows: np.ndarray) -> np.ndarray:
    """What rows of zeros add to the logarithms, (n_rows, 1, n_classes); 0 for 1 without any."""
    zero, evidence = model.fitted_state_.zero_rows, model.zero_row_evidence_
    if zero is None or evidence is None:
        return np.zeros((len(rows), 0, len(model.classes_)))
    return np.asarray(zero[rows] @ evidence)[:, None]
