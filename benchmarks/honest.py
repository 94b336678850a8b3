"""Every method on shuffled rows, at one setting, without a test label in sight.

    python benchmarks/honest.py --data DIR --out honest.jsonl [--jobs 2] [--time-limit 500]
    python benchmarks/honest.py --out honest.jsonl --table honest.md [--metric macro_f1]

The first form runs data sets x missing rates x seeds x methods under the chosen protocols (see
protocols.py, contestants.py) and appends one JSON line per finished run. Stopped or killed, the
same command goes on where it was: runs that are done are not repeated, failed ones are tried
again. The second writes tables with intervals and paired tests. Take ten seeds or more where the
tests of single cells are to say something: with five no p-value can be below 0.031.

Fit times are of one thread, with as many fits side by side as there are jobs; completion by deep
matrix factorisation is made once per problem and timed apart.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
from contestants import ABLATIONS, CONTESTANTS, SUBJECT
from honest_table import METRICS, report
from joblib.externals.loky.process_executor import TerminatedWorkerError
from protocols import PROTOCOLS
from runs import ALL_METHODS, Problem, append, attempt, end_broken_line, environment, key_of, read

SETS = (
    "cub",
    "uci_digit",
    "mnist_usps",
    "outscene_3view",
    "outscene_4view_surrogate",
    "caltech101_20_surrogate",
)
RATES = (0.3, 0.5, 0.7)
N_SEEDS = 10


@dataclass(frozen=True)
class Size:
    """Samples and views of a data set."""

    n_samples: int
    n_views: int


@dataclass(frozen=True)
class Job:
    """Methods that one process runs after another on one problem."""

    problem: Problem
    methods: tuple[str, ...]
    cost: float


def size_of(path: Path) -> Size:
    """Read without the views."""
    with np.load(path, allow_pickle=False) as archive:
        n_views = sum(name.startswith("view_") for name in archive.files)
        return Size(archive["y"].size, n_views)


def jobs_of(problem: Problem, methods: Iterable[str], size: Size) -> list[Job]:
    """One job for the methods that share a completion, and one for each of the others."""
    methods = list(methods)
    sharing = tuple(name for name in methods if ALL_METHODS[name].completion)
    groups = [(name,) for name in methods if name not in sharing] + [sharing] * bool(sharing)
    one_run = float(size.n_views * size.n_samples**2)
    return [Job(problem, group, len(group) * one_run) for group in groups]


def plan(args: argparse.Namespace, skip: set[str]) -> list[Job]:
    """Everything that is asked for and not in ``skip``, the costly first: the tail is short."""
    sizes = {data: size_of(args.data / f"{data}.npz") for data in args.sets}
    jobs = []
    # Equal costs stay in this order: where time runs out, problems of a size lack the last seeds.
    for seed, protocol, data, rate in itertools.product(
        range(args.seeds), args.protocols, args.sets, args.rates
    ):
        if sizes[data].n_views >= PROTOCOLS[protocol].min_views:
            problem = Problem(protocol, data, rate, seed)
            missing = [name for name in args.methods if key_of(problem, name) not in skip]
            jobs += jobs_of(problem, missing, sizes[data])
    return sorted(jobs, key=lambda job: -job.cost)


def run_job(job: Job, folder: Path, out: Path, deadline: float) -> None:
    """Attempt the methods of a job, as long as there is time."""
    for method in job.methods:
        if time.time() < deadline:
            append(out, attempt(folder, job.problem, method))


def run_jobs(jobs: list[Job], args: argparse.Namespace, deadline: float) -> None:
    """Run in parallel, each process with one thread, and tell how far it is."""
    start = time.perf_counter()
    with joblib.parallel_config("loky", n_jobs=args.jobs, inner_max_num_threads=1):
        finished = joblib.Parallel(return_as="generator_unordered")(
            joblib.delayed(run_job)(job, args.data, args.out, deadline) for job in jobs
        )
        for i, _ in enumerate(finished, 1):
            if i % max(1, len(jobs) // 50) == 0 or i == len(jobs):
                print(f"{i}/{len(jobs)} jobs, {time.perf_counter() - start:.0f} s", flush=True)


def record_death(jobs: list[Job], args: argparse.Namespace, tried: set[str]) -> None:
    """Write an error for the runs that were under way when a process died.

    Jobs start in order, so these are the first runs of the first unfinished jobs.
    """
    unfinished = [
        (job.problem, method)
        for job in jobs
        for method in [m for m in job.methods if key_of(job.problem, m) not in tried][:1]
    ]
    for problem, method in unfinished[: args.jobs]:
        status = "error: a worker process died, perhaps for want of memory; try fewer --jobs"
        row = {"key": key_of(problem, method), **vars(problem), "method": method, "status": status}
        append(args.out, row | environment())


def run_all(args: argparse.Namespace) -> None:
    deadline = time.time() + args.time_limit
    end_broken_line(args.out)
    offset = args.out.stat().st_size if args.out.exists() else 0
    done = {key for key, row in read(args.out).items() if row["status"] == "done"}
    jobs = plan(args, done)
    while jobs:
        try:
            run_jobs(jobs, args, deadline)
            break
        except TerminatedWorkerError:
            record_death(jobs, args, done | set(read(args.out, offset)))
            jobs = plan(args, done | set(read(args.out, offset)))
    fresh = read(args.out, offset).values()
    failed = [row for row in fresh if row["status"] != "done"]
    left = sum(len(job.methods) for job in plan(args, done | set(read(args.out, offset))))
    print(f"{len(fresh) - len(failed)} runs done, {len(failed)} failed, {left} not started")


def write_table(args: argparse.Namespace) -> None:
    wanted = {"protocol": args.protocols, "data": args.sets, "method": args.methods}
    rows = [
        row
        for row in read(args.out).values()
        if all(names is None or row[field] in names for field, names in wanted.items())
    ]
    rows.sort(key=lambda row: args.methods.index(row["method"]))
    args.table.write_text(report(rows, args.subject, args.metric))


def chosen(text: str | None, known: Iterable[str], what: str) -> list[str]:
    """Names separated by commas; a name also stands for those it begins, as in few_labels_1."""
    known = list(known)
    names = known if text is None else [name.strip() for name in text.split(",")]
    groups = {name: [k for k in known if k == name or k.startswith(f"{name}_")] for name in names}
    for name, group in groups.items():
        if not group:
            msg = f"there are no {what} {name!r}; choose from {', '.join(known)}"
            raise SystemExit(msg)
    return list(dict.fromkeys(itertools.chain.from_iterable(groups.values())))


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the npz files of --sets")
    parser.add_argument("--out", type=Path, required=True, help="file of the runs, one a line")
    parser.add_argument("--sets", help="names of npz files, separated by commas")
    parser.add_argument("--rates", default=",".join(map(str, RATES)), help="missing rates")
    parser.add_argument("--seeds", type=int, default=N_SEEDS, help="how many, from 0 on")
    parser.add_argument("--methods", help="methods; all by default")
    parser.add_argument("--protocols", help=f"of {', '.join(PROTOCOLS)}; all by default")
    parser.add_argument("--ablate", action="store_true", help="MendClassifier and its ablations")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--time-limit", type=float, default=np.inf, help="start no run after it")
    parser.add_argument("--table", type=Path, help="write the tables of --out to this file")
    parser.add_argument("--metric", choices=METRICS, default="accuracy", help="of the tables")
    parser.add_argument("--subject", default=SUBJECT, help="method that others are compared with")
    args = parser.parse_args(argv)
    offered = {SUBJECT: CONTESTANTS[SUBJECT], **ABLATIONS} if args.ablate else CONTESTANTS
    args.methods = chosen(args.methods, offered, "methods")
    args.protocols = chosen(args.protocols, PROTOCOLS, "protocols")
    args.sets = args.sets.split(",") if args.sets else None if args.table else list(SETS)
    args.rates = [float(rate) for rate in args.rates.split(",")]
    check_files(args, parser)
    return args


def check_files(args: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    if args.table is not None:
        return
    if args.data is None:
        parser.error("--data must name the folder of the npz files, unless --table is given")
    absent = [data for data in args.sets if not (args.data / f"{data}.npz").is_file()]
    if absent:
        parser.error(f"{args.data} must hold an npz file for each of --sets, lacks {absent}")


def main(argv: list[str] | None = None) -> None:
    args = parse(argv)
    (run_all if args.table is None else write_table)(args)


if __name__ == "__main__":
    main()
