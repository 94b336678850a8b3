"""The two sides of the speed benchmarks: transcriptions that solve the same problem, and timers."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from perf import cases, measuring, profiling, rounds
from perf.hardware import host_copy
from perf.transcription import (
    LINE_SEARCHES,
    Line,
    armijo,
    golden_section,
    transcribed,
    zero_slope,
)

from viewmend.core import solve

TINY = cases.Case(150, 3, 16, 4)

# As fine as values of the cost can tell steps apart.
FINE = {"slope": zero_slope, "golden": partial(golden_section, precision=1e-8), "armijo": armijo}


@pytest.mark.parametrize("search", LINE_SEARCHES)
@pytest.mark.parametrize("settings", [{}, {"n_views": 2, "n_samples": 61, "beta": 0.5}])
def test_every_line_search_leads_to_the_solution(make_problem, search, settings):
    problem = make_problem(inner_tol=1e-7, **settings)
    expected = transcribed(problem, 4, 0.0, FINE[search])
    result = solve(problem, max_iter=4, tol=0.0)
    np.testing.assert_allclose(result.F, expected["F"], atol=1e-6)
    np.testing.assert_allclose(result.alpha, expected["alpha"], atol=1e-6)


def test_the_released_precision_is_a_thousandth_of_the_longest_step(make_problem):
    problem = make_problem()
    rough = transcribed(problem, 4, 0.0, LINE_SEARCHES["golden"])
    result = solve(problem, max_iter=4, tol=0.0)
    np.testing.assert_allclose(result.alpha, rough["alpha"], atol=2e-3)


@pytest.mark.parametrize("tol", [1e-2, 1e-3])
def test_both_sides_stop_at_the_same_round(make_problem, tol):
    problem = make_problem(inner_tol=1e-9, inner_max_iter=1000)
    result = solve(problem, max_iter=60, tol=tol)
    assert result.status == "converged"
    assert transcribed(problem, 60, tol)["n_iter"] == result.n_iter


@pytest.mark.parametrize("search", LINE_SEARCHES)
def test_a_transcription_keeps_the_precision_of_its_problem(search):
    found = transcribed(cases.random_problem(TINY, "float32"), 3, 0.0, LINE_SEARCHES[search])
    assert {found[name].dtype for name in ("F", "Q", "P", "T", "alpha", "Z")} == {
        np.dtype("float32")
    }
    double = transcribed(cases.random_problem(TINY), 3, 0.0, LINE_SEARCHES[search])
    np.testing.assert_allclose(found["F"], double["F"], atol=1e-3)


@given(best=st.floats(-1, 3), longest=st.floats(0.1, 2))
def test_searches_find_the_minimum_of_a_parabola(best, longest):
    line = Line(lambda x: (x - best) ** 2, lambda x: 2 * (x - best), longest, 1.0, -2 * best)
    expected = np.clip(best, 0, longest)
    assert abs(golden_section(line, 0.0) - expected) <= 2e-3 * longest
    if best > 0:
        assert abs(zero_slope(line, 1e-6) - expected) <= 1e-6
    # Squares of smaller numbers vanish.
    if best > 1e-3:
        # Halves end below where the cost is that of the start, and not far below.
        step = armijo(line, 0.0)
        assert step <= min(2 * best, longest)
        assert step == longest or 2 * step >= (1 - 1e-3) * 2 * best


def test_golden_section_stays_where_the_cost_only_rises():
    rising = Line(lambda x: x, lambda _: 1.0, 1.0, 1.0, 1.0)
    assert golden_section(rising, 0.0) == 0.0


def test_golden_section_asks_for_two_costs_a_bracket():
    asked = []

    def cost(x):
        asked.append(x)
        return (x - 0.4) ** 2

    golden_section(Line(cost, lambda _: 0.0, 1.0, 1.0, 0.0), 0.0)
    n_brackets = int(np.ceil(np.log(1e3) / np.log((5**0.5 + 1) / 2)))
    assert len(asked) == 2 + 2 * n_brackets


def test_random_problems_are_the_anchor_graphs_of_all_rows_at_once(monkeypatch):
    whole = cases.random_problem(TINY)
    monkeypatch.setattr(cases, "BLOCK", 7)
    np.testing.assert_allclose(cases.random_problem(TINY).Z, whole.Z, atol=1e-12)
    missing = ~whole.observed.T
    np.testing.assert_array_equal(whole.Z[missing], 1 / TINY.n_anchors)
    assert np.count_nonzero(whole.Z[~missing], axis=1).max() == cases.NEIGHBOURS
    np.testing.assert_allclose(whole.Z.sum(axis=2), 1)
    assert whole.observed.any(axis=1).all()


def test_anchors_of_random_problems_are_observed_samples():
    # Such a sample is at distance zero from itself, so that its weight there is the largest.
    problem = cases.random_problem(TINY)
    for v, Z_v in enumerate(problem.Z):
        nearest = Z_v[problem.observed[:, v]].max(axis=0)
        assert (nearest > 1 / cases.NEIGHBOURS).all()


def test_random_problems_are_the_same_in_both_precisions():
    double, single = (cases.random_problem(TINY, dtype) for dtype in ("float64", "float32"))
    assert single.Z.dtype == single.Y.dtype == np.float32
    np.testing.assert_array_equal(double.observed, single.observed)
    np.testing.assert_array_equal(double.Y, single.Y)
    np.testing.assert_allclose(double.Z, single.Z, rtol=1e-6)


class Clock:
    """A clock that tests move."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(profiling, "time", clock)
    return clock


def test_time_counts_for_the_innermost_part(clock):
    def wait(seconds):
        clock.now += seconds

    def outer():
        wait(1)
        library.inner()
        wait(2)

    def inner():
        wait(10)

    library = SimpleNamespace(outer=outer, inner=inner)
    parts = {"out": [(library, "outer"), (library, "gone")], "in": [(library, "inner")]}
    with profiling.profiled(parts) as profile:
        library.outer()
        library.inner()
        wait(7)
    assert profile.seconds == {"out": 3, "in": 20}
    assert profile.calls == {"out": 1, "in": 2}
    assert profile.shares(30) == pytest.approx({"out": 0.1, "in": 2 / 3, "rest": 7 / 30})
    assert (library.outer, library.inner) == (outer, inner)


def test_functions_come_back_after_an_error():
    def broken():
        msg = "broken"
        raise ValueError(msg)

    table = {"broken": broken}
    with (
        pytest.raises(ValueError, match="broken"),
        profiling.profiled({"part": [(table, "broken")]}),
    ):
        table["broken"]()
    assert table["broken"] is broken


def test_every_step_of_a_solve_is_watched():
    """Fails where the solver renames a function: then add its new name to the table."""
    problem = cases.random_problem(TINY)
    with profiling.profiled(rounds.STEPS) as profile:
        solve(problem, max_iter=3, tol=0.0)
    assert min(profile.calls[step] for step in rounds.STEPS if step != "start") >= 3
    assert profile.calls["start"] == 1


def test_a_watched_solve_is_the_same_solve():
    problem = cases.random_problem(TINY)
    plain = solve(problem, max_iter=3, tol=0.0)
    with profiling.profiled(rounds.STEPS):
        watched = solve(problem, max_iter=3, tol=0.0)
    np.testing.assert_array_equal(plain.F, watched.F)


def test_peak_memory_counts_what_is_alive_at_once():
    def call():
        for _ in range(3):
            pair = np.ones(250_000), np.ones(250_000)
            del pair

    assert measuring.peak_bytes(call) == pytest.approx(4e6, rel=0.01)


def test_resident_growth_sees_what_was_written():
    grown = measuring.resident_growth(lambda: np.ones(1 << 23).sum())
    if grown is None:
        pytest.skip("the operating system does not tell")
    assert 0.9 * (1 << 26) <= grown <= 2 * (1 << 26)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_copy_in_parts_copies_everything(threads):
    source = np.arange(1001.0)
    target = np.zeros_like(source)
    host_copy(target, source, threads)()
    np.testing.assert_array_equal(target, source)


def test_the_shortest_run_counts_and_time_is_limited(monkeypatch):
    times = iter([3.0, 1.0, 2.0, 0.5])
    monkeypatch.setattr(measuring, "_wall_seconds", lambda _: next(times))
    assert measuring.best_seconds(lambda: None, repeats=3) == 1.0
    taken = []
    monkeypatch.setattr(measuring, "_wall_seconds", lambda _: taken.append(1) or 20.0)
    measuring.best_seconds(lambda: None, repeats=9, enough=30.0)
    assert len(taken) == 2
