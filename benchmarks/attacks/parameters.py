"""Odd values for every parameter of every estimator: a fit, or a refusal that names it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from attacks.fitting import make_task
from attacks.outcomes import Outcome, Verdict, judged
from viewmend import LabelSearchCV, MendClassifier, impute
from viewmend.baselines.registry import METHODS

ODD: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "'x'": lambda: "x",
    "0.5": lambda: 0.5,
    "-1": lambda: -1,
    "0": lambda: 0,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "10**30": lambda: 10**30,
    "[]": list,
    "{}": dict,
    "object()": object,
    "np.int64(3)": lambda: np.int64(3),
    "np.float64(0.5)": lambda: np.float64(0.5),
    "np.array([1, 2])": lambda: np.array([1, 2]),
    "True": lambda: True,
}

# So that a fit takes a fraction of a second.
FEW = {"max_iter": 3, "pretrain_iter": 2, "n_rounds": 1, "n_outer": 2}


@dataclass(frozen=True)
class Parameters:
    """One parameter of one estimator takes a value that nobody meant it to have."""

    name: str = "parameters"
    n_cases: int = 1000
    time_limit: float = 60.0

    def prepare(self, folder: Path) -> None:
        pass

    def attempt(self, _folder: Path, rng: np.random.Generator) -> Outcome:
        places = all_places()
        estimator, parameter = places[rng.integers(len(places))]
        return try_value(estimator, parameter, str(rng.choice(list(ODD))))


def try_value(estimator: str, parameter: str, value: str) -> Outcome:
    """A fit of an estimator with one odd value."""
    outcome = judged(partial(_fit, estimator, parameter, value))
    told = f"{estimator}({parameter}={value}): {outcome.detail}"
    if outcome.verdict is Verdict.REFUSED and parameter not in outcome.detail:
        return Outcome(Verdict.FOREIGN, f"{told}\ndoes not name the parameter")
    return Outcome(outcome.verdict, told)


def _fit(estimator: str, parameter: str, value: str) -> None:
    task = make_task(60, seed=0, n_features=(5, 25))
    model = ESTIMATORS[estimator]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.set_params(**{parameter: ODD[value]()}).fit(task.data, task.y)


def _quick(make: Callable[[], Any]) -> Any:
    model = make()
    few = {name: n for name, n in FEW.items() if name in model.get_params(deep=False)}
    return model.set_params(**few)


def _search() -> LabelSearchCV:
    return LabelSearchCV(MendClassifier(n_rounds=0), {"spreading": [0.9]}, cv=2)


# By name, with all else at its default but the numbers of rounds.
ESTIMATORS: dict[str, Callable[[], Any]] = {
    **{
        name: partial(_quick, lambda method=method: method.estimator())
        for name, method in METHODS.items()
    },
    **{name: partial(_quick, getattr(impute, name)) for name in impute.__all__},
    "LabelSearchCV": _search,
}


@cache
def all_places() -> Sequence[tuple[str, str]]:
    """Every parameter of every estimator."""
    return [
        (name, parameter)
        for name, make in ESTIMATORS.items()
        for parameter in make().get_params(deep=False)
    ]
