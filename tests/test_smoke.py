"""One pass through all that people do, for any environment: `make floors` runs it in the oldest.

It needs no plugin and no fixture of other files, and its bars are low: what it shows is that the
versions that are installed work together.
"""

import importlib.util

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import viewmend
from viewmend import AGFTIClassifier, MendClassifier
from viewmend.datasets import hide, make_multiview_blobs

ESTIMATORS = {
    "mend": MendClassifier(n_rounds=2),
    "agfti": AGFTIClassifier(n_anchors=16, max_iter=4, tol=0.1, random_state=0),
}


@pytest.fixture(scope="module")
def task():
    blobs = make_multiview_blobs(120, n_views=2, noise=1.0, random_state=0)
    return hide(blobs.views, blobs.y, missing_rate=0.3, label_rate=0.2, random_state=0)


@pytest.fixture(scope="module")
def folder(task, tmp_path_factory):
    """Two tables, joined by patient, of which the first has the labels."""
    pd = pytest.importorskip("pandas")
    path = tmp_path_factory.mktemp("tables")
    names = np.array([f"P{i:03d}" for i in range(len(task.y))])
    for v, seen in enumerate(task.data.observed.T):
        index = pd.Index(names[seen], name="patient")
        frame = pd.DataFrame(task.data.views[v][seen], index=index).add_prefix(f"v{v}_")
        if v == 0:
            given = np.array(["low", "mid", "high"], dtype=object)[task.y]
            frame["stage"] = np.where(task.labelled, given, None)[seen]
            frame.to_csv(path / "view0.csv")
        elif importlib.util.find_spec("pyarrow"):
            frame.to_parquet(path / "view1.parquet")
        else:
            frame.to_csv(path / "view1.csv")
    return path


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fitted_model_predicts_the_same_from_its_file(name, task, tmp_path):
    model = ESTIMATORS[name].fit(task.data, task.y)
    right = (model.transduction_ == task.y_true)[task.unlabelled].mean()
    assert right > 0.8
    viewmend.save(model, tmp_path / "model.vm")
    loaded = viewmend.load(tmp_path / "model.vm")
    assert_array_equal(loaded.predict_proba(task.data), model.predict_proba(task.data))


def test_frames_give_what_arrays_give(task):
    pd = pytest.importorskip("pandas")
    ids = [f"P{i}" for i in range(len(task.y))]
    frames = {
        f"view{v}": pd.DataFrame(view, index=ids).add_prefix("c")[task.data.observed[:, v]]
        for v, view in enumerate(task.data.views)
    }
    data = viewmend.data.from_frames(frames)
    place = pd.Index(ids).get_indexer(data.sample_ids)
    by_frames = ESTIMATORS["mend"].fit(data, task.y[place])
    by_arrays = ESTIMATORS["mend"].fit(task.data[place], task.y[place])
    assert_allclose(by_frames.label_distributions_, by_arrays.label_distributions_)


def test_an_h5ad_file_gives_what_arrays_give(task, tmp_path):
    anndata = pytest.importorskip("anndata")
    table = anndata.AnnData(task.data.views[0], obsm={"b": task.data.views[1]})
    table.write_h5ad(tmp_path / "cells.h5ad")
    data = viewmend.data.from_anndata(anndata.read_h5ad(tmp_path / "cells.h5ad"), ["X", "b"])
    by_arrays = ESTIMATORS["mend"].fit(task.data, task.y).label_distributions_
    by_anndata = ESTIMATORS["mend"].fit(data, task.y).label_distributions_
    assert_allclose(by_anndata, by_arrays)


def test_dask_fits_files_of_zarr_as_arrays_in_memory(task, tmp_path):
    da = pytest.importorskip("dask.array")
    pytest.importorskip("zarr")
    from viewmend.distributed import open_views

    for v, view in enumerate(task.data.views):
        da.from_array(view, chunks=(50, -1)).to_zarr(tmp_path / f"view{v}.zarr")
    views = open_views({"a": tmp_path / "view0.zarr", "b": tmp_path / "view1.zarr"})
    lazy = ESTIMATORS["agfti"].fit(views, task.y)
    assert (lazy.transduction_ == task.y_true)[task.unlabelled].mean() > 0.8


def test_commands_go_from_tables_to_predictions(folder, tmp_path):
    pd = pytest.importorskip("pandas")
    typer_testing = pytest.importorskip("typer.testing")
    pytest.importorskip("matplotlib")
    from viewmend.cli import app

    model, classes = tmp_path / "model.vm", tmp_path / "classes.csv"
    few = ("--set", "n_rounds=2")
    commands = (
        ("inspect", folder, "--labels", "stage", "--json"),
        ("fit", folder, "--labels", "stage", "-o", model, *few),
        ("predict", model, folder, "-o", classes),
        ("report", model, folder, "-o", tmp_path / "report.html"),
        ("methods",),
        ("bench", "--help"),
    )
    for command in commands:
        result = typer_testing.CliRunner().invoke(app, [str(word) for word in command])
        assert result.exit_code == 0, (command, result.output, result.exception)
    assert set(pd.read_csv(classes)["class"]) == {"low", "mid", "high"}
    assert (tmp_path / "report.html").stat().st_size > 10_000
