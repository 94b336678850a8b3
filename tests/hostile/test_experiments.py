"""Experiment files, records and checkpoint folders that somebody else wrote or changed."""

import numpy as np
import pytest
from attacks.experiments import DAMAGES, BlockCheckpointFiles, ExperimentFiles, StoreRecords
from attacks.outcomes import GOOD
from attacks.running import run_case


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the attacks on files and records start from; one run of both is enough."""
    folder = tmp_path_factory.mktemp("experiments")
    ExperimentFiles().prepare(folder)
    return folder


@pytest.mark.parametrize("attack", [ExperimentFiles(), StoreRecords()], ids=lambda one: one.name)
def test_nothing_runs_nothing_is_written_elsewhere_and_errors_are_ours(folder, attack):
    outcomes = {case: run_case(attack, folder, 0, case) for case in range(25)}
    bad = {case: outcome for case, outcome in outcomes.items() if outcome.verdict not in GOOD}
    assert not bad
    # The cases are of both kinds, so that a harness that refuses everything would be seen.
    assert {outcome.verdict for outcome in outcomes.values()} == set(GOOD)


@pytest.fixture(scope="module")
def rounds(tmp_path_factory):
    pytest.importorskip("dask")
    folder = tmp_path_factory.mktemp("rounds")
    BlockCheckpointFiles().prepare(folder)
    return folder


class First:
    """Instead of a generator: the file and the damage that a test asks for."""

    def __init__(self, *draws):
        self.draws, self.rest = list(draws), np.random.default_rng(0)

    def integers(self, *bounds):
        return self.draws.pop(0) if self.draws else self.rest.integers(*bounds)

    def __getattr__(self, name):
        return getattr(self.rest, name)


@pytest.mark.parametrize("damage", range(len(DAMAGES)), ids=[d.__name__[1:] for d in DAMAGES])
def test_a_damaged_checkpoint_folder_is_refused(rounds, damage):
    """The table, a block, and what the client holds."""
    outcomes = [BlockCheckpointFiles().attempt(rounds, First(file, damage)) for file in (0, 1, 3)]
    # A file that took its own place, or a table that is not there, leave nothing to refuse.
    assert {outcome.verdict for outcome in outcomes} <= set(GOOD)
    assert [o.detail.startswith("CheckpointError: ") for o in outcomes].count(True) >= 2
