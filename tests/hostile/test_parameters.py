"""Odd values of parameters, and what is left of a fit that failed."""

import numpy as np
import pytest
from attacks.fitting import make_task
from attacks.outcomes import Verdict
from attacks.parameters import ESTIMATORS, ODD, all_places, try_value

# The fits themselves are slow.
SLOW = {"IMvGCN", "GEGCN"}
PLACES = [place for place in all_places() if place[0] not in SLOW]
SEEDED = sorted({name for name, parameter in PLACES if parameter == "random_state"})
TASK = make_task(40, seed=0, n_features=(5, 25))


@pytest.mark.parametrize("estimator", SEEDED)
@pytest.mark.parametrize("value", ["'x'", "0.5", "-1", "nan", "{}", "object()", "True"])
def test_what_is_no_seed_is_refused_by_name(estimator, value):
    outcome = try_value(estimator, "random_state", value)
    assert outcome.verdict is Verdict.REFUSED, outcome.detail


@pytest.mark.parametrize("place", PLACES, ids="-".join)
def test_a_number_too_large_for_compiled_code_is_no_crash(place):
    outcome = try_value(*place, "10**30")
    taken = place[1] == "random_state"
    assert outcome.verdict is (Verdict.RIGHT if taken else Verdict.REFUSED), outcome.detail


@pytest.mark.parametrize(
    ("estimator", "parameter"),
    [("Mend", "n_jobs"), ("AGF-TI", "n_jobs"), ("mean + spreading", "n_neighbors")],
)
def test_integers_of_numpy_are_integers(estimator, parameter):
    assert try_value(estimator, parameter, "np.int64(3)").verdict is Verdict.RIGHT


@pytest.mark.parametrize("value", sorted(set(ODD) - {"None", "{}", "[]"}))
def test_what_is_no_grid_is_refused_by_name(value):
    outcome = try_value("LabelSearchCV", "param_grid", value)
    assert outcome.verdict is Verdict.REFUSED, outcome.detail


@pytest.mark.parametrize("estimator", sorted(set(ESTIMATORS) - SLOW))
def test_a_fit_that_fails_leaves_nothing_of_an_earlier_one(estimator):
    model = ESTIMATORS[estimator]()
    # As an earlier fit leaves them.
    model.classes_, model.components_ = np.arange(2), np.zeros(3)
    with pytest.raises(ValueError, match="view"):
        model.fit([np.full((4, 2), np.inf)], [0, 1, -1, -1])
    assert not [name for name in vars(model) if name.endswith("_")]
    model.classes_ = np.arange(2)
    bad = next(iter(model.get_params(deep=False)))
    with pytest.raises(ValueError, match=bad):
        model.set_params(**{bad: object()}).fit(TASK.data, TASK.y)
    assert not [name for name in vars(model) if name.endswith("_")]
