"""A few odd fits of the attack, and the ways in which it would notice what is wrong."""

import numpy as np
import pytest
from attacks.fits import Fits, _at_chance, _moved, _problem, _unsound
from attacks.outcomes import GOOD
from attacks.running import run_case

from viewmend import MendClassifier


@pytest.mark.parametrize("case", range(60))
def test_odd_fits_are_right_or_refused(case, tmp_path):
    outcome = run_case(Fits(), tmp_path, 0, case)
    assert outcome.verdict in GOOD, outcome.detail


def test_the_attack_notices_an_answer_at_chance_and_shares_that_are_none():
    rng = np.random.default_rng(0)
    given = _problem(rng)
    moved = _moved(given, rng)
    model = MendClassifier().fit(list(given.views), given.y, given.mask)
    assert _at_chance(model, given, moved) is None
    model.transduction_ = np.zeros_like(model.transduction_)
    assert _at_chance(model, given, moved).startswith("accuracy")
    assert _unsound(np.array([[0.5, 0.5]]), 1) is None
    for wrong in ([[np.nan, 0.5]], [[0.5, 0.4]], [[1.5, -0.5]]):
        assert _unsound(np.array(wrong), 1) is not None
