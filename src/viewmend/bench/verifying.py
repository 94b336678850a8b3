"""Whether runs that were published come out the same when they are done again."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from viewmend.bench.methods import CONTESTANTS, implementation_of
from viewmend.bench.metrics import METRICS
from viewmend.bench.protocols import PROTOCOLS
from viewmend.bench.runs import (
    InvalidRecordError,
    Record,
    RunKey,
    derived_seed,
    leaves,
    setting_of,
)

# What of a result is compared: scores and what else a run finds, and what tells its problem.
COMPARED = (
    *METRICS,
    "observed_pairs",
    "complete_samples",
    "n_samples",
    "n_labelled",
    "hidden_error",
    "norm",
)
KEY_COLUMNS = ("measure", "protocol", "data", "missing_rate", "label_rate", "method", "setting")


@dataclass(frozen=True)
class Claim:
    """What somebody says that a run gives."""

    # By its name in `CONTESTANTS`, not that of a row of a table.
    key: RunKey
    # Numbers of `COMPARED`.
    values: Mapping[str, float]


@dataclass(frozen=True)
class Verdict:
    """A claim beside the run done again."""

    claim: Claim
    # Claimed and found, by name, where they are further apart than allowed.
    differences: Mapping[str, tuple[float, float]]
    # Why there is nothing to compare, else empty.
    message: str = ""

    @property
    def equal(self) -> bool:
        """Whether the claim holds."""
        return not self.differences and not self.message


def claims_of(records: Iterable[Record]) -> list[Claim]:
    """Claims of the records that are done, in the order of their keys."""
    claims = []
    for record in records:
        if record.status == "done":
            values = dict(leaves(record.result, "."))
            key = _true_key(record.key, values.get("seeds.method"))
            claims.append(Claim(key, _numbers(values)))
    return sorted(claims, key=lambda claim: claim.key.text)


def read_claims(path: Path) -> list[Claim]:
    """Claims of a file that ``viewmend bench export`` wrote."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    lacking = [name for name in (*KEY_COLUMNS, "status") if not rows or name not in rows[0]]
    if lacking:
        msg = (
            f"{path} has no rows with a column {lacking[0]!r}; expected a file that viewmend bench "
            "export wrote"
        )
        raise InvalidRecordError(msg)
    return claims_of(_record(row, f"{path}, line {i}") for i, row in enumerate(rows, start=2))


def drawn(claims: Sequence[Claim], n: int, seed: int) -> list[Claim]:
    """``n`` claims at random, all where there are not more, in the order they came."""
    chosen = np.random.default_rng(seed).permutation(len(claims))[:n]
    return [claims[i] for i in np.sort(chosen)]


def verdict_on(claim: Claim, record: Record | None, tolerance: float) -> Verdict:
    """A claim beside the record of the run done again; numbers may differ by ``tolerance``."""
    if record is None or record.status != "done":
        return Verdict(claim, {}, "no record" if record is None else record.message)
    found = _numbers(dict(leaves(record.result, ".")))
    differences = {
        name: (value, found.get(name, math.nan))
        for name, value in claim.values.items()
        if not _close(value, found.get(name, math.nan), tolerance)
    }
    return Verdict(claim, differences)


def _record(row: Mapping[str, str], where: str) -> Record:
    """A line of an exported table as a record; its status and result alone are kept."""
    try:
        key = RunKey(
            measure=row["measure"],
            protocol=row["protocol"],
            data=row["data"],
            missing_rate=float(row["missing_rate"]),
            label_rate=float(row["label_rate"]),
            method=row["method"],
            setting=setting_of(json.loads(row["setting"])),
            repetition=int(row["repetition"]),
        )
        result = {
            name.removeprefix("result."): float(value)
            for name, value in row.items()
            if name.removeprefix("result.") in (*COMPARED, "seeds.method") and value
        }
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        msg = f"{where} is no run: {type(error).__name__}: {error}"
        raise InvalidRecordError(msg) from error
    return Record(key, row["status"], result)


def _true_key(key: RunKey, seed: float | None) -> RunKey:
    """The key of the run behind a row of a table, as code of today would do it.

    A row may have a name of its own, a variant; the seed, which knows the method's, tells it.
    """
    if key.method not in CONTESTANTS:
        named = (replace(key, method=name) for name in CONTESTANTS)
        key = next((one for one in named if derived_seed(one, "method") == seed), key)
    rules = PROTOCOLS[key.protocol].rules if key.protocol in PROTOCOLS else ""
    made = implementation_of(key.method, key.measure)
    return replace(key, rules=rules, implementation=made)


def _numbers(values: Mapping[str, object]) -> dict[str, float]:
    """Those of `COMPARED`."""
    return {
        name: float(value)
        for name in COMPARED
        if isinstance(value := values.get(name), (int, float))
    }


def _close(claimed: float, found: float, tolerance: float) -> bool:
    if math.isnan(claimed):
        return math.isnan(found)
    # The norm of a tensor step grows with its size; all else is of the order of one, or a count.
    return abs(claimed - found) <= tolerance * max(1.0, abs(claimed))
