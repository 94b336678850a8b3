"""Writers of one file at once, and killed ones: a few cases of ``benchmarks/hostile.py``."""

import sys

import pytest
from attacks.outcomes import GOOD
from attacks.running import run_case
from attacks.writers import KilledWriters, TwoWriters

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")


@pytest.mark.parametrize("attack", [TwoWriters(), KilledWriters()], ids=lambda a: a.name)
def test_a_file_is_always_whole(attack, tmp_path):
    attack.prepare(tmp_path)
    outcomes = [run_case(attack, tmp_path, 0, case) for case in range(3)]
    assert [outcome for outcome in outcomes if outcome.verdict not in GOOD] == []
