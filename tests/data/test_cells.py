"""Missing cells: what fills them, and what is said of it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from viewmend import MultiViewData, check_views
from viewmend.backend.threads import serial_blas
from viewmend.data import from_frames
from viewmend.data.cells import FILLS, fill_cells, learn_fills
from viewmend.exceptions import DataWarning, InvalidViewsError

RNG = np.random.default_rng(0)
FULL = RNG.normal(size=(80, 2)) @ RNG.normal(size=(2, 10)) + RNG.normal(size=10)
HIDDEN = RNG.random(FULL.shape) < 0.2
HIDDEN[HIDDEN.all(axis=1)] = False
HOLES = np.where(HIDDEN, np.nan, FULL)

every = pytest.mark.parametrize("how", list(FILLS))


def filled(views, how, **kwargs):
    data = check_views(views, **kwargs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return fill_cells(data, learn_fills(data, how))


def test_medians_are_those_of_the_observed_cells():
    (made,) = filled([HOLES], "median").views
    assert_array_equal(made, np.where(HIDDEN, np.nanmedian(HOLES, axis=0), FULL))


def test_low_rank_finds_what_medians_do_not():
    errors = {how: filled([HOLES], how).views[0][HIDDEN] - FULL[HIDDEN] for how in FILLS}
    assert np.linalg.norm(errors["low_rank"]) < 0.3 * np.linalg.norm(errors["median"])


@every
def test_cells_that_are_there_and_rows_that_are_not_stay(how):
    rows = HOLES.copy()
    rows[:5] = np.nan
    (made,) = filled([rows, FULL], how).views[:1]
    assert_array_equal(made[5:][~HIDDEN[5:]], FULL[5:][~HIDDEN[5:]])
    assert np.isnan(made[:5]).all()
    assert np.isfinite(made[5:]).all()
    assert np.isnan(rows[5:][HIDDEN[5:]]).all()


@every
def test_nothing_depends_on_the_order_of_the_rows(how):
    order = RNG.permutation(len(HOLES))
    (made,), (turned,) = filled([HOLES], how).views, filled([HOLES[order]], how).views
    assert_array_equal(turned, made[order])


@every
def test_a_new_row_does_not_depend_on_the_others(how):
    fill = FILLS[how](HOLES[:60], np.ones(60, dtype=bool))
    together = fill(HOLES[60:])
    alone = np.vstack([fill(row[None]) for row in HOLES[60:]])
    assert_array_equal(alone, together)


@every
def test_fills_stay_within_what_a_column_holds(how):
    counts = np.maximum(HOLES, 0)
    fill = FILLS[how](counts, np.ones(len(counts), dtype=bool))
    wild = counts.copy()
    wild[:, 0] = 1e9
    for made in (fill(counts), fill(wild)):
        assert (made[HIDDEN] >= np.tile(np.nanmin(counts, axis=0), (80, 1))[HIDDEN]).all()
        assert (made[:, 1:][HIDDEN[:, 1:]] <= np.nanmax(counts[:, 1:])).all()


@every
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_views_keep_their_number_type(how, dtype):
    (made,) = filled([HOLES.astype(dtype)], how, dtype=dtype).views
    assert made.dtype == dtype
    assert_allclose(made, filled([HOLES], how).views[0], atol=1e-3)


def test_units_do_not_matter_to_low_rank():
    scales = 10.0 ** RNG.integers(-6, 6, size=10)
    (made,), (scaled,) = (
        filled([HOLES], "low_rank").views,
        filled([HOLES * scales], "low_rank").views,
    )
    assert_allclose(scaled / scales, made, rtol=1e-6, atol=1e-9)


@every
def test_a_column_without_any_value_is_named_and_ignored(how):
    frame = pd.DataFrame(HOLES, columns=list("abcdefghij"), index=[f"p{i}" for i in range(80)])
    data = from_frames({"labs": frame.assign(c=np.nan)})
    fills = learn_fills(data, how)
    with pytest.warns(DataWarning, match=r"'labs'.*1 column\(s\) had no value in fit .*\['c'\]"):
        made = fill_cells(data, fills)
    assert_array_equal(made.views[0][:, 2], 0)
    with pytest.warns(DataWarning, match="ignored"):
        later = fill_cells(from_frames({"labs": frame.assign(c=5.0)}), fills)
    assert_array_equal(later.views[0], made.views[0])


def test_constant_columns_and_rows_with_one_cell_are_filled():
    view = np.ones((6, 3))
    view[0, 1:] = np.nan
    for how in FILLS:
        assert_array_equal(filled([view], how).views[0], np.ones((6, 3)))


def test_one_warning_counts_cells_and_rows_by_view():
    views = {"labs": HOLES, "scan": FULL, "text": HOLES[:, :4]}
    data = check_views(views)
    with pytest.warns(DataWarning) as caught:
        fill_cells(data, learn_fills(data, "low_rank"))
    (message,) = [str(entry.message) for entry in caught]
    n_rows = HIDDEN.any(axis=1).sum()
    assert f"view 'labs': {HIDDEN.sum()} missing cell(s) in {n_rows} row(s)" in message
    assert f"view 'text': {HIDDEN[:, :4].sum()} missing cell(s)" in message
    assert "scan" not in message


def test_complete_views_are_handed_on_without_a_copy_or_a_word():
    data = check_views([FULL])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = fill_cells(data, learn_fills(data, "low_rank"))
    assert made.views[0] is data.views[0]


def test_cells_can_be_refused_under_the_names_of_the_samples():
    data = MultiViewData((HOLES,), np.ones((80, 1), dtype=bool), ("labs",))
    first = np.flatnonzero(HIDDEN.any(axis=1))[0]
    words = rf"view 'labs' has \d+ partly NaN row\(s\) \(rows {first}, .*missing_cells='low_rank'"
    with pytest.raises(InvalidViewsError, match=words):
        learn_fills(data, "error")
    with pytest.raises(InvalidViewsError, match=words):
        fill_cells(data, ())
    assert learn_fills(check_views([FULL]), "error") == ()


def test_infinity_beside_a_missing_cell_is_refused():
    view = FULL.copy()
    view[3, 0], view[3, 1] = np.inf, np.nan
    with pytest.raises(InvalidViewsError, match=r"infinite values in 1 row\(s\) \(rows 3\)"):
        check_views([view])


def test_frames_keep_their_missing_cells_for_a_fit():
    frame = pd.DataFrame({"x": [1.0, np.nan, np.nan], "y": [2.0, 5.0, np.nan]}, index=list("abc"))
    data = from_frames({"v": frame, "w": pd.DataFrame({"z": [1.0, 2.0, 3.0]}, index=list("abc"))})
    assert data.observed[:, 0].tolist() == [True, True, False]
    assert_array_equal(data.views[0][1], [np.nan, 5])


@pytest.mark.parametrize("n_threads", [1, 2])
def test_threads_of_linear_algebra_change_no_bit(n_threads):
    rows = np.random.default_rng(0).normal(size=(900, 160)) @ np.diag(np.linspace(1, 9, 160))
    with threadpool_limits(n_threads, "blas"):
        (found,) = learn_fills(check_views([rows]), "low_rank")
    with serial_blas():
        expected = FILLS["low_rank"](rows, np.ones(len(rows), dtype=bool))
    assert_array_equal(found.components, expected.components)
