"""The solver agrees with a line-by-line transcription of the paper's algorithm."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from viewmend.core import solve

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "perf" / "transcription.py"


@pytest.fixture(scope="module")
def transcribed():
    if not SCRIPT.is_file():
        pytest.skip("a source distribution has the tests but not the benchmarks")
    spec = importlib.util.spec_from_file_location("transcription", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.transcribed


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"n_views": 2, "n_anchors": 15, "rho": 100.0},
        {"n_samples": 61, "n_views": 4, "beta": 0.5},
        {"missing_rate": 0.0},
    ],
    ids=["three views", "odd anchors", "prime length, sparse graph", "complete"],
)
@pytest.mark.parametrize("n_rounds", [1, 7])
def test_rounds_equal_the_transcription(make_problem, transcribed, settings, n_rounds):
    problem = make_problem(inner_tol=1e-9, inner_max_iter=1000, **settings)
    expected = transcribed(problem, max_iter=n_rounds, tol=0.0)
    result = solve(problem, max_iter=n_rounds, tol=0.0)
    for name, array in expected.items():
        np.testing.assert_allclose(getattr(result, name), array, atol=1e-6, err_msg=name)
