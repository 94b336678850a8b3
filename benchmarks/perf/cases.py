"""Sizes of the paper's data, random problems of these sizes, and the seconds that it prints."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from viewmend.core import Problem
from viewmend.core.agfti.bipartite import anchor_graph

__all__ = [
    "CASES",
    "PAPER",
    "Case",
    "Footprint",
    "paper_footprint",
    "paper_seconds",
    "random_problem",
]

REPOSITORY = Path(__file__).parents[2]
PAPER = REPOSITORY.parent / "shared" / "paper"

NEIGHBOURS = 7
MISSING_RATE = 0.4
LABEL_RATE = 0.05
LATENT, FEATURES = 16, 20

# Rows of a graph made at once: their distances to the anchors stay in the cache.
BLOCK = 4096


@dataclass(frozen=True)
class Case:
    """Samples, views, anchors and classes.

    Attributes
    ----------
    n_samples, n_views, n_anchors, n_classes : int
    paper : str
        Name under which the paper prints seconds for this size; empty if it does not.
    quick : bool
        A matter of seconds on any machine.
    """

    n_samples: int
    n_views: int
    n_anchors: int
    n_classes: int
    paper: str = ""
    quick: bool = False

    @property
    def n_entries(self) -> int:
        """Entries of the graphs of all views."""
        return self.n_views * self.n_samples * self.n_anchors


# The paper ran AwA with 512 anchors; 256 tells how the number of anchors counts.
CASES = {
    "CUB": Case(600, 2, 64, 10, "CUB", quick=True),
    "UCI-Digit": Case(2000, 3, 256, 10, "UCI-Digit", quick=True),
    "Caltech101-20": Case(2386, 6, 256, 20, "Caltech101-20"),
    "OutScene": Case(2688, 4, 256, 8, "OutScene"),
    "MNIST-USPS": Case(5000, 2, 256, 10, "MNIST-USPS"),
    "AwA-256": Case(10158, 6, 256, 50),
    "AwA-512": Case(10158, 6, 512, 50, "AwA"),
}


def random_problem(case: Case, dtype: str = "float64", seed: int = 0) -> Problem:
    """Classes around random centres, seen through random views; anchors are random samples.

    The same draws in both precisions. Beside the problem it takes little memory, whatever the
    number of samples.

    Parameters
    ----------
    case : Case
    dtype : {"float64", "float32"}
    seed : int

    Returns
    -------
    Problem
        With 40 % of the rows missing, each sample having at least one view, and 5 % labelled.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(case.n_classes, size=case.n_samples)
    latent = rng.normal(size=(case.n_classes, LATENT))[y]
    latent += rng.normal(size=latent.shape)
    observed = rng.random((case.n_samples, case.n_views)) > MISSING_RATE
    observed[~observed.any(axis=1), 0] = True
    Z = np.full((case.n_views, case.n_samples, case.n_anchors), 1 / case.n_anchors, dtype=dtype)
    for v in range(case.n_views):
        view = _random_view(latent, rng)
        seen = np.flatnonzero(observed[:, v])
        anchors = view[rng.choice(seen, case.n_anchors, replace=False)]
        for rows in _blocks(seen):
            Z[v, rows] = anchor_graph(view[rows], anchors, NEIGHBOURS)
    Y = np.eye(case.n_classes, dtype=dtype)[y]
    Y *= (rng.random(case.n_samples) < LABEL_RATE)[:, None]
    return Problem(Z, Y, observed, lam=float(case.n_views**2), beta=4.0, rho=100.0)


def _random_view(latent: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    view = latent @ rng.normal(size=(LATENT, FEATURES))
    view += rng.normal(size=view.shape)
    return view / np.linalg.norm(view, axis=1, keepdims=True)


def _blocks(rows: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), BLOCK):
        yield rows[start : start + BLOCK]


@dataclass(frozen=True)
class Footprint:
    """What the paper prints of one tensor step: seconds, and memory in GiB."""

    seconds: float
    gib: float


def paper_seconds(folder: Path) -> dict[str, float]:
    """Seconds of AGF-TI by data set, of ``running_time.csv``; empty where there is none."""
    rows = _table(folder / "running_time.csv")
    return {row["dataset"]: float(row["seconds"]) for row in rows if row["method"] == "AGF-TI"}


def paper_footprint(folder: Path) -> dict[tuple[int, int, int], Footprint]:
    """By samples in thousands, views and anchors, of ``tnn_footprint.csv``; or empty."""
    return {
        (int(row["n_samples"]) // 1000, int(row["n_views"]), int(row["n_anchors"])): Footprint(
            float(row["seconds"]), float(row["memory_gib"])
        )
        for row in _table(folder / "tnn_footprint.csv")
    }


def _table(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
