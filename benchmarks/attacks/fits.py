"""Odd fits: numbers of every size, degenerate rows, odd masks and labels, odd parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from attacks.outcomes import Outcome, Verdict, judged
from viewmend import AGFTIClassifier, MendClassifier
from viewmend.baselines.registry import METHODS

# How often a parameter, or a part of the data, is drawn from the odd ones.
ODD = 0.15
# Values that a number of a view may have beside those drawn from a normal distribution.
EXTREMES = (0.0, -0.0, 5e-324, 1e-310, 1e-160, 1e-38, 1e15, 1e38, -1e80, 1e139, 1e155, -1.7e308)
# Powers of ten that most views are multiplied by; beyond, they are refused.
POWERS = 139
# An accuracy this far above chance is not chance, and one this high is what is expected.
ABOVE_CHANCE, GOOD_ACCURACY = 0.15, 0.8
LAST_BITS = 1e-14
# With any other parameter off its default, a method may be at chance by itself now and then.
HARMLESS = {"calibration", "dtype", "max_iter", "n_jobs", "normalize", "random_state", "tol"}
# Digits of the differences between classes that must be left of the numbers given.
DIGITS_LEFT = 1e-3

MEND: dict[str, tuple[Any, ...]] = {
    "representations": (["unit"], ["standard"], ["hellinger", "half_whitened"]),
    "n_neighbors": (1, (1, 2), 50, 10**6, 10**30),
    "spreading": (0.0, 0.5, 1 - 1e-9),
    "homophily_power": (0.0, 60.0),
    "edge_power": (1.0, 8.0),
    "n_rounds": (0, 1, 3),
    "n_landmarks": (2, 7, 10**7, 10**30),
    "kernel_width": (1e-6, 50.0, 1e6),
    "consensus_weight": (0.0, 1e6),
    "evidence_power": (0.0, 20.0),
    "class_prior": (None, "labeled", "uniform"),
    "calibration": (None, "cross_fit"),
    "dtype": ("float32",),
    "n_jobs": (1, 2),
}
AGFTI: dict[str, tuple[Any, ...]] = {
    "n_anchors": (2, 3, 4, 8, 1024, 2**80),
    "n_neighbors": (1, 2, 100, 10**30),
    "anchor_method": ("kmeans", "random"),
    "imputation": ("fourier",),
    "fusion_weight": (1e-6, 1e6),
    "graph_smoothing": (1e-6, 1e6),
    "low_rank_weight": (0.0, 1e-6, 1e6),
    "label_strength": (1e-3, 1e15),
    "propagation_damping": (1e-9, 1e9, (1e-3, 1e3)),
    "final_damping": (None, 1e-9, 1e9),
    "class_prior": (None, "uniform"),
    "calibration": (None, "cross_fit"),
    "normalize": (None,),
    "tol": (0.0, 10.0),
    "ablation": ("weights", "imputation"),
    "dtype": ("float32",),
    "n_jobs": (1, 2),
}
# Those that need neither PyTorch nor seconds.
BASELINES = (
    "SLIM",
    "AMSC",
    "AMMSS",
    "AMGL",
    "MLAN",
    "AMUSE",
    "FMSSL",
    "FMSEL",
    "CFMSC",
    "MVAR",
    "ERL-MVSC",
    "union graph",
    "Poisson",
    "SNF",
)


@dataclass(frozen=True)
class Case:
    """Views, who has which, true classes, labels given, and what was done to the views."""

    views: tuple[np.ndarray, ...]
    mask: np.ndarray
    classes: np.ndarray
    y: np.ndarray
    # Whether the classes can be told apart by the numbers as they are given.
    separable: bool = False


@dataclass(frozen=True)
class Fits:
    """A small problem, made odd; a fit and predictions of new samples, some of them strange."""

    name: str = "fits"
    n_cases: int = 5000
    time_limit: float = 60.0

    def prepare(self, folder: Path) -> None:
        """Nothing: every case is drawn."""

    def attempt(self, _folder: Path, rng: np.random.Generator) -> Outcome:
        given = _problem(rng)
        change = _choice(rng, [_moved, _moved, _degenerate, _degenerate, _extreme])
        case, model = change(given, rng), _model(rng)
        with warnings.catch_warnings():
            # Warnings in our own words; those of NumPy are judged.
            warnings.simplefilter("ignore")
            outcome = judged(lambda: _judge(model, given, case, rng))
        detail = f"{model!r}\n{change.__name__}, {_told(case)}\n{outcome.detail}"
        return replace(outcome, detail=detail)


def _choice(rng: np.random.Generator, options: Sequence[Any]) -> Any:
    return options[int(rng.integers(len(options)))]


def _problem(rng: np.random.Generator) -> Case:
    """Blobs that every method tells apart."""
    n_classes, n_views = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    classes = np.arange(int(rng.integers(24, 61))) % n_classes
    views = []
    for _ in range(n_views):
        n_features = int(rng.integers(3, 31))
        centres = 3 * np.linalg.qr(rng.normal(size=(n_features, n_classes)))[0].T
        views.append(centres[classes] + 0.2 * rng.normal(size=(len(classes), n_features)))
    mask = rng.random((len(classes), n_views)) < 0.8
    mask[~mask.any(axis=1), 0] = True
    y = np.where(rng.random(len(classes)) < 0.5, classes, -1)
    y[:n_classes] = classes[:n_classes]
    return Case(tuple(views), mask, classes, y, separable=True)


def _moved(case: Case, rng: np.random.Generator) -> Case:
    """Views of another scale, offset and number type; the classes stay as far apart as they were.

    They are separable as long as the numbers keep some digits of what differs.
    """
    dtype = _choice(rng, [np.float64, np.float64, np.float32])
    limits, views, separable = np.finfo(dtype), [], True
    for view in case.views:
        reach = np.log10(float(limits.max)) - 2 if rng.random() < 0.1 else POWERS
        lowest, highest = max(-reach, limits.minexp * 0.3), min(reach, limits.maxexp * 0.3 - 2)
        scale = 10.0 ** rng.uniform(lowest, highest) if rng.random() < 0.5 else 1.0
        offset = 10.0 ** rng.uniform(0, 12) if rng.random() < 0.5 else 0.0
        moved = (view + offset) * scale
        separable &= bool(offset * float(limits.eps) < DIGITS_LEFT and np.isfinite(moved).all())
        with np.errstate(over="ignore", under="ignore"):
            views.append(moved.astype(dtype))
    return replace(case, views=tuple(views), separable=separable)


def _degenerate(case: Case, rng: np.random.Generator) -> Case:
    """Rows, columns, masks and labels that leave little to learn from."""
    views = tuple(_choice(rng, STRUCTURES)(view.copy(), rng) for view in case.views)
    mask = _choice(rng, MASKS)(case.mask.copy(), rng)
    y = _choice(rng, LABELS)(case.y.copy(), case.classes, rng)
    # Few samples in half the cases, with those that are labelled first.
    keep = slice(0, int(rng.integers(3, 12)) if rng.random() < 0.5 else len(y))
    views = tuple(view[keep] for view in views)
    return Case(views, mask[keep], case.classes[keep], y[keep])


def _extreme(case: Case, rng: np.random.Generator) -> Case:
    """Some values of some rows as large or as small as numbers get."""
    views = [view.copy() for view in case.views]
    for view in views:
        n_odd = int(rng.integers(0, 4))
        rows = rng.integers(len(view), size=n_odd)
        columns = rng.integers(view.shape[1], size=n_odd) if rng.random() < 0.5 else slice(None)
        for row in rows:
            view[row, columns] = _choice(rng, EXTREMES)
    return replace(case, views=tuple(views), separable=False)


def _constant_columns(view: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    view[:, rng.random(view.shape[1]) < 0.7] = _choice(rng, (0.0, 1.0, 0.1, 1e9))
    return view


def _duplicates(view: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return view[rng.integers(max(1, len(view) // 8), size=len(view))]


def _equal_rows(view: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    view[:] = view[0] * _choice(rng, (1.0, 1e-9, 1e9))
    return view


def _equal_directions(view: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return view[:1] * rng.uniform(0.1, 10.0, size=(len(view), 1))


def _zero_rows(view: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    view[rng.random(len(view)) < 0.4] = 0.0
    return view


def _one_column(view: np.ndarray, _rng: np.random.Generator) -> np.ndarray:
    return view[:, :1]


def _one_hot(view: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.eye(view.shape[1])[rng.integers(view.shape[1], size=len(view))]


def _integers(view: np.ndarray, _rng: np.random.Generator) -> np.ndarray:
    return np.round(view)


STRUCTURES: Sequence[Callable[[np.ndarray, np.random.Generator], np.ndarray]] = (
    lambda view, _rng: view,
    _constant_columns,
    _duplicates,
    _equal_rows,
    _equal_directions,
    _zero_rows,
    _one_column,
    _one_hot,
    _integers,
)


def _seen_by_few(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A view that only one or two samples have."""
    mask[:, -1] = False
    mask[: int(rng.integers(1, 3)), -1] = True
    mask[:, 0] |= ~mask.any(axis=1)
    return mask


def _nothing_shared(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Every sample in one view only."""
    return np.arange(mask.shape[1]) == rng.integers(mask.shape[1], size=(len(mask), 1))


MASKS: Sequence[Callable[[np.ndarray, np.random.Generator], np.ndarray]] = (
    lambda mask, _rng: mask,
    lambda mask, _rng: np.ones_like(mask),
    _seen_by_few,
    _nothing_shared,
)


def _one_of_each(y: np.ndarray, classes: np.ndarray, _rng: np.random.Generator) -> np.ndarray:
    first = np.unique(classes, return_index=True)[1]
    y[:] = -1
    y[first] = classes[first]
    return y


def _uneven(y: np.ndarray, classes: np.ndarray, _rng: np.random.Generator) -> np.ndarray:
    """One class with all its labels, the others with one each."""
    return np.where(classes == 0, 0, _one_of_each(y, classes, _rng))


LABELS: Sequence[Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]] = (
    lambda y, _classes, _rng: y,
    lambda _y, classes, _rng: classes,
    lambda y, _classes, rng: np.zeros_like(y) if rng.random() < 0.2 else y,
    lambda y, classes, _rng: np.where((y == 0) | (classes == 0), y, -1),
    lambda _y, classes, rng: rng.permutation(classes),
    _one_of_each,
    _uneven,
)


def _model(rng: np.random.Generator) -> Any:
    """A method with a few odd parameters."""
    kind = rng.random()
    if kind < 0.4:
        return MendClassifier(**_odd_parameters(MEND, rng))
    if kind < 0.8:
        odd = _odd_parameters(AGFTI, rng)
        if odd.get("imputation") == "fourier" and rng.random() < 0.3:
            odd["compat"] = "released"
        return AGFTIClassifier(**{"max_iter": 5, "random_state": 0, **odd})
    model = METHODS[_choice(rng, BASELINES)].estimator()
    return model.set_params(random_state=0) if "random_state" in model.get_params() else model


def _odd_parameters(
    table: Mapping[str, tuple[Any, ...]], rng: np.random.Generator
) -> dict[str, Any]:
    return {name: _choice(rng, odd) for name, odd in table.items() if rng.random() < ODD}


def _judge(model: Any, given: Case, case: Case, rng: np.random.Generator) -> Outcome | None:
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", RuntimeWarning)
    model.fit(list(case.views), case.y, case.mask)
    wrong = _unsound(model.label_distributions_, len(case.y))
    if wrong is None and hasattr(model, "predict") and rng.random() < 0.7:
        wrong = _predicted(model, case, rng)
    if wrong is None and case.separable and _is_expected_to_be_good(model):
        wrong = _at_chance(model, given, case)
    return None if wrong is None else Outcome(Verdict.SILENT, wrong)


def _unsound(shares: np.ndarray, n_rows: int) -> str | None:
    """What is wrong with class shares: rows must be finite and sum to one."""
    if len(shares) != n_rows or not np.isfinite(shares).all() or (shares < 0).any():
        return f"shares {shares}"
    sums = shares.sum(axis=1)
    return None if np.allclose(sums, 1, atol=1e-6) else f"shares sum to {sums}"


def _predicted(model: Any, case: Case, rng: np.random.Generator) -> str | None:
    """Predictions with a strange row among others, which must not notice."""
    new = [view[:6].copy() for view in case.views]
    mask = case.mask[:6] | ~case.mask[:6].any(axis=1, keepdims=True)
    plain = model.predict_proba([view.copy() for view in new], mask)
    wrong = _unsound(plain, len(new[0]))
    if wrong is not None or rng.random() < 0.3:
        return wrong
    row = int(rng.integers(len(new[0])))
    for view in new:
        limits = np.finfo(view.dtype)
        power = rng.uniform(np.log10(float(limits.tiny)), min(np.log10(float(limits.max)), 139.9))
        columns = rng.random(view.shape[1]) < rng.random()
        view[row, columns] = rng.choice([-1, 1]) * 10.0**power
    odd = model.predict_proba(new, mask)
    others = np.arange(len(odd)) != row
    # Imputers of the baselines may look at all rows together. The last bits may differ: a row of
    # zeros is missing and a strange one is not, and BLAS rounds the product of one row otherwise
    # than that of several.
    ours = isinstance(model, MendClassifier | AGFTIClassifier)
    same = not ours or np.allclose(odd[others], plain[others], rtol=0, atol=LAST_BITS)
    wrong = _unsound(odd, len(new[0]))
    return wrong if same else f"other rows differ: {odd[others]} against {plain[others]}"


def _is_expected_to_be_good(model: Any) -> bool:
    given, defaults = model.get_params(), type(model)().get_params()
    odd = {name for name, value in given.items() if value != defaults[name]}
    return isinstance(model, MendClassifier | AGFTIClassifier) and odd <= HARMLESS


def _at_chance(model: Any, given: Case, case: Case) -> str | None:
    """An accuracy near chance where the same problem, not moved, gives a good one."""
    chance = np.bincount(case.classes).max() / len(case.classes)
    accuracy = _accuracy(model, case)
    if accuracy > chance + ABOVE_CHANCE:
        return None
    model.fit(list(given.views), given.y, given.mask)
    before = _accuracy(model, given)
    return None if before < GOOD_ACCURACY else f"accuracy {accuracy:.2f}, not moved {before:.2f}"


def _accuracy(model: Any, case: Case) -> float:
    unlabelled = case.y < 0
    hits = model.transduction_[unlabelled] == case.classes[unlabelled]
    return float(np.mean(hits)) if unlabelled.any() else 1.0


def _told(case: Case) -> str:
    sizes = [
        f"{view.shape} {view.dtype}, {np.min(np.abs(view)):.1e} to {np.max(np.abs(view)):.1e}"
        for view in case.views
    ]
    labels = np.bincount(case.y + 1)
    return f"views {sizes}, observed {case.mask.sum(axis=0)}, labels {labels}"
