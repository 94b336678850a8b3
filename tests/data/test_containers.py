"""What views may come in: known containers are read, all others refused before they are touched."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from viewmend import AGFTIClassifier, LabelSearchCV, MendClassifier, check_views, inspect_data
from viewmend.baselines import UnionGraphClassifier
from viewmend.data import from_arrays, from_mudata, write_back
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidLabelsError, InvalidParameterError, InvalidViewsError
from viewmend.impute import ColumnMeanImputer

BLOBS = make_multiview_blobs(60, n_views=2, n_features=(3, 4), random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.4, random_state=0)
VIEWS, Y = list(TASK.data.views), TASK.y
CELLS = [f"cell {i}" for i in range(60)]
KINDS = np.array(["T", "B", "NK"], dtype=object)
LABELS = np.where(Y < 0, None, KINDS[Y])

quiet = [
    pytest.mark.filterwarnings("ignore:From 0.4 .update:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Cannot join columns with the same name:UserWarning"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
]
pytestmark = quiet


def mend():
    return MendClassifier(n_rounds=0)


@pytest.fixture(scope="module")
def plain():
    return mend().fit(VIEWS, Y)


# ------------------------------------------------------------------ unknown objects


class Endless:
    """A sequence without an end, as a MuData is to NumPy."""

    steps = 0

    def __len__(self):
        return 3

    def __getitem__(self, key):
        type(self).steps += 1
        if self.steps > 1000:
            raise RuntimeError("walked into")
        return Endless()


class Labelled:
    """As in xarray: an array whose dimensions have names, which NumPy does not ask for."""

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("read as a plain array")

    def to_pandas(self):
        raise AssertionError("converted without being asked")


FORMS = {
    "alone": lambda X: X,
    "in a list": lambda X: [X, BLOBS.views[0]],
    "in a dict": lambda X: {"a": X},
    "in rows": lambda X: [[X, 1.0], [2.0, 3.0]],
    "deep inside": lambda X: [[[[1.0, X]]], BLOBS.views[1]],
}
DOORS = {
    "Mend": lambda X: mend().fit(X, [0, 1, 0]),
    "AGF-TI": lambda X: AGFTIClassifier().fit(X, [0, 1, 0]),
    "baseline": lambda X: UnionGraphClassifier().fit(X, [0, 1, 0]),
    "search": lambda X: LabelSearchCV(mend()).fit(X, [0, 1, 0]),
    "imputer": lambda X: ColumnMeanImputer().fit(X),
    "predict": lambda X: mend().fit(dict(zip("ab", VIEWS, strict=True)), Y).predict(X),
    "check_views": check_views,
    "inspect_data": inspect_data,
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_unknown_objects_are_refused_and_never_walked_into(door, form):
    Endless.steps = 0
    with pytest.raises(InvalidViewsError, match=r"got .*Endless; convert it"):
        door(form(Endless()))
    assert Endless.steps == 0


@pytest.mark.parametrize("unknown", [object(), range(3), iter([1]), {1, 2}, Labelled(), mend()])
def test_the_refusal_names_the_type_and_the_remedy(unknown):
    kind = type(unknown).__qualname__
    with pytest.raises(InvalidViewsError, match=rf"X must be an array .*{kind}; convert it, as wi"):
        check_views(unknown)
    with pytest.raises(InvalidViewsError, match=rf"view 'a' must be an array .*{kind}; convert it"):
        check_views({"a": unknown})


def test_tables_of_arrow_are_refused_with_the_remedy():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"x": [1.0, 2.0], "y": [3.0, 5.0]})
    with pytest.raises(InvalidViewsError, match=r"got pyarrow.lib.Table; .*to_pandas\(\)"):
        check_views(table)
    assert check_views(table.to_pandas()).columns == (("x", "y"),)


def test_arrays_that_numpy_may_not_read_are_refused():
    class OnTheGPU:
        def __array__(self, dtype=None, copy=None):
            raise TypeError("implicit conversion is not allowed; use .get()")

    with pytest.raises(InvalidViewsError, match=r"view 0 is a OnTheGPU that cannot be read \(impl"):
        check_views([OnTheGPU()])


def test_lists_that_hold_themselves_are_refused():
    rows = [[1.0, 2.0]]
    rows.append(rows)
    with pytest.raises(InvalidViewsError, match="must be 2-D"):
        check_views([rows])


def test_unknown_objects_with_identifiers_are_refused_too():
    Endless.steps = 0
    with pytest.raises(InvalidViewsError, match=r"got .*Endless"):
        from_arrays({"a": Endless()})
    assert Endless.steps == 0


# ------------------------------------------------------------------ arrays in other forms


def masked_cells(view):
    return np.ma.masked_array(np.nan_to_num(view), np.isnan(view))


def on_disk(view, folder):
    array = np.memmap(folder / "view", dtype=np.float64, mode="w+", shape=view.shape)
    array[:] = view
    array.flush()
    return np.memmap(folder / "view", dtype=np.float64, mode="r", shape=view.shape)


def objects_with_none(view):
    return np.where(np.isnan(view), None, view.astype(object))


ARRAYS = {
    "masked array": masked_cells,
    "objects with None": objects_with_none,
    "lists": lambda view: view.tolist(),
    "lists with None": lambda view: objects_with_none(view).tolist(),
    "tuples of arrays": tuple,
    "Fortran order": np.asfortranarray,
    "other bytes": lambda view: view.astype(">f8"),
    "csr": scipy.sparse.csr_array,
    "coo": scipy.sparse.coo_matrix,
    "dok": scipy.sparse.dok_array,
}


@pytest.mark.parametrize("convert", ARRAYS.values(), ids=ARRAYS)
def test_other_arrays_are_those_they_stand_for(convert, plain):
    again = mend().fit([convert(view) for view in VIEWS], Y)
    assert_array_equal(again.label_distributions_, plain.label_distributions_)


@pytest.mark.parametrize("convert", [scipy.sparse.csr_array, scipy.sparse.dok_array])
def test_one_sparse_table(convert):
    table = np.hstack([BLOBS.views[0], BLOBS.views[1]])
    read = check_views(convert(table), view_sizes=(3, 4))
    for view, expected in zip(read.views, BLOBS.views, strict=True):
        assert_array_equal(view, expected)


def test_arrays_on_disk(plain, tmp_path):
    again = mend().fit([on_disk(VIEWS[0], tmp_path), VIEWS[1]], Y)
    assert_array_equal(again.label_distributions_, plain.label_distributions_)


def test_integers_under_a_mask_are_missing_rows():
    counts = np.ma.masked_array([[1, 2], [3, 4]], [[True, True], [False, False]])
    data = check_views([counts, [[1], [2]]])
    assert data.observed.tolist() == [[False, True], [True, True]]
    assert_array_equal(data.views[0][1], [3.0, 4.0])


def rounded(view):
    """Numbers that also bfloat16 can hold."""
    return np.round(view * 4) / 4


TENSORS = {
    "bfloat16": lambda torch, view: torch.tensor(view, dtype=torch.bfloat16),
    "float16": lambda torch, view: torch.tensor(view, dtype=torch.float16),
    "with gradients": lambda torch, view: torch.tensor(view, requires_grad=True),
    "a result": lambda torch, view: torch.tensor(view, requires_grad=True) * 1.0,
    "sparse": lambda torch, view: torch.tensor(view).to_sparse(),
    "transposed": lambda torch, view: torch.tensor(view.T.copy()).T,
}


@pytest.mark.parametrize("convert", TENSORS.values(), ids=TENSORS)
@pytest.mark.parametrize("X", [[0, 1], {"a": 0, "b": 1}, 0], ids=["list", "dict", "alone"])
def test_tensors_are_read_whatever_they_are(convert, X):
    torch = pytest.importorskip("torch")
    views = [rounded(view) for view in BLOBS.views]
    tensors = [convert(torch, view) for view in views]
    chosen = tensors[0] if X == 0 else X
    if isinstance(X, list):
        chosen = tensors
    elif isinstance(X, dict):
        chosen = dict(zip(X, tensors, strict=True))
    read = check_views(chosen)
    for view, expected in zip(read.views, views, strict=False):
        assert_array_equal(view, expected)


@pytest.mark.parametrize("make", [mend, lambda: AGFTIClassifier(tol=1.0, random_state=0)])
def test_models_take_tensors_that_numpy_does_not_know(make):
    torch = pytest.importorskip("torch")
    views = [rounded(view) for view in BLOBS.views]
    tensors = [torch.tensor(view).bfloat16() for view in views]
    expected, found = make().fit(views, Y), make().fit(tensors, Y)
    assert_array_equal(found.transduction_, expected.transduction_)
    assert_array_equal(found.predict(tensors), expected.predict(views))


@pytest.mark.parametrize("make", [mend, AGFTIClassifier])
def test_tensors_without_values_are_refused(make):
    torch = pytest.importorskip("torch")
    with pytest.raises(InvalidViewsError, match="is a Tensor that cannot be read"):
        make().fit([torch.empty(60, 2, device="meta")], Y)


def test_extension_types_of_pandas():
    pd = pytest.importorskip("pandas")
    nan = np.nan
    frame = pd.DataFrame(
        {
            "counts": pd.array([1, None, 3], dtype="Int64"),
            "flags": pd.array([True, None, False], dtype="boolean"),
            "single": pd.array([0.5, None, 2.5], dtype="Float32"),
            "sparse": pd.arrays.SparseArray([0.0, nan, 7.0]),
        }
    )
    data = check_views([frame, [[1.0], [2.0], [3.0]]])
    assert_array_equal(data.views[0], [[1, 1, 0.5, 0], [nan] * 4, [3, 0, 2.5, 7]])
    assert data.columns[0] == ("counts", "flags", "single", "sparse")
    dates = frame.assign(day=pd.Timestamp("2024-05-01"))
    with pytest.raises(InvalidViewsError, match="view 0 must be numeric"):
        check_views([dates, [[1.0], [2.0], [3.0]]])


def test_frames_of_polars_with_empty_cells():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"counts": [1, None, 3], "flags": [True, None, False]})
    data = check_views([frame, [[1.0], [2.0], [3.0]]])
    assert_array_equal(data.views[0], [[1, 1], [np.nan, np.nan], [3, 0]])
    with pytest.raises(InvalidViewsError, match="view 0 must be numeric"):
        check_views([polars.DataFrame({"a": ["red", "blue"]})])


@pytest.mark.parametrize("dtype", ["Date", "Datetime", "Duration", "Time"])
def test_dates_of_polars_beside_numbers_are_no_numbers(dtype):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"x": [0.5, 1.5], "day": [1, 2]})
    frame = frame.with_columns(polars.col("day").cast(getattr(polars, dtype)))
    for X in (frame, [frame], {"a": frame.lazy()}):
        with pytest.raises(InvalidViewsError, match=r"but its column\(s\) day are dates"):
            check_views(X)


def test_a_mask_of_polars_is_matched_by_the_names_of_views():
    polars = pytest.importorskip("polars")
    views = {"a": [[1.0], [2.0]], "b": [[3.0], [4.0]]}
    mask = polars.DataFrame({"b": [True, False], "a": [True, True]})
    for form in (mask, mask.lazy()):
        observed = check_views(views, mask=form).observed
        assert observed.tolist() == [[True, True], [True, False]]


def test_rows_under_an_index_in_a_list_are_refused():
    pd = pytest.importorskip("pandas")
    # Their columns could come in any order.
    rows = [pd.Series([1.0, 2.0], index=order) for order in (["p", "q"], ["q", "p"])]
    with pytest.raises(InvalidViewsError, match=r"got pandas.core.series.Series; convert it"):
        check_views({"a": rows})


# ------------------------------------------------------------------ AnnData and MuData


def annotated(view, prefix):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(view)
    adata.obs_names = CELLS
    adata.var_names = [f"{prefix} {j}" for j in range(view.shape[1])]
    return adata


def multimodal(views, convert=np.asarray):
    """A MuData whose modalities lack the cells that they did not see."""
    mudata = pytest.importorskip("mudata")
    modalities = {}
    for name, view in zip(("rna", "protein"), views, strict=True):
        adata = annotated(view, name)[~np.isnan(view).any(axis=1)].copy()
        adata.X = convert(adata.X)
        modalities[name] = adata
    mdata = mudata.MuData(modalities)
    kinds = dict(zip(CELLS, LABELS, strict=True))
    mdata.obs["kind"] = [kinds[name] for name in mdata.obs_names]
    return mdata


def in_order_of(container, values):
    return np.asarray(values)[[CELLS.index(name) for name in container.obs_names]]


@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csc_array])
def test_a_mudata_is_fitted_and_predicted_directly(convert, plain):
    mdata = multimodal(VIEWS, convert)
    model = mend().fit(mdata, "kind")
    assert model.view_names_ == ("rna", "protein")
    assert model.view_feature_names_["protein"].tolist() == [f"protein {j}" for j in range(4)]
    assert_array_equal(model.observed_, in_order_of(mdata, TASK.data.observed))
    assert_array_equal(model.transduction_, in_order_of(mdata, KINDS[plain.transduction_]))
    joined = mend().fit(from_mudata(mdata, "kind"))
    assert_array_equal(model.label_distributions_, joined.label_distributions_)
    new = multimodal(BLOBS.views, convert)
    new = new[:, [*new["rna"].var_names[::-1], *new["protein"].var_names]].copy()
    expected = KINDS[plain.predict(list(BLOBS.views))]
    assert_array_equal(model.predict(new), in_order_of(new, expected))
    assert model.score(new, "kind") == np.mean((expected == LABELS)[Y >= 0])


def test_labels_of_a_mudata_may_be_given_beside_it(plain):
    mdata = multimodal(VIEWS)
    model = mend().fit(mdata, in_order_of(mdata, Y))
    assert_array_equal(model.transduction_, in_order_of(mdata, plain.transduction_))
    with pytest.raises(InvalidLabelsError, match="requires y to be passed"):
        mend().fit(mdata)
    with pytest.raises(InvalidLabelsError, match="'sort' is none of their columns"):
        mend().fit(mdata, "sort")
    with pytest.raises(InvalidLabelsError, match="y must have its rows in the order of the views"):
        mend().fit(mdata, mdata.obs["kind"][::-1])


def test_every_door_takes_a_mudata():
    mdata = multimodal(VIEWS)
    assert_array_equal(check_views(mdata).ids, mdata.obs_names)
    found = inspect_data(mdata, "kind")
    assert (found.n_samples, [view.name for view in found.views]) == (60, ["rna", "protein"])
    completed = ColumnMeanImputer().fit_transform(mdata)
    assert completed.observed.all()
    assert UnionGraphClassifier().fit(mdata, "kind").transduction_.shape == (60,)
    search = LabelSearchCV(mend(), {"spreading": [0.5]}, cv=2).fit(mdata, "kind")
    assert search.view_names_ == ("rna", "protein")


def test_a_mask_hides_more_of_a_mudata():
    mdata = multimodal(VIEWS)
    mask = np.ones((60, 2), dtype=bool)
    seen = in_order_of(mdata, TASK.data.observed)
    row = int(np.flatnonzero(seen.all(axis=1))[0])
    mask[row, 1] = False
    assert_array_equal(check_views(mdata, mask=mask).observed, seen & mask)
    with pytest.raises(InvalidViewsError, match=r"mask must be bool of shape \(60, 2\)"):
        check_views(mdata, mask=mask[:, :1])


def test_a_report_takes_a_mudata(tmp_path):
    pytest.importorskip("matplotlib")
    mdata = multimodal(VIEWS)
    model = mend().fit(mdata, "kind")
    direct = model.report(tmp_path / "direct.html", mdata, "kind").read_text()
    joined = from_mudata(mdata, "kind")
    expected = model.report(tmp_path / "joined.html", joined, joined.y, ids=joined.ids)
    assert direct.count("protein") == expected.read_text().count("protein") > 1


def test_obsm_of_an_anndata_are_its_views(plain):
    adata = annotated(np.ones((60, 2)), "gene")
    adata.obsm["image"], adata.obsm["text"] = VIEWS
    adata.obs["kind"] = LABELS
    model = mend().fit(adata, "kind")
    assert model.view_names_ == ("image", "text")
    assert_array_equal(model.transduction_, KINDS[plain.transduction_])
    # What the model says of the samples must not become one more view of them.
    write_back(adata, model)
    adata.obsm["viewmend_shares"] = adata.obsm["viewmend_probabilities"]  # as 0.1 called them
    again = mend().fit(adata, "kind")
    assert again.view_names_ == ("image", "text")
    assert_array_equal(again.predict(adata), model.predict(adata))


def test_without_obsm_an_anndata_is_one_view():
    pd = pytest.importorskip("pandas")
    adata = annotated(BLOBS.views[0], "gene")
    adata.obsm["notes"] = pd.DataFrame({"note": ["good"] * 60}, index=CELLS)
    model = mend().fit(adata, Y)
    assert model.view_names_ == ("X",)
    assert model.feature_names_in_.tolist() == ["gene 0", "gene 1", "gene 2"]
    alone = mend().fit(BLOBS.views[0], Y)
    assert_array_equal(model.label_distributions_, alone.label_distributions_)
    backwards = adata[:, adata.var_names[::-1]].copy()
    assert_array_equal(model.predict_proba(backwards), model.predict_proba(adata))
    with pytest.raises(InvalidViewsError, match="yet now missing: gene 1"):
        model.predict(adata[:, ["gene 0", "gene 2"]].copy())


def test_frames_in_obsm_give_their_names():
    pd = pytest.importorskip("pandas")
    adata = annotated(np.ones((60, 2)), "gene")
    adata.obsm["image"] = pd.DataFrame(VIEWS[0], CELLS, ["r", "g", "b"])
    adata.obsm["text"] = VIEWS[1]
    model = mend().fit(adata, Y)
    assert {view: list(names) for view, names in model.view_feature_names_.items()} == {
        "image": ["r", "g", "b"]
    }


def test_an_anndata_without_any_matrix_is_refused():
    anndata = pytest.importorskip("anndata")
    with pytest.raises(InvalidViewsError, match="must have a matrix X, but it is None"):
        check_views(anndata.AnnData(obs=annotated(BLOBS.views[0], "gene").obs))


# ------------------------------------------------------------------ words for what fit cannot use

FITS = {
    "Mend": mend,
    "AGF-TI": lambda: AGFTIClassifier(tol=1.0, random_state=0),
    "baseline": UnionGraphClassifier,
    "search": lambda: LabelSearchCV(mend(), {"spreading": [0.5]}, cv=2),
}


@pytest.mark.parametrize("make", FITS.values(), ids=FITS)
def test_weights_of_samples_are_refused_with_a_remedy(make):
    message = "sample_weight must be left out of fit of .*; set doubtful ones to -1"
    for kind in (TypeError, InvalidParameterError):
        with pytest.raises(kind, match=message):
            make().fit(VIEWS, Y, sample_weight=np.ones(60))
    assert make().fit(VIEWS, Y, sample_weight=None).transduction_.shape == (60,)
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        make().fit(VIEWS, Y, weights=np.ones(60))


@pytest.mark.parametrize("make", FITS.values(), ids=FITS)
def test_fit_predict_gives_the_classes_of_the_samples_of_fit(make):
    assert_array_equal(make().fit_predict(VIEWS, Y), make().fit(VIEWS, Y).transduction_)
    mask = TASK.data.observed
    filled = [np.nan_to_num(view, nan=1.0) for view in VIEWS]
    assert_array_equal(make().fit_predict(filled, Y, mask), make().fit(VIEWS, Y).transduction_)
