"""Kills at a few fixed steps.

The store, workers of Dask and fits in memory are killed in ``tests/bench/test_kill.py``,
``tests/distributed/test_cluster.py`` and ``tests/callbacks/test_checkpoint.py``.
"""

from dataclasses import replace

import pytest
from attacks.kills import BLOCK_CHECKPOINT_KILLS
from attacks.outcomes import Outcome, Verdict
from attacks.running import run_case


@pytest.mark.kills
def test_a_fit_over_blocks_that_is_killed_and_resumed_ends_with_the_same_bits(tmp_path):
    pytest.importorskip("dask")
    attack = replace(BLOCK_CHECKPOINT_KILLS, n_kills=2)
    attack.prepare(tmp_path)
    assert run_case(attack, tmp_path, 0, 0) == Outcome(Verdict.RIGHT)
