"""What a run is known by, the seeds that follow from it, and what it leaves behind."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

# Parameters of a method by name, in the order of their names.
Setting = tuple[tuple[str, Any], ...]

# Parts of a key that came later: where they are empty, a run has the key it had before them.
_LATER = ("rules", "implementation")

# All that can become of a run.
STATUSES = ("done", "error", "left_out")


class InvalidRecordError(ValueError):
    """A record does not hold what its run should have left."""


@dataclass(frozen=True)
class Condition:
    """A learning problem up to its repetitions: one row of the main table."""

    protocol: str
    data: str
    missing_rate: float
    label_rate: float

    @property
    def text(self) -> str:
        """The condition in words, for messages and tooltips."""
        rates = f"VMR {rate_text(self.missing_rate)}, LAR {rate_text(self.label_rate)}"
        return f"{self.data}, {rates}"


@dataclass(frozen=True)
class RunKey:
    """One run: a measure of a method on a learning problem.

    Experiments that ask for the same run share its record, so nothing here names an experiment.
    """

    # Row of `viewmend.bench.measures.MEASURES`: "fit", "trace", "tnn_step".
    measure: str
    # Row of `viewmend.bench.protocols.PROTOCOLS`.
    protocol: str
    # Name of the data set in the paper's spelling, see `viewmend.datasets.catalogue`.
    data: str
    # Nominal shares, in [0, 1).
    missing_rate: float
    label_rate: float
    # Row of `viewmend.bench.methods.CONTESTANTS`.
    method: str
    # Parameters that differ from the method's default, sorted by name.
    setting: Setting
    # From 0 on: another mask, other labels, other draws of the method.
    repetition: int
    # What the protocol's name stood for, see `Protocol.rules` in `viewmend.bench.protocols`: a
    # record made under the same name with another meaning is that of another run. Empty in
    # records from before it was kept, which are therefore never taken for new ones.
    rules: str = ""
    # Which code made it, where results of older code differ: see `implementation_of` in
    # `viewmend.bench.methods`. Records of older code are thereby those of other runs.
    implementation: str = ""

    @property
    def condition(self) -> Condition:
        """The condition that the run belongs to."""
        return Condition(self.protocol, self.data, self.missing_rate, self.label_rate)

    @property
    def text(self) -> str:
        """The key as one line of JSON, the same on every machine."""
        parts = asdict(self)
        parts = {name: parts[name] for name in parts if name not in _LATER or parts[name]}
        return json.dumps(parts, sort_keys=True, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that stand for the key."""
        return _digest(self.text)[:16]

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> RunKey:
        """The key of a record that was read from a file."""
        setting = setting_of({name: value for name, value in fields["setting"]})
        return cls(**{**fields, "setting": setting})


@dataclass(frozen=True)
class Record:
    """What a run left behind."""

    key: RunKey
    # Of `STATUSES`.
    status: str
    # What was measured, the same for a key on every run. Of "fit": ``accuracy``,
    # ``macro_precision``, ``macro_recall``, ``macro_f1`` (in [0, 1], on the unlabelled samples),
    # ``n_samples``, ``n_labelled``, ``observed_pairs``, ``complete_samples``, ``n_iter`` (None
    # where the method has none), ``seeds``.
    result: Mapping[str, Any] = field(default_factory=dict)
    # ``fit`` and ``imputation`` seconds.
    timings: Mapping[str, float] = field(default_factory=dict)
    # Versions, machine, revision.
    environment: Mapping[str, Any] = field(default_factory=dict)
    # Of an error, or why the run was left out.
    message: str = ""

    def value(self, name: str) -> Any:
        """What was measured, or what it cost, by name; an error where the record lacks it."""
        for values in (self.result, self.timings):
            if name in values:
                return values[name]
        msg = (
            f"the record {self.key.digest}.json of {self.key.method} on {self.key.data} has no "
            f"{name!r}; remove the file and do the run again"
        )
        raise InvalidRecordError(msg)

    def to_dict(self) -> dict[str, Any]:
        """As nested dicts and lists, for JSON."""
        return asdict(self)


def environments_of(records: Iterable[Record]) -> list[Mapping[str, Any]]:
    """What records were made with; a run that was left out was not made."""
    return [record.environment for record in records if record.status != "left_out"]


def setting_of(parameters: Mapping[str, Any]) -> Setting:
    """Parameters as part of a key: sorted, lists as tuples."""
    return tuple((name, _frozen(parameters[name])) for name in sorted(parameters))


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


def derived_seed(key: RunKey, concern: str) -> int:
    """Seed of one concern of a run, in [0, 2**32), by hashing what the concern depends on.

    "mask" (missing views, labels, row order) is shared by all methods and settings of a
    repetition, so that they are compared on the same problem; "method" is the run's own, but
    shared by the settings of a grid.
    """
    parts = [getattr(key, name) for name in _CONCERNS[concern]]
    return int(_digest(json.dumps([concern, *parts]))[:8], 16)


# A protocol of shuffled rows shuffles what the protocol of the file's order hides.
_CONCERNS = {
    "mask": ("data", "missing_rate", "label_rate", "repetition"),
    "method": ("data", "missing_rate", "label_rate", "repetition", "method"),
}


def leaves(tree: Mapping[str, Any], separator: str) -> Iterator[tuple[str, Any]]:
    """Values of nested dicts with the names on the way to them."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from ((name + separator + path, leaf) for path, leaf in leaves(value, separator))
        else:
            yield name, value


def rate_text(rate: float) -> str:
    """A rate in percent, with as many decimals as it needs."""
    return f"{100 * rate:.4g}%"


def plain(value: Any) -> Any:
    """NumPy numbers and arrays for JSON."""
    if hasattr(value, "tolist"):
        return value.tolist()
    msg = f"a record holds numbers, text, lists and dicts, but here is a {type(value).__name__}"
    raise TypeError(msg)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
