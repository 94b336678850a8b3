"""The claims of the paper that the ledger judges, and the bars that it judges by."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from viewmend.exceptions import InvalidParameterError

# The authors' program, and the algorithm of the paper's text, which is solved exactly.
RELEASED, SUBJECT = "AGF-TI (released code)", "AGF-TI"
# What the id of a claim about the second ends in.
WRITTEN = "-written"
FILE = Path(__file__).with_name("claims.toml")


@dataclass(frozen=True)
class Bars:
    """What counts as reproduced."""

    # A mean is near a printed one within so many points, or standard errors of the difference.
    points: float
    standard_errors: float
    # A wider bar, counted beside the first.
    wide_points: float
    # Shares of the cells of a claim.
    reproduced: float
    partly: float
    # Fewer points than this are no gain, no loss and no peak.
    gain: float
    # A rank-sum test of fewer runs of each method is not counted.
    runs_of_tests: int

    def is_near(self, difference: float, standard_errors: float | None) -> bool:
        """Whether a mean reproduces a printed one."""
        within = standard_errors is not None and abs(standard_errors) <= self.standard_errors
        return within or abs(difference) <= self.points

    def of_share(self, share: float) -> str:
        """The verdict on a claim that holds in a share of its cells."""
        if share >= self.reproduced:
            return "reproduced"
        return "partly" if share >= self.partly else "refuted"

    def of_some(self, share: float) -> str:
        """The verdict on a claim about every cell, refuted where it holds in none."""
        return {0.0: "refuted", 1.0: "reproduced"}.get(share, "partly")


@dataclass(frozen=True)
class Claim:
    """One line of the ledger."""

    id: str
    # Heading of the page under which it stands.
    part: str
    where: str
    says: str
    # Row of `rules.RULES`.
    rule: str
    # What the paper prints, as text.
    paper: str = ""
    # Name of an export, "theory" or "" where no record is needed.
    export: str = ""
    # Which of its records, see `exports.selected`.
    select: Mapping[str, Any] = field(default_factory=dict)
    # What else the rule asks for.
    options: Mapping[str, Any] = field(default_factory=dict)
    # One sentence for the reader.
    note: str = ""


@dataclass(frozen=True)
class ClaimTable:
    """All that `claims.toml` says."""

    bars: Bars
    # Heading: the sentence below it.
    parts: Mapping[str, str]
    # Export: the command that makes it.
    commands: Mapping[str, str]
    claims: tuple[Claim, ...]


def _claims(as_written: bool = False, **fields: Any) -> list[Claim]:
    """A claim about the authors' program, and if asked for the same about the paper's text."""
    claim = Claim(**fields)
    written = replace(
        claim,
        id=f"{claim.id}{WRITTEN}",
        says="The same, as written.",
        note="",
        select=_as_written(claim.select),
        options=_as_written(claim.options),
    )
    return [claim, written] if as_written else [claim]


def _as_written(told: Any) -> Any:
    """The same with the names of the exact algorithm in the place of the authors' program."""
    if isinstance(told, Mapping):
        return {name: _as_written(value) for name, value in told.items()}
    if isinstance(told, list):
        return [_as_written(value) for value in told]
    return told.replace(RELEASED, SUBJECT) if isinstance(told, str) else told


def read_claims(path: Path = FILE) -> ClaimTable:
    """The table of claims; a claim of an unknown part, or a second one of an id, is refused."""
    told = tomllib.loads(path.read_text())
    claims = tuple(claim for one in told["claim"] for claim in _claims(**one))
    parts, commands = told["parts"], told["commands"]
    ids = [one.id for one in claims]
    for one in claims:
        if one.part not in parts or ids.count(one.id) > 1:
            msg = (
                f"claim {one.id!r} must be the only one of its id and have a part of "
                f"{', '.join(parts)}, but its part is {one.part!r}"
            )
            raise InvalidParameterError(msg)
        if one.export and one.export not in commands:
            msg = f"claim {one.id!r} needs {one.export!r}; add its command to [commands]"
            raise InvalidParameterError(msg)
    return ClaimTable(Bars(**told["bars"]), parts, commands, claims)
