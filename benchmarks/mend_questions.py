"""The open questions about MendClassifier, each as a variant of its recipe, on the same tasks.

    python benchmarks/mend_questions.py --data DIR --out questions.jsonl --seeds 10 --jobs 16

Every variant sees the neighbours and kernels of the default, so that a difference is due to what
its name says. Writes one JSON line per task with the accuracy of every variant; no true label
reaches any of them. `--table` prints means and paired differences from the default.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from protocols import PROTOCOLS, pose
from scipy.sparse import csr_array
from scipy.stats import wilcoxon

from viewmend import AGFTIClassifier, MultiViewData
from viewmend.core.agfti.fusion import Game, fuse
from viewmend.core.common.content_order import canonical_order
from viewmend.core.graphs.neighbours import neighbour_graph
from viewmend.core.mend.geometry import (
    GeometrySettings,
    MendGeometry,
    NeighbourRule,
    build_geometry,
    view_graphs,
)
from viewmend.core.mend.labelling import Labelling
from viewmend.core.mend.recipe import MendSettings, Stage, mend
from viewmend.data.labels import Labels, check_labels
from viewmend.datasets import Task, load_npz

# Dense arrays of all graphs: beyond this the adversarial weights are left out.
ADVERSARIAL_ROWS = 1000


@dataclass(frozen=True)
class Setup:
    """One task in canonical order, with everything that needs no label."""

    data: MultiViewData
    geometry: MendGeometry
    labels: Labels
    y_true: np.ndarray

    @property
    def labelling(self) -> Labelling:
        return Labelling(self.labels.one_hot(), self.labels.shares(), trust=None)

    def graphs(self, settings: MendSettings) -> list[csr_array]:
        return view_graphs(self.geometry, self.labels.n_classes, settings.neighbours)

    def run(
        self, settings: MendSettings | None = None, labelling: Labelling | None = None
    ) -> Stage:
        settings = settings or MendSettings()
        graphs = self.graphs(settings)
        return mend(graphs, self.geometry, labelling or self.labelling, settings).stage

    def accuracy(self, codes: np.ndarray) -> float:
        hidden = ~self.labels.labelled
        return float(np.mean(self.labels.classes[codes[hidden]] == self.y_true[hidden]))


class Unbalanced(Labelling):
    """Classes by the largest score, whatever their shares."""

    def classes(self, P: np.ndarray) -> np.ndarray:
        found = np.where(P.any(axis=1), np.argmax(P, axis=1), -1)
        return np.where(self.Y.any(axis=1), np.argmax(self.Y, axis=1), found)


def shrunk(setup: Setup, pseudo_counts: float) -> Labelling:
    counts = setup.labels.counts() + pseudo_counts
    return Labelling(setup.labelling.Y, counts / counts.sum())


def adversarial_weights(
    graphs: Sequence[csr_array], _classes: np.ndarray, _power: float
) -> np.ndarray:
    """Weights of AGF-TI's min-max game over the same graphs, without label term."""
    Z = np.stack([graph.toarray() for graph in graphs])
    Z /= np.maximum(Z.sum(axis=2, keepdims=True), 1e-12)
    n_graphs, n_samples, _ = Z.shape
    game = Game(Z, np.zeros((n_samples, n_samples)), float(n_graphs**2), 4.0)
    alpha = fuse(game, np.full(n_graphs, 1 / n_graphs)).alpha
    return np.asarray((alpha / alpha.max()) ** 2)


def with_fused_graph(weight: float) -> Callable[[Setup], np.ndarray]:
    """AGF-TI's fused graph, as neighbours among its rows, beside the graphs of the views."""

    def run(setup: Setup) -> np.ndarray:
        model = AGFTIClassifier(random_state=0).fit(setup.data, setup.labels.codes)
        k = BASE.neighbours(len(setup.y_true), setup.labels.n_classes)
        graphs = [*setup.graphs(BASE), weight * neighbour_graph(model.fused_graph_, k)]
        return np.argmax(mend(graphs, setup.geometry, setup.labelling, BASE).stage.P, axis=1)

    return run


def fixed_neighbours(k: int) -> MendSettings:
    return MendSettings(neighbours=NeighbourRule(fewest=k, most=k))


BASE = MendSettings()


def scores_of(settings: MendSettings | None = None) -> Callable[[Setup], np.ndarray]:
    """The recipe with other settings."""
    return lambda setup: np.argmax(setup.run(settings).P, axis=1)


def with_labelling(make: Callable[[Setup], Labelling]) -> Callable[[Setup], np.ndarray]:
    """The recipe with other class shares."""
    return lambda setup: np.argmax(setup.run(labelling=make(setup)).P, axis=1)


VARIANTS: dict[str, Callable[[Setup], np.ndarray]] = {
    "default": scores_of(),
    "class sizes of the prior at the end": lambda setup: setup.run().classes,
    "no class shares at all": with_labelling(
        lambda setup: Unbalanced(setup.labelling.Y, setup.labelling.prior)
    ),
    "uniform prior": with_labelling(lambda setup: shrunk(setup, 1e9)),
    "prior shrunk by 1": with_labelling(lambda setup: shrunk(setup, 1)),
    "prior shrunk by 5": with_labelling(lambda setup: shrunk(setup, 5)),
    "label shares as the prior": with_labelling(lambda setup: shrunk(setup, 0)),
    "half of the prior from the scores": with_labelling(
        lambda setup: Labelling(setup.labelling.Y, setup.labelling.prior, 0.5)
    ),
    "equal graph weights": scores_of(replace(BASE, homophily_power=0.0)),
    "homophily to the fourth": scores_of(replace(BASE, homophily_power=4.0)),
    "fused graph of AGF-TI added, as one of the graphs": with_fused_graph(1.0),
    "fused graph of AGF-TI added, as heavy as six": with_fused_graph(6.0),
    "adversarial graph weights": scores_of(replace(BASE, weigh=adversarial_weights)),
    "edges guided, power 1": scores_of(replace(BASE, edge_power=1.0)),
    "edges guided, power 2": scores_of(replace(BASE, edge_power=2.0)),
    "no regressions": lambda setup: setup.run(replace(BASE, n_rounds=0)).classes,
    "one round": scores_of(replace(BASE, n_rounds=1)),
    "five rounds": scores_of(replace(BASE, n_rounds=5)),
    "twelve rounds": scores_of(replace(BASE, n_rounds=12)),
    "evidence to the power 1": scores_of(replace(BASE, evidence_power=1.0)),
    "no consensus graph": scores_of(replace(BASE, consensus_weight=1e-9)),
    "ten neighbours": scores_of(fixed_neighbours(10)),
}


def set_up(task: Task) -> Setup:
    """Canonical order, and what needs no label, as `MendClassifier` does it."""
    labels = check_labels(task.y, task.data.n_samples)
    order = canonical_order(task.data.views, task.data.observed, labels.codes)
    data = task.data[order]
    geometry = build_geometry(data.views, data.observed, GeometrySettings())
    return Setup(data, geometry, Labels(labels.classes, labels.codes[order]), task.y_true[order])


def ask(path: Path, protocol: str, rate: float, seed: int, names: Sequence[str]) -> dict:
    """Accuracy of the variants on one task."""
    start = time.perf_counter()
    task = pose(load_npz(path), protocol, rate, seed)
    setup = set_up(task)
    few = len(setup.y_true) <= ADVERSARIAL_ROWS
    accuracy = {
        name: setup.accuracy(VARIANTS[name](setup))
        for name in names
        if few or not name.startswith("adversarial")
    }
    seconds = time.perf_counter() - start
    known = {"data": path.stem, "protocol": protocol, "rate": rate, "seed": seed}
    return {**known, "seconds": seconds, "accuracy": accuracy}


def run_all(args: argparse.Namespace) -> None:
    names = args.variants.split(",") if args.variants else list(VARIANTS)
    tasks = [
        (args.data / f"{data}.npz", protocol, rate, seed)
        for data in args.sets.split(",")
        for protocol in args.protocols.split(",")
        for rate in map(float, args.rates.split(","))
        for seed in range(args.seeds)
    ]
    done = {(r["data"], r["protocol"], r["rate"], r["seed"]) for r in read(args.out)}
    left = [task for task in tasks if (task[0].stem, *task[1:]) not in done]
    jobs = Parallel(args.jobs, return_as="generator_unordered")
    end = time.monotonic() + args.time_limit
    with args.out.open("a") as file:
        for record in jobs(delayed(ask)(*task, names) for task in left):
            file.write(json.dumps(record) + "\n")
            file.flush()
            if time.monotonic() > end:
                break


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def print_table(args: argparse.Namespace) -> None:
    """Mean accuracy and paired difference from the default, per protocol."""
    records = read(args.out)
    for protocol in dict.fromkeys(record["protocol"] for record in records):
        chosen = [record["accuracy"] for record in records if record["protocol"] == protocol]
        print(f"\n### {protocol}, {len(chosen)} tasks\n")
        print("| variant | tasks | accuracy | difference | better / worse | p (two-sided) |")
        print("|---|---|---|---|---|---|")
        for name in dict.fromkeys(name for record in chosen for name in record):
            pairs = [(r[name], r["default"]) for r in chosen if name in r]
            ours, base = 100 * np.array(pairs).T
            gap = ours - base
            p = wilcoxon(gap).pvalue if gap.any() else 1.0
            counts = f"{(gap > 0).sum()} / {(gap < 0).sum()}"
            line = f"| {name} | {len(gap)} | {ours.mean():.2f} | {gap.mean():+.2f} | {counts} |"
            print(f"{line} {p:.1g} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", default="cub,uci_digit,outscene_3view")
    parser.add_argument("--protocols", default=",".join(PROTOCOLS))
    parser.add_argument("--rates", default="0.3,0.5,0.7")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--variants", help="separated by commas; all by default")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--time-limit", type=float, default=np.inf, help="seconds")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    (print_table if args.table else run_all)(args)


if __name__ == "__main__":
    main()
