"""Experiments as TOML files: which methods run on which problems, and how often."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from viewmend.bench.runs import Setting, setting_of
from viewmend.parameters import Each, Integer, OneOf, Real, Rule, short

__all__ = [
    "Experiment",
    "InvalidExperimentError",
    "LeftOut",
    "Row",
    "load_plugins",
    "narrowed",
    "read_experiment",
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
LEAVE_OUT: Mapping[str, Field] = {"method": Field(TEXT), "data": Field(TEXT), "reason": Field(TEXT)}


@dataclass(frozen=True)
class Row:
    """A line of the experiment's tables.

    Attributes
    ----------
    name : str
        As tables print it.
    method : str
        Row of `viewmend.bench.methods.CONTESTANTS`, or ``module:class``.
    setting : tuple of (name, value)
        Parameters that make it what its name says.
    tuned : bool
        Whether protocols that tune search the method's grid for it.
    data : tuple of str or None
        Data sets it is for, None for all.
    """

    name: str
    method: str
    setting: Setting = ()
    tuned: bool = True
    data: tuple[str, ...] | None = None


@dataclass(frozen=True)
class LeftOut:
    """Runs that are not done, and why.

    Attributes
    ----------
    method, data : str
        The row of the tables, and the data set.
    reason : str
    """

    method: str
    data: str
    reason: str


@dataclass(frozen=True)
class Experiment:
    """What one file asks for.

    Attributes
    ----------
    name, title : str
    measure : str
        Row of `viewmend.bench.measures.MEASURES`.
    protocols, data : tuple of str
    missing_rates, label_rates : tuple of float
    rows : tuple of Row
        Methods, then variants, then the points of sweeps.
    repetitions : int
    grids : {"thinned", "full", "none"}
        What protocols that tune search.
    settings : dict of dict
        Fixed parameters by method.
    left_out : tuple of LeftOut
    plugins : tuple of str
        Python files that add methods, data sets or measures.
    """

    name: str
    title: str
    measure: str
    protocols: tuple[str, ...]
    data: tuple[str, ...]
    missing_rates: tuple[float, ...]
    label_rates: tuple[float, ...]
    rows: tuple[Row, ...]
    repetitions: int
    grids: str = "thinned"
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()
    plugins: tuple[str, ...] = ()

    def fixed_setting(self, row: Row) -> dict[str, Any]:
        """Parameters of a row that are not to be tuned."""
        return {**self.settings.get(row.method, {}), **dict(row.setting)}

    def reason_against(self, row: Row, data: str) -> str | None:
        """Why a row is left out on a data set, None where it is not."""
        reasons = (
            out.reason for out in self.left_out if (out.method, out.data) == (row.name, data)
        )
        return next(reasons, None)


def read_experiment(path: Path) -> Experiment:
    """The experiment of a file.

    Parameters
    ----------
    path : path
        TOML with the keys of `viewmend.bench.experiment.EXPERIMENT`. Paths of plugins are relative
        to it.

    Raises
    ------
    InvalidExperimentError
        Says what is wrong and what may stand there.
    """
    try:
        entries = tomllib.loads(path.read_text())
    except FileNotFoundError:
        msg = f"there is no experiment {str(path)!r}; give the path of a TOML file"
        raise InvalidExperimentError(msg) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"{path} is not TOML: {error}"
        raise InvalidExperimentError(msg) from error
    checked = check_fields(entries, EXPERIMENT, path.name)
    experiment = _experiment(checked, path)
    load_plugins(experiment.plugins)
    _check_names(experiment, path.name)
    return experiment


def narrowed(
    experiment: Experiment, only: Sequence[str] = (), repetitions: int | None = None
) -> Experiment:
    """A part of an experiment.

    Parameters
    ----------
    experiment : Experiment
    only : sequence of str
        Names of protocols, data sets and rows; of each kind that is named, only these stay.
    repetitions : int, optional
        Instead of the experiment's.
    """
    rows = [row.name for row in experiment.rows]
    kinds = (experiment.protocols, experiment.data, rows)
    unknown = [name for name in only if not any(name in kind for kind in kinds)]
    if unknown:
        listed = ", ".join(dict.fromkeys(itertools.chain(*kinds)))
        msg = f"{experiment.name} has no {unknown[0]!r}; choose of {listed}"
        raise InvalidExperimentError(msg)
    protocols, data, names = (
        tuple(name for name in kind if name in only) or tuple(kind) for kind in kinds
    )
    return replace(
        experiment,
        protocols=protocols,
        data=data,
        rows=tuple(row for row in experiment.rows if row.name in names),
        repetitions=repetitions or experiment.repetitions,
    )


def load_plugins(paths: Iterable[str]) -> None:
    """Import Python files under the name of the file, each once per process.

    Parameters
    ----------
    paths : iterable of str
    """
    for path in paths:
        name = Path(path).stem
        known = getattr(sys.modules.get(name), "__file__", None)
        if known == path:
            continue
        spec = importlib.util.spec_from_file_location(name, path)
        if name in sys.modules or spec is None or spec.loader is None or not Path(path).is_file():
            msg = (
                f"plugin {path!r} must be a Python file whose name no other module has; "
                "rename it or correct the path"
            )
            raise InvalidExperimentError(msg)
        module = importlib.util.module_from_spec(spec)
        # Before it runs: what it registers may be imported by this name.
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise


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
            msg = f"{where}: {name} must be {entry.rule.expected}, got {short(given[name])}"
            raise InvalidExperimentError(msg)
    return {name: given.get(name, entry.default) for name, entry in fields.items()}


def _experiment(entries: Mapping[str, Any], path: Path) -> Experiment:
    return Experiment(
        name=entries["name"],
        title=entries["title"] or entries["name"],
        measure=entries["measure"],
        protocols=tuple(entries["protocols"]),
        data=tuple(entries["data"]),
        missing_rates=tuple(map(float, entries["missing_rates"])),
        label_rates=tuple(map(float, entries["label_rates"])),
        rows=tuple(_rows(entries, path.name)),
        repetitions=entries["repetitions"],
        grids=entries["grids"],
        settings=entries["settings"],
        left_out=tuple(
            LeftOut(**check_fields(out, LEAVE_OUT, f"{path.name}, [[leave_out]]"))
            for out in entries["leave_out"]
        ),
        plugins=tuple(str((path.parent / plugin).resolve()) for plugin in entries["plugins"]),
    )


def _rows(entries: Mapping[str, Any], where: str) -> Iterable[Row]:
    for method in entries["methods"]:
        yield Row(method, method)
    for name, variant in entries["variants"].items():
        given = check_fields(variant, VARIANT, f"{where}, [variants.{name!r}]")
        yield Row(name, given["method"], setting_of(given["setting"]))
    for sweep in entries["sweep"]:
        given = check_fields(sweep, SWEEP, f"{where}, [[sweep]]")
        for point in itertools.product(*given["grid"].values()):
            setting = setting_of(dict(zip(given["grid"], point, strict=True)))
            data = None if given["data"] is None else tuple(given["data"])
            yield Row(given["method"], given["method"], setting, False, data)


def _check_names(experiment: Experiment, where: str) -> None:
    """Every name must stand for something: a misspelt one would be skipped without a word."""
    from viewmend.bench.measures import MEASURES
    from viewmend.bench.methods import CONTESTANTS
    from viewmend.bench.protocols import PROTOCOLS

    rows = [row.name for row in experiment.rows]
    methods = [row.method for row in experiment.rows]
    on_data = [data for row in experiment.rows for data in row.data or ()]
    for kind, used, known in (
        ("measure", [experiment.measure], MEASURES),
        ("protocol", experiment.protocols, PROTOCOLS),
        ("method", [name for name in methods if ":" not in name], CONTESTANTS),
        ("method in [settings]", experiment.settings, methods),
        ("data set in [[sweep]]", on_data, experiment.data),
        ("method in [[leave_out]]", [out.method for out in experiment.left_out], rows),
        ("data set in [[leave_out]]", [out.data for out in experiment.left_out], experiment.data),
    ):
        unknown = [name for name in used if name not in known]
        if unknown:
            listed = ", ".join(dict.fromkeys(known))
            msg = f"{where}: there is no {kind} {unknown[0]!r}; choose one of {listed}"
            raise InvalidExperimentError(msg)
    doubled = [
        row.name for row in experiment.rows if row.name != row.method and row.name in methods
    ]
    if doubled:
        msg = f"{where}: the variant {doubled[0]!r} has the name of a method; give it its own"
        raise InvalidExperimentError(msg)
    if not rows:
        msg = f"{where}: there is nothing to run; list methods, or give [variants] or [[sweep]]"
        raise InvalidExperimentError(msg)
