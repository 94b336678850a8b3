"""What may stand in the TOML file of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viewmend.parameters import Each, Integer, OneOf, Real, Rule, short

__all__ = [
    "ENTRIES",
    "LEAVE_OUT",
    "SWEEP",
    "VARIANT",
    "Entry",
    "InvalidExperimentError",
    "check_fields",
]


class InvalidExperimentError(ValueError):
    """The file of an experiment asks for something that cannot be."""


@dataclass(frozen=True)
class Entry:
    """What a key may hold, and what it holds where it is not given; without default it must be."""

    rule: Rule
    default: Any = ...


class Text:
    """A string that says something."""

    expected = "text"

    def accepts(self, value: object) -> bool:
        """Whether it is a string and not empty."""
        return isinstance(value, str) and bool(value)


@dataclass(frozen=True)
class TableOf:
    """A table all of whose values obey a rule."""

    rule: Rule | None = None

    @property
    def expected(self) -> str:
        """As an error message has it."""
        return "a table" if self.rule is None else f"a table with every value {self.rule.expected}"

    def accepts(self, value: object) -> bool:
        """Whether it is a table of such values."""
        if not isinstance(value, Mapping):
            return False
        return self.rule is None or all(map(self.rule.accepts, value.values()))


class Anything:
    """A value of whatever kind; the method that it is a parameter of knows better."""

    expected = "anything"

    def accepts(self, _value: object) -> bool:
        """Always."""
        return True


@dataclass(frozen=True)
class Distinct:
    """A list without repetition: a value that comes twice would count twice in means."""

    rule: Rule

    @property
    def expected(self) -> str:
        """As an error message has it."""
        return f"{Each(self.rule).expected}, none of them twice"

    def accepts(self, value: Any) -> bool:
        """Whether it is a list of such values, all different."""
        return Each(self.rule).accepts(value) and len(set(value)) == len(value)


TEXT, TEXTS, TABLE = Text(), Distinct(Text()), TableOf()

# Keys at the top of the file.
ENTRIES: Mapping[str, Entry] = {
    "name": Entry(TEXT),
    "title": Entry(TEXT, ""),
    "measure": Entry(TEXT, "fit"),
    "protocols": Entry(TEXTS),
    "data": Entry(TEXTS),
    "missing_rates": Entry(Distinct(Real(0, 1, high_open=True))),
    "label_rates": Entry(Distinct(Real(0, 1, low_open=True))),
    "methods": Entry(TEXTS, ()),
    "repetitions": Entry(Integer(1)),
    "grids": Entry(OneOf("thinned", "full", "none"), "thinned"),
    "plugins": Entry(TEXTS, ()),
    "settings": Entry(TableOf(TABLE), {}),
    "variants": Entry(TableOf(TABLE), {}),
    "sweep": Entry(Each(TABLE), ()),
    "leave_out": Entry(Each(TABLE), ()),
}
VARIANT: Mapping[str, Entry] = {"method": Entry(TEXT), "setting": Entry(TABLE, {})}
SWEEP: Mapping[str, Entry] = {
    "method": Entry(TEXT),
    "grid": Entry(TableOf(Each(Anything()))),
    "data": Entry(TEXTS, None),
}
LEAVE_OUT: Mapping[str, Entry] = {
    "method": Entry(TEXT),
    "data": Entry(TEXT),
    "reason": Entry(TEXT),
}


def check_fields(
    given: Mapping[str, Any], entries: Mapping[str, Entry], where: str
) -> dict[str, Any]:
    """Values of all keys, defaults where a key is not given.

    Raises
    ------
    InvalidExperimentError
        Unless all given keys are known, obey their rules, and those without default are there.
    """
    unknown = [name for name in given if name not in entries]
    if unknown:
        msg = f"{where}: unknown key {unknown[0]!r}; the keys are {', '.join(entries)}"
        raise InvalidExperimentError(msg)
    for name, entry in entries.items():
        if name not in given and entry.default is ...:
            msg = f"{where}: {name} is not given; it must be {entry.rule.expected}"
            raise InvalidExperimentError(msg)
        if name in given and not entry.rule.accepts(given[name]):
            msg = f"{where}: {name} must be {entry.rule.expected}, got {short(given[name])}"
            raise InvalidExperimentError(msg)
    return {name: given.get(name, entry.default) for name, entry in entries.items()}
