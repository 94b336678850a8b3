"""Columns that are not numbers: categories, booleans, dates, and single cells that spoil one."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.preprocessing import OneHotEncoder

from viewmend import MendClassifier
from viewmend.data import Request, from_frames, read_view_tables, read_views
from viewmend.data.categories import MOST_CATEGORIES, read_columns_as
from viewmend.exceptions import DataWarning, InvalidViewsError

pd = pytest.importorskip("pandas", reason="frames need pandas")
NAN = np.nan
IDS = [f"s{i}" for i in range(8)]
COLOURS = ["red", "blue", "red", "blue", "red", "blue", "red", "green"]


def frame(**columns):
    return pd.DataFrame(columns, index=IDS)


def read(table, **options):
    """One view, without the notes on what became of its columns."""
    with pytest.warns(DataWarning):
        return from_frames({"v": table}, **options)


def test_categories_become_columns_of_ones_in_the_place_where_they_stood():
    found = read(frame(x=np.arange(1.0, 9.0), colour=COLOURS, y=np.arange(8)))
    assert found.columns == (("x", "colour=blue", "colour=red", "colour=(rare)", "y"),)
    expected = [[c == "blue", c == "red", c == "green"] for c in COLOURS]
    assert_array_equal(found.views[0][:, 1:4], expected)
    assert_array_equal(found.views[0][:, [0, 4]], np.column_stack([range(1, 9), range(8)]))


@pytest.mark.parametrize("make", [list, np.array, pd.Categorical, lambda c: pd.array(c, "string")])
def test_text_is_the_same_however_the_frame_holds_it(make):
    table = frame(x=np.arange(1.0, 9.0), colour=make(COLOURS))
    if isinstance(table["colour"].dtype, pd.CategoricalDtype):
        # The frame says itself that these are categories: nothing has to be told.
        found = from_frames({"v": table})
    else:
        found = read(table)
    assert found.columns[0][1:] == ("colour=blue", "colour=red", "colour=(rare)")


def test_polars_columns_of_text_and_categories():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    table = polars.DataFrame({"id": IDS, "text": COLOURS, "kind": COLOURS})
    table = table.with_columns(polars.col("kind").cast(polars.Categorical))
    found = read(table, on="id")
    assert_array_equal(found.views[0][:, :3], found.views[0][:, 3:])


def test_declared_categories_of_numbers_are_categories():
    found = from_frames({"v": frame(site=pd.Categorical([3, 1, 3, 1, 3, 1, 3, 1]))})
    assert found.columns == (("site=1", "site=3"),)


def test_the_encoding_is_that_of_scikit_learn_with_rare_categories_together():
    rng = np.random.default_rng(0)
    values = rng.choice([f"c{i:02}" for i in range(60)], 400, p=np.arange(1, 61) / 1830)
    table = pd.DataFrame({"kind": values})
    found = read(table)
    encoder = OneHotEncoder(
        min_frequency=4,
        max_categories=MOST_CATEGORIES,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
    )
    assert_array_equal(found.views[0], encoder.fit_transform(values[:, None].astype(object)))
    new = pd.DataFrame({"kind": ["c59", "c00", "never seen"]})
    again = from_frames({"v": new}, like=found)
    assert_array_equal(again.views[0], encoder.transform(new.to_numpy(dtype=object)))
    assert found.n_features == (MOST_CATEGORIES,)


def test_an_empty_cell_is_missing_and_no_category():
    values = ["red", None, "red", " ", "blue", "NA", "blue", np.nan]
    with pytest.warns(DataWarning):
        found = from_frames({"v": frame(colour=values), "w": frame(x=np.ones(8))})
    assert found.columns[0] == ("colour=blue", "colour=red")
    empty = np.array([False, True, False, True, False, True, False, True])
    assert_array_equal(np.isnan(found.views[0]).all(axis=1), empty)
    assert_array_equal(found.observed[:, 0], ~empty)


@pytest.mark.parametrize(
    "values",
    [
        [True, False] * 4,
        np.array([True, False] * 4, dtype=object),
        ["True", "False"] * 4,
        ["TRUE", "false"] * 4,
    ],
)
def test_booleans_are_zero_and_one(values):
    found = from_frames({"v": frame(flag=values, x=np.ones(8))})
    assert found.columns == (("flag", "x"),)
    assert_array_equal(found.views[0][:, 0], [1, 0] * 4)


def test_numbers_that_are_held_as_text_are_numbers():
    found = from_frames({"v": frame(x=[" 1.5", "2e3", "-4", "9", "1", "2", "3", "4"])})
    assert_array_equal(found.views[0][:, 0], [1.5, 2000, -4, 9, 1, 2, 3, 4])


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=64), min_size=2, max_size=9))
@example([0.1257302210933933, 1.3040000451301372])
def test_a_number_held_as_text_is_that_number_to_the_last_digit(numbers):
    kept = [number for number in numbers if abs(number) < 1e140]
    numbers = [*kept, 1.0]
    found = from_frames({"v": pd.DataFrame({"x": list(map(repr, numbers))})})
    assert found.views[0][:, 0].tolist() == numbers


def test_identifiers_and_free_text_are_left_out_and_told_of():
    n = 60
    table = pd.DataFrame({"x": np.arange(1.0, n + 1), "name": [f"patient {i}" for i in range(n)]})
    table["note"] = [f"remark {i % 40}" for i in range(n)]
    with pytest.warns(DataWarning, match=r"left out 2 columns of view 'v' \(\['name', 'note'"):
        found = from_frames({"v": table})
    assert found.columns == (("x",),)
    with pytest.raises(InvalidViewsError, match="'v' must have a column of numbers or categories"):
        read(table[["name"]])


DATES = {
    "timestamps": pd.date_range("2024-01-01", periods=8),
    "durations": pd.to_timedelta(np.arange(8), unit="D"),
    "text": [f"2024-01-0{i}" for i in range(1, 9)],
    "german": [f"0{i}.01.2024" for i in range(1, 9)],
    "few different": ["2024-01-01", "2024-02-01"] * 4,
    "objects": [pd.Timestamp("2024-01-01").date()] * 8,
}


@pytest.mark.parametrize("values", DATES.values(), ids=DATES)
def test_dates_are_refused_with_a_hint(values):
    with pytest.raises(InvalidViewsError, match=r"8 of 8 cells that are dates.*\.dt\.days"):
        from_frames({"v": frame(day=values, x=np.ones(8))})


BROKEN = {
    "crp": ["<0.05", 1, 2, 3, 4, "n.d.", 6, "<0.05"],
    "hb": [1, 2, 3, 4, 5, 6, "1,5", 8],
    "ok": range(1, 9),
}


@pytest.mark.parametrize(
    "form",
    ["{:.1f}%", "{:.1f} %", "1,{:03.0f}", "12'{:03.0f}", "€ {:.2f}", "{:.0f},5", "-{:.0f} $"],
)
def test_numbers_with_other_signs_are_refused_and_not_left_out(form):
    table = pd.DataFrame({"x": range(60), "share": [form.format(1.3 * i) for i in range(60)]})
    with pytest.raises(InvalidViewsError, match=r"numbers with other signs .* write plain numbers"):
        from_frames({"v": table.set_axis(map(str, range(60)))})
    # A few of them are doses, or other categories.
    few = table.assign(share=np.resize(table["share"][:3], 60)).set_axis(map(str, range(60)))
    assert len(read(few).columns[0]) == 4


def test_cells_that_are_no_numbers_are_listed_with_all_their_companions():
    with pytest.raises(InvalidViewsError) as refusal:
        from_frames({"v": frame(**BROKEN), "w": frame(z=["x", *range(7)])})
    told = str(refusal.value)
    assert "view 'v': column 'crp' has 3 of 8 cells that are no numbers ('<0.05', 'n.d.')" in told
    assert "view 'v': column 'hb' has 1 of 8 cells that are no numbers ('1,5')" in told
    assert "view 'w': column 'z' has 1 of 8 cells that are no numbers ('x')" in told
    assert "unreadable_as_missing=True" in told
    assert told.count("correct or empty these cells") == 1


def test_cells_that_are_no_numbers_are_missing_if_asked():
    table = frame(crp=BROKEN["crp"])
    with pytest.warns(DataWarning, match=r"'crp' has 3 of 8 cells .* which count as missing"):
        found = from_frames({"v": table, "w": frame(x=np.ones(8))}, unreadable_as_missing=True)
    assert_array_equal(found.views[0][:, 0], [NAN, 1, 2, 3, 4, NAN, 6, NAN])


@pytest.mark.parametrize(("n_words", "is_category"), [(4, False), (5, True)])
def test_a_column_is_of_numbers_if_half_of_its_cells_are(n_words, is_category):
    table = frame(x=["low"] * n_words + list(range(8 - n_words)), w=np.ones(8))
    if is_category:
        assert read(table).columns[0][0] == "x=low"
    else:
        with pytest.raises(InvalidViewsError, match="'x' has 4 of 8 cells that are no numbers"):
            from_frames({"v": table})


def test_new_frames_are_read_as_those_of_the_fit():
    fitted = read(frame(colour=COLOURS, x=np.arange(1.0, 9.0), flag=[True, False] * 4))
    new = pd.DataFrame(
        {"x": ["5", "6"], "extra": ["?", "!"], "flag": ["true", "false"], "colour": ["red", "pink"]}
    )
    found = from_frames({"v": new}, like=fitted)
    assert found.columns == fitted.columns
    assert_array_equal(found.views[0], [[0, 1, 0, 5, 1], [0, 0, 1, 6, 0]])
    with pytest.raises(InvalidViewsError, match=r"lacks 1 of them, \['colour'\]"):
        from_frames({"v": new.drop(columns="colour")}, like=fitted)
    with pytest.raises(InvalidViewsError, match=r"'x' has 1 of 2 cells that are no numbers"):
        from_frames({"v": new.assign(x=["5", "n.d."])}, like=fitted)
    # Slices and what a fit makes of the data keep the encoding.
    assert_array_equal(from_frames({"v": new}, like=fitted[:2]).views[0], found.views[0])


def test_a_category_that_was_never_seen_is_zero_everywhere_if_none_was_rare():
    fitted = read(frame(colour=["red", "blue"] * 4, x=np.ones(8)))
    with pytest.warns(
        DataWarning, match=r"1 of 1 cells of column 'colour' .* \('pink'\) and become"
    ):
        found = from_frames({"v": pd.DataFrame({"colour": ["pink"], "x": [1.0]})}, like=fitted)
    assert_array_equal(found.views[0], [[0, 0, 1]])


def test_categories_of_new_data_that_look_like_numbers_or_have_gaps():
    codes = pd.Categorical([3, 1, 3, 1, 3, 1, 3, 1])
    tables = {"v": frame(site=codes, x=np.ones(8)), "w": frame(z=np.ones(8))}
    fitted = from_frames(tables)
    new = {"v": pd.DataFrame({"site": [3.0, 1.0], "x": [1, 1]}), "w": pd.DataFrame({"z": [1, 1]})}
    assert_array_equal(from_frames(new, like=fitted).views[0], [[0, 1, 1], [1, 0, 1]])
    only = from_frames({"v": frame(site=codes), "w": tables["w"]})
    new["v"] = pd.DataFrame({"site": [np.nan, 3.0]})
    assert_array_equal(from_frames(new, like=only).views[0], [[NAN, NAN], [0, 1]])
    empty = read_columns_as(new["v"].iloc[:1], "v", only.categories["v"]).table
    assert list(empty) == ["site=1", "site=3"]


def test_a_fit_on_categories_alone_finds_the_classes():
    rng = np.random.default_rng(0)
    y = rng.permutation(["a", "b", "c"] * 40).astype(object)
    noise = rng.random((2, 120)) < 0.1
    tables = {
        name: pd.DataFrame({"kind": np.where(noise[v], "other", y), "x": rng.normal(size=120)})
        for v, name in enumerate(("left", "right"))
    }
    with pytest.warns(DataWarning):
        data = from_frames(tables, labels=pd.Series(y[:30]))
    model = MendClassifier().fit(data)
    assert np.mean(model.transduction_[30:] == y[30:]) > 0.9
    new = from_frames({n: t.iloc[60:] for n, t in tables.items()}, like=data)
    assert np.mean(model.predict(new) == y[60:]) > 0.9


@pytest.mark.filterwarnings("ignore:1 column of text")
def test_a_file_keeps_categories_and_forgives_cells_if_asked(tmp_path):
    table = frame(colour=COLOURS, **BROKEN).rename_axis("id").assign(label=["a", "b"] * 4)
    table.to_csv(tmp_path / "v.csv")
    source = read_view_tables(tmp_path)
    assert [(fault.column, fault.n_wrong) for fault in source.faults] == [("crp", 3), ("hb", 1)]
    with pytest.raises(InvalidViewsError, match=r"'crp' has 3 of 8 .*'hb' has 1 of 8"):
        read_views(tmp_path)
    with (
        pytest.warns(DataWarning, match="'crp' .* count as missing"),
        pytest.warns(DataWarning, match="'hb' .* count as missing"),
    ):
        source = read_view_tables(tmp_path, Request(unreadable_as_missing=True))
    assert source.faults == ()
    assert source.columns()["v"][:3] == ["colour=blue", "colour=red", "colour=(rare)"]
    assert_array_equal(source.tables["v"]["crp"], [NAN, 1, 2, 3, 4, NAN, 6, NAN])
