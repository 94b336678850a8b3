"""Which labels to doubt, sets with a promised coverage, and samples of no known class.

    python benchmarks/doubt.py --data DIR --out docs/results [--seeds 0 1 2] [--jobs 2]
    python benchmarks/doubt.py --out docs/results --page

Half of the views are missing. ``suspects`` flips 5, 10 or 20 % of the labels, to any other class or
to the one that the class is most confused with, and looks how many of as many first suspects are
flips; `cleanlab` ranks the same labels by the same scores, by those of fits that hold the labels
out, and by a logistic regression on all columns, where it is installed. ``sets`` counts how often
prediction sets hold the true class, of samples of the fit and of new ones. ``unknown`` leaves a
class out: of the fit, whose new samples are then judged, or of its labels alone. The first form
appends one line per cell to ``doubt.jsonl`` and skips those that are there; the second makes
``doubt.md`` and ``doubt.png`` of that file.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path

import joblib
import numpy as np
from doubt_page import DATA, RATE, Cell, make_page, read
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from viewmend import MendClassifier
from viewmend.bench.environment import check_publishable, environment
from viewmend.datasets import Task, hide
from viewmend.datasets.catalogue import DATA_VARIABLE, load
from viewmend.models.base import ViewLayout
from viewmend.models.cross_fit import fit_silently, silent
from viewmend.models.label_folds import label_folds

MISSING = 0.5
MODEL = MendClassifier(n_jobs=1)
FLIPS, KINDS = (0.05, 0.1, 0.2), ("any", "confused")
SUSPECT_LABELS = 0.2
SET_LABELS, ALPHAS = (0.05, 0.1, 0.3), (0.05, 0.1, 0.2)
UNKNOWN_LABELS = 0.1
# Samples that a fit does not see, of those without a label.
NEW = 0.2


def posed(name: str, folder: Path | None, labels: float, seed: int) -> Task:
    """A data set with missing views and labels, its classes numbered from 0."""
    data = load(name, folder)
    y = np.unique(np.asarray(data.y), return_inverse=True)[1]
    return hide(data.views, y, missing_rate=MISSING, label_rate=labels, random_state=seed)


def some(task: Task, rows: np.ndarray) -> list[np.ndarray]:
    """Views of some samples, NaN where they miss one."""
    pairs = zip(task.data.views, task.data.observed.T, strict=True)
    return [np.where(seen[rows, None], view[rows], np.nan) for view, seen in pairs]


# ------------------------------------------------------------------ suspect labels


def confused_with(task: Task) -> np.ndarray:
    """The class that each class is most often taken for, by a linear classifier."""
    X, y = filled_columns(task), task.y_true
    found = cross_val_predict(RidgeClassifier(100.0), X, y, cv=3)
    table = np.zeros((y.max() + 1, y.max() + 1))
    np.add.at(table, (y, found), 1)
    np.fill_diagonal(table, -1)
    return np.asarray(table.argmax(axis=1))


def filled_columns(task: Task) -> np.ndarray:
    """All views side by side, standardised, missing ones as means."""
    return np.nan_to_num(StandardScaler().fit_transform(np.hstack(some(task, task.y >= -1))))


def flip(task: Task, rate: float, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Labels of which a share is wrong."""
    y, labelled, n_classes = task.y.copy(), np.flatnonzero(task.y >= 0), task.y_true.max() + 1
    rows = rng.choice(labelled, max(1, round(rate * len(labelled))), replace=False)
    if kind == "confused":
        y[rows] = confused_with(task)[y[rows]]
    else:
        y[rows] = (y[rows] + rng.integers(1, n_classes, len(rows))) % n_classes
    return y


def held_out_shares(task: Task, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Class shares of labelled samples by three fits that do not see their labels."""
    reader = clone(MODEL)
    data, labels = reader.prepare(task.data, y)
    geometry = reader.build_geometry(data, labels)
    shares = np.tile(labels.shares(), (len(y), 1))
    for fold in label_folds(labels.codes, np.arange(len(y)), 3):
        model = silent(MODEL)
        fit_silently(model, ViewLayout.of(data), geometry, labels.without(fold))
        shares[fold] = model.label_distributions_[fold]
    return shares[rows]


def logistic_shares(task: Task, y: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The same by logistic regressions on all columns."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300))
    folds = StratifiedKFold(min(3, np.bincount(y[rows]).min()), shuffle=True, random_state=0)
    X = filled_columns(task)[rows]
    return np.asarray(cross_val_predict(model, X, y[rows], cv=folds, method="predict_proba"))


def cleanlab_order(y: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Labels as cleanlab ranks them: those it takes for wrong, then the others."""
    from cleanlab.filter import find_label_issues
    from cleanlab.rank import get_label_quality_scores

    shares = np.maximum(shares, 1e-9)
    shares /= shares.sum(axis=1, keepdims=True)
    ranked = find_label_issues(y, shares, return_indices_ranked_by="self_confidence", n_jobs=1)
    others = np.argsort(get_label_quality_scores(y, shares), kind="stable")
    return np.concatenate([ranked, others[~np.isin(others, ranked)]])


def cleanlab_noise(y: np.ndarray, shares: np.ndarray) -> float:
    from cleanlab.count import estimate_joint

    return float(1 - np.trace(estimate_joint(y, shares)))


def own_shares(model: MendClassifier, rows: np.ndarray) -> np.ndarray:
    """Class shares of labelled samples without their labels, as `suspect_labels` has them."""
    from viewmend.models.suspects import judged_labels

    judged, shares = judged_labels(model.fitted_state_, model.graph_)
    return shares[np.argsort(judged)][np.searchsorted(np.sort(judged), rows)]


def precision(wrong: np.ndarray, order: np.ndarray) -> float:
    """Share of wrong labels among as many of the first as there are wrong ones."""
    return float(wrong[order[: wrong.sum()]].mean())


def suspects(cell: Cell, folder: Path | None) -> Iterator[Cell]:
    """Precision, noise rate, and accuracy with labels in doubt."""
    task = posed(cell["data"], folder, SUSPECT_LABELS, cell["seed"])
    for rate, kind in product(FLIPS, KINDS):
        rng = np.random.default_rng([cell["seed"], int(100 * rate), KINDS.index(kind)])
        y = flip(task, rate, kind, rng)
        model, doubting = (
            clone(MODEL).set_params(calibration=None, label_noise=noise).fit(task.data, y)
            for noise in (0.0, "auto")
        )
        told, rows = model.suspect_labels(), np.flatnonzero(y >= 0)
        wrong, free = (y != task.y_true)[rows], y < 0
        right = [(m.transduction_ == task.y_true) for m in (model, doubting)]
        found = {
            "mend": precision(wrong, np.searchsorted(rows, told.samples)),
            "noise": told.noise_rate,
            "accuracy": right[0][free].mean(),
            "accuracy_auto": right[1][free].mean(),
            "labels_auto": right[1][rows].mean(),
            "noise_auto": doubting.label_noise_,
        }
        others = cleanlab_figures(task, y, rows, own_shares(model, rows))
        yield {"flips": rate, "kind": kind, "n_labels": len(rows)} | found | others


def cleanlab_figures(task: Task, y: np.ndarray, rows: np.ndarray, shares: np.ndarray) -> Cell:
    try:
        import cleanlab  # noqa: F401
    except ImportError:
        return {}
    wrong = (y != task.y_true)[rows]
    scores = {
        "cleanlab": shares,
        "cleanlab_held_out": held_out_shares(task, y, rows),
        "cleanlab_logistic": logistic_shares(task, y, rows),
    }
    orders = {name: precision(wrong, cleanlab_order(y[rows], P)) for name, P in scores.items()}
    return orders | {"cleanlab_noise": cleanlab_noise(y[rows], shares)}


# ------------------------------------------------------------------ prediction sets


def sets(cell: Cell, folder: Path | None) -> Iterator[Cell]:
    """Coverage and size of the sets, of samples of the fit and of new ones."""
    for labels in SET_LABELS:
        task = posed(cell["data"], folder, labels, cell["seed"])
        rng = np.random.default_rng([cell["seed"], 4])
        new = (task.y < 0) & (rng.random(len(task.y)) < NEW)
        model = clone(MODEL).fit(some(task, ~new), task.y[~new])
        free, views = task.y[~new] < 0, some(task, new)
        for alpha in ALPHAS:
            inside = model.predict_set(alpha=alpha)[free]
            outside, filled = (
                model.predict_set(views, alpha=alpha, allow_empty=empty) for empty in (True, False)
            )
            yield {
                "labels": labels,
                "alpha": alpha,
                "n_held_out": model.calibration_.n_samples,
                **covered("fit", inside, task.y_true[~new][free]),
                **covered("new", outside, task.y_true[new]),
                **covered("filled", filled, task.y_true[new]),
            }


def covered(name: str, found: np.ndarray, y: np.ndarray) -> Cell:
    return {
        f"{name}_coverage": found[np.arange(len(y)), y].mean(),
        f"{name}_size": found.sum(axis=1).mean(),
        f"{name}_empty": 1 - found.any(axis=1).mean(),
    }


# ------------------------------------------------------------------ unknown classes


def unknown(cell: Cell, folder: Path | None) -> Iterator[Cell]:
    """How well samples of a class are told from others that is unknown, three classes a seed."""
    task = posed(cell["data"], folder, UNKNOWN_LABELS, cell["seed"])
    rng = np.random.default_rng([cell["seed"], 5])
    new = (task.y < 0) & (rng.random(len(task.y)) < NEW)
    for code in rng.permutation(task.y_true.max() + 1)[:3]:
        strange = task.y_true == code
        kept = ~new & ~strange
        model = clone(MODEL).fit(some(task, kept), task.y[kept])
        asked = new | strange
        views, scores = some(task, asked), model.unknown_score(some(task, asked))
        told = {"class": int(code), **alarms("new", scores, strange[asked])}
        told["new_confidence"] = roc_auc_score(
            strange[asked], -model.predict_proba(views).max(axis=1)
        )
        model = clone(MODEL).fit(task.data, np.where(strange, -1, task.y))
        free = (task.y < 0) | strange
        told |= alarms("fit", model.unknown_score()[free], strange[free])
        told["fit_confidence"] = roc_auc_score(strange[free], -model.confidence_[free])
        yield told


def alarms(name: str, scores: np.ndarray, strange: np.ndarray) -> Cell:
    raised = scores >= 1 - RATE
    return {
        f"{name}_auroc": roc_auc_score(strange, scores),
        f"{name}_false": raised[~strange].mean(),
        f"{name}_found": raised[strange].mean(),
    }


PARTS: Mapping[str, Callable[[Cell, Path | None], Iterator[Cell]]] = {
    "suspects": suspects,
    "sets": sets,
    "unknown": unknown,
}


# ------------------------------------------------------------------ runs and pages


def run(cell: Cell, folder: Path | None) -> list[Cell]:
    warnings.simplefilter("ignore")
    figures = PARTS[cell["part"]](cell, folder)
    revision = environment()["revision"]
    return [cell | {"revision": revision} | plain(row) for row in figures]


def plain(row: Cell) -> Cell:
    return {k: v if isinstance(v, str | int) else round(float(v), 5) for k, v in row.items()}


def run_all(args: argparse.Namespace) -> None:
    check_publishable([environment()], args.out)
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "doubt.jsonl"
    done = {(row["part"], row["data"], row["seed"]) for row in read(path)}
    # Longest first, so that no core waits for the last one.
    cells = [
        {"part": part, "data": data, "seed": seed}
        for seed, data, part in product(args.seeds, reversed(args.names), args.parts)
        if (part, data, seed) not in done
    ]
    work = joblib.Parallel(n_jobs=args.jobs, return_as="generator_unordered")
    with path.open("a") as file:
        for rows in work(joblib.delayed(run)(cell, args.data) for cell in cells):
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=os.environ.get(DATA_VARIABLE))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--names", nargs="+", default=DATA)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="make the page of --out again")
    args = parser.parse_args()
    if args.page:
        make_page(args.out)
    else:
        run_all(args)


if __name__ == "__main__":
    main()
