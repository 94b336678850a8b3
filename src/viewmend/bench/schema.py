"""What may stand in the TOML file of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from viewmend.parameters import Each, Integer, OneOf, Real, Rule, short

__all__ = [
    "EXPERIMENT",
    "LEAVE_OUT",
    "SWEEP",
    "VARIANT",
    "Field",
    "InvalidExperimentError",
    "check_fields",
]


class InvalidExperimentError(ValueError):
    """The file of an experiment asks for something that cannot be."""


@dataclass(frozen=True)
class Field:
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
EXPERIMENT: Mapping[str, Field] = {
    "name": Field(TEXT),
    "title": Field(TEXT, ""),
    "measure": Field(TEXT, "fit"),
    "protocols": Field(TEXTS),
    "data": Field(TEXTS),
    "missing_rates": Field(Distinct(Real(0, 1, high_open=True))),
    "label_rates": Field(Distinct(Real(0, 1, low_open=True))),
    "methods": Field(TEXTS, ()),
    "repetitions": Field(Integer(1)),
    "grids": Field(OneOf("thinned", "full", "none"), "thinned"),
    "plugins": Field(TEXTS, ()),
    "settings": Field(TableOf(TABLE), {}),
    "variants": Field(TableOf(TABLE), {}),
    "sweep": Field(Each(TABLE), ()),
    "leave_out": Field(Each(TABLE), ()),
}
VARIANT: Mapping[str, Field] = {"method": Field(TEXT), "setting": Field(TABLE, {})}
SWEEP: Mapping[str, Field] = {
    "method": Field(TEXT),
    "grid": Field(TableOf(Each(Anything()))),
    "data": Field(TEXTS, None),
}
LEAVE_OUT: Mapping[str, Field] = {
    "method": Field(TEXT),
    "data": Field(TEXT),
    "reason": Field(TEXT),
}


def check_fields(
    given: Mapping[str, Any], fields: Mapping[str, Field], where: str
) -> dict[str, Any]:
    """Values of all keys, defaults where a key is not given.

    Raises
    ------
    InvalidExperimentError
        Unless all given keys are known, obey their rules, and those without default are there.
    """
    unknown = [name for name in given if name not in fields]
    if unknown:
        msg = f"{where}: unknown key {unknown[0]!r}; the keys are {', '.join(fields)}"
        raise InvalidExperimentError(msg)
    for name, field in fields.items():
        if name not in given and field.default is ...:
            msg = f"{where}: {name} is not given; it must be {field.rule.expected}"
            raise InvalidExperimentError(msg)
        if name in given and not field.rule.accepts(given[name]):
            msg = f"{where}: {name} must be {field.rule.expected}, got {short(given[name])}"
            raise InvalidExperimentError(msg)
    return {name: given.get(name, field.default) for name, field in fields.items()}
