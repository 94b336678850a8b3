"""Experiments as TOML files: which methods run on which problems, and how often."""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from viewmend.bench.fields import (
    FILE_NAME,
    NAME,
    NAMES,
    TABLE,
    TEXT,
    VALUE,
    Field,
    InvalidExperimentError,
    check_fields,
    distinct,
    table_of,
)
from viewmend.bench.plugins import load_plugins
from viewmend.bench.runs import Setting, setting_of
from viewmend.parameters import Each, Integer, OneOf, Real

__all__ = [
    "Experiment",
    "InvalidExperimentError",
    "LeftOut",
    "NotInExperimentError",
    "Row",
    "UntrustedExperimentError",
    "load_plugins",
    "narrowed",
    "read_experiment",
]


class UntrustedExperimentError(InvalidExperimentError):
    """The file of an experiment names code of others, and nobody said that it may run."""


class NotInExperimentError(InvalidExperimentError):
    """An experiment has no protocol, data set or row of a name."""


# Runs of one experiment, trials of settings not counted: the plan is held in memory.
MOST_RUNS = 10**6

# A method that is not registered but imported, ``module:class``.
IMPORTED = re.compile(r"[\w.]+:[\w.]*")

# Keys at the top of the file.
EXPERIMENT: Mapping[str, Field] = {
    "name": Field(FILE_NAME),
    "title": Field(TEXT, ""),
    "measure": Field(NAME, "fit"),
    "protocols": Field(NAMES),
    "data": Field(NAMES),
    "missing_rates": Field(distinct(Real(0, 1, high_open=True))),
    "label_rates": Field(distinct(Real(0, 1, low_open=True))),
    "methods": Field(NAMES, ()),
    "repetitions": Field(Integer(1)),
    "first_repetition": Field(Integer(0), 0),
    "grids": Field(OneOf("thinned", "full", "none"), "thinned"),
    "plugins": Field(distinct(TEXT), ()),
    "settings": Field(table_of(table_of(VALUE)), {}),
    "variants": Field(table_of(TABLE), {}),
    "sweep": Field(Each(TABLE), ()),
    "leave_out": Field(Each(TABLE), ()),
}
VARIANT: Mapping[str, Field] = {"method": Field(NAME), "setting": Field(table_of(VALUE), {})}
SWEEP: Mapping[str, Field] = {
    "method": Field(NAME),
    "grid": Field(table_of(Each(VALUE))),
    "data": Field(NAMES, None),
}
LEAVE_OUT: Mapping[str, Field] = {"method": Field(NAME), "data": Field(NAME), "reason": Field(TEXT)}


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
    repetitions, first_repetition : int
        How many, and the number of the first. What is chosen by comparing accuracies is chosen on
        other repetitions than those reported.
    grids : {"thinned", "full", "none"}
        What protocols that tune search.
    settings : dict of dict
        Fixed parameters by method.
    left_out : tuple of LeftOut
    plugins : tuple of str
        Python files that add methods, data sets or measures.
    untrusted : tuple of str
        Code of others that the file names and nobody allowed: it cannot be run, only its
        records can be read.
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
    untrusted: tuple[str, ...] = ()
    first_repetition: int = 0

    def __post_init__(self) -> None:
        problems = (self.protocols, self.data, self.missing_rates, self.label_rates, self.rows)
        _check_size(math.prod(map(len, problems)) * self.repetitions, self.name)

    def check_trusted(self) -> None:
        """Raise where code of others would have to run that nobody allowed."""
        if self.untrusted:
            msg = (
                f"the experiment {self.name!r} wants to run code that does not come with viewmend: "
                f"{', '.join(self.untrusted)}. Look at that code first; if you trust it, allow it "
                "with --trust, in Python with trust=True"
            )
            raise UntrustedExperimentError(msg)

    @property
    def numbers(self) -> range:
        """Numbers of the repetitions."""
        return range(self.first_repetition, self.first_repetition + self.repetitions)

    def fixed_setting(self, row: Row) -> dict[str, Any]:
        """Parameters of a row that are not to be tuned."""
        return {**self.settings.get(row.method, {}), **dict(row.setting)}

    def reason_against(self, row: Row, data: str) -> str | None:
        """Why a row is left out on a data set, None where it is not."""
        reasons = (
            out.reason for out in self.left_out if (out.method, out.data) == (row.name, data)
        )
        return next(reasons, None)


def read_experiment(path: Path, trust: bool = False) -> Experiment:
    """The experiment of a file.

    Parameters
    ----------
    path : path
        TOML with the keys of `viewmend.bench.experiment.EXPERIMENT`. Paths of plugins are relative
        to it.
    trust : bool, default=False
        Whether code of others that the file names may run: its plugins, which are imported here,
        and methods named as ``module:class``. Without it the experiment can be read but not run.

    Raises
    ------
    InvalidExperimentError
        Says what is wrong and what may stand there.
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        msg = f"there is no experiment {str(path)!r}; give the path of a TOML file"
        raise InvalidExperimentError(msg) from None
    # Python refuses numbers of thousands of digits with a plain ValueError.
    except (ValueError, RecursionError) as error:
        msg = f"{path} is not TOML: {error}"
        raise InvalidExperimentError(msg) from error
    experiment = _experiment(check_fields(entries, EXPERIMENT, path.name), path)
    if trust:
        load_plugins(experiment.plugins)
    else:
        experiment = replace(experiment, untrusted=_code_of_others(experiment))
    _check_names(experiment, path.name)
    return experiment


def narrowed(
    experiment: Experiment,
    only: Sequence[str] = (),
    repetitions: int | None = None,
    first_repetition: int | None = None,
) -> Experiment:
    """A part of an experiment.

    Parameters
    ----------
    experiment : Experiment
    only : sequence of str
        Names of protocols, data sets and rows; of each kind that is named, only these stay.
    repetitions, first_repetition : int, optional
        Instead of the experiment's.
    """
    first = experiment.first_repetition if first_repetition is None else first_repetition
    rows = [row.name for row in experiment.rows]
    kinds = (experiment.protocols, experiment.data, rows)
    unknown = [name for name in only if not any(name in kind for kind in kinds)]
    if unknown:
        listed = ", ".join(dict.fromkeys(itertools.chain(*kinds)))
        msg = f"{experiment.name} has no {unknown[0]!r}; choose of {listed}"
        raise NotInExperimentError(msg)
    protocols, data, names = (
        tuple(name for name in kind if name in only) or tuple(kind) for kind in kinds
    )
    return replace(
        experiment,
        protocols=protocols,
        data=data,
        rows=tuple(row for row in experiment.rows if row.name in names),
        repetitions=repetitions or experiment.repetitions,
        first_repetition=first,
    )


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
        first_repetition=entries["first_repetition"],
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
    sweeps = [check_fields(sweep, SWEEP, f"{where}, [[sweep]]") for sweep in entries["sweep"]]
    n_points = sum(math.prod(map(len, given["grid"].values())) for given in sweeps)
    _check_size(n_points, f"{where}, [[sweep]]")
    for given in sweeps:
        for point in itertools.product(*given["grid"].values()):
            setting = setting_of(dict(zip(given["grid"], point, strict=True)))
            data = None if given["data"] is None else tuple(given["data"])
            yield Row(given["method"], given["method"], setting, False, data)


def _check_size(n_runs: int, where: str) -> None:
    if n_runs > MOST_RUNS:
        msg = (
            f"{where}: it asks for more than {MOST_RUNS} runs; lower repetitions, or spread "
            "methods, data and rates over several files"
        )
        raise InvalidExperimentError(msg)


def _code_of_others(experiment: Experiment) -> tuple[str, ...]:
    """Plugins, and methods that are to be imported by name."""
    from viewmend.bench.methods import CONTESTANTS

    methods = dict.fromkeys(row.method for row in experiment.rows)
    imported = [m for m in methods if m not in CONTESTANTS and IMPORTED.fullmatch(m)]
    return (
        *(f"plugin {path}" for path in experiment.plugins),
        *(f"method {name}" for name in imported),
    )


def _check_names(experiment: Experiment, where: str) -> None:
    """Every name must stand for something: a misspelt one would be skipped without a word.

    What plugins that are not loaded may add is not looked for, except protocols, which every
    record depends on.
    """
    from viewmend.bench.measures import MEASURES
    from viewmend.bench.methods import CONTESTANTS
    from viewmend.bench.protocols import PROTOCOLS

    rows = [row.name for row in experiment.rows]
    methods = [row.method for row in experiment.rows]
    not_imported = [name for name in methods if not IMPORTED.fullmatch(name)]
    on_data = [data for row in experiment.rows for data in row.data or ()]
    added = experiment.plugins and experiment.untrusted
    if added and not set(experiment.protocols) <= PROTOCOLS.keys():
        experiment.check_trusted()
    for kind, used, known in (
        ("measure", () if added else [experiment.measure], MEASURES),
        ("protocol", experiment.protocols, PROTOCOLS),
        ("method", () if added else not_imported, CONTESTANTS),
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
