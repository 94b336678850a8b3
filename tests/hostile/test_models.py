"""Damaged and forged model files: a few of the cases of ``benchmarks/hostile.py``."""

import numpy as np
import pytest
from attacks.forging import ACCIDENTS, FORGERIES, damaged, forged
from attacks.models import ModelFiles
from attacks.outcomes import GOOD, Verdict
from attacks.running import run_case

ATTACK = ModelFiles()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    ATTACK.prepare(folder)
    return folder


def test_damaged_files_are_refused_and_forged_ones_refused_or_usable(folder):
    outcomes = [run_case(ATTACK, folder, 0, case) for case in range(240)]
    assert [outcome for outcome in outcomes if outcome.verdict not in GOOD] == []
    verdicts = [outcome.verdict for outcome in outcomes]
    # A forgery may be another model, and some are.
    assert 10 < verdicts.count(Verdict.RIGHT) < 80


def test_the_cases_are_of_every_kind(folder):
    data, other = ((folder / name).read_bytes() for name in ("mend.vm", "agfti.vm"))
    rng = np.random.default_rng(0)
    assert {damaged(data, other, rng)[0] for _ in range(150)} == set(ACCIDENTS)
    assert {forged(data, rng)[0] for _ in range(150)} == set(FORGERIES)
