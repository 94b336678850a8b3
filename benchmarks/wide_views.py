"""CPU time, memory and accuracy of MendClassifier on a wide view of text, sparse and dense.

    python benchmarks/wide_views.py --rows 500,1000,2000 --seeds 100,101,102

Word counts of 80 entries a row, by Zipf's law and by the topic of a class, beside 30 numbers that
30 % of the samples miss; five labels per class. Every fit runs on one thread, in a process of its
own, because peak memory never falls. Prints a Markdown table; the file is that of the saved model.
With ``--forms dense`` the same rows are passed as an array.
"""

from __future__ import annotations

import argparse
import io
import resource
import subprocess
import sys
import time
import warnings

import numpy as np
from scipy.sparse import csr_array

from viewmend import MendClassifier, save
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import DataWarning

N_CLASSES, N_WORDS, N_OF_TOPIC, TOPIC_SHARE = 6, 80, 400, 0.13
FORMS = {"sparse": lambda text: text, "dense": lambda text: text.toarray()}


def make_text(
    n_rows: int, n_columns: int, rng: np.random.Generator
) -> tuple[csr_array, np.ndarray]:
    """Counts (n_rows, n_columns) of 80 different words each, and the class of every row."""
    y = rng.integers(N_CLASSES, size=n_rows)
    common = 1 / np.arange(1, n_columns + 1)
    ends = np.empty((N_CLASSES, n_columns))
    for c in range(N_CLASSES):
        topic = np.zeros(n_columns)
        topic[rng.choice(n_columns, N_OF_TOPIC, replace=False)] = 1 / np.arange(1, N_OF_TOPIC + 1)
        chances = (1 - TOPIC_SHARE) * common / common.sum() + TOPIC_SHARE * topic / topic.sum()
        ends[c] = np.cumsum(chances)
    words = [_different_words(ends[label], rng) for label in y]
    rows = np.repeat(np.arange(n_rows), N_WORDS)
    counts = rng.geometric(0.6, size=len(rows)).astype(float)
    return csr_array((counts, (rows, np.concatenate(words))), shape=(n_rows, n_columns)), y


def _different_words(ends: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Words (80,) of a row, drawn by chances whose sums are the ``ends`` (n_columns,)."""
    drawn = np.zeros(0, dtype=int)
    while len(drawn) < N_WORDS:
        more = np.searchsorted(ends, rng.random(3 * N_WORDS) * ends[-1])
        drawn = np.unique(np.concatenate([drawn, more]))
    return rng.permutation(drawn)[:N_WORDS]


def fit_once(form: str, n_rows: int, n_columns: int, seed: int) -> str:
    """One row of the table."""
    rng = np.random.default_rng(seed)
    text, y = make_text(n_rows, n_columns, rng)
    numbers = 0.35 * rng.normal(size=(N_CLASSES, 30))[y] + 1.3 * rng.normal(size=(n_rows, 30))
    labelled = [rng.choice(np.flatnonzero(y == c), 5, replace=False) for c in range(N_CLASSES)]
    given = np.full(n_rows, -1)
    given[np.concatenate(labelled)] = y[np.concatenate(labelled)]
    mask = np.column_stack([np.ones(n_rows, dtype=bool), rng.random(n_rows) > 0.3])
    views = {"text": FORMS[form](text), "numbers": numbers}
    _warm_up()
    start = time.process_time()
    model = MendClassifier(n_jobs=1).fit(views, given, mask)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    accuracy = np.mean((model.transduction_ == y)[given < 0])
    file = io.BytesIO()
    save(model, file)
    megabytes = file.tell() / 1e6
    return f"{seconds:.1f} {peak / 1024:.0f} {100 * accuracy:.1f} {megabytes:.1f}"


def _warm_up() -> None:
    """Compile the kernels on a small problem."""
    blobs = make_multiview_blobs(n_features=30, random_state=0)
    task = hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.1, random_state=0)
    MendClassifier(n_jobs=1).fit(task.data, task.y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="500,1000,2000")
    parser.add_argument("--columns", type=int, default=20_000)
    parser.add_argument("--seeds", default="100,101,102")
    parser.add_argument("--forms", default="sparse", help="of " + ", ".join(FORMS))
    parser.add_argument(
        "--one", nargs=3, metavar=("FORM", "ROWS", "SEED"), help="fit this one here"
    )
    args = parser.parse_args()
    if args.one:
        form, rows, seed = args.one
        warnings.simplefilter("ignore", DataWarning)
        print(fit_once(form, int(rows), args.columns, int(seed)))
        return
    print("| view | rows | seed | CPU s | MB peak | accuracy, % | MB file |")
    print("|---|---|---|---|---|---|---|")
    for form in args.forms.split(","):
        for rows in args.rows.split(","):
            for seed in args.seeds.split(","):
                command = [sys.executable, __file__, "--columns", str(args.columns)]
                command += ["--one", form, rows, seed]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                figures = " | ".join(done.stdout.split())
                print(f"| {form} | {rows} | {seed} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
