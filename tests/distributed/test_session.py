"""Fits of data in memory over a cluster, from Python and from the command line."""

import numpy as np
import pytest

from viewmend import AGFTIClassifier, MendClassifier
from viewmend.baselines.amuse import AMUSEClassifier
from viewmend.data import from_frames
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.distributed.session import fitting_on
from viewmend.exceptions import InvalidParameterError

distributed = pytest.importorskip("distributed")

BLOBS = make_multiview_blobs(90, noise=2.0, random_state=6)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.2, random_state=6)
SETTINGS = {"n_anchors": 16, "random_state": 0, "tol": 1e-3}


@pytest.fixture(scope="module")
def address():
    """Of a cluster in threads of this process."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address


def test_a_cluster_is_found_by_its_address(address):
    expected = AGFTIClassifier(**SETTINGS).fit(TASK.data, TASK.y)
    with fitting_on(address) as fit:
        model = fit(AGFTIClassifier(**SETTINGS), TASK.data, TASK.y)
    np.testing.assert_allclose(model.label_distributions_, expected.label_distributions_, atol=1e-9)
    # Its graphs outlive the cluster.
    np.testing.assert_allclose(model.fused_graph_, expected.fused_graph_, atol=1e-9)
    assert isinstance(model.view_graphs_, np.ndarray)


def test_without_an_address_the_fit_is_here():
    with fitting_on(None) as fit:
        model = fit(AGFTIClassifier(**SETTINGS), TASK.data, TASK.y)
    expected = AGFTIClassifier(**SETTINGS).fit(TASK.data, TASK.y)
    np.testing.assert_array_equal(model.label_distributions_, expected.label_distributions_)


def test_limits_are_for_processes_that_are_started_here():
    for address in (None, "tcp://somewhere:8786"):
        with pytest.raises(InvalidParameterError, match="pass 'local'"), fitting_on(address, "1GB"):
            pass


def test_other_classifiers_are_refused(address):
    with (
        fitting_on(address) as fit,
        pytest.raises(InvalidParameterError, match="AMUSEClassifier cannot be fitted over workers"),
    ):
        fit(AMUSEClassifier(), TASK.data, TASK.y)


def test_mend_is_fitted_over_a_cluster(address):
    expected = MendClassifier(n_rounds=2).fit(TASK.data, TASK.y)
    with fitting_on(address) as fit:
        model = fit(MendClassifier(n_rounds=2), TASK.data, TASK.y)
    np.testing.assert_allclose(model.label_distributions_, expected.label_distributions_, atol=1e-4)


@pytest.mark.parametrize("where", ["here", "there"])
def test_names_of_samples_and_columns_are_those_of_the_data(where, address):
    pd = pytest.importorskip("pandas")
    ids = [f"patient {i}" for i in range(90)]
    frames = [pd.DataFrame(view, index=ids).add_prefix("column ") for view in TASK.data.views]
    data = from_frames({"a": frames[0], "b": frames[1]})
    with fitting_on(address if where == "there" else None) as fit:
        model = fit(MendClassifier(n_rounds=1, calibration=None), data, TASK.y)
    assert model.sample_ids_.tolist() == ids
    new = {name: frame[:5] for name, frame in zip("ab", frames, strict=True)}
    expected = model.predict_proba(new)
    backwards = {name: frame[frame.columns[::-1]] for name, frame in new.items()}
    np.testing.assert_array_equal(model.predict_proba(backwards), expected)


def test_the_command_line_fits_over_a_cluster(address, tmp_path):
    pd = pytest.importorskip("pandas")
    testing = pytest.importorskip("typer.testing")
    from viewmend.cli import app

    folder = tmp_path / "views"
    folder.mkdir()
    ids = pd.Index([f"s{i}" for i in range(90)], name="id")
    for v, view in enumerate(TASK.data.views):
        frame = pd.DataFrame(view, index=ids).add_prefix("x")
        # A cell that is filled before the rows are dealt out.
        frame.iloc[np.flatnonzero(TASK.data.observed[:, v])[0], 0] = np.nan
        if v == 0:
            frame["label"] = pd.Series(TASK.y, index=ids).where(TASK.labelled)
        frame[TASK.data.observed[:, v] | (v == 0)].to_csv(folder / f"view{v}.csv")
    answers = []
    for name, more in (("here", []), ("there", ["--dask", address])):
        path = tmp_path / f"{name}.csv"
        options = ["--method", "AGF-TI", "--set", "n_anchors=16", "--predictions", str(path)]
        found = testing.CliRunner().invoke(app, ["fit", str(folder), *options, *more])
        assert found.exit_code == 0, found.output
        answers.append(pd.read_csv(path, index_col=0))
    pd.testing.assert_frame_equal(*answers, atol=1e-6)
