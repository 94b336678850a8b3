"""Thousands of attacks on the library, and how many it withstood.

    python benchmarks/hostile.py [--attack NAME] [--seed 0] [--cases N] [--minutes 30] [--out F]
    python benchmarks/hostile.py --out F --table

The counts of an attack take the place of its earlier ones in the file, where the second form reads
them. Every case is drawn from a seed and its number, so that a bad one can be made again:

    python benchmarks/hostile.py --attack models --seed 0 --case 417

The exit status is 1 if anything broke: an exception that is not ours, an answer that is silently
another one, a crash, a hang.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path

from attacks.data_files import DataFiles
from attacks.experiments import BlockCheckpointFiles, ExperimentFiles, StoreRecords
from attacks.fits import Fits
from attacks.interrupts import Interrupts
from attacks.kills import (
    BLOCK_CHECKPOINT_KILLS,
    MEND_CHECKPOINT_KILLS,
    CheckpointKills,
    StoreKills,
    WorkerKills,
)
from attacks.models import ModelFiles
from attacks.names import HostileNames
from attacks.outcomes import GOOD, Attack, Verdict
from attacks.parameters import Parameters
from attacks.running import Count, run_case, run_cases
from attacks.threads import Threads
from attacks.writers import KilledWriters, TwoWriters

from viewmend.bench.environment import check_publishable, environment

ATTACKS: Mapping[str, Attack] = {
    "models": ModelFiles(),
    "data files": DataFiles(),
    "fits": Fits(),
    "parameters": Parameters(),
    "interrupts": Interrupts(),
    "threads": Threads(),
    "two writers": TwoWriters(),
    "kills during save": KilledWriters(),
    "store kills": StoreKills(),
    "worker kills": WorkerKills(),
    "checkpoint kills": CheckpointKills(),
    "Mend checkpoint kills": MEND_CHECKPOINT_KILLS,
    "block checkpoint kills": BLOCK_CHECKPOINT_KILLS,
    "block checkpoint files": BlockCheckpointFiles(),
    "experiment files": ExperimentFiles(),
    "store records": StoreRecords(),
    "hostile names": HostileNames(),
}


def run(attack: Attack, seed: int, n_cases: int, minutes: float, jobs: int) -> Count:
    """All cases that the time allows."""
    start, verdicts, bad = time.monotonic(), Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        attack.prepare(Path(folder))
        for case, outcome in run_cases(attack, Path(folder), seed, range(n_cases), jobs):
            verdicts[outcome.verdict] += 1
            if outcome.verdict not in GOOD:
                bad.append((case, outcome))
                print(f"  case {case}: {outcome.verdict}\n{outcome.detail}", file=sys.stderr)
            if time.monotonic() - start > 60 * minutes:
                break
    return Count(attack.name, dict(verdicts), tuple(bad), time.monotonic() - start)


def table(counts: list[Count]) -> str:
    """One line per attack, as in Markdown."""
    heads = ["attack", "cases", *Verdict, "seconds"]
    rows = [
        [
            c.attack,
            sum(c.verdicts.values()),
            *(c.verdicts.get(v, 0) for v in Verdict),
            round(c.seconds),
        ]
        for c in counts
    ]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attack", action="append", choices=list(ATTACKS), help="all if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, help="of each attack; its own number if not given")
    parser.add_argument("--case", type=int, help="this one alone, in this process")
    parser.add_argument("--minutes", type=float, default=30.0, help="of each attack at most")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="JSON file of the counts and the machine")
    parser.add_argument("--table", action="store_true", help="print the counts of the file")
    options = parser.parse_args()
    if options.table:
        print(table(read_counts(options.out)))
        return 0
    attacks = [ATTACKS[name] for name in options.attack or ATTACKS]
    if options.case is not None:
        return replay(attacks[0], options.seed, options.case)
    broken = False
    for attack in attacks:
        n_cases = options.cases or attack.n_cases
        count = run(attack, options.seed, n_cases, options.minutes, options.jobs)
        print(table([count]), flush=True)
        broken |= bool(count.bad)
        if options.out:
            keep(count, options.seed, options.out)
    return int(broken)


def keep(count: Count, seed: int, path: Path) -> None:
    """Put the counts of an attack into the file, by its name."""
    check_publishable([environment()], path)
    records = json.loads(path.read_text()) if path.exists() else {}
    records[count.attack] = {**asdict(count), "seed": seed, **environment()}
    in_order = {name: records[name] for name in ATTACKS if name in records}
    path.write_text(json.dumps(in_order, indent=1) + "\n")


def read_counts(path: Path) -> list[Count]:
    """What `keep` wrote."""
    records = json.loads(path.read_text()).values()
    names = [field.name for field in fields(Count)]
    return [Count(**{name: record[name] for name in names}) for record in records]


def replay(attack: Attack, seed: int, case: int) -> int:
    """One case in this process, where a debugger can follow it."""
    with tempfile.TemporaryDirectory() as folder:
        attack.prepare(Path(folder))
        outcome = run_case(attack, Path(folder), seed, case)
    print(outcome.verdict, outcome.detail, sep="\n")
    return int(outcome.verdict not in GOOD)


if __name__ == "__main__":
    sys.exit(main())
