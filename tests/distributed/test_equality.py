"""A fit over blocks against one in memory: the same numbers, however the rows are cut."""

from collections import Counter

import dask
import dask.array as da
import numpy as np
import pytest

from viewmend import AGFTIClassifier, MultiViewData
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.distributed.rows import DaskRows
from viewmend.exceptions import InvalidParameterError

pytestmark = pytest.mark.filterwarnings(
    "ignore:AGFTIClassifier stopped at max_iter:sklearn.exceptions.ConvergenceWarning"
)

BLOBS = make_multiview_blobs(211, n_views=3, noise=3.0, n_features=(4, 6, 5), random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.2, random_state=0)
SETTINGS = {"n_anchors": 16, "random_state": 0, "max_iter": 4}
ARRAYS = (
    "label_distributions_",
    "confidence_",
    "view_weights_",
    "fused_graph_",
    "view_graphs_",
    "anchor_alignments_",
)


@pytest.fixture(autouse=True)
def one_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def lazy(views, rows):
    return [da.from_array(view, chunks=(rows, -1)) for view in views]


def assert_same_model(found, expected, atol=1e-9):
    for name in ARRAYS:
        gap = np.abs(np.asarray(getattr(found, name)) - getattr(expected, name)).max()
        assert gap < atol, (name, gap)
    np.testing.assert_array_equal(found.transduction_, expected.transduction_)
    np.testing.assert_array_equal(found.unreachable_, expected.unreachable_)
    assert found.status_ == expected.status_
    assert found.n_iter_ == expected.n_iter_


@pytest.mark.parametrize("rows", [211, 70, (13, 1, 150, 47)], ids=str)
@pytest.mark.parametrize("imputation", ["graph", "fourier"])
def test_blocks_give_the_model_of_a_fit_in_memory(imputation, rows):
    expected = AGFTIClassifier(imputation=imputation, **SETTINGS).fit(TASK.data, TASK.y)
    model = AGFTIClassifier(imputation=imputation, **SETTINGS)
    model.fit(lazy(TASK.data.views, rows), TASK.y)
    assert_same_model(model, expected)
    for found, wanted in zip(model.history_, expected.history_, strict=True):
        assert found.objective == pytest.approx(wanted.objective, rel=1e-6, abs=1e-9)
        assert found.primal_residual == pytest.approx(wanted.primal_residual, rel=1e-9)
        assert found.change == pytest.approx(wanted.change, abs=1e-10)
        assert [step.cost for step in found.inner] == pytest.approx(
            [step.cost for step in wanted.inner]
        )


def test_blocks_wait_for_the_imputation_as_a_fit_in_memory_does():
    """Labels rest long before the tensor step leaves zero: both go on, and end in one round."""
    setting = SETTINGS | {"graph_smoothing": 64.0, "max_iter": 30, "tol": 1e-2}
    expected, model = (AGFTIClassifier(imputation="graph", **setting) for _ in range(2))
    expected.fit(TASK.data, TASK.y)
    model.fit(lazy(TASK.data.views, 120), TASK.y)
    assert_same_model(model, expected)
    calm = next(one.iteration for one in model.history_[1:] if one.change < model.tol)
    assert (model.status_, model.n_iter_ > calm) == ("converged", True)


@pytest.mark.parametrize(
    "changes",
    [
        {"final_damping": None, "class_prior": None, "calibration": None},
        {"graph_smoothing": 4.0, "fusion_weight": 3.0, "low_rank_weight": 10.0},
        {"propagation_damping": (0.5, 2.0), "label_strength": 100.0, "normalize": None},
        {"anchor_method": "kmeans", "n_neighbors": 4},
        {"max_iter": 30, "tol": 1e-2},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_parameters_mean_the_same_over_blocks(changes):
    settings = SETTINGS | changes
    expected = AGFTIClassifier(**settings).fit(TASK.data, TASK.y)
    model = AGFTIClassifier(**settings).fit(lazy(TASK.data.views, 60), TASK.y)
    assert_same_model(model, expected)


def test_single_precision_stays_single_and_near():
    settings = SETTINGS | {"dtype": "float32"}
    expected = AGFTIClassifier(**settings).fit(TASK.data, TASK.y)
    model = AGFTIClassifier(**settings).fit(lazy(TASK.data.views, 60), TASK.y)
    assert model.fused_graph_.dtype == model.view_graphs_.dtype == np.float32
    assert model.fitted_state_.induction.anchor_labels.dtype == np.float32
    assert_same_model(model, expected, atol=1e-3)


@pytest.mark.parametrize("imputation", ["graph", "fourier"])
def test_a_round_passes_over_the_blocks_twice_and_once_per_newton_step(imputation, monkeypatch):
    seen, started = Counter(), DaskRows._started

    def noted(runner, stage, *results):
        seen[stage] += 1
        return started(runner, stage, *results)

    monkeypatch.setattr(DaskRows, "_started", noted)
    model = AGFTIClassifier(imputation=imputation, **SETTINGS)
    model.fit(lazy(TASK.data.views, 70), TASK.y)
    n_rounds, n_steps = len(model.history_), sum(len(round_.inner) for round_ in model.history_)
    of_solver = {"start_graph": 1, "begin": 1, "settle": n_rounds, "advance": n_rounds}
    # The first answer that Algorithm 1 needs comes with the pass before.
    of_solver["evaluate_weights"] = n_steps
    # The transform along the rows needs all of them.
    of_solver["shrink"] = n_rounds if imputation == "fourier" else 0
    assert {stage: seen[stage] for stage in of_solver} == of_solver
    assert {n for stage, n in seen.items() if stage not in of_solver} == {1}


def test_graphs_stay_lazy():
    model = AGFTIClassifier(**SETTINGS).fit(lazy(TASK.data.views, 60), TASK.y)
    assert isinstance(model.fused_graph_, da.Array)
    assert model.fused_graph_.chunks == ((60, 60, 60, 31), (16,))
    assert model.view_graphs_.chunks == ((3,), (60, 60, 60, 31), (16,))
    assert isinstance(model.label_distributions_, np.ndarray)


def test_a_mask_stands_for_rows_of_nan():
    mask = TASK.data.observed.copy()
    full = [np.where(np.isnan(view), 7.0, view) for view in TASK.data.views]
    expected = AGFTIClassifier(**SETTINGS).fit(TASK.data, TASK.y)
    for given in (mask, da.from_array(mask, chunks=(100, 1))):
        model = AGFTIClassifier(**SETTINGS).fit(lazy(full, 50), TASK.y, mask=given)
        assert_same_model(model, expected)


def test_other_forms_of_the_views_give_the_same_model():
    expected = AGFTIClassifier(**SETTINGS).fit(TASK.data, TASK.y)
    arrays = lazy(TASK.data.views, 80)
    observed = da.from_array(TASK.data.observed, chunks=(80, -1))
    stacked = da.from_array(TASK.data.stacked(), chunks=(90, 4))
    forms = [
        (dict(zip("abc", arrays, strict=True)), {}),
        (MultiViewData(tuple(arrays), observed, ("a", "b", "c")), {}),
        (stacked, {"view_sizes": (4, 6, 5)}),
        # Columns in chunks, rows in others, and one view in memory.
        ([arrays[0].rechunk((50, 2)), arrays[1], TASK.data.views[2]], {}),
    ]
    for X, more in forms:
        model = AGFTIClassifier(**SETTINGS, **more).fit(X, TASK.y)
        assert_same_model(model, expected)


def test_labels_may_come_with_the_views():
    views = tuple(lazy(TASK.data.views, 100))
    data = MultiViewData(views, TASK.data.observed, TASK.data.names, y=TASK.y)
    expected = AGFTIClassifier(**SETTINGS).fit(TASK.data)
    assert_same_model(AGFTIClassifier(**SETTINGS).fit(data), expected)


def test_data_frames_give_the_same_model():
    dd = pytest.importorskip("dask.dataframe")
    pd = pytest.importorskip("pandas")
    expected = AGFTIClassifier(**SETTINGS).fit(TASK.data, TASK.y)
    frames = [dd.from_pandas(pd.DataFrame(view), npartitions=3) for view in TASK.data.views]
    y = dd.from_pandas(pd.Series(TASK.y), npartitions=2)
    model = AGFTIClassifier(**SETTINGS).fit(frames, y)
    assert_same_model(model, expected)


def test_labels_may_be_words():
    words = np.where(TASK.y < 0, None, np.array(["a", "b", "c"], dtype=object)[TASK.y])
    expected = AGFTIClassifier(**SETTINGS).fit(TASK.data, TASK.y)
    model = AGFTIClassifier(**SETTINGS).fit(lazy(TASK.data.views, 60), words)
    np.testing.assert_array_equal(model.classes_, ["a", "b", "c"])
    np.testing.assert_array_equal(
        model.transduction_, np.array(["a", "b", "c"])[expected.transduction_]
    )


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_one_label_of_each_class_is_enough():
    """None of them can be held out, so that nothing says how sure to be."""
    first = np.unique(TASK.y, return_index=True)[1]
    y = np.where(np.isin(np.arange(len(TASK.y)), first), TASK.y, -1)
    assert np.bincount(y[y >= 0]).tolist() == [1, 1, 1]
    expected = AGFTIClassifier(**SETTINGS).fit(TASK.data, y)
    model = AGFTIClassifier(**SETTINGS).fit(lazy(TASK.data.views, 60), y)
    assert_same_model(model, expected)


def test_samples_that_no_label_reaches_are_told_alike():
    rng = np.random.default_rng(0)
    far = [np.r_[rng.normal(0, 1, (60, 3)), rng.normal(50, 1, (40, 3))] for _ in range(2)]
    y = np.r_[np.arange(60) % 2, np.full(40, -1)]
    settings = SETTINGS | {"n_neighbors": 3, "normalize": None}
    with pytest.warns(UserWarning, match="joined to no label"):
        expected = AGFTIClassifier(**settings).fit(far, y)
    assert expected.unreachable_.any()
    with pytest.warns(UserWarning, match="joined to no label"):
        model = AGFTIClassifier(**settings).fit(lazy(far, 33), y)
    assert_same_model(model, expected)


def test_threads_give_the_model_of_one():
    expected = AGFTIClassifier(**SETTINGS).fit(lazy(TASK.data.views, 30), TASK.y)
    with dask.config.set(scheduler="threads", num_workers=4):
        model = AGFTIClassifier(**SETTINGS).fit(lazy(TASK.data.views, 30), TASK.y)
    np.testing.assert_array_equal(model.label_distributions_, expected.label_distributions_)
    np.testing.assert_array_equal(model.fused_graph_, expected.fused_graph_)


def test_explanations_need_the_graphs_in_memory():
    expected = AGFTIClassifier(**SETTINGS).fit(TASK.data, TASK.y).explain([3, 100])
    model = AGFTIClassifier(**SETTINGS).fit(lazy(TASK.data.views, 90), TASK.y)
    with pytest.raises(InvalidParameterError, match="load_graphs"):
        model.explain([3, 100])
    found = model.load_graphs().explain([3, 100])
    np.testing.assert_allclose(found.support, expected.support, atol=1e-9)
