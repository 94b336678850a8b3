"""Rare classes: how well methods rank samples of a class of 5 or 10 %, given 80 random labels.

    python benchmarks/imbalance.py --data DIR --out docs/results [--seeds 0 1 2] [--jobs 2]
    python benchmarks/imbalance.py --data DIR --out docs/results --only "linear score"
    python benchmarks/imbalance.py --out docs/results --table

Two-class problems, 40 % of the views missing. On real data one class, another one for every seed,
stands against all the others, and as many samples are left out as its share asks for. Two kinds of
generated data have a signal that is linear in the columns of all views. The labels are drawn from
all samples alike, again if none is positive. Measures are those of the unlabelled samples.

The first form adds what is missing to ``imbalance.csv``: a run that was interrupted goes on, and
runs of other revisions are done again. With ``--only`` that holds for these data; runs of others
stay, with the revision they were made by. Both end with the page ``imbalance.md``, which the last
form writes alone.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import joblib
import numpy as np
from csv_rows import read_rows, shown, shown_row, write_rows
from dots import draw_dots
from sklearn.metrics import average_precision_score, roc_auc_score

from viewmend import MendClassifier
from viewmend.baselines import MeanImputedLogistic, UnionGraphClassifier
from viewmend.bench.environment import check_publishable, environment
from viewmend.datasets import hide
from viewmend.datasets.catalogue import DATA_VARIABLE, load
from viewmend.exceptions import DataWarning

MISSING, N_LABELS, SHARES = 0.4, 80, (0.05, 0.1)
# Samples at most, of which the fits are quick and the positives some fifty.
MOST_SAMPLES = 1500
# Figures are those of the seeds below; further ones tell chance from bias.
N_SEEDS = 10
REAL = (
    "CUB",
    "UCI-Digit (embedded)",
    "MNIST-USPS",
    "OutScene (3 views)",
    "Caltech101-20 (surrogate)",
)
METHODS: dict[str, Callable[[], object]] = {
    "Mend": lambda: MendClassifier(n_jobs=1),
    "balanced logistic": lambda: MeanImputedLogistic(class_weight="balanced"),
    "union graph": lambda: UnionGraphClassifier(),
}
KEY = ("data", "share", "seed", "method")
MEASURES = ("auc", "average_precision", "recall", "predicted")
FIELDS = (*KEY, *MEASURES, "revision")
Problem = tuple[list[np.ndarray], np.ndarray]


def linear_score(share: float, rng: np.random.Generator) -> Problem:
    """Two views of ten Gaussian columns; positives have the largest sums of all, plus noise."""
    X = rng.normal(size=(1000, 20))
    score = X @ rng.normal(size=20)
    score += 0.1 * np.std(score) * rng.normal(size=len(X))
    y = (score > np.quantile(score, 1 - share)).astype(int)
    return np.split(X, 2, axis=1), y


def shifted_class(share: float, rng: np.random.Generator) -> Problem:
    """Three views of 30 Gaussian columns, of which the mean of the positives is shifted."""
    y = (np.arange(1000) < 1000 * share).astype(int)
    direction = rng.normal(size=90)
    X = rng.normal(size=(1000, 90)) + 4.5 * y[:, None] * direction / np.linalg.norm(direction)
    return np.split(X, 3, axis=1), y


GENERATED = {"linear score": linear_score, "shifted class": shifted_class}


def real_problem(name: str, share: float, seed: int, folder: Path | None) -> Problem:
    """A class of a data set, and as many samples of the others as make it this rare."""
    given, rng = load(name, folder), np.random.default_rng([seed, 1])
    classes, codes = np.unique(given.y, return_inverse=True)
    positive = codes == seed % len(classes)
    n = min(MOST_SAMPLES, int(positive.sum() / share), int((~positive).sum() / (1 - share)))
    rows = [
        rng.permutation(np.flatnonzero(side))[: round(part * n)]
        for side, part in ((positive, share), (~positive, 1 - share))
    ]
    chosen = np.sort(np.concatenate(rows))
    return [np.asarray(view)[chosen] for view in given.views], positive[chosen].astype(int)


def make_problem(name: str, share: float, seed: int, folder: Path | None) -> Problem:
    if name in GENERATED:
        return GENERATED[name](share, np.random.default_rng([seed, 0]))
    return real_problem(name, share, seed, folder)


def draw_labels(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """``y`` of samples drawn at random, of which one is positive at least; -1 elsewhere."""
    while True:
        rows = rng.choice(len(y), min(N_LABELS, len(y) // 2), replace=False)
        if y[rows].any():
            break
    given = np.full(len(y), -1)
    given[rows] = y[rows]
    return given


def measures(scores: np.ndarray, found: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """How well ``scores`` rank positives, and how many were ``found``, all (n_samples,).

    The recall is that among as many samples of the largest scores as there are positives.
    """
    # Ties are taken as they come: the order of the samples says nothing of their class.
    top = np.argsort(-scores, kind="stable")[: y.sum()]
    return {
        "auc": roc_auc_score(y, scores),
        "average_precision": average_precision_score(y, scores),
        "recall": y[top].mean(),
        "predicted": np.mean(found == 1),
    }


def run(name: str, share: float, seed: int, folder: Path | None) -> list[dict]:
    """Measures of every method on one problem."""
    warnings.simplefilter("ignore", DataWarning)
    views, y = make_problem(name, share, seed, folder)
    task = hide(views, y, missing_rate=MISSING, label_rate=0.1, random_state=seed)
    given = draw_labels(task.y_true, np.random.default_rng([seed, 2]))
    free, rows = given < 0, []
    for method, make in METHODS.items():
        model = make().fit(task.data, given)
        scores, found = model.label_distributions_[free, 1], model.transduction_[free]
        key = {"data": name, "share": share, "seed": seed, "method": method}
        told = measures(scores, found, task.y_true[free])
        rows.append(key | told | {"revision": environment()["revision"]})
    return rows


def run_all(args: argparse.Namespace) -> None:
    """Run the cells that the file does not have yet, and write each as it is done."""
    path, revision = args.out / "imbalance.csv", environment()["revision"]
    check_publishable([environment()], args.out)
    args.out.mkdir(parents=True, exist_ok=True)
    kept = [
        row
        for row in read_rows(path)
        if row["revision"] == revision or row["data"] not in args.only
    ]
    write_rows(path, FIELDS, kept)
    done = {(row["data"], row["share"], row["seed"]) for row in kept}
    cells = [
        (name, share, seed, args.data)
        for seed in args.seeds
        for name in args.only
        for share in SHARES
        if (name, shown(share), shown(seed)) not in done
    ]
    jobs = joblib.Parallel(n_jobs=args.jobs, return_as="generator")
    for rows in jobs(joblib.delayed(run)(*cell) for cell in cells):
        kept += [shown_row(row) for row in rows]
        write_rows(path, FIELDS, kept)


def mean_aucs(rows: list[dict], names: Sequence[str]) -> dict[str, dict[str, float]]:
    """Area under the ROC curve by data set with its share of positives, and by method."""
    return {
        f"{name}, {share:.0%}": {
            method: float(values(here, method, "auc").mean()) for method in METHODS
        }
        for name, share, here in settings_of(rows)
        if name in names
    }


def further_seeds(rows: list[dict]) -> str:
    """What other seeds than the reported ones say of some data, as a paragraph; empty if none."""
    told = []
    for name, share, here in settings_of(rows):
        gaps, n_seeds = differences(here, "Mend"), len({row["seed"] for row in here})
        told.append(f"{name}, {share:.0%} positives {with_error(gaps)} ({n_seeds} seeds)")
    return (
        f"On further seeds, run for these settings alone after the others had been seen, it is: "
        f"{'; '.join(told)}.\n"
        if told
        else ""
    )


def settings_of(rows: list[dict]) -> Iterator[tuple[str, float, list[dict]]]:
    """Data set and share of positives, and their rows, of those that have any."""
    for name, share in product((*REAL, *GENERATED), SHARES):
        here = [row for row in rows if (row["data"], row["share"]) == (name, shown(share))]
        if here:
            yield name, share, here


def values(rows: list[dict], method: str, field: str) -> np.ndarray:
    """Of a method by seed, (n_seeds,)."""
    chosen = sorted(
        (int(row["seed"]), float(row[field])) for row in rows if row["method"] == method
    )
    return np.array([value for _, value in chosen])


def differences(rows: list[dict], method: str) -> np.ndarray:
    """In AUC to balanced logistic regression by seed, (n_seeds,)."""
    return values(rows, method, "auc") - values(rows, "balanced logistic", "auc")


def with_error(gaps: np.ndarray) -> str:
    """Mean and standard error."""
    error = gaps.std(ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
    return f"{gaps.mean():+.3f} ± {error:.3f}"


def opening(rows: list[dict]) -> str:
    """What the table says, in two sentences."""
    real, generated = mean_aucs(rows, REAL), mean_aucs(rows, GENERATED)
    ahead = [by["Mend"] - by["balanced logistic"] for by in real.values()]
    gaps = {name: by["Mend"] - by["balanced logistic"] for name, by in generated.items()}
    told = "; ".join(f"{name} positives {gap:+.3f}" for name, gap in gaps.items())
    return (
        "Mend ranks a rare class better than balanced logistic regression in "
        f"{sum(gap > 0 for gap in ahead)} of {len(ahead)} settings of real data, by "
        f"{np.mean(ahead):+.3f} of the area under the ROC curve (AUC) on average. On generated "
        f"data the difference in AUC is: {told}."
    )


def page(rows: list[dict]) -> str:
    """The page: two sentences, a chart and a table of means over seeds."""
    told = ", ".join(sorted({row["revision"] for row in rows}))
    others = [row for row in rows if int(row["seed"]) >= N_SEEDS]
    rows = reported(rows)
    seeds = sorted({int(row["seed"]) for row in rows})
    lines = [
        "# Rare classes",
        "",
        opening(rows),
        further_seeds(others),
        "![Area under the ROC curve by data set and method](imbalance.png)",
        "",
        "One class with 5 or 10 % of the samples, the positives, is classified against the rest: "
        f"{N_LABELS} labels drawn at random, {MISSING:.0%} of the views missing; means over seeds "
        f"{seeds[0]}-{seeds[-1]}. *Difference* is that in AUC to balanced logistic regression on "
        "mean-imputed columns, with its standard error. *Recall* is the share of the positives "
        "among the samples ranked first, as many as there are positives. *Predicted* is the share "
        "of the samples that are classified as positive without `class_weight`. Two data sets are "
        "generated: in *linear score*, the positives have the largest weighted sums of all "
        "columns; in *shifted class*, they have another mean. "
        f"`benchmarks/imbalance.py`, revision {told}; [every run](imbalance.csv).",
        "",
        "| data | positive, % | method | AUC | difference | average precision | recall, % "
        "| predicted, % |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, share, here in settings_of(rows):
        lines += [_line(name, share, method, here) for method in METHODS]
    lines.append("")
    return "\n".join(lines)


def reported(rows: list[dict]) -> list[dict]:
    """Rows of the seeds that figures are reported of."""
    return [row for row in rows if int(row["seed"]) < N_SEEDS]


def _line(name: str, share: float, method: str, rows: list[dict]) -> str:
    means = {field: values(rows, method, field).mean() for field in MEASURES}
    difference = "" if method == "balanced logistic" else with_error(differences(rows, method))
    return (
        f"| {name} | {100 * share:.0f} | {method} | {means['auc']:.3f} | {difference} "
        f"| {means['average_precision']:.3f} | {100 * means['recall']:.0f} "
        f"| {100 * means['predicted']:.1f} |"
    )


def main() -> None:
    every = (*REAL, *GENERATED)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get(DATA_VARIABLE))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=every, default=every, metavar="DATA")
    parser.add_argument("--table", action="store_true", help="write the page of --out alone")
    args = parser.parse_args()
    if not args.table:
        run_all(args)
    rows = read_rows(args.out / "imbalance.csv")
    check_publishable(rows, args.out)
    (args.out / "imbalance.md").write_text(page(rows))
    panel = {"One class is rare": mean_aucs(reported(rows), every)}
    draw_dots(args.out / "imbalance.png", panel, "area under the ROC curve")


if __name__ == "__main__":
    main()
