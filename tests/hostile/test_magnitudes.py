"""Numbers of every size: the same classes, or an error that names view and row."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from viewmend import AGFTIClassifier, MendClassifier, MultiViewData, load, memory, save
from viewmend.backend.torch_gpu import gpu_memory
from viewmend.core.common.rows import RowsInMemory
from viewmend.core.common.scaling import unit_rows
from viewmend.core.graphs.nearest import Neighbours, nearest_rows
from viewmend.core.graphs.neighbours import edges_to_neighbours
from viewmend.core.mend.blocks import MendBlock, ViewRows
from viewmend.core.mend.kernel_features import kernel_features, kernel_products
from viewmend.core.mend.loo_ridge import LEAST_R2, regress_views
from viewmend.core.mend.representations import REPRESENTATIONS, represent
from viewmend.exceptions import InvalidViewsError, TooLargeError
from viewmend.models.mend_problem import make_geometry_settings, memory_needed

MODELS = {
    "Mend": lambda dtype: MendClassifier(dtype=dtype, n_rounds=1),
    "AGF-TI": lambda dtype: AGFTIClassifier(dtype=dtype, random_state=0, max_iter=3),
    "AGF-TI not normalised": lambda dtype: AGFTIClassifier(
        dtype=dtype, random_state=0, max_iter=3, normalize=None
    ),
}
# Sums and scales that keep what tells classes apart in float64.
OFFSETS = (0.0, 1e3, 1e6, 1e9)
SCALES = (1e-139, 1e-38, 1e20, 1e138)
TOO_FAR = (1e-300, 1e300)


def problem(n_samples=96, n_classes=3):
    """Two views of blobs that do not touch, a fifth of them missing, half of the labels."""
    rng = np.random.default_rng(7)
    classes = np.arange(n_samples) % n_classes
    views = [
        (3 * np.linalg.qr(rng.normal(size=(d, n_classes)))[0].T)[classes]
        + 0.2 * rng.normal(size=(n_samples, d))
        for d in (5, 24)
    ]
    mask = rng.random((n_samples, 2)) < 0.8
    mask[~mask.any(axis=1), 0] = True
    y = np.where(rng.random(n_samples) < 0.5, classes, -1)
    return views, mask, classes, y


VIEWS, MASK, CLASSES, Y = problem()


def accuracy(model, views):
    model.fit(views, Y, MASK)
    unlabelled = Y < 0
    found = model.predict(views, MASK)
    return np.mean((model.transduction_ == CLASSES)[unlabelled]), np.mean(found == CLASSES)


@pytest.mark.filterwarnings("ignore::UserWarning", "error::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
class TestEveryScale:
    @pytest.mark.parametrize("offset", OFFSETS)
    def test_an_offset_hides_no_class(self, name, dtype, offset):
        fitted, new = accuracy(MODELS[name](dtype), [view + offset for view in VIEWS])
        assert fitted > 0.75
        assert new > 0.55

    @pytest.mark.parametrize("scale", SCALES)
    def test_a_scale_hides_no_class(self, name, dtype, scale):
        fitted, new = accuracy(MODELS[name](dtype), [view * scale for view in VIEWS])
        assert fitted > 0.75
        assert new > 0.55

    @pytest.mark.parametrize("scale", TOO_FAR)
    def test_beyond_what_can_be_squared_the_view_is_named(self, name, dtype, scale):
        with pytest.raises(InvalidViewsError, match=r"view 1 has .*1e.?140"):
            MODELS[name](dtype).fit([VIEWS[0], VIEWS[1] * scale], Y, MASK)

    def test_numbers_given_in_float32_are_told_apart_as_far_as_they_differ(self, name, dtype):
        views = [(view + 1e5).astype(np.float32) for view in VIEWS]
        assert accuracy(MODELS[name](dtype), views)[0] > 0.75


@pytest.mark.filterwarnings("ignore::UserWarning", "error::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("value", [-3e38, 1e-45, 1e16, 1e60])
def test_a_strange_new_row_leaves_the_others_alone_or_is_named(name, dtype, value):
    model = MODELS[name](dtype).fit(VIEWS, Y, np.ones_like(MASK))
    plain = [view[:8].copy() for view in VIEWS]
    strange = [view.copy() for view in plain]
    strange[0][3], strange[1][3, ::2] = value, -value
    largest = 1e140 if dtype == "float64" else float(np.finfo(np.float32).max)
    if abs(value) > largest:
        with pytest.raises(InvalidViewsError, match=r"view 0 has values beyond .*\(rows 3\)"):
            model.predict(strange)
        return
    shares = model.predict_proba(strange)
    others = np.arange(8) != 3
    assert_array_equal(shares[others], model.predict_proba(plain)[others])
    assert_allclose(shares.sum(axis=1), 1)


@pytest.mark.filterwarnings("ignore::UserWarning", "error::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_new_values_of_one_after_a_fit_near_1e_minus_38(dtype):
    small = [view * 1e-38 for view in VIEWS]
    model = MendClassifier(dtype=dtype, n_rounds=1).fit(small, Y, MASK)
    shares = model.predict_proba(VIEWS)
    assert_allclose(shares.sum(axis=1), 1)
    # Most representations look at directions alone, which are those of the fit.
    assert np.mean(model.predict(VIEWS) == CLASSES) > 0.8


def test_indices_of_no_row_do_not_reach_compiled_code():
    near = Neighbours(np.array([[0, 1], [1, 3]], dtype=np.int32), np.ones((2, 2)))
    assert edges_to_neighbours(near, 1, 4).shape == (2, 4)
    with pytest.raises(IndexError, match="neighbours must be rows 0 to 2, got 0 to 3"):
        edges_to_neighbours(near, 1, 3)
    with pytest.raises(IndexError, match="got -1 to 0"):
        edges_to_neighbours(Neighbours(near.indices[:1] - 1, np.ones((1, 2))), 1, 3)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_rows_that_cannot_be_compared_are_refused_by_the_search(value):
    X = np.random.default_rng(0).normal(size=(20, 30))
    queries = X[:2].copy()
    queries[1, 4] = value
    with pytest.raises(InvalidViewsError, match="must be finite"):
        nearest_rows(X, 3, queries=queries)


@pytest.mark.parametrize(
    ("dtype", "power"),
    [(np.float64, power) for power in (-307, -300, -160, -20, 20, 155, 307)]
    + [(np.float32, power) for power in (-43, -38, -20, 20, 37)],
)
def test_rows_of_any_length_get_the_length_one(dtype, power):
    limits = np.finfo(dtype)
    smallest, eps = float(limits.smallest_subnormal), float(limits.eps)
    rows = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0], [np.nan, np.nan]], dtype=dtype)
    rows[0] *= dtype(10.0**power)
    expected = [[0.6, 0.8], [1, 0], [0, 0], [np.nan, np.nan]]
    # The smallest numbers have a digit or two.
    assert_allclose(unit_rows(rows), expected, rtol=4 * (eps + smallest / 10.0**power))


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_representations_of_rows_far_from_the_fit_stay_finite(name):
    X = 1e-130 * (1 + np.random.default_rng(0).random((30, 6)))
    fitted = represent(RowsInMemory(), X, [name], X)[name]
    far = np.array([[1e139] * 6, [-1e139] * 3 + [1e-139] * 3])
    squares = np.square(fitted(far)).sum(axis=1)
    assert squares.dtype == np.float32
    assert np.isfinite(squares).all()


@pytest.mark.parametrize("name", ["unit", "hellinger", "centred_unit", "standard"])
def test_representations_keep_distances_that_float32_could_not_hold(name):
    X = 1e9 + np.random.default_rng(0).normal(size=(30, 6))
    mapped = represent(RowsInMemory(), X, [name], X)[name](X)
    assert len(np.unique(mapped, axis=0)) == 30
    if name == "unit":
        gaps = unit_rows(X)[:, None] - unit_rows(X)
        found = mapped[:, None] - mapped
        assert_allclose(found, gaps, atol=1e-6 * np.abs(gaps).max())


def regressed(T, classes):
    """Regression of targets on twelve rows of noise, and its left-out scores."""
    points = {"rows": np.random.default_rng(0).normal(size=(12, 4)).astype(np.float32)}
    products = kernel_products(RowsInMemory(), points, points, 0.2)
    ((kernel, features),) = kernel_features(RowsInMemory(), [products])
    view = ViewRows(np.arange(12), features.Phi, features.leverages)
    block = MendBlock(np.ones((12, 1), dtype=bool), (view,))
    (fit,), Z = regress_views(RowsInMemory(), block, [kernel.spectrum], T, classes)
    return fit, Z[:, 0], features.Phi


def test_a_view_without_any_known_class_says_nothing():
    fit, scores, Phi = regressed(np.eye(3)[np.arange(12) % 3], np.full(12, -1))
    assert fit.r2 == LEAST_R2
    assert_allclose(scores, 1 / 3, rtol=1e-6)
    assert_allclose(fit.predict(Phi[:2]), 1 / 3, rtol=1e-6)


def test_a_constant_target_is_explained_by_nothing():
    fit, scores, _ = regressed(np.full((12, 2), 0.5), np.zeros(12, dtype=int))
    assert fit.r2 == LEAST_R2
    assert_allclose(scores, 0.5, rtol=1e-6)


def test_work_that_would_fill_the_memory_is_refused_before_it_begins(monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 2**18)
    with pytest.raises(TooLargeError, match=r"AGFTI.* 4 graphs of 192 rows and 64 anchors"):
        AGFTIClassifier(n_anchors=64).fit(VIEWS, Y, np.ones_like(MASK))
    monkeypatch.setattr(memory, "machine_memory", lambda: 2**19)
    mend = MendClassifier(n_landmarks=10**9)
    with pytest.raises(TooLargeError, match=r"MendClassifier .* at 96 landmarks .*n_landmarks"):
        mend.fit(VIEWS, Y, np.ones_like(MASK))
    # Small enough, both are fitted.
    MendClassifier(n_landmarks=8, n_rounds=0, n_neighbors=2).fit(VIEWS, Y)
    AGFTIClassifier(n_anchors=16, max_iter=2, tol=10.0).fit(VIEWS, Y)


def test_many_classes_are_counted_where_memory_is_estimated():
    """Scores have a number per sample and class, of which there may be thousands."""

    def needed_and_taken(n_classes, n_samples=1500):
        y, rng = np.arange(n_samples) % n_classes, np.random.default_rng(0)
        views = tuple(np.eye(n_classes)[y][:, :8] + rng.normal(size=(n_samples, 8)) for _ in "ab")
        data = MultiViewData(views, np.ones((n_samples, 2), dtype=bool), ("a", "b"))
        model = MendClassifier(
            n_landmarks=20, n_rounds=2, n_neighbors=3, calibration=None, n_jobs=1
        )
        settings = make_geometry_settings(model)
        tracemalloc.start()
        try:
            model.fit(data, np.where(np.arange(n_samples) < 300, y, -1))
            taken = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        return np.array([memory_needed(data, np.arange(n_samples), settings, n_classes), taken])

    # What is loaded for the first fit of all is not counted twice.
    needed_and_taken(10, 60)
    needed, taken = needed_and_taken(150) - needed_and_taken(40)
    assert 0.6 * taken < needed < 1.6 * taken


class TestMemoryOfAGPU:
    """Without one: what it says of its memory is made up."""

    @pytest.fixture
    def gpu(self, monkeypatch):
        torch = pytest.importorskip("torch")
        monkeypatch.setattr("viewmend.models.devices.cuda_is_there", lambda: True)
        monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _device: 2**19)
        monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _device: 2**18)
        return torch

    def test_a_fit_beyond_what_is_free_is_refused(self, gpu, monkeypatch):
        monkeypatch.setattr(gpu.cuda, "mem_get_info", lambda _device: (2**18, 2**30))
        with pytest.raises(TooLargeError, match=r"GPU 'cuda' has free 0\.0 GiB; .*graph_samples"):
            MendClassifier(device="cuda").fit(VIEWS, Y, MASK)

    def test_what_pytorch_keeps_for_itself_counts_as_free(self, gpu, monkeypatch):
        monkeypatch.setattr(gpu.cuda, "mem_get_info", lambda _device: (2**18, 2**30))
        assert gpu_memory("cuda") == 2**19
        assert gpu_memory("cpu") is None

    def test_memory_that_runs_out_later_is_named_too(self, gpu, monkeypatch):
        def full(*_args):
            raise gpu.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

        monkeypatch.setattr("viewmend.models.mend_fit.build_geometry", full)
        with pytest.raises(TooLargeError, match=r"MendClassifier .*graph_samples \(CUDA out of"):
            MendClassifier().fit(VIEWS, Y, MASK)
        monkeypatch.undo()
        model = MendClassifier(n_rounds=0).fit(VIEWS, Y, MASK)
        monkeypatch.setattr("viewmend.models.mend.induce_classes", full)
        with pytest.raises(TooLargeError, match="fewer samples at a time"):
            model.predict(VIEWS, MASK)


@pytest.mark.filterwarnings("ignore::UserWarning", "error::RuntimeWarning")
@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_views_of_both_number_types_predicts_the_same_from_a_file(name, tmp_path):
    views = [VIEWS[0], VIEWS[1] + 1e9]
    model = MODELS[name]("float32").fit(views, Y, MASK)
    assert model.fitted_state_.view_dtypes == [np.float32, np.float64]
    save(model, tmp_path / "model.vm")
    again = load(tmp_path / "model.vm").predict_proba(views, MASK)
    assert_array_equal(again, model.predict_proba(views, MASK))
    assert np.mean(np.argmax(again, axis=1) == CLASSES) > 0.55


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_offset_hides_no_class_from_tensors(dtype):
    pytest.importorskip("torch")
    model = AGFTIClassifier(dtype=dtype, random_state=0, max_iter=3, device="cpu")
    fitted, new = accuracy(model, [VIEWS[0], VIEWS[1] + 1e9])
    assert fitted > 0.75
    assert new > 0.55
