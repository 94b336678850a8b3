"""Declarative checks of the parameters of an estimator, and what a fit that failed leaves.

An estimator lists one rule per parameter and begins ``fit`` with them::

    RULES = {
        "n_anchors": AnyOf(Integer(2), OneOf("auto")),
        "anchor_method": OneOf("bkhk", "kmeans", "random"),
    }

    with fresh_fit(self):
        check_parameters(self, RULES)
        ...
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from viewmend.exceptions import InvalidParameterError

Row = TypeVar("Row")

# Of counts: more than any array has rows, and less than compiled code can count to.
LARGEST_COUNT = 2**31 - 1
# Of Python's integers, those that become a number of NumPy.
LARGEST_NUMBER = 2**63 - 1


class Rule(Protocol):
    """What a parameter may be."""

    @property
    def expected(self) -> str:
        """The accepted values in English, to follow "must be"."""

    def accepts(self, value: object) -> bool:
        """Tell whether ``value`` obeys the rule."""


def _plain(value: object) -> Any:
    """NumPy scalars as their Python counterparts, anything else unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def short(value: object) -> str:
    """A value as an error message shows it: NumPy scalars plain, long ones cut."""
    try:
        return reprlib.repr(_plain(value))
    except ValueError:  # of Python, which does not print integers of thousands of digits
        return f"{type(value).__name__} of thousands of digits"


def in_full(value: object) -> str:
    """Text that tells a value from others: of arrays all entries, with all digits."""
    return repr(np.array(value, dtype=object).tolist())


def _interval(low: object, high: object, low_open: bool, high_open: bool) -> str:
    """Bounds in English with a leading space, empty where there are none."""
    if low is not None and high is not None:
        return f" in {'(' if low_open else '['}{low}, {high}{')' if high_open else ']'}"
    if low is not None:
        return f" {'>' if low_open else '>='} {low}"
    if high is not None:
        return f" {'<' if high_open else '<='} {high}"
    return ""


@dataclass(frozen=True)
class Real:
    """A finite number between ``low`` and ``high``; an open bound is itself excluded."""

    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False

    @property
    def expected(self) -> str:
        return "a number" + _interval(self.low, self.high, self.low_open, self.high_open)

    def accepts(self, value: object) -> bool:
        number: Any = _plain(value)
        # bool is a subclass of int, but max_iter=True is a mistake.
        if isinstance(number, bool) or not isinstance(number, (int, float, np.floating)):
            return False
        if isinstance(number, int) and abs(number) > LARGEST_NUMBER:
            return False
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        above = number > low if self.low_open else number >= low
        below = number < high if self.high_open else number <= high
        return bool(-math.inf < number < math.inf and above and below)


@dataclass(frozen=True)
class Integer:
    """An integer from ``low`` to ``high``, both included, or to `LARGEST_COUNT`."""

    low: int | None
    high: int | None = None

    @property
    def expected(self) -> str:
        return "an integer" + _interval(self.low, self.high, False, False)

    def accepts(self, value: object) -> bool:
        high = LARGEST_COUNT if self.high is None else self.high
        return isinstance(_plain(value), int) and Real(self.low, high).accepts(value)


class RandomSeed:
    """What NumPy makes a random generator of: also a sequence of integers."""

    expected = "an integer >= 0, a NumPy random Generator or None"
    _sources = (
        np.random.Generator,
        np.random.BitGenerator,
        np.random.SeedSequence,
        np.random.RandomState,
    )

    def accepts(self, value: object) -> bool:
        if value is None or isinstance(value, self._sources):
            return True
        entries = [_plain(v) for v in (value if isinstance(value, (tuple, list)) else [value])]
        # As long as one likes, but no bool, which is a subclass.
        return len(entries) > 0 and all(type(entry) is int and entry >= 0 for entry in entries)


@dataclass(frozen=True)
class Does:
    """An object, not a class, that has all of the ``methods``; ``expected`` says what that is."""

    expected: str
    methods: tuple[str, ...]

    def accepts(self, value: object) -> bool:
        return not isinstance(value, type) and all(hasattr(value, name) for name in self.methods)


class OneOf:
    """One of the listed values; ``True`` and ``1`` are different values here."""

    def __init__(self, *values: object) -> None:
        self.values = values

    @property
    def expected(self) -> str:
        listed = ", ".join(map(repr, self.values))
        return listed if len(self.values) == 1 else f"one of {listed}"

    def accepts(self, value: object) -> bool:
        plain = _plain(value)
        # Asking for the type first keeps == away from arrays, whose answer is an array.
        return any(
            isinstance(plain, (type(option), int, float))
            and isinstance(plain, bool) == isinstance(option, bool)
            and plain == option
            for option in self.values
        )


class AnyOf:
    """A value that at least one of the rules accepts."""

    def __init__(self, *rules: Rule) -> None:
        self.rules = rules

    @property
    def expected(self) -> str:
        return " or ".join(rule.expected for rule in self.rules)

    def accepts(self, value: object) -> bool:
        return any(rule.accepts(value) for rule in self.rules)


@dataclass(frozen=True)
class Each:
    """A tuple or list of ``size`` entries, or of one or more, all of which obey ``rule``."""

    rule: Rule
    size: int | None = None

    @property
    def expected(self) -> str:
        sized = "a non-empty tuple or list" if self.size is None else f"{self.size} values"
        return f"{sized} with every entry {self.rule.expected}"

    def accepts(self, value: object) -> bool:
        if not isinstance(value, (tuple, list)):
            return False
        fits = len(value) > 0 if self.size is None else len(value) == self.size
        return fits and all(map(self.rule.accepts, value))


class HasParameters(Protocol):
    """An estimator as scikit-learn sees it."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Values of its parameters by name."""


# Of parameters that mean the same wherever they are.
COMMON: Mapping[str, Rule] = {
    "imputer": AnyOf(
        OneOf(None),
        Does("a transformer of viewmend.impute", ("fit_transform", "get_params")),
    ),
    "random_state": RandomSeed(),
}


@contextmanager
def fresh_fit(estimator: object) -> Iterator[None]:
    """Take all fitted attributes from an estimator, and again if the fit ends with an error.

    Half a model, or one of an earlier fit, must not look like the one that was asked for.
    """
    _forget_fit(estimator)
    try:
        yield
    except BaseException:
        # Also Ctrl-C.
        _forget_fit(estimator)
        raise


def _forget_fit(estimator: object) -> None:
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


def check_parameters(estimator: HasParameters, rules: Mapping[str, Rule]) -> None:
    """Raise unless every parameter obeys its rule, which is named in ``rules`` or `COMMON`.

    Parameters
    ----------
    estimator : HasParameters
    rules : mapping of parameter name to rule

    Raises
    ------
    InvalidParameterError
        Names every parameter at fault at once, so that one round of corrections is enough.
    """
    values = estimator.get_params(deep=False)
    rules = {name: rule for name, rule in COMMON.items() if name in values} | dict(rules)
    wrong = [name for name, rule in rules.items() if not rule.accepts(values[name])]
    if not wrong:
        return
    owner = type(estimator).__name__
    faults = [
        f"{name} of {owner} must be {rules[name].expected}, got {refused_value(values[name])}"
        for name in wrong
    ]
    changes = ", ".join(f"{name}=..." for name in wrong)
    msg = "; ".join([*faults, f"change it with set_params({changes})"])
    raise InvalidParameterError(msg)


def refused_value(value: object) -> str:
    """A value as a message shows it, with the limits of numbers if it is beyond them."""
    plain = _plain(value)
    if not isinstance(plain, int) or abs(plain) <= LARGEST_COUNT:
        return short(value)
    limits = f"beyond {LARGEST_COUNT} for a count and {LARGEST_NUMBER} for a number"
    return f"{short(value)}, which is too large ({limits})"


def choose(table: Mapping[str, Row], name: str, parameter: str) -> Row:
    """Row ``name`` of a table of choices; an unknown name is an error about ``parameter``."""
    if not isinstance(name, str) or name not in table:
        known = ", ".join(repr(key) for key in table)
        msg = f"{parameter}={short(name)} is not known; choose one of {known}"
        raise InvalidParameterError(msg)
    return table[name]
