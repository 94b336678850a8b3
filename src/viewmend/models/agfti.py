"""AGF-TI as a scikit-learn classifier: words here, the paper's symbols in `viewmend.core`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from viewmend.backend.threads import limited_threads
from viewmend.callbacks import LogRounds
from viewmend.containers import MultiViewData
from viewmend.core import Problem, Result, solve
from viewmend.core.admm import COMPATIBILITY, Callback
from viewmend.core.anchor_count import graph_size, largest_power_of_two
from viewmend.core.anchors import ANCHOR_METHODS
from viewmend.core.bipartite import anchor_graphs
from viewmend.core.induction import induce_labels, induction
from viewmend.core.priors import class_weights
from viewmend.core.propagation import reachable_samples
from viewmend.core.scaling import NORMALIZERS
from viewmend.core.state import ABLATIONS
from viewmend.exceptions import DataWarning, InvalidParameterError
from viewmend.labels import Labels, check_class_prior
from viewmend.models.base import InductiveMixin, MultiViewClassifier
from viewmend.parameters import AnyOf, Each, Integer, OneOf, Real, Rule, check_parameters

__all__ = ["AGFTIClassifier"]


# Ratio of label counts from which the favour of a class shows.
UNEVEN = 2


class AGFTIClassifier(InductiveMixin, MultiViewClassifier):
    """Adversarial graph fusion with tensorial imputation (AGF-TI).

    Each view becomes a bipartite graph between samples and a few anchors. The graphs are aligned
    and fused into one by a min-max game over view weights and fused graph; rows of missing samples
    are imputed by a low-rank tensor step; labels spread over the fused graph.

    .. warning::
       The tensor step of the paper runs a Fourier transform along the samples, so the result
       **depends on the order of the rows** wherever views are missing. On files sorted by class
       this leaks the labels. Shuffle the rows before you judge an accuracy.

    Parameters
    ----------
    n_anchors : int or "auto", default="auto"
        Anchors per view, ``m``. "auto" takes the largest power of two that is at most 256 and at
        most a quarter of the observed rows of every view.
    n_neighbors : int, default=7
        Anchors joined to a sample, ``k``.
    anchor_method : {"bkhk", "kmeans", "random"}, default="bkhk"
        "bkhk" needs a power of two for ``n_anchors``, and lowers it with a warning where a view
        has fewer observed rows.
    fusion_weight : float or "auto", default="auto"
        ``lambda``, the weight of the fusion term; "auto" is the square of the number of views.
    graph_smoothing : float, default=4.0
        ``beta_lambda``: the larger, the closer rows of the fused graph come to uniform.
    low_rank_weight : float, default=100.0
        ``rho``, the weight of the tensor nuclear norm.
    label_strength : float, default=1e8
        ``B`` on labelled samples: how firmly given labels are held.
    propagation_damping : float or (float, float), default=1.0
        ``B`` on unlabelled samples and on anchors: the smaller, the further labels travel.
    class_prior : None, "labeled", "uniform", array (n_classes,) or dict, default=None
        Known class shares, which the soft labels are weighted to meet; "labeled" takes those of
        the labelled samples. The paper has none, and then a class with more labels than the
        others can win everywhere: a warning tells where labels are uneven.
    normalize : {"l2", None}, default="l2"
        Scaling of the rows of every view.
    view_sizes : sequence of int, optional
        Columns of every view where ``X`` is one stacked array.
    max_iter, tol : int, float, default=30, 1e-4
        The solver stops when no soft label and no weight changes by ``tol``.
    ablation : None or one or several of "alignment", "weights", "imputation", default=None
        Parts to leave out, as in the paper's ablation study.
    compat : {None, "released"}, default=None
        "released" reproduces what the authors' code does differently from their paper.
    dtype : {"float64", "float32"}, default="float64"
    random_state : int, numpy Generator or None, default=None
        Of the anchors.
    n_jobs : int, optional
        Threads; None leaves the libraries' own settings, -1 uses every core.
    verbose : int, default=0
        Above 0, one line per round on standard error.

    Attributes
    ----------
    classes_ : array (n_classes,)
    transduction_ : array (n_samples,)
        Classes of the samples of ``fit``; given labels are kept. ``predict`` is induction and may
        differ on the same samples.
    label_distributions_ : array (n_samples, n_classes)
        Class shares of every sample; rows sum to one.
    unreachable_ : array (n_samples,) of bool
        Samples that no path of the graph joins to a label; they get the labelled class shares.
    view_weights_ : array (n_views,)
        ``alpha``.
    fused_graph_ : array (n_samples, n_anchors)
        ``P``.
    view_graphs_ : array (n_views, n_samples, n_anchors)
        ``Z``, missing rows imputed.
    anchors_ : tuple of array (n_anchors, n_features_v)
    anchor_alignments_ : array (n_views, n_anchors, n_anchors)
        ``T``.
    n_iter_ : int
    status_ : str
        "converged", "max_iter" or "stopped" (by a callback).
    history_ : tuple of viewmend.core.Round
    n_features_in_, view_n_features_, view_names_
        The layout of ``fit``.

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

    _rules: ClassVar[dict[str, Rule]] = {
        "n_anchors": AnyOf(Integer(2), OneOf("auto")),
        "n_neighbors": Integer(1),
        "anchor_method": OneOf(*ANCHOR_METHODS),
        "fusion_weight": AnyOf(Real(0, low_open=True), OneOf("auto")),
        "graph_smoothing": Real(0, low_open=True),
        "low_rank_weight": Real(0),
        "label_strength": Real(0, low_open=True),
        "propagation_damping": AnyOf(Real(0, low_open=True), Each(Real(0, low_open=True), size=2)),
        "normalize": OneOf(*NORMALIZERS),
        "max_iter": Integer(1),
        "tol": Real(0),
        "ablation": AnyOf(OneOf(None, *ABLATIONS), Each(OneOf(*ABLATIONS))),
        "compat": OneOf(*COMPATIBILITY),
        "dtype": OneOf("float64", "float32"),
        "n_jobs": AnyOf(OneOf(None, -1), Integer(1)),
        "verbose": AnyOf(Integer(0), OneOf(True, False)),
    }

    def __init__(
        self,
        n_anchors="auto",
        n_neighbors=7,
        anchor_method="bkhk",
        fusion_weight="auto",
        graph_smoothing=4.0,
        low_rank_weight=100.0,
        label_strength=1e8,
        propagation_damping=1.0,
        class_prior=None,
        normalize="l2",
        view_sizes=None,
        max_iter=30,
        tol=1e-4,
        ablation=None,
        compat=None,
        dtype="float64",
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.anchor_method = anchor_method
        self.fusion_weight = fusion_weight
        self.graph_smoothing = graph_smoothing
        self.low_rank_weight = low_rank_weight
        self.label_strength = label_strength
        self.propagation_damping = propagation_damping
        self.class_prior = class_prior
        self.normalize = normalize
        self.view_sizes = view_sizes
        self.max_iter = max_iter
        self.tol = tol
        self.ablation = ablation
        self.compat = compat
        self.dtype = dtype
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def set_callbacks(self, *callbacks: Callback) -> AGFTIClassifier:
        """Callables to run after each round, see `viewmend.callbacks`; not copied by ``clone``."""
        self._callbacks = callbacks
        return self

    def fit(self, X, y, mask: ArrayLike | None = None) -> AGFTIClassifier:
        """Fit on labelled and unlabelled samples together.

        Parameters
        ----------
        X : list, tuple or dict of arrays (n_samples, n_features_v), MultiViewData, or 2-D array
            A sample missing from a view is a row of NaN there. One 2-D array is split by
            ``view_sizes``, or is a single view.
        y : array (n_samples,)
            -1, None or NaN for unlabelled samples, any hashable labels otherwise.
        mask : array (n_samples, n_views) of bool, optional
            False where a sample is missing from a view, in place of NaN rows.

        Returns
        -------
        AGFTIClassifier
        """
        check_parameters(self, self._rules)
        data, labels = self._check_fit(X, y, mask, self.dtype)
        prior = check_class_prior(self.class_prior, labels)
        if prior is None:
            _warn_of_uneven_labels(labels)
        views = self._normalized(data)
        n_anchors, n_neighbors = self._graph_size(data)
        with limited_threads(self.n_jobs):
            anchors = self._select_anchors(views, data.observed, n_anchors)
            graphs = anchor_graphs(views, data.observed, anchors, n_neighbors)
            problem = self._make_problem(graphs, data.observed, labels)
            result = solve(
                problem,
                max_iter=self.max_iter,
                tol=self.tol,
                compat=self.compat,
                callbacks=self._all_callbacks(),
            )
        self.anchors_ = tuple(anchors)
        self._induction = induction(problem, result, anchors, n_neighbors)
        self._store(result)
        reachable = reachable_samples(result.P, labels.labelled)
        soft = np.where(reachable[:, None], result.F, 0)
        self._class_weights = 1.0 if prior is None else class_weights(soft, prior)
        self._store_transduction(soft * self._class_weights, labels, reachable)
        return self

    def _score_new(self, X, mask: ArrayLike | None) -> np.ndarray:
        """Anchor rows of the views a sample has, aligned, fused, times the anchors' labels."""
        data = self._check_predict(X, mask, self.dtype)
        with limited_threads(self.n_jobs):
            soft = induce_labels(self._induction, self._normalized(data), data.observed)
        return soft * self._class_weights

    def _make_problem(self, graphs: np.ndarray, observed: np.ndarray, labels: Labels) -> Problem:
        """Words become symbols here, and nowhere else."""
        n_views, _, n_anchors = graphs.shape
        damping = np.broadcast_to(self.propagation_damping, 2)
        strength = np.where(labels.labelled, self.label_strength, damping[0])
        return Problem(
            Z=graphs,
            Y=labels.one_hot(graphs.dtype),
            observed=observed,
            lam=float(n_views**2 if self.fusion_weight == "auto" else self.fusion_weight),
            beta=float(self.graph_smoothing),
            rho=float(self.low_rank_weight),
            B_samples=strength.astype(graphs.dtype),
            B_anchors=np.full(n_anchors, damping[1], dtype=graphs.dtype),
            without=frozenset(np.atleast_1d(self.ablation)) - {None},
        )

    def _normalized(self, data: MultiViewData) -> list[np.ndarray]:
        return [NORMALIZERS[self.normalize](view) for view in data.views]

    def _graph_size(self, data: MultiViewData) -> tuple[int, int]:
        """Anchors per view and neighbours per sample that the poorest view allows."""
        poorest = int(np.argmin(data.observed.sum(axis=0)))
        name, n_rows = data.names[poorest], int(data.observed[:, poorest].sum())
        n_anchors, n_neighbors = graph_size(self.n_anchors, self.n_neighbors, n_rows)
        balanced = self.anchor_method == "bkhk"
        lowered = self.n_anchors not in ("auto", n_anchors)
        if balanced and n_anchors != (below := largest_power_of_two(n_anchors)):
            msg = (
                f"n_anchors of BKHK must be a power of two, got {n_anchors}; take {below} or "
                f"{2 * below}, or anchor_method='kmeans'"
            )
            raise InvalidParameterError(msg)
        if n_anchors < 2 or (lowered and not balanced):
            msg = (
                f"n_anchors is {self.n_anchors!r} but {name} has {n_rows} observed samples, and at "
                f"least 2 anchors are needed; lower n_anchors or leave out that view"
            )
            raise InvalidParameterError(msg)
        if lowered:
            msg = (
                f"n_anchors lowered from {self.n_anchors} to {n_anchors}: {name} has only {n_rows} "
                f"observed samples"
            )
            warnings.warn(msg, DataWarning, stacklevel=3)
        return n_anchors, n_neighbors

    def _select_anchors(
        self, views: Sequence[np.ndarray], observed: np.ndarray, n_anchors: int
    ) -> list[np.ndarray]:
        rng = np.random.default_rng(self.random_state)
        select = ANCHOR_METHODS[self.anchor_method]
        return [select(X_v[observed[:, v]], n_anchors, rng) for v, X_v in enumerate(views)]

    def _all_callbacks(self) -> list[Callback]:
        watchers: list[Callback] = [LogRounds()] if self.verbose else []
        return watchers + list(getattr(self, "_callbacks", ()))

    def _store(self, result: Result) -> None:
        """Symbols become words again."""
        self.view_weights_ = result.alpha
        self.fused_graph_ = result.P
        self.view_graphs_ = result.Z
        self.anchor_alignments_ = result.T
        self.n_iter_ = result.n_iter
        self.status_ = result.status
        self.history_ = result.history
        if result.status == "max_iter":
            msg = (
                f"AGFTIClassifier stopped at max_iter={result.n_iter} with a change of "
                f"{result.history[-1].change:.1e}, tol being {self.tol:.1e}; raise max_iter, tol "
                f"or graph_smoothing"
            )
            warnings.warn(msg, ConvergenceWarning, stacklevel=3)


def _warn_of_uneven_labels(labels: Labels) -> None:
    """Soft labels scale with the number of labels of their class; see `class_prior`."""
    counts = labels.counts()
    if counts.max() >= UNEVEN * counts.min():
        msg = (
            f"the classes have between {counts.min()} and {counts.max()} labels, and without a "
            f"class_prior AGF-TI favours those with many; set class_prior='labeled' if the labels "
            f"are a fair sample, 'uniform', or the shares you know"
        )
        warnings.warn(msg, DataWarning, stacklevel=3)
