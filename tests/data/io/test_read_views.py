"""Files of every kind and habit are read as the same views, and what was done to them is told."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from viewmend.data import Request, read_view_tables, read_views
from viewmend.data.io.tables import shared_id_column
from viewmend.exceptions import DataWarning, InvalidLabelsError, InvalidViewsError

LABS = pd.DataFrame(
    {
        "patient": ["P-03", "007", "P-01", "P-02"],
        "hb": [1.5, 2.0, -0.25, 4.0],
        "crp": [10.0, 20.0, 30.0, 40.5],
        "stage": ["sévère", None, "léger", None],
    }
)
SCAN = pd.DataFrame({"patient": ["P-01", "P-09", "007"], "v1": [1.0, 2.0, 3.0]})


def folder_of(path, labs=LABS, scan=SCAN, **options):
    path.mkdir(exist_ok=True)
    labs.to_csv(path / "labs.csv", index=False, **options)
    scan.to_csv(path / "scan.csv", index=False)
    return path


def same(one, other):
    """Whether two joins hold the same samples, values and labels."""
    assert one.ids.tolist() == other.ids.tolist()
    assert one.names == other.names
    for a, b in zip(one.views, other.views, strict=True):
        assert_array_equal(a, b)
    assert one.y.tolist() == other.y.tolist()


def joined(path, **request):
    return read_views(path, Request(**request))


def test_a_join_worked_out_by_hand(tmp_path):
    found = joined(folder_of(tmp_path), labels="stage")
    nan = np.nan
    assert found.ids.tolist() == ["P-03", "007", "P-01", "P-02", "P-09"]
    assert_array_equal(found.views[0][:, 0], [1.5, 2.0, -0.25, 4.0, nan])
    assert_array_equal(found.views[1][:, 0], [nan, 3.0, 1.0, nan, 2.0])
    assert found.y.tolist() == ["sévère", None, "léger", None, None]
    assert found.columns == (("hb", "crp"), ("v1",))
    assert found.name == tmp_path.name


@pytest.mark.parametrize(
    "habit",
    [
        {"sep": ";", "decimal": ",", "encoding": "utf-8-sig"},
        {"sep": "\t"},
        {"sep": ";", "encoding": "cp1252"},
        {"sep": "|", "encoding": "utf-16"},
        {"sep": ";", "decimal": ",", "lineterminator": "\r\n"},
        {"quoting": 1},
        {"sep": ";", "decimal": ",", "quoting": 1},
    ],
    ids=["excel", "tabs", "windows", "utf16", "crlf", "quoted", "quoted decimals"],
)
def test_the_habits_of_spreadsheets_make_no_difference(tmp_path, habit):
    plain = joined(folder_of(tmp_path / "plain"), labels="stage")
    same(joined(folder_of(tmp_path / "other", **habit), labels="stage"), plain)


def test_separators_at_the_ends_of_lines_make_no_difference(tmp_path):
    plain = joined(folder_of(tmp_path / "plain"), labels="stage")
    other = folder_of(tmp_path / "other")
    header, *lines = (other / "labs.csv").read_text().splitlines()
    (other / "labs.csv").write_text("\n".join([header, *(f"{line}," for line in lines)]))
    same(joined(other, labels="stage"), plain)


def test_capitals_blanks_and_lock_files_make_no_difference(tmp_path):
    plain = joined(folder_of(tmp_path / "plain"), labels="stage")
    other = folder_of(
        tmp_path / "other", labs=LABS.rename(columns={"hb": " hb ", "stage": "stage "})
    )
    (other / "labs.csv").rename(other / "labs.CSV")
    (other / ".~lock.labs.csv").write_text("me")
    (other / "._scan.csv").write_bytes(b"\x00\x05")
    same(joined(other, labels="stage"), plain)
    padded = folder_of(tmp_path / "padded", scan=SCAN.assign(patient=SCAN["patient"] + " "))
    same(joined(padded, labels="stage"), plain)


@pytest.mark.parametrize("name", ["genes.xlsx", "visit.1.csv.gz", "Genes.TXT"])
def test_tables_of_a_kind_that_is_not_read_are_told(tmp_path, name):
    folder = folder_of(tmp_path)
    plain = joined(folder, labels="stage")
    for other in (name, "README.md", f"~${name}"):
        (folder / other).write_bytes(b"PK")
    with pytest.warns(DataWarning, match=rf"left out \['{name}'\], which cannot be read as tables"):
        same(joined(folder, labels="stage"), plain)


def test_parquet_with_or_without_index_is_the_same(tmp_path):
    pytest.importorskip("pyarrow")
    plain = joined(folder_of(tmp_path / "plain"), labels="stage")
    for name, labs in {"flat": LABS, "indexed": LABS.set_index("patient")}.items():
        folder = folder_of(tmp_path / name)
        (folder / "labs.csv").unlink()
        labs.to_parquet(folder / "labs.parquet")
        same(joined(folder, labels="stage"), plain)


ROW_NUMBERS = "ignore:left out 1 column of .*csv without a name"


@pytest.mark.filterwarnings(ROW_NUMBERS)
def test_row_numbers_that_pandas_wrote_do_not_join_rows(tmp_path):
    """Without index=False they are the first column of both tables, and their only shared one."""
    plain = joined(folder_of(tmp_path / "plain"), labels="stage")
    for name, write in {"both": (LABS, SCAN), "one": (LABS,)}.items():
        folder = folder_of(tmp_path / name)
        for file, table in zip(("labs.csv", "scan.csv"), write, strict=False):
            table.to_csv(folder / file)
        same(joined(folder, labels="stage"), plain)


@pytest.mark.filterwarnings(ROW_NUMBERS)
def test_row_numbers_do_not_join_labels_either(tmp_path):
    LABS.drop(columns="stage").to_csv(tmp_path / "labs.csv")
    LABS[["patient", "stage"]][::-1].reset_index(drop=True).to_csv(tmp_path / "truth.csv")
    found = joined(tmp_path / "labs.csv", labels=str(tmp_path / "truth.csv"))
    assert found.ids.tolist() == LABS["patient"].tolist()
    assert found.y.tolist() == LABS["stage"].tolist()


def test_numbers_without_a_name_are_used_where_nothing_else_can_be(tmp_path):
    """A column that two tables share need not tell their rows apart."""
    table = pd.DataFrame({"age": [50, 50, 60], "x": [1.5, 2.5, 3.5]})
    for name in "ab":
        table.rename(columns={"x": name}).to_csv(tmp_path / f"{name}.csv")
    assert joined(tmp_path).n_features == (2, 2)
    table[:2].to_csv(tmp_path / "b.csv")
    with pytest.raises(InvalidViewsError, match=r"only row numbers, .*'a.csv': 3, 'b.csv': 2"):
        joined(tmp_path)
    # Numbers of rows that were left, or of patients?
    for name in "ab":
        SCAN[::2].to_csv(tmp_path / f"{name}.csv")
    with pytest.raises(InvalidViewsError, match=r"\['patient'\] can be identifiers too; say which"):
        joined(tmp_path)
    # Neither of two such columns is where both tables begin.
    both = pd.DataFrame({"code": list("xyz"), "patient": list("pqr"), "v": [1.5, 2.5, 3.5]})
    both.to_csv(tmp_path / "a.csv")
    both[["patient", "code", "v"]].to_csv(tmp_path / "b.csv")
    with pytest.raises(InvalidViewsError, match=r"\['code', 'patient'\] can be identifiers too"):
        joined(tmp_path)


def test_an_index_without_a_name_is_kept_in_a_parquet_file(tmp_path):
    pytest.importorskip("pyarrow")
    plain = joined(folder_of(tmp_path / "plain"), labels="stage")
    folder = folder_of(tmp_path / "parquet")
    for name, table in {"labs": LABS, "scan": SCAN}.items():
        (folder / f"{name}.csv").unlink()
        table.set_index("patient").rename_axis(None).to_parquet(folder / f"{name}.parquet")
    same(joined(folder, labels="stage"), plain)


def test_measurements_are_no_identifiers(tmp_path):
    """The first column of a table without identifiers would be lost as a feature."""
    LABS[["hb", "crp"]].to_csv(tmp_path / "labs.csv", index=False)
    with pytest.raises(InvalidViewsError, match=r"column 'hb' of .* such as 1.5; give all"):
        joined(tmp_path / "labs.csv")
    assert joined(tmp_path / "labs.csv", id_column="hb").n_samples == 4
    LABS[["hb", "crp"]].rename(columns={"hb": "ID"}).to_csv(tmp_path / "labs.csv", index=False)
    assert joined(tmp_path / "labs.csv").n_samples == 4


@pytest.mark.parametrize("cells", [["950", "1.234", "12.500"], ["1.234,5", "950,0", "1.000.000"]])
def test_points_between_thousands_are_not_read_as_decimal_points(tmp_path, cells):
    rows = [f"p{i};{cell};{i},5" for i, cell in enumerate(cells)]
    (tmp_path / "d.csv").write_text("\n".join(["id;price;x", *rows]) + "\n", encoding="utf-8")
    with pytest.raises(InvalidViewsError, match=r"column 'price' has '1.234.*points between thous"):
        joined(tmp_path / "d.csv")


def test_decimal_points_beside_decimal_commas_are_read(tmp_path):
    """One number with a point that cannot be between thousands tells what all of them are."""
    text = "id;a;b\np;1.234;1,5\nq;0.5;2,5\nr;12.500;3,5\n"
    (tmp_path / "d.csv").write_text(text, encoding="utf-8")
    assert_array_equal(joined(tmp_path / "d.csv").views[0], [[1.234, 1.5], [0.5, 2.5], [12.5, 3.5]])


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"a": ["x", "ID", "y"], "b": ["ID", "x"]}, "ID"),
        ({"a": ["v", "sample"], "b": ["sample", "w"]}, "sample"),
        ({"a": ["s", "age"], "b": ["s", "age"]}, "s"),
        ({"a": ["name", "x"]}, "name"),
        ({"a": ["label", "name", "x"], "b": ["label", "name"]}, "name"),
        ({"a": ["Unnamed: 0", "x"], "b": ["Unnamed: 0", "x"]}, "Unnamed: 0"),
    ],
)
def test_the_column_to_join_by(headers, expected):
    assert shared_id_column(headers, not_ids=("label",)) == expected


@pytest.mark.parametrize(
    "headers", [{"a": ["x"], "b": ["y"]}, {"a": ["x", "s", "t"], "b": ["t", "s"]}]
)
def test_no_column_to_join_by_is_an_error_that_lists_the_shared_ones(headers):
    shared = [name for name in headers["a"] if name in headers["b"]]
    with pytest.raises(InvalidViewsError, match="no column tells which sample a row is") as error:
        shared_id_column(headers)
    assert str(shared) in str(error.value)


def test_empty_columns_and_row_numbers_are_left_out_and_told_of(tmp_path):
    labs = LABS.assign(remark=["n", "s", "w", "e"], empty=[None] * 4)
    labs.insert(0, "", range(4))
    with pytest.warns(DataWarning) as notes:
        source = read_view_tables(folder_of(tmp_path, labs=labs), Request("patient", "stage"))
    assert source.columns() == {"labs": ["hb", "crp"], "scan": ["v1"]}
    told = " ".join(str(note.message) for note in notes)
    assert "left out 1 column of labs.csv without a name" in told
    assert "left out 1 empty column of view 'labs' (['empty'])" in told
    assert "left out 1 column of view 'labs' (['remark']): empty, or with values" in told


def test_a_table_of_remarks_alone_is_no_view(tmp_path):
    folder = folder_of(tmp_path)
    pd.DataFrame({"patient": ["P-01"], "remark": ["ok"]}).to_csv(folder / "notes.csv", index=False)
    with pytest.warns(DataWarning, match="left out 1 column of view 'notes'"):
        source = read_view_tables(folder, Request(labels="stage"))
    assert list(source.tables) == ["labs", "scan"]


def test_a_number_that_is_none_is_found_by_view_and_column(tmp_path):
    labs = LABS.astype({"crp": object})
    labs.loc[2, "crp"] = "<5"
    told = r"view 'labs': column 'crp' has 1 of 4 cells that are no numbers \('<5'\)"
    with pytest.raises(InvalidViewsError, match=told):
        read_views(folder_of(tmp_path, labs=labs), Request(labels="stage"))


def test_empty_cells_stay_empty_and_empty_rows_are_missing(tmp_path):
    labs = LABS.copy()
    labs.loc[0, "crp"] = None
    labs.loc[1:2, ["hb", "crp"]] = None
    source = read_view_tables(folder_of(tmp_path, labs=labs), Request(labels="stage"))
    found = source.aligned()
    rows = dict(zip(found.ids, found.views[0], strict=True))
    assert_array_equal(rows["P-03"], [1.5, np.nan])
    assert_array_equal(rows["P-02"], [4.0, 40.5])
    assert np.isnan([rows["007"], rows["P-01"], rows["P-09"]]).all()
    seen = dict(zip(found.ids, found.observed[:, 0].tolist(), strict=True))
    assert (seen["P-03"], seen["007"], seen["P-01"]) == (True, False, False)
    views, y, ids = source.unmended()
    assert_array_equal(views["labs"].loc["P-03"], [1.5, np.nan])
    assert (y[0], ids[0]) == ("sévère", "P-03")


def test_samples_without_any_value_are_kept(tmp_path):
    labs = LABS.copy()
    labs.loc[[1, 3], ["hb", "crp"]] = None
    found = joined(folder_of(tmp_path, labs=labs), labels="stage")
    assert sorted(found.ids) == ["007", "P-01", "P-02", "P-03", "P-09"]
    assert found.ids[found.unseen].tolist() == ["P-02"]


def test_labels_from_a_file_of_their_own(tmp_path):
    folder = folder_of(tmp_path / "data", labs=LABS.drop(columns="stage"))
    truth = pd.DataFrame({"patient": ["P-09", "P-01"], "stage": ["a", "b"], "note": ["x", "y"]})
    truth.to_csv(tmp_path / "truth.csv", index=False)
    truth[["patient", "stage"]].to_csv(tmp_path / "two.csv", index=False)
    expected = {"P-09": "a", "P-01": "b"}
    for labels in (f"{tmp_path}/truth.csv:stage", f"{tmp_path}/two.csv"):
        found = joined(folder, labels=labels)
        known = dict(zip(found.ids, found.y, strict=True))
        assert {name: y for name, y in known.items() if y is not None} == expected
    truth.rename(columns={"patient": "who"})[["who", "stage"]].to_csv(
        tmp_path / "who.csv", index=False
    )
    assert joined(folder, labels=f"{tmp_path}/who.csv").y[4] == "a"
    with pytest.raises(InvalidLabelsError, match=r"as in truth\.csv:stage"):
        joined(folder, labels=f"{tmp_path}/truth.csv")


def test_a_file_of_labels_is_no_view_however_its_path_is_written(tmp_path, monkeypatch):
    """Another column of it may be what is to be predicted."""
    folder = folder_of(tmp_path / "data", labs=LABS.drop(columns="stage"))
    LABS[["patient", "stage"]].assign(outcome=np.arange(4.0)).to_csv(
        folder / "truth.csv", index=False
    )
    monkeypatch.chdir(tmp_path)
    for path in (folder, "data", "data/../data"):
        for truth in (folder / "truth.csv", "data/truth.csv", "data/../data/truth.csv"):
            assert joined(path, labels=f"{truth}:stage").names == ("labs", "scan")


def test_a_folder_of_labels_alone_has_no_views(tmp_path):
    LABS[["patient", "stage"]].to_csv(tmp_path / "truth.csv", index=False)
    with pytest.raises(InvalidViewsError, match="holds only files of labels"):
        joined(tmp_path, labels=f"{tmp_path}/truth.csv")


def test_a_file_of_labels_inside_the_folder_is_no_view(tmp_path):
    folder = folder_of(tmp_path, labs=LABS.drop(columns="stage"))
    answers = LABS[["patient", "stage"]].copy()
    answers["stage"] = answers["stage"].map({"sévère": 3, "léger": 1})
    answers.to_csv(folder / "answers.csv", index=False)
    found = joined(folder, labels=str(folder / "answers.csv"))
    assert found.names == ("labs", "scan")
    assert found.y.tolist() == [3.0, None, 1.0, None, None]


def test_a_column_called_label_is_never_a_feature(tmp_path):
    folder = folder_of(tmp_path / "data", labs=LABS.assign(label=[0, 1, 0, 1]))
    source = read_view_tables(folder, Request(labels="stage"))
    assert source.columns()["labs"] == ["hb", "crp"]
    with pytest.warns(DataWarning, match="'stage'"):
        assert read_view_tables(folder).labels.tolist() == [0, 1, 0, 1]


def test_columns_to_leave_out(tmp_path):
    folder = folder_of(tmp_path)
    assert read_view_tables(folder, Request(labels="stage", leave_out=("crp",))).columns() == {
        "labs": ["hb"],
        "scan": ["v1"],
    }
    with pytest.raises(InvalidViewsError, match=r"no column 'outcome' to leave out among .*'hb'"):
        read_views(folder, Request(labels="stage", leave_out=("outcome",)))


def test_values_that_mean_no_label(tmp_path):
    folder = folder_of(tmp_path, labs=LABS.assign(stage=[2, 0, 1, 0]))
    assert joined(folder, labels="stage", unlabelled=("0",)).y.tolist() == [2, None, 1, None, None]
    with pytest.raises(InvalidLabelsError, match="'9' must be a value of the column 'stage'"):
        joined(folder, labels="stage", unlabelled=("9",))
    folder_of(tmp_path, labs=LABS.assign(stage=["a", "Unknown", "b", "b"]))
    assert joined(folder, labels="stage").y[1] == "Unknown"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert joined(folder, labels="stage", unlabelled=("Unknown",)).y[1] is None


def test_views_that_a_fit_left_out_are_left_out_again(tmp_path):
    with pytest.warns(DataWarning, match=r"views \['labs'\] and not on \['scan'\], .* left out"):
        source = read_view_tables(folder_of(tmp_path), Request(columns={"labs": ["hb"]}))
    assert source.columns() == {"labs": ["hb"]}


def test_data_is_held_to_the_columns_of_a_fit(tmp_path):
    columns = {"labs": ["crp", "hb"], "scan": ["v1"], "third": ["q"]}
    folder = folder_of(tmp_path, labs=LABS.assign(site="n", crp=None))
    source = read_view_tables(folder, Request(columns=columns))
    found = source.aligned()
    assert found.names == ("labs", "scan")
    assert_array_equal(found.views[0][:2], [[np.nan, 1.5], [np.nan, 2]])


@pytest.mark.filterwarnings("ignore::viewmend.exceptions.DataWarning")
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"blood": ["hb"]}, r"fitted on the views \['blood'\] and not on \['labs', 'scan'\]; name"),
        ({"labs": ["hb", "ldh"], "scan": ["v1"]}, r"view 'labs' .* lacks 1 of them, \['ldh'\]"),
    ],
)
def test_data_of_another_layout_is_refused(tmp_path, columns, message):
    with pytest.raises(InvalidViewsError, match=message):
        read_views(folder_of(tmp_path), Request(columns=columns))


def test_archives_of_arrays(tmp_path):
    rng = np.random.default_rng(0)
    photo, text = rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
    photo[1] = np.nan
    np.savez(tmp_path / "d.npz", photo=photo, text=text, y=[0, 1, -1, 1], ids=["a", "b", "c", "d"])
    found = joined(tmp_path / "d.npz")
    assert_array_equal(found.views[0], photo)
    assert found.ids.tolist() == ["a", "b", "c", "d"]
    assert found.y.tolist() == [0, 1, None, 1]
    np.savez(tmp_path / "plain.npz", photo=photo, text=text)
    source = read_view_tables(tmp_path / "plain.npz", Request(views=("text",)))
    assert (source.id_column, source.labels, list(source.tables)) == (None, None, ["text"])


VIEW = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])


def test_labels_and_identifiers_of_an_archive_may_stand_in_columns(tmp_path):
    """As MATLAB and others write them; as one more view they would give the classes away."""
    y, ids = np.array([[1], [0], [-1]]), np.array([["p"], [" q"], ["r "]])
    np.savez(tmp_path / "d.npz", photo=VIEW, y=y, ids=ids)
    found = joined(tmp_path / "d.npz")
    assert found.names == ("photo",)
    assert (found.ids.tolist(), found.y.tolist()) == (["p", "q", "r"], [1, 0, None])


def test_arrays_of_an_archive_that_are_not_used_are_named(tmp_path):
    np.savez(tmp_path / "d.npz", photo=VIEW, labels=np.array([0, 1, 1]))
    with pytest.warns(DataWarning, match=r"left out 1 array of d.npz .*'labels': \(3,\)"):
        assert joined(tmp_path / "d.npz").y is None


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"mask": VIEW > 2}, "'mask', which would be read as a view"),
        ({"ids": np.array(["p", "\t", "r"])}, r"ids must have .* but 1 are empty .*row 2 of 3"),
        ({"ids": np.array([1, 2, np.nan])}, r"ids must have .* but 1 are empty .*row 3 of 3"),
        ({"ids": np.arange(2)}, "all with the same rows, .*'ids': 2"),
        ({"y": np.eye(3)}, r"'y' of .* got shape \(3, 3\); .*argmax"),
    ],
)
def test_archives_that_cannot_be_used(tmp_path, arrays, message):
    np.savez(tmp_path / "d.npz", photo=VIEW, **arrays)
    with pytest.raises((InvalidViewsError, InvalidLabelsError), match=message):
        joined(tmp_path / "d.npz")


def test_numbers_of_another_byte_order_are_the_same(tmp_path):
    np.savez(tmp_path / "d.npz", photo=VIEW.astype(">f4"), y=np.array([1, 0, 1], dtype=">i2"))
    found = joined(tmp_path / "d.npz")
    assert_array_equal(found.views[0], VIEW)
    assert found.y.tolist() == [1, 0, 1]


def test_mudata_and_anndata(tmp_path):
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    rng = np.random.default_rng(0)
    obs = pd.DataFrame({"label": ["x", "y", None]}, index=["c1", "c2", "c3"])
    # What the versions of pandas and AnnData have to say about each other.
    writable = anndata.settings.override(allow_write_nullable_strings=True)
    with warnings.catch_warnings(), writable:
        warnings.simplefilter("ignore")
        rna = anndata.AnnData(rng.normal(size=(3, 4)), obs=obs)
        atac = anndata.AnnData(rng.normal(size=(2, 2)), obs=pd.DataFrame(index=["c3", "c1"]))
        mudata.MuData({"rna": rna, "atac": atac}).write(tmp_path / "d.h5mu")
        rna.obsm["X_pca"] = rng.normal(size=(3, 2))
        rna.write_h5ad(tmp_path / "d.h5ad")
        found = joined(tmp_path / "d.h5mu")
        cells = joined(tmp_path / "d.h5ad")
        both = joined(tmp_path / "d.h5ad", views=("X", "X_pca"))
    assert found.y.tolist() == ["x", "y", None]
    assert_array_equal(found.observed, [[1, 1], [1, 0], [1, 1]])
    assert_array_equal(found.views[1][0], atac.X[1])
    assert_array_equal(cells.views[0], rna.obsm["X_pca"])
    assert both.names == ("X", "X_pca")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "d.xlsx",
            b"",
            "must be a folder or end in .csv, .tsv, .parquet, .npz, .mat, .h5mu, .h5ad",
        ),
        ("d.npz", b"nothing", "cannot be read as a NumPy archive of plain arrays"),
        ("d.csv", b"", "d.csv cannot be read as a table"),
        (
            "d.csv",
            b"id,x\na,1\n,2\n",
            "column 'id' of .*d.csv must have .*every row, but 1 are empty .*row 2 of 2",
        ),
        ("d.csv", b"id,x\na,1,2\nb,1,2\n", "its rows have more cells than its header"),
        ("d.csv", b"id,x\na,1\nb,1,2,3\n", "d.csv cannot be read as a table .*line 3"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidViewsError, match=message):
        read_views(tmp_path / name)


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        read_views(tmp_path / "nowhere")


# ------------------------------------------------------------------ identifiers of another type


def test_numbers_of_a_parquet_file_are_identifiers_of_others(tmp_path):
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    # Numbers beside an empty cell become floats in pandas.
    pd.DataFrame({"id": [7.0, 9.0], "x": [1.0, 2.0]}).to_parquet(tmp_path / "labs.parquet")
    (tmp_path / "scan.csv").write_text("id,v\n7,5\n8,6\n")
    found = read_views(tmp_path)
    assert found.ids.tolist() == ["7", "9", "8"]
    assert found.observed.tolist() == [[True, True], [True, False], [False, True]]


@pytest.mark.parametrize("ids", [[11, 12, 13], ["11", "12", "13"], [b"11", b"12", b"13"]])
def test_identifiers_of_an_archive_are_those_of_tables(tmp_path, ids):
    np.savez(tmp_path / "views.npz", a=np.eye(3), ids=np.array(ids))
    (tmp_path / "truth.csv").write_text("id,stage,donor\n13,late,p\n11,early,q\n12,late,p\n")
    truth = str(tmp_path / "truth.csv")
    request = Request(labels=f"{truth}:stage", groups=f"{truth}:donor")
    tables = read_view_tables(tmp_path / "views.npz", request)
    data = tables.aligned()
    assert data.ids.tolist() == ["11", "12", "13"]
    assert data.y.tolist() == ["early", "late", "late"]
    assert tables.groups_of(data.ids).tolist() == ["q", "p", "p"]


def test_groups_of_no_sample_are_refused(tmp_path):
    folder = folder_of(tmp_path / "views")
    (tmp_path / "visits.csv").write_text("patient,donor\nX1,p\nX2,q\n")
    request = Request(labels="stage", groups=str(tmp_path / "visits.csv"))
    tables = read_view_tables(folder, request)
    with pytest.raises(InvalidLabelsError, match=r"groups must be of samples of the views, .*'X1'"):
        tables.groups_of(tables.aligned().ids)
