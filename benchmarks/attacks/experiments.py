"""Hostile experiment files, records and checkpoint folders: none runs code, all are named."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

import viewmend
from attacks.kills import in_blocks, same_arrays, save_fit, small_task, write_blobs
from attacks.outcomes import Outcome, Verdict, judged
from viewmend import cli

# Left by code that should not have run.
TRACE = "code-ran"
# As a plugin, or imported as a module by name.
CANARY = """
from pathlib import Path

Path(__file__).with_name("{trace}").touch()


def run(**settings):
    Path(__file__).with_name("{trace}").touch()
"""
TOML = """
name = "small"
title = "A small experiment"
measure = "fit"
protocols = ["honest"]
data = ["blobs"]
missing_rates = [0.2, 0.4]
label_rates = [0.1]
methods = ["union graph", "mean + spreading"]
repetitions = 2
grids = "thinned"

[settings]
"union graph" = { n_neighbors = 4 }

[variants."union graph, 3 neighbours"]
method = "union graph"
setting = { n_neighbors = 3 }

[[sweep]]
method = "SNF"
grid = { n_neighbors = [3, 5] }

[[leave_out]]
method = "mean + spreading"
data = "blobs"
reason = "an example"
"""
# The same for a run, which a plan of sweeps and trials would make long.
PEACEFUL = TOML.split("[[sweep]]")[0]
TRACED = """
name = "traced"
measure = "trace"
protocols = ["honest"]
data = ["blobs"]
missing_rates = [0.2]
label_rates = [0.1]
methods = ["AGF-TI (order-free)"]
repetitions = 1

[settings]
"AGF-TI (order-free)" = { n_anchors = 8, max_iter = 3 }
"""

TEXTS = (
    "../../outside",
    "/etc/passwd",
    "..",
    "$$",
    r"\\frac{",
    "[/bold]",
    "=1+1",
    "{0.__class__}",
    "%s%n",
    "<script>alert(1)</script>",
    "a\\nb",
    "a\\u001b[2Jb",
    "a\\u0000b",
    "a\\u202eb",
    "_hidden",
    "x" * 5000,
    "canary:run",
    "subprocess:run",
    "canary:",
    "os.path:join",
    "builtins:eval",
)
VALUES = (
    *(f'"{text}"' for text in TEXTS),
    "0",
    "-1",
    "1000000000000",
    "0x" + "f" * 5000,
    "nan",
    "inf",
    "1e400",
    "true",
    "1979-05-27T07:32:00Z",
    "[]",
    "[[[]]]",
    "{}",
    "{ a = { b = 1 } }",
    "[" * 2000 + "]" * 2000,
    "[" + ", ".join(map(str, range(3000))) + "]",
)
CANARY_PLUGIN = '["canary.py"]'
COMMANDS: Sequence[Sequence[str]] = (
    ("status",),
    ("run", "--time-limit", "0"),
    ("table",),
    ("report",),
    ("plot", "--kind", "scores"),
)


def invoked(folder: Path, own: Path, *arguments: str) -> Outcome | None:
    """A command of ``viewmend bench`` on data and results of a folder, told by its exception."""
    options = ["--data", str(folder), "--results", str(own / "results")]
    if arguments[0] in ("table", "plot", "report"):
        options += ["--output", str(own / "output")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", viewmend.exceptions.DataWarning)
        result = CliRunner().invoke(cli.app, ["bench", *arguments, *options])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if "\x1b[2J" in result.output:
        return Outcome(Verdict.SILENT, "an escape character of a file reached the terminal")
    return Outcome(Verdict.REFUSED, result.output) if result.exit_code else None


@dataclass(frozen=True)
class ExperimentFiles:
    """TOML files with hostile values: no code of theirs runs, no file is written elsewhere."""

    name: str = "experiment files"
    n_cases: int = 300
    time_limit: float = 60.0

    def prepare(self, folder: Path) -> None:
        write_store(folder)
        (folder / "canary.py").write_text(CANARY.format(trace=TRACE))

    def attempt(self, folder: Path, rng: np.random.Generator) -> Outcome:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            own = Path(place) / "inner"
            own.mkdir()
            shutil.copytree(folder / "results", own / "results")
            (own / "canary.py").write_text(CANARY.format(trace=TRACE))
            (own / "small.toml").write_bytes(hostile_toml(rng))
            command = COMMANDS[rng.integers(len(COMMANDS))]
            sys.path.insert(0, str(own))
            try:
                outcome = judged(
                    lambda: invoked(folder, own, command[0], str(own / "small.toml"), *command[1:])
                )
            finally:
                sys.path.remove(str(own))
                sys.modules.pop("canary", None)
            if (own / TRACE).exists():
                return Outcome(Verdict.SILENT, "code of the file ran")
            outside = [path.name for path in Path(place).iterdir() if path != own]
            return Outcome(Verdict.SILENT, f"wrote {outside}") if outside else outcome


def hostile_toml(rng: np.random.Generator) -> bytes:
    """An experiment with a value replaced, a key of code added, or bytes changed."""
    lines = TOML.splitlines()
    value = VALUES[rng.integers(len(VALUES))]
    places = [i for i, line in enumerate(lines) if " = " in line]
    place = places[rng.integers(len(places))]
    kind = rng.integers(5)
    if kind == 0:
        text = bytearray(TOML.encode())
        for _ in range(rng.integers(1, 4)):
            text[rng.integers(len(text))] = rng.integers(256)
        return bytes(text)
    key, _, old = lines[place].partition(" = ")
    if kind == 1 and old.startswith("["):
        lines[place] = f"{key} = [{value}]"
    elif kind == 2:
        lines[place] = f"{value if value.startswith(chr(34)) else key} = {old}"
    elif kind == 3:
        lines.insert(0, f"plugins = {value if rng.random() < 0.5 else CANARY_PLUGIN}")
    else:
        lines[place] = f"{key} = {value}"
    return "\n".join(lines).encode()


def write_store(folder: Path) -> None:
    """Data, two small experiments, and the records of both."""
    write_blobs(folder / "blobs.npz")
    for name, text in (("small", PEACEFUL), ("traced", TRACED)):
        (folder / f"{name}.toml").write_text(text)
        invoked(folder, folder, "run", str(folder / f"{name}.toml"))


# What may stand in a record that somebody changed.
RECORD_VALUES = (
    *(json.loads(f'"{text}"') for text in TEXTS if "\\" not in text or "\\u" in text),
    "\ud800",
    float("nan"),
    float("inf"),
    -0.5,
    1.5,
    0.25,
    10**30,
    True,
    None,
    [],
    {},
    [None],
    {"a": {"b": []}},
)


@dataclass(frozen=True)
class StoreRecords:
    """Records that somebody changed: what is believed of them can be true, the rest is named."""

    name: str = "store records"
    n_cases: int = 300
    time_limit: float = 60.0

    def prepare(self, folder: Path) -> None:
        write_store(folder)

    def attempt(self, folder: Path, rng: np.random.Generator) -> Outcome:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            own = Path(place)
            shutil.copytree(folder / "results", own / "results")
            damage_record(own / "results" / "runs", rng)
            return judged(lambda: _looked_at(folder, own, rng))


def _looked_at(folder: Path, own: Path, rng: np.random.Generator) -> Outcome | None:
    from viewmend.bench.metrics import METRICS
    from viewmend.bench.store import ResultStore

    with warnings.catch_warnings(record=True) as named:
        warnings.simplefilter("always")
        records = ResultStore(own / "results").records()
    scores = [r.result[name] for r in records for name in METRICS if name in r.result]
    if not all(isinstance(score, float | int) and 0 <= score <= 1 for score in scores):
        return Outcome(Verdict.SILENT, f"believed {scores}")
    experiment = str(folder / f"{'small' if rng.random() < 0.7 else 'traced'}.toml")
    commands = (
        ("status", experiment),
        ("table", experiment),
        ("report", experiment),
        ("plot", experiment),
        ("export", str(own / "all.csv")),
        ("export", str(own / "all.parquet")),
    )
    outcome = invoked(folder, own, *commands[rng.integers(len(commands))])
    refused = Outcome(Verdict.REFUSED, str(named[0].message)) if named else None
    return outcome or refused


def damage_record(runs: Path, rng: np.random.Generator) -> None:
    """Change a record: its bytes, or a value, after which its name may fit again."""
    from viewmend.bench.runs import RunKey

    paths = sorted(runs.iterdir())
    path = paths[rng.integers(len(paths))]
    if rng.random() < 0.2:
        content = bytearray(path.read_bytes())
        content[rng.integers(len(content))] = rng.integers(256)
        path.write_bytes(content[: rng.integers(1, 2 * len(content))])
        return
    record = json.loads(path.read_text())
    holder, key = _random_place(record, rng)
    holder[key] = RECORD_VALUES[rng.integers(len(RECORD_VALUES))]
    if rng.random() < 0.2:
        del holder[key]
    path.unlink()
    # A key that is none any more keeps its name.
    with suppress(Exception):
        path = path.with_name(f"{RunKey.from_dict(record['key']).digest}.json")
    path.write_text(json.dumps(record))


def _random_place(tree: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """A dict or list somewhere in a tree, and one of its keys."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
        key = keys[rng.integers(len(keys))]
        deeper = isinstance(tree[key], dict | list) and len(tree[key]) > 0
        if not deeper or rng.random() < 0.15:
            return tree, key
        tree = tree[key]


@dataclass(frozen=True)
class BlockCheckpointFiles:
    """Folders of `BlockCheckpoint` with a damaged file: the same fit, or a `CheckpointError`."""

    name: str = "block checkpoint files"
    n_cases: int = 100
    time_limit: float = 60.0

    def prepare(self, folder: Path) -> None:
        _fit_blocks(folder / "rounds", folder / "whole.npz")

    def attempt(self, folder: Path, rng: np.random.Generator) -> Outcome:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            rounds, own = Path(place) / "rounds", Path(place) / "fit.npz"
            shutil.copytree(folder / "rounds", rounds)
            # The file that is locked during a fit holds nothing.
            there = (path for path in rounds.rglob("*") if path.is_file())
            files = sorted(path for path in there if path.stat().st_size)
            path = files[rng.integers(len(files))]
            DAMAGES[rng.integers(len(DAMAGES))](path, files, rng)

            def call() -> Outcome:
                _fit_blocks(rounds, own)
                return same_arrays(folder / "whole.npz", own)

            return judged(call)


def _flip(path: Path, _files: list[Path], rng: np.random.Generator) -> None:
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << rng.integers(8)
    path.write_bytes(content)


def _cut(path: Path, _files: list[Path], rng: np.random.Generator) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.integers(len(content))])


def _remove(path: Path, _files: list[Path], _rng: np.random.Generator) -> None:
    path.unlink()


def _swap(path: Path, files: list[Path], rng: np.random.Generator) -> None:
    path.write_bytes(files[rng.integers(len(files))].read_bytes())


def _noise(path: Path, _files: list[Path], rng: np.random.Generator) -> None:
    path.write_bytes(rng.bytes(rng.integers(200)))


def _folder(path: Path, _files: list[Path], _rng: np.random.Generator) -> None:
    path.unlink()
    path.mkdir()


def _edit(_path: Path, files: list[Path], rng: np.random.Generator) -> None:
    """A value of the table, which is the only file that can be edited by hand."""
    table = next(file for file in files if file.suffix == ".json")
    tree = json.loads(table.read_text())
    holder, key = _random_place(tree, rng)
    holder[key] = RECORD_VALUES[rng.integers(len(RECORD_VALUES))]
    table.write_text(json.dumps(tree))


Damage = Callable[[Path, list[Path], np.random.Generator], None]
DAMAGES: Sequence[Damage] = (_flip, _cut, _remove, _swap, _noise, _folder, _edit)


def _fit_blocks(rounds: Path, path: Path) -> None:
    import dask

    from viewmend.distributed import BlockCheckpoint

    task = small_task()
    model = viewmend.AGFTIClassifier(n_anchors=8, max_iter=3, tol=0.0, random_state=0)
    with warnings.catch_warnings(), dask.config.set(scheduler="synchronous"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_callbacks(BlockCheckpoint(rounds, every=1)).fit(in_blocks(task, 150), task.y)
        save_fit(model, path)
