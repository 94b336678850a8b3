"""AGF-TI as a scikit-learn classifier; `viewmend.core` has the method in the paper's symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from viewmend.backend.namespace import to_numpy
from viewmend.backend.threads import limited_threads
from viewmend.backend.torch_gpu import mover_to
from viewmend.core import Result
from viewmend.core.agfti.anchors import ANCHOR_METHODS
from viewmend.core.agfti.induction import induce_labels, induction
from viewmend.core.agfti.propagation import reachable_samples
from viewmend.core.agfti.state import ABLATIONS
from viewmend.core.agfti.steps import COMPATIBILITY
from viewmend.core.common.scaling import NORMALIZERS
from viewmend.data.cells import DEFAULT, MISSING_CELLS, learn_fills
from viewmend.data.container import MultiViewData
from viewmend.data.labels import Labels, check_class_prior
from viewmend.distributed.lazy import is_lazy
from viewmend.distributed.mixin import LazyGraphsMixin
from viewmend.exceptions import InvalidParameterError
from viewmend.models.agfti_geometry import (
    COMPATIBLE_ROWS,
    IMPUTATIONS,
    AnchorGeometry,
    check_graph_size,
)
from viewmend.models.agfti_problem import (
    hold_outs,
    make_problem,
    make_state,
    reweighted,
    solve_problem,
    warn_of_uneven_labels,
    warn_unless_converged,
)
from viewmend.models.apart import warn_of_unreachable
from viewmend.models.base import WITHOUT_EFFECT, TwoStepClassifier, ViewLayout
from viewmend.models.calibrated import CROSS_FIT, CalibratedMixin
from viewmend.models.cross_fit import HeldOut
from viewmend.models.devices import check_device, digits_kept, input_device, keeping_digits, on_host
from viewmend.models.explanation import Explanation, explain_propagated
from viewmend.models.fitted_state import AGFTIState
from viewmend.models.inductive import InductiveMixin
from viewmend.parameters import AnyOf, Each, Integer, OneOf, Real, Rule
from viewmend.protocols import ClassPrior, Damping, Seed

# What `AGFTIClassifier.from_paper` sets.
PAPER: dict[str, Any] = {
    "imputation": "fourier",
    "graph_smoothing": 4.0,
    "low_rank_weight": 100.0,
    "propagation_damping": 1.0,
    "final_damping": None,
    "class_prior": None,
}

_DAMPING = AnyOf(Real(0, low_open=True), Each(Real(0, low_open=True), size=2))


class AGFTIClassifier(LazyGraphsMixin, CalibratedMixin, InductiveMixin, TwoStepClassifier):
    """Adversarial graph fusion with tensorial imputation (AGF-TI), whatever the order of the rows.

    Each view becomes a bipartite graph between samples and a few anchors. A min-max game over view
    weights and fused graph fuses these graphs into one; a low-rank tensor step imputes the rows of
    missing views; labels spread over the fused graph.

    The tensor step of the paper runs a Fourier transform along the rows of the file. So its result
    **depends on their order**, and leaks the labels of files that are sorted by class. The default
    here uses the Fourier basis of the graph of the samples instead, and anchors that correspond
    across views; another order of rows or views gives the same model. `from_paper` gives the method
    as published. Try ``class_prior`` and ``low_rank_weight`` first.

    Parameters
    ----------
    class_prior : None, "labeled", "uniform", array (n_classes,) or dict, default="labeled"
        Class shares that the predicted classes are weighted to have. "labeled" takes those of the
        labelled samples: right if labels were drawn within each class. None is the paper's choice:
        a class with more labels than the others can then win everywhere, with a warning.
    low_rank_weight : float, default=100.0
        Weight ``rho`` of the tensor norm; the paper tries 10, 100 and 1000.
    n_anchors : int or "auto", default="auto"
        Number of anchors per view, ``m``. "auto" is the largest power of two up to 256 and up to a
        quarter of the observed rows of every view.
    n_neighbors : int, default=7
        Number of anchors that a sample is joined to, ``k``.
    anchor_method : {"bkhk", "kmeans", "random"}, default="bkhk"
        How anchors are chosen. "bkhk" needs a power of two for ``n_anchors``, and lowers it with a
        warning if a view has fewer observed rows.
    imputation : {"graph", "fourier"}, default="graph"
        Transform of the tensor step. "graph" uses the Fourier basis of the graph of the samples.
        "fourier" is the paper's, along the rows as they are given, with anchors of each view that
        are rotated round by round; it **depends on the order of the rows**.
    fusion_weight : float or "auto", default="auto"
        Weight ``lambda`` of the fusion term; "auto" is the square of the number of views.
    graph_smoothing : float or "auto", default="auto"
        ``beta_lambda``: the larger, the closer rows of the fused graph are to uniform. "auto" is
        ``lambda / (2 V)``, with which equally weighted views give the mean of their rows.
    label_strength : float, default=1e8
        ``B`` on labelled samples: how firmly given labels are kept.
    propagation_damping : float or (float, float), default=1.0
        ``B`` on unlabelled samples and on anchors while the graphs are learned: the smaller, the
        further labels spread, and the more they shape the graph.
    final_damping : float, (float, float) or None, default=0.01
        The same for the final labels, which spread once more over the finished graph. None keeps
        the labels that the graph was learned with, as the paper does.
    calibration : {"leave_one_out", "cross_fit", None}, default="leave_one_out"
        How the temperature of the probabilities is fitted: to each labelled sample without its
        label on the finished graph, or by five more fits, which also estimate the accuracy.
    normalize : {"l2", None}, default="l2"
        How the rows of every view are scaled.
    max_iter, tol : int, float, default=30, 1e-4
        The solver stops after ``max_iter`` rounds, or, after the first round, when no soft label
        and no weight changes by ``tol`` and the imputed graphs are within ``tol`` per row of those
        of low rank. The paper's test lacks the last part and can stop before anything is imputed;
        ``compat="released"`` keeps the paper's test.
    ablation : None or one or several of "alignment", "weights", "imputation", default=None
        Parts to leave out, as in the paper; "graph" has no "alignment" to leave out.
    compat : {None, "released"}, default=None
        "released" follows the authors' code where it differs from their paper; for "fourier" only.
        Rows of zeros then count as missing, with a warning.
    device : {None, "auto", "cpu", "cuda"}, default=None
        As in `MendClassifier`. PyTorch's own setting decides on TF32, which is off by default.
    random_state : int, numpy Generator or None, default=None
        Seed for choosing the anchors; with "graph" they also depend on the content of the views.
    missing_cells, view_sizes, dtype, n_jobs, verbose
        As in `MendClassifier`.

    Attributes
    ----------
    transduction_ : array (n_samples,)
        Classes of the samples of ``fit``. Given labels are kept. ``predict`` treats samples as new
        ones and may differ on the same samples.
    label_distributions_ : array (n_samples, n_classes)
        Class probabilities of every sample; rows sum to one.
    classes_, confidence_, calibration_, zero_row_evidence_, observed_, cell_fills_
        As in `MendClassifier`.
    unreachable_ : array (n_samples,) of bool
        Samples that no path joins to a label, or without any view; they get the class shares.
    view_weights_ : array (n_views,)
        ``alpha``.
    fused_graph_ : array (n_samples, n_anchors)
        ``P``; a Dask array if the views were, like ``view_graphs_``.
    view_graphs_ : array (n_views, n_samples, n_anchors)
        ``Z``, with missing rows imputed.
    anchors_ : tuple of array (n_anchors, n_features_v)
        The anchors of every view.
    anchor_alignments_ : array (n_views, n_anchors, n_anchors)
        ``T``.
    n_iter_ : int
        Number of rounds.
    status_ : str
        "converged", "max_iter", or "stopped" or "interrupted" by a callback.
    history_ : tuple of viewmend.core.Round
        One record per round.
    sample_ids_ : array (n_samples,) of str
        Identifiers of the samples; absent where ``fit`` saw none, such as the index of frames.
    n_features_in_, view_n_features_, view_names_, feature_names_in_, view_feature_names_
        As in `MendClassifier`.
    fitted_state_ : viewmend.models.fitted_state.AGFTIState
        Everything else that ``predict`` and ``explain`` need.

    References
    ----------
    Z. Jiang, T. Luo, X. Yang, X. Liang. Adversarial Graph Fusion for Incomplete Multi-view
    Semi-supervised Learning with Tensorial Imputation. NeurIPS 2025.

    Examples
    --------
    >>> from viewmend import AGFTIClassifier
    >>> from viewmend.datasets import hide, make_multiview_blobs
    >>> blobs = make_multiview_blobs(random_state=0)
    >>> task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.1, random_state=0)
    >>> model = AGFTIClassifier(random_state=0, tol=1e-3).fit(task.data, task.y)
    >>> accuracy = (model.transduction_ == task.y_true)[task.unlabelled].mean()
    >>> bool(accuracy > 0.9)
    True
    """

    # The values tried in the paper.
    grid: ClassVar[Mapping[str, Sequence[float]]] = {
        "low_rank_weight": (10.0, 100.0, 1000.0),
        "graph_smoothing": (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0),
    }

    fitted_state_: AGFTIState

    # Of the tensors of the last fit, if it got any.
    _input_device: str | None = None

    geometry_parameters = (
        "n_anchors",
        "n_neighbors",
        "anchor_method",
        "imputation",
        "normalize",
        "device",
        "random_state",
    )

    _without_effect_on_rounds = WITHOUT_EFFECT | {"device", "final_damping", "max_iter", "tol"}

    # Enough rounds to tell settings apart.
    search_limits: ClassVar[Mapping[str, Any]] = {"max_iter": 2}

    _rules: ClassVar[dict[str, Rule]] = {
        "n_anchors": AnyOf(Integer(2), OneOf("auto")),
        "n_neighbors": Integer(1),
        "anchor_method": OneOf(*ANCHOR_METHODS),
        "imputation": OneOf(*IMPUTATIONS),
        "fusion_weight": AnyOf(Real(0, low_open=True), OneOf("auto")),
        "graph_smoothing": AnyOf(Real(0, low_open=True), OneOf("auto")),
        "low_rank_weight": Real(0),
        "label_strength": Real(0, low_open=True),
        "propagation_damping": _DAMPING,
        "final_damping": AnyOf(OneOf(None), _DAMPING),
        "calibration": OneOf("leave_one_out", CROSS_FIT, None),
        "normalize": OneOf(*NORMALIZERS),
        "max_iter": Integer(1),
        "tol": Real(0),
        "ablation": AnyOf(OneOf(None, *ABLATIONS), Each(OneOf(*ABLATIONS))),
        "compat": OneOf(*COMPATIBILITY),
        "missing_cells": OneOf(*MISSING_CELLS),
        "dtype": OneOf("float64", "float32"),
        "device": OneOf(None, "auto", "cpu", "cuda"),
        "n_jobs": AnyOf(OneOf(None, -1), Integer(1)),
        "verbose": AnyOf(Integer(0), OneOf(True, False)),
    }

    def __init__(
        self,
        n_anchors: int | Literal["auto"] = "auto",
        n_neighbors: int = 7,
        anchor_method: str = "bkhk",
        imputation: str = "graph",
        fusion_weight: float | Literal["auto"] = "auto",
        graph_smoothing: float | Literal["auto"] = "auto",
        low_rank_weight: float = 100.0,
        label_strength: float = 1e8,
        propagation_damping: Damping = 1.0,
        final_damping: Damping | None = 0.01,
        class_prior: ClassPrior = "labeled",
        calibration: str | None = "leave_one_out",
        normalize: str | None = "l2",
        missing_cells: str = DEFAULT,
        view_sizes: Sequence[int] | None = None,
        max_iter: int = 30,
        tol: float = 1e-4,
        ablation: str | Sequence[str] | None = None,
        compat: str | None = None,
        dtype: str = "float64",
        device: str | None = None,
        random_state: Seed = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.anchor_method = anchor_method
        self.imputation = imputation
        self.fusion_weight = fusion_weight
        self.graph_smoothing = graph_smoothing
        self.low_rank_weight = low_rank_weight
        self.label_strength = label_strength
        self.propagation_damping = propagation_damping
        self.final_damping = final_damping
        self.class_prior = class_prior
        self.calibration = calibration
        self.normalize = normalize
        self.missing_cells = missing_cells
        self.view_sizes = view_sizes
        self.max_iter = max_iter
        self.tol = tol
        self.ablation = ablation
        self.compat = compat
        self.dtype = dtype
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def from_paper(cls, **overrides: Any) -> AGFTIClassifier:
        """The method as published, with ``overrides``; **it depends on the order of the rows**.

        Fourier imputation, anchors aligned from ``T = I``, damping 1, no class prior, and the
        middle of the paper's grids, ``rho = 100`` and ``beta_lambda = 4``.
        """
        return cls(**(PAPER | overrides))

    def _check_fit(
        self, X: Any, y: Any, mask: Any, dtype: DTypeLike = np.float64, groups: Any = None
    ) -> tuple[MultiViewData, Labels]:
        X, self._input_device = on_host(X)
        # Before the anchors are drawn, which takes a while.
        check_device(self.device, self._input_device)
        y, mask, groups = (on_host(told)[0] for told in (y, mask, groups))
        data, labels = super()._check_fit(X, y, mask, dtype, groups)
        return COMPATIBLE_ROWS[self.compat](data), labels

    def _check_predict(self, X: Any, mask: Any) -> MultiViewData:
        data = super()._check_predict(on_host(X)[0], on_host(mask)[0])
        return COMPATIBLE_ROWS[self.compat](data)

    @keeping_digits
    def build_geometry(self, data: MultiViewData, labels: Labels) -> AnchorGeometry:
        """Anchors, graphs and their Fourier basis: all that does not depend on labels."""
        if self.compat is not None and self.imputation != "fourier":
            msg = (
                f"compat={self.compat!r} reproduces code whose tensor step is a Fourier transform, "
                f"got imputation={self.imputation!r}; set imputation='fourier' or compat=None"
            )
            raise InvalidParameterError(msg)
        size = check_graph_size(self, data)
        build, normalize = IMPUTATIONS[self.imputation], NORMALIZERS[self.normalize]
        to_device = mover_to(check_device(self.device, self._input_device))
        self.tell_stage("anchors and graphs")
        return build(data, labels.codes, normalize, size, self.random_state, to_device)

    def _fit_views(self, X: Any, y: Any, mask: ArrayLike | None, groups: Any) -> None:
        if not is_lazy(X):
            self.check_callbacks_in_memory()
            super()._fit_views(X, y, mask, groups)
            return
        self._fit_blocks(X, y, mask)

    @keeping_digits
    def _fit_labels(self, geometry: AnchorGeometry, labels: Labels) -> None:
        if check_class_prior(self.class_prior, labels) is None:
            warn_of_uneven_labels(labels)
        problem = make_problem(self, geometry, labels)
        result = solve_problem(self, problem, self._all_callbacks())
        for_new = induction(problem, result, geometry.anchors, geometry.n_neighbors)
        for_new = for_new.converted(to_numpy)
        restored = geometry.restored(result).converted(to_numpy)
        self._store_graphs(restored, for_new.anchors)
        reachable = reachable_samples(restored.P, labels.labelled)
        # Also the weights are found in the order of the geometry, and so depend on no other.
        soft = np.where(reachable[geometry.order, None], to_numpy(result.F), 0)
        state = make_state(self.class_prior, labels, soft, for_new)
        scores = (soft * state.class_weights)[np.argsort(geometry.order)]
        hold_out = hold_outs(self, state, geometry, labels)
        self._store_calibrated(scores, labels, reachable, state, hold_out)

    def _fit_blocks(self, X: Any, y: Any, mask: ArrayLike | None) -> None:
        """Fit on Dask collections; anchors are drawn from a sample that is gathered here."""
        from viewmend.distributed.estimator import fit_blocks, gather_blocks

        callbacks = self._all_callbacks()
        given = gather_blocks(self, X, y, mask, callbacks)
        geometry = self.build_geometry(given.sample.data, given.sampled_labels)
        problem = make_problem(self, geometry, given.sampled_labels)
        fit = fit_blocks(self, given, geometry, problem, callbacks)
        layout, labels = given.chunks.layout, given.labels
        self.cell_fills_ = learn_fills(given.sample.data, self.missing_cells)
        seen = ViewLayout(layout.names, layout.n_features, fit.observed, layout.columns)
        self._remember_layout(seen, labels)
        self._remember_ids(X.ids if isinstance(X, MultiViewData) else None)
        self._store_graphs(fit.result, fit.induction.anchors)
        soft = np.where(fit.reachable[:, None], fit.result.F, 0)
        state = make_state(self.class_prior, labels, soft, fit.induction)

        def hold_out() -> HeldOut:
            F, growth, codes = fit.held_out()
            return HeldOut(reweighted(F, growth, state.class_weights), codes)

        scores = soft * state.class_weights
        self._store_calibrated(scores, labels, fit.reachable, state, {"leave_one_out": hold_out})
        self.zero_row_evidence_ = np.zeros((len(layout.names), labels.n_classes))
        warn_of_unreachable(self, np.zeros(len(labels.codes), dtype=bool))

    def _score_new(self, data: MultiViewData, X: Any) -> np.ndarray:
        """Anchor rows of the views a sample has, aligned, fused, times the anchors' labels."""
        device = check_device(self.device, input_device(X))
        to_device, state = mover_to(device), self.fitted_state_
        with limited_threads(self.n_jobs), digits_kept(device):
            views = [to_device(NORMALIZERS[self.normalize](view)) for view in data.views]
            for_new = state.induction.converted(to_device)
            soft = induce_labels(for_new, views, to_device(data.observed))
        return to_numpy(soft) * state.class_weights

    def _explained(self, rows: np.ndarray) -> Explanation:
        return explain_propagated(self, rows)

    def _store_graphs(self, result: Result, anchors: tuple[np.ndarray, ...]) -> None:
        """Symbols become words again."""
        self.view_weights_ = result.alpha
        self.fused_graph_ = result.P
        self.view_graphs_ = result.Z
        self.anchor_alignments_ = result.T
        self.n_iter_ = result.n_iter
        self.status_ = result.status
        self.history_ = result.history
        self.anchors_ = anchors
        warn_unless_converged(result, self.tol)
