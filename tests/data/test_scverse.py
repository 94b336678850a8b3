"""AnnData and MuData: modalities become views, results go back to the observations they are of."""

from importlib.metadata import version

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal

from viewmend import MendClassifier
from viewmend.data import (
    Request,
    from_anndata,
    from_mudata,
    read_views,
    result_frame,
    write_back,
)
from viewmend.data.class_names import class_texts
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidLabelsError, InvalidViewsError, TooLargeError

pd = pytest.importorskip("pandas", reason="AnnData needs pandas")
anndata = pytest.importorskip("anndata", reason="anndata is not installed")
mudata = pytest.importorskip("mudata", reason="mudata is not installed")

pytestmark = [
    # What these packages say about themselves and about the pandas they find.
    pytest.mark.filterwarnings("ignore:From 0.4 .update:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Cannot join columns with the same name:UserWarning"),
    pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
]
saves_files = pytest.mark.skipif(
    int(version("pandas").split(".")[0]) >= 3 and version("anndata") < "0.13",
    reason="this AnnData needs pandas<3 to write files",
)


def modality(values, names, **obs):
    adata = anndata.AnnData(values)
    adata.obs_names = list(names)
    adata.var_names = [f"gene {j}" for j in range(values.shape[1])]
    for column, labels in obs.items():
        adata.obs[column] = labels
    return adata


def small(convert=np.asarray):
    rna = modality(convert(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])), "abc")
    protein = modality(convert(np.array([[7.0], [8.0]])), "db")
    return mudata.MuData({"rna": rna, "protein": protein})


def in_order(mdata, labels):
    return [labels[name] for name in mdata.obs_names]


@pytest.mark.parametrize(
    "convert", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csc_array, np.int64]
)
def test_modalities_become_views_worked_out_by_hand(convert):
    mdata = small(convert)
    mdata.obs["kind"] = in_order(mdata, {"a": "T", "b": None, "c": "B", "d": "T"})
    found = from_mudata(mdata, "kind")
    nan = np.nan
    rows = {
        "a": ([1, 2], [nan], "T"),
        "b": ([3, 4], [8], None),
        "c": ([5, 6], [nan], "B"),
        "d": ([nan, nan], [7], "T"),
    }
    assert found.names == ("rna", "protein")
    assert found.columns == (("gene 0", "gene 1"), ("gene 0",))
    assert found.ids.tolist() == mdata.obs_names.tolist()
    for row, name in enumerate(found.ids):
        assert_array_equal(found.views[0][row], rows[name][0])
        assert_array_equal(found.views[1][row], rows[name][1])
        assert found.y[row] == rows[name][2]


def test_labels_of_the_modalities_are_joined_and_one_value_may_mean_none():
    mdata = small()
    mdata["rna"].obs["kind"] = pd.Categorical(["T", "Unknown", "B"])
    mdata["protein"].obs["kind"] = pd.Categorical(["T", "Unknown"])
    found = from_mudata(mdata, "kind", unlabelled="Unknown")
    assert dict(zip(found.ids, found.y, strict=True)) == {"a": "T", "b": None, "c": "B", "d": "T"}
    mdata["protein"].obs["kind"] = ["T", "B"]
    with pytest.raises(InvalidLabelsError, match=r"'b' has the labels \['B', 'Unknown'\]"):
        from_mudata(mdata, "kind", unlabelled="Unknown")


@pytest.mark.parametrize("use_rep", ["X_pca", {"rna": "X_pca", "protein": "X_pca"}])
def test_a_representation_takes_the_place_of_the_matrix(use_rep):
    mdata = small()
    for adata in mdata.mod.values():
        adata.obsm["X_pca"] = np.asarray(adata.X)[:, :1] * 10
    plain, reduced = from_mudata(mdata), from_mudata(mdata, use_rep=use_rep)
    for before, after in zip(plain.views, reduced.views, strict=True):
        assert_array_equal(after, 10 * before[:, :1])


def test_a_representation_may_be_for_some_modalities_only():
    mdata = small()
    mdata["rna"].obsm["X_pca"] = np.array([[10.0], [20.0], [30.0]])
    found = from_mudata(mdata, use_rep={"rna": "X_pca"})
    assert_array_equal(np.sort(found.rows_seen(0), axis=0), [[10], [20], [30]])
    assert_array_equal(np.sort(found.rows_seen(1), axis=0), [[7], [8]])


def test_new_modalities_take_the_variables_of_the_fitted_ones():
    fitted = from_mudata(small())
    turned = small()
    turned = mudata.MuData({"rna": turned["rna"][:, ::-1].copy()})
    found = from_mudata(turned, like=fitted)
    assert_array_equal(found.views[0], [[1, 2], [3, 4], [5, 6]])


def test_entries_of_obsm_become_views():
    adata = modality(np.array([[1.0], [2.0], [3.0]]), "abc", kind=["T", None, "B"])
    adata.obsm["surface"] = np.array([[4.0, 5.0], [np.nan, np.nan], [6.0, 7.0]])
    adata.obsm["shape"] = pd.DataFrame({"area": [8.0, 9.0, 10.0]}, index=adata.obs_names)
    found = from_anndata(adata, {"rna": "X", "surface": "surface", "form": "shape"}, "kind")
    assert found.names == ("rna", "surface", "form")
    assert_array_equal(found.observed, [[1, 1, 1], [1, 0, 1], [1, 1, 1]])
    assert_array_equal(found.stacked()[0], [1, 4, 5, 8])
    assert found.columns[2] == ("area",)
    assert found.y.tolist() == ["T", None, "B"]
    same = from_anndata(adata, ["X", "surface", "shape"])
    assert_array_equal(same.stacked(), found.stacked())


@pytest.fixture(scope="module")
def cells():
    """Three classes of 60 cells, of which a third misses one of two modalities."""
    made = make_multiview_blobs(60, n_views=2, random_state=1)
    task = hide(made.views, made.y, missing_rate=0.3, label_rate=0.2, random_state=1)
    names = np.array([f"cell {i}" for i in range(60)])
    kinds = np.array(["B", "NK", "T"], dtype=object)
    return task, names, kinds, np.where(task.y >= 0, kinds[task.y], None)


def tissue(cells):
    task, names, _, labels = cells
    order = np.random.default_rng(0).permutation(60)
    held = {}
    for name, view, seen in zip(
        ("rna", "atac"), task.data.views, task.data.observed.T, strict=True
    ):
        rows = order[seen[order]]
        held[name] = modality(view[rows], names[rows])
    mdata = mudata.MuData(held)
    mdata.obs["kind"] = pd.Categorical(in_order(mdata, dict(zip(names, labels, strict=True))))
    return mdata


@pytest.fixture(scope="module")
def fitted(cells):
    aligned = from_mudata(tissue(cells), "kind")
    return MendClassifier(n_rounds=1).fit(aligned), aligned


def test_results_are_written_to_the_observations_they_are_of(cells, fitted):
    task, names, kinds, _ = cells
    mdata = tissue(cells)
    write_back(mdata, fitted[0])
    direct = MendClassifier(n_rounds=1).fit(task.data, task.y)
    obs = mdata.obs.loc[names]
    assert obs["viewmend"].tolist() == kinds[direct.transduction_].tolist()
    shares = pd.DataFrame(mdata.obsm["viewmend_probabilities"], index=mdata.obs_names).loc[names]
    assert_allclose(shares, direct.label_distributions_, atol=1e-6)
    told = shares.to_numpy()[np.arange(60), direct.transduction_]
    assert_array_equal(obs["viewmend_confidence"], told)
    assert mdata.uns["viewmend"]["classes"].tolist() == ["B", "NK", "T"]
    assert mdata.uns["viewmend"]["views"].tolist() == ["rna", "atac"]
    assert_allclose(mdata.uns["viewmend"]["view_weights"], fitted[0].view_weights_)


def test_observations_that_the_model_was_not_given_stay_empty(cells, fitted):
    mdata = tissue(cells)
    model, aligned = fitted
    new = from_mudata(mdata[aligned.ids[:5]].copy(), like=aligned)
    write_back(mdata, model, new=new, key="new")
    filled = mdata.obs["new"].notna()
    assert mdata.obs_names[filled].tolist() == sorted(new.ids, key=mdata.obs_names.get_loc)
    expected = result_frame(model, new=new)["class"].astype(object)
    assert mdata.obs["new"][filled].astype(object).to_dict() == expected.to_dict()
    assert_array_equal(np.isnan(mdata.obsm["new_probabilities"]).all(axis=1), ~filled)


def test_results_follow_their_observations_into_another_order(cells, fitted):
    model, aligned = fitted
    expected = result_frame(model, aligned.ids)["class"].astype(object).to_dict()
    for names in (aligned.ids, aligned.ids[::-1], sorted([*aligned.ids, "cell 99"])):
        adata = modality(np.ones((len(names), 1)), names)
        write_back(adata, model)
        found = adata.obs["viewmend"].astype(object).dropna()
        assert found.to_dict() == expected


def test_results_of_other_observations_are_refused(cells, fitted):
    adata = modality(np.ones((2, 1)), "ab")
    with pytest.raises(InvalidViewsError, match=r"60 of them, such as 'cell 0', are not in"):
        write_back(adata, fitted[0], fitted[1].ids)
    assert "viewmend" not in adata.obs


@saves_files
def test_a_file_with_results_says_the_same_when_it_is_read_again(cells, fitted, tmp_path):
    mdata = tissue(cells)
    before = from_mudata(mdata, "kind")
    write_back(mdata, fitted[0])
    mdata.write(tmp_path / "tissue.h5mu")
    again = mudata.read(tmp_path / "tissue.h5mu")
    after = from_mudata(again, "kind")
    assert after.ids.tolist() == before.ids.tolist()
    assert after.y.tolist() == before.y.tolist()
    assert set(after.names) == set(before.names)
    views = dict(zip(after.names, after.views, strict=True))
    for name, view in zip(before.names, before.views, strict=True):
        assert_array_equal(views[name], view)
    assert again.obs["viewmend"].tolist() == mdata.obs["viewmend"].tolist()
    assert_array_equal(again.obsm["viewmend_probabilities"], mdata.obsm["viewmend_probabilities"])
    assert again.uns["viewmend"]["classes"].tolist() == ["B", "NK", "T"]
    assert again.uns["viewmend"]["parameters"]["n_rounds"] == "1"


@saves_files
@pytest.mark.filterwarnings("ignore:classes 1, '1' differ only in their types")
@pytest.mark.parametrize("classes", [(3, 5), (True, False), ((1, 2), (3, 4)), (1, "1")], ids=str)
def test_classes_of_any_type_can_be_saved(classes, tmp_path):
    adata = modality(np.random.default_rng(0).normal(size=(12, 2)) + 3, "abcdefghijkl")
    y = np.empty(12, dtype=object)
    y[:2] = classes
    found = from_anndata(adata, ["X"])
    write_back(adata, MendClassifier(n_rounds=0, calibration=None).fit(found, y))
    adata.write_h5ad(tmp_path / "one.h5ad")
    again = anndata.read_h5ad(tmp_path / "one.h5ad")
    names = class_texts(classes)
    assert [str(told) for told in again.obs["viewmend"][:2]] == names
    assert sorted(again.uns["viewmend"]["classes"]) == sorted(names)
    shares = again.obsm["viewmend_probabilities"]
    assert shares.shape == (12, 2)
    assert_allclose(shares.sum(axis=1), 1)


@saves_files
def test_results_in_a_file_are_no_views(cells, tmp_path):
    """They come from labels: held out in a fit on them, labels would be known all the same."""
    task, names, kinds, _ = cells
    obs = pd.DataFrame({"kind": kinds[task.y_true]}, index=names)
    adata = anndata.AnnData(obs=obs, obsm={"rna": np.nan_to_num(task.data.views[0], nan=1.0)})
    before = from_anndata(adata, ["rna"], "kind")
    write_back(adata, MendClassifier(n_rounds=0).fit(before))
    adata.write_h5ad(tmp_path / "cells.h5ad")
    read = read_views(tmp_path / "cells.h5ad", Request(labels="kind"))
    assert read.names == ("rna",)
    assert_array_equal(read.views[0], before.views[0])
    named = Request(views=("viewmend_probabilities",))
    assert read_views(tmp_path / "cells.h5ad", named).n_features == (3,)


def test_what_is_no_mudata_or_anndata_is_refused():
    adata = modality(np.ones((2, 1)), "ab")
    with pytest.raises(InvalidViewsError, match=r"got a AnnData; use from_anndata"):
        from_mudata(adata)
    with pytest.raises(InvalidViewsError, match=r"got a MuData; use from_mudata"):
        from_anndata(small(), ["X"])
    with pytest.raises(InvalidViewsError, match=r"axis=1"):
        from_mudata(mudata.MuData({"one": adata}, axis=1))


def test_what_the_container_does_not_hold_is_named():
    mdata = small()
    with pytest.raises(InvalidLabelsError, match=r"column of obs, but 'kind' is none"):
        from_mudata(mdata, "kind")
    with pytest.raises(InvalidViewsError, match=r"'X_pca' is not among \['X'\]"):
        from_mudata(mdata, use_rep="X_pca")
    with pytest.raises(InvalidViewsError, match=r"names \['dna'\], but the modalities are"):
        from_mudata(mdata, use_rep={"dna": "X"})
    with pytest.raises(InvalidViewsError, match=r"choose among \['X'\]"):
        from_anndata(mdata["rna"], "X")
    mdata.obs["kind"] = "T"
    with pytest.raises(InvalidLabelsError, match=r"unlabelled='Unknown'.*which holds \['T'\]"):
        from_mudata(mdata, "kind", unlabelled="Unknown")


def test_modalities_of_other_observations_are_refused():
    mdata = small()
    mdata.mod["rna"].obs_names = ["a", "b", "z"]
    with pytest.raises(InvalidViewsError, match=r"such as 'z'; call mdata.update\(\)"):
        from_mudata(mdata)
    rna, protein = modality(np.ones((2, 1)), "ab"), modality(np.ones((1, 1)), "c")
    with pytest.raises(InvalidViewsError, match=r"'rna' must share an identifier"):
        from_mudata(mudata.MuData({"rna": rna, "protein": protein}))


def test_a_modality_that_would_fill_the_memory_is_refused_before_it_does():
    adata = anndata.AnnData(scipy.sparse.csr_matrix((10, 1)))
    adata.obsm["wide"] = scipy.sparse.csr_matrix((10, 10**13))
    with pytest.raises(TooLargeError, match=r"view 'wide'"):
        from_anndata(adata, ["wide"])
