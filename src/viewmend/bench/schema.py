"""What may stand in the TOML file of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


@dataclass(frozen=True)
class Check:
    """A rule of a file alone: how an error message has it, and what obeys it."""

    expected: str
    accepts: Callable[[Any], bool]


def table_of(rule: Rule) -> Check:
    """A table all of whose values obey a rule."""
    return Check(
        f"a table with every value {rule.expected}",
        lambda given: isinstance(given, Mapping) and all(map(rule.accepts, given.values())),
    )


def distinct(rule: Rule) -> Check:
    """A list without repetition: a value that comes twice would count twice in means."""
    each = Each(rule)
    return Check(
        f"{each.expected}, none of them twice",
        lambda given: each.accepts(given) and len(set(given)) == len(given),
    )


TEXT = Check("text", lambda given: isinstance(given, str) and bool(given))
TEXTS = distinct(TEXT)
TABLE = Check("a table", lambda given: isinstance(given, Mapping))
# The method that it is a parameter of knows better.
ANYTHING = Check("anything", lambda _: True)

# Keys at the top of the file.
EXPERIMENT: Mapping[str, Field] = {
    "name": Field(TEXT),
    "title": Field(TEXT, ""),
    "measure": Field(TEXT, "fit"),
    "protocols": Field(TEXTS),
    "data": Field(TEXTS),
    "missing_rates": Field(distinct(Real(0, 1, high_open=True))),
    "label_rates": Field(distinct(Real(0, 1, low_open=True))),
    "methods": Field(TEXTS, ()),
    "repetitions": Field(Integer(1)),
    "grids": Field(OneOf("thinned", "full", "none"), "thinned"),
    "plugins": Field(TEXTS, ()),
    "settings": Field(table_of(TABLE), {}),
    "variants": Field(table_of(TABLE), {}),
    "sweep": Field(Each(TABLE), ()),
    "leave_out": Field(Each(TABLE), ()),
}
VARIANT: Mapping[str, Field] = {"method": Field(TEXT), "setting": Field(TABLE, {})}
SWEEP: Mapping[str, Field] = {
    "method": Field(TEXT),
    "grid": Field(table_of(Each(ANYTHING))),
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
