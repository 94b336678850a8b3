"""What may stand in the file of an experiment, as rules of its keys."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from viewmend.parameters import Each, Rule, refused_value

# Bytes of a name: what is read or written under it may add an ending, and file systems stop at 255.
LONGEST_NAME = 200


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
    """A table of printable keys, all of whose values obey a rule."""
    return Check(
        f"a table with every value {rule.expected}, and printable keys",
        lambda given: (
            isinstance(given, Mapping)
            and all(map(NAME.accepts, given))
            and all(map(rule.accepts, given.values()))
        ),
    )


def distinct(rule: Rule) -> Check:
    """A list without repetition: a value that comes twice would count twice in means."""
    each = Each(rule)
    return Check(
        f"{each.expected}, none of them twice",
        lambda given: each.accepts(given) and len(set(given)) == len(given),
    )


def _is_text(given: object) -> bool:
    # Line ends and escape characters would reach the terminal, and tables.
    return isinstance(given, str) and bool(given) and given.isprintable()


def _is_name(given: Any) -> bool:
    return _is_text(given) and len(given.encode()) <= LONGEST_NAME


def _is_file_name(given: Any) -> bool:
    return _is_name(given) and not set(given) & set('/\\:*?"<>|') and not given.startswith(".")


def _is_value(given: Any) -> bool:
    """Whether a value can be part of a run's key, which is JSON: no dates, no tables, no NaN."""
    if isinstance(given, list):
        return all(map(_is_value, given))
    if isinstance(given, float):
        return not math.isnan(given)
    if isinstance(given, int):
        return abs(given) < 2**63
    return isinstance(given, str) and (not given or _is_text(given))


TEXT = Check("printable text on one line", _is_text)
NAME = Check(f"printable text on one line, of at most {LONGEST_NAME} bytes", _is_name)
FILE_NAME = Check("a file name without folder, of printable letters", _is_file_name)
NAMES = distinct(NAME)
# The method that it is a parameter of knows better.
VALUE = Check("a number, text, a truth value or a list of them", _is_value)
TABLE = Check("a table", lambda given: isinstance(given, Mapping))


def check_fields(
    given: Mapping[str, Any], fields: Mapping[str, Field], where: str
) -> dict[str, Any]:
    """Values of all keys, defaults where one is not given; an error says which key is wrong."""
    unknown = [name for name in given if name not in fields]
    if unknown:
        msg = f"{where}: unknown key {unknown[0]!r}; the keys are {', '.join(fields)}"
        raise InvalidExperimentError(msg)
    for name, entry in fields.items():
        if name not in given and entry.default is ...:
            msg = f"{where}: {name} is not given; it must be {entry.rule.expected}"
            raise InvalidExperimentError(msg)
        if name in given and not entry.rule.accepts(given[name]):
            msg = f"{where}: {name} must be {entry.rule.expected}, got {refused_value(given[name])}"
            raise InvalidExperimentError(msg)
    return {name: given.get(name, entry.default) for name, entry in fields.items()}
