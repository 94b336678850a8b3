"""What Algorithm 2 is given, what it carries from round to round, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from viewmend.backend.namespace import Array, array_namespace, row_selector
from viewmend.backend.threads import blocks_for
from viewmend.storage.errors import expect_shape

# Parts of the method that the paper's ablation study leaves out.
ABLATIONS = ("alignment", "weights", "imputation")

LABEL_STRENGTH = 1e8


@dataclass(frozen=True, eq=False)
class Problem:
    """The data and constants of Eq. (proposed), in the paper's symbols.

    Attributes
    ----------
    Z : array (n_views, n_samples, n_anchors)
        Bipartite graphs; rows of missing samples hold their start, in the paper ``1 / n_anchors``.
    Y : array (n_samples, n_classes)
        One-hot rows, zero rows for unlabelled samples.
    observed : array (n_samples, n_views) of bool
    lam, beta, rho : float
        ``lambda``, ``beta_lambda`` and ``rho``.
    B_samples, B_anchors : array (n_samples,), array (n_anchors,) or None
        Diagonals of ``B``; None stands for the authors' constants, ``1e8`` for labelled samples
        and 1 for all else.
    eta, eta_growth, eta_max : float
        Penalty of the augmented Lagrangian, its growth per round, and its cap.
    inner_tol, inner_max_iter : float, int
        Algorithm 1 stops when no weight moves by more than ``inner_tol``.
    without : frozenset of str
        Parts to leave out, of `ABLATIONS`.
    U : array (n_samples, n_frequencies) or None
        Graph Fourier basis of the tensor step, see `viewmend.core.agfti.graph_fourier`; None is the
        paper's discrete Fourier transform, which depends on the order of the rows.
    G : array (n_views, n_samples, n_anchors) or None
        Start of the auxiliary tensor; None is the paper's zero, from which the first round
        forgets the start of the missing rows.
    """

    Z: Array
    Y: Array
    observed: Array
    lam: float
    beta: float
    rho: float
    B_samples: Array = None
    B_anchors: Array = None
    eta: float = 1e-2
    eta_growth: float = 2.0
    eta_max: float = 1e10
    inner_tol: float = 1e-4
    inner_max_iter: int = 100
    without: frozenset[str] = frozenset()
    U: Array = None
    G: Array = None

    # For checkpoints: what the user gave, in words; all else follows from it and from parameters.
    given_by_user: ClassVar[Mapping[str, str]] = {
        "Z": "the graphs of the views, by other views or another random_state",
        "Y": "the labels",
        "observed": "which samples are missing from which views",
    }

    def __post_init__(self) -> None:
        xp = array_namespace(self.Z, self.Y)
        # The class is frozen, hence the detour; what is derived here is part of the problem.
        if self.B_samples is None:
            labelled = xp.any(self.Y != 0, axis=1)
            ones = xp.ones_like(self.Y[:, 0])
            object.__setattr__(self, "B_samples", xp.where(labelled, LABEL_STRENGTH * ones, ones))
        if self.B_anchors is None:
            object.__setattr__(self, "B_anchors", xp.ones_like(self.Z[0, 0, :]))
        unknown = self.without - set(ABLATIONS)
        if unknown:
            msg = f"without must name parts of {ABLATIONS}, got {sorted(unknown)}"
            raise ValueError(msg)
        for name in ("Z", "Y"):
            if not bool(xp.all(xp.isfinite(getattr(self, name)))):
                msg = f"{name} must be finite, got NaN or infinity; missing rows of Z hold 1 / m"
                raise ValueError(msg)

    @property
    def missing(self) -> Array:
        """(n_samples, n_views) of bool."""
        return ~self.observed

    def later_eta(self, eta: float) -> float:
        """The penalty of the round after one with ``eta``."""
        return min(self.eta_growth * eta, self.eta_max)

    @cached_property
    def missing_rows(self) -> tuple[tuple[int, Array], ...]:
        """Pairs of a view and a selector of some of its missing rows; together, of all of them.

        Computed once and used in every round, in blocks that threads can share.
        """
        xp = array_namespace(self.Z)
        selectors = []
        for v in range(self.observed.shape[1]):
            rows = row_selector(self.missing[:, v])
            blocks = blocks_for(rows.shape[0], self.Z.shape[2], xp)
            selectors += [(v, rows[block]) for block in blocks if rows[block].shape[0]]
        return tuple(selectors)

    @property
    def saved_type(self) -> type[Progress]:
        """What a run on this problem can go on from."""
        return Progress

    @property
    def saved_records(self) -> tuple[type, ...]:
        """The data classes that a `Progress` is made of."""
        return Progress, State, Round, InnerStep

    def check_saved(self, progress: Progress) -> None:
        """Raise a ModelFileError unless the arrays of a state have the shapes of this problem."""
        (n_views, n, m), n_classes = self.Z.shape, self.Y.shape[1]
        shapes: dict[str, tuple[int, ...]] = {
            **dict.fromkeys(("Z", "G", "W"), (n_views, n, m)),
            "P": (n, m),
            "F": (n, n_classes),
            "Q": (m, n_classes),
            "T": (n_views, m, m),
            "alpha": (n_views,),
        }
        for name, shape in shapes.items():
            expect_shape(name, getattr(progress.state, name), *shape)

    def converted(self, convert: Callable[[Array], Array]) -> Problem:
        """The same problem with arrays of another library or on another device.

        Parameters
        ----------
        convert : array -> array
        """
        names = ("Z", "Y", "observed", "B_samples", "B_anchors", "U", "G")
        given = {name: getattr(self, name) for name in names}
        arrays = {name: convert(array) for name, array in given.items() if array is not None}
        return replace(self, **arrays)


@dataclass(eq=False)
class State:
    """The variables of Algorithm 2; shapes as in `Problem` and `Result`."""

    Z: Array
    P: Array
    alpha: np.ndarray
    F: Array
    Q: Array
    T: Array
    G: Array
    W: Array
    eta: float
    norm_G: Array | float = 0.0

    def converted(self, convert: Callable[[Array], Array]) -> State:
        """The same state with arrays of another library or on another device."""
        names = ("Z", "P", "F", "Q", "T", "G", "W")
        arrays = {name: convert(getattr(self, name)) for name in names}
        return replace(self, norm_G=float(self.norm_G), **arrays)


@dataclass(frozen=True)
class InnerStep:
    """One step of Algorithm 1: how far it moved (the paper's inner-optimisation table).

    ``|alpha_new - alpha|_2^2``, ``|P_new - P|_F^2``, which is an array () on its device until the
    round is reported, and the cost ``h(alpha_new)``.
    """

    alpha_error: float
    P_error: float
    cost: float


@dataclass(frozen=True)
class Round:
    """What one round of Algorithm 2 did.

    Attributes
    ----------
    iteration : int
        Counted from 1.
    change_F, change_Q, change_alpha : float
        Largest absolute change of an entry.
    alpha : tuple of float
        View weights after the round.
    objective : dict of float
        Each term of the augmented Lagrangian by name, see `viewmend.core.agfti.objective`.
    primal_residual : float
        ``|Z - G|_F``.
    inner : tuple of InnerStep
        The steps of Algorithm 1.
    """

    iteration: int
    change_F: float
    change_Q: float
    change_alpha: float
    alpha: tuple[float, ...]
    objective: dict[str, float]
    primal_residual: float
    inner: tuple[InnerStep, ...]

    @property
    def change(self) -> float:
        """Largest change of a soft label or weight: the stopping test of the paper."""
        return max(self.change_F, self.change_Q, self.change_alpha)

    def summary(self) -> str:
        """One line."""
        weights = " ".join(f"{weight:.3f}" for weight in self.alpha)
        return (
            f"round {self.iteration:3d}  change {self.change:.1e}  "
            f"|Z - G| {self.primal_residual:.1e}  weights {weights}"
        )


def has_converged(history: Sequence[Round], tol: float, residual_scale: float) -> bool:
    """Whether the last round changed nothing by ``tol`` or more, and ``Z`` has come to ``G``.

    The first round is never the last: its changes are those from the start, where nothing is
    imputed yet, and may all be small by chance (UCI-Digit, 4 % labels: 52 % accuracy after it, and
    96 % at the end).

    The paper and its released code look at the changes alone. That is a flaw. While
    ``rho / eta`` exceeds every singular value, ``G`` is zero, missing rows follow ``P``, and
    the labels come to rest before the tensor norm has had any effect. With strong smoothing
    (large ``beta``) or a heavy norm (large ``rho``) this takes fewer rounds than ``eta`` needs to
    grow: on CUB 15 of the 49 cells of the paper's sensitivity study stop in rounds 9 to 14 with
    ``|Z - G|`` near ``|Z|``, most of them at 70 % accuracy, and reach 80 to 82 % if they go on.
    So ``|Z - G|`` must be below ``tol`` times ``residual_scale`` too. An infinite scale gives the
    rule of the paper.
    """
    if len(history) < 2 or history[-1].change >= tol:
        return False
    return history[-1].primal_residual < tol * residual_scale


@dataclass(frozen=True, eq=False)
class Progress:
    """How far Algorithm 2 has come: all it needs to go on as if it had not been left.

    The run that goes on changes the arrays of the state; the history is empty at the start.
    """

    state: State
    history: tuple[Round, ...]

    def converted(self, convert: Callable[[Array], Array]) -> Progress:
        """The same with arrays of another library or on another device."""
        return replace(self, state=self.state.converted(convert))


@dataclass(frozen=True, eq=False)
class Result:
    """The end of Algorithm 2.

    Attributes
    ----------
    F : array (n_samples, n_classes)
        Soft labels of samples.
    Q : array (n_anchors, n_classes)
        Soft labels of fused anchors.
    P : array (n_samples, n_anchors)
        Fused graph.
    T : array (n_views, n_anchors, n_anchors)
        Anchor alignments.
    alpha : array (n_views,)
        View weights.
    Z : array (n_views, n_samples, n_anchors)
        View graphs with missing rows imputed.
    n_iter : int
    status : str
        "converged", "max_iter", or "stopped" or another word of the callback that stopped it.
    history : tuple of Round
    """

    F: Array
    Q: Array
    P: Array
    T: Array
    alpha: np.ndarray
    Z: Array
    n_iter: int
    status: str
    history: tuple[Round, ...] = field(repr=False)

    def converted(self, convert: Callable[[Array], Array]) -> Result:
        """The same result with arrays of another library or on another device."""
        arrays = {name: convert(getattr(self, name)) for name in ("F", "Q", "P", "T", "Z")}
        return replace(self, **arrays)
