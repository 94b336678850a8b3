"""Mend through PyTorch gives what it gives through NumPy."""

import pickle
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

torch = pytest.importorskip("torch")

from viewmend import AGFTIClassifier, MendClassifier  # noqa: E402
from viewmend.callbacks import Checkpoint  # noqa: E402
from viewmend.datasets import hide, make_multiview_blobs  # noqa: E402
from viewmend.exceptions import DataWarning, InvalidParameterError  # noqa: E402
from viewmend.models import agfti, mend  # noqa: E402

BLOBS = make_multiview_blobs(700, n_views=3, n_features=(20, 12, 8), noise=3.0, random_state=0)
TASK = hide(
    [view[:600] for view in BLOBS.views],
    BLOBS.y[:600],
    missing_rate=0.4,
    label_rate=0.05,
    random_state=0,
)
NEW = hide(
    [view[600:] for view in BLOBS.views],
    BLOBS.y[600:],
    missing_rate=0.4,
    label_rate=0.5,
    random_state=1,
).data
# What the soft labels of the two may differ by, in single precision.
GAP = 2e-4
CASES = {
    "defaults": {},
    "guided edges": {"edge_power": 1.0, "n_rounds": 2},
    "graphs alone": {"n_rounds": 0},
    "float32": {"dtype": "float32"},
    "a graph of some samples": {"graph_samples": 250},
}


def fitted(X=TASK.data, y=TASK.y, **parameters):
    return MendClassifier(**({"n_rounds": 4, "n_landmarks": 200} | parameters)).fit(X, y)


@pytest.fixture(scope="module")
def by_numpy():
    """Models by the name of their case, made when they are asked for."""
    made = {}

    def model(case="defaults"):
        if case not in made:
            made[case] = fitted(**CASES[case])
        return made[case]

    return model


def tensors(dtype, views=TASK.data.views):
    return [torch.tensor(view, dtype=getattr(torch, dtype)) for view in views]


def assert_same_model(model, expected):
    assert [record.name for record in model.history_] == [r.name for r in expected.history_]
    for name in ("label_distributions_", "confidence_", "class_prior_"):
        found = getattr(model, name)
        assert isinstance(found, np.ndarray), name
        np.testing.assert_allclose(found, getattr(expected, name), atol=GAP, err_msg=name)
    np.testing.assert_array_equal(model.transduction_, expected.transduction_)
    np.testing.assert_array_equal(model.off_graph_, expected.off_graph_)
    if hasattr(expected, "view_weights_"):
        np.testing.assert_allclose(model.view_weights_, expected.view_weights_, atol=GAP)
    assert_same_predictions(model, expected)


def assert_same_predictions(model, expected, new=NEW):
    found, shares = model.predict_proba(new), expected.predict_proba(NEW)
    np.testing.assert_allclose(found, shares, atol=GAP)
    np.testing.assert_array_equal(found.argmax(axis=1), shares.argmax(axis=1))


@pytest.mark.parametrize("case", CASES)
def test_fit_and_prediction_equal_those_of_numpy(by_numpy, case):
    assert_same_model(fitted(device="cpu", **CASES[case]), by_numpy(case))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tensors_in_give_what_arrays_give(by_numpy, dtype):
    """The views of a fit in float32 are rounded, and so is what is said of them."""
    views = tensors(dtype)
    before = [view.clone() for view in views]
    expected = by_numpy() if dtype == "float64" else fitted([v.numpy() for v in views])
    mask = torch.tensor(TASK.data.observed)
    filled = [view.nan_to_num(7.0) for view in views]
    model = MendClassifier(n_rounds=4, n_landmarks=200)
    model.fit(filled, torch.tensor(np.asarray(TASK.y)), mask=mask)
    assert_same_model(model, expected)
    assert_same_predictions(model, expected, tensors("float64", NEW.views))
    for view, old in zip(views, before, strict=True):
        assert torch.equal(view.nan_to_num(9.0), old.nan_to_num(9.0))


def test_the_rounds_run_where_the_input_lies_or_device_says():
    seen = []
    model = MendClassifier(n_rounds=0, n_landmarks=50, calibration=None)
    model.set_callbacks(lambda _, stage: seen.append(type(stage.F)))
    model.fit(TASK.data, TASK.y)
    model.fit(tensors("float64"), TASK.y)
    model.set_params(device="cpu").fit(TASK.data, TASK.y)
    assert seen == [np.ndarray] * 2 + [torch.Tensor] * 4


def test_a_wide_sparse_view_agrees():
    """Its components are found on the host, and compared on the device."""
    rng = np.random.default_rng(0)
    words = rng.poisson(0.01 + 0.02 * (np.arange(5000) % 3 == BLOBS.y[:600, None]), (600, 5000))
    views = [BLOBS.views[0][:600], csr_array(words.astype(float))]
    y = np.where(np.arange(600) < 40, BLOBS.y[:600], -1)
    settings = {"n_rounds": 2, "n_landmarks": 100}
    with pytest.warns(DataWarning, match="replaced by its 256 leading components"):
        numpy, on_device = (
            MendClassifier(device=device, **settings).fit(views, y) for device in (None, "cpu")
        )
    gap = np.abs(numpy.label_distributions_ - on_device.label_distributions_).max()
    assert gap < GAP
    np.testing.assert_array_equal(numpy.transduction_, on_device.transduction_)
    new = [view[:50] for view in views]
    np.testing.assert_allclose(on_device.predict_proba(new), numpy.predict_proba(new), atol=GAP)


@pytest.mark.parametrize("n_stages", [1, 3])
def test_a_fit_on_a_device_goes_on_from_its_checkpoint(tmp_path, n_stages):
    """Bit for bit, as if nothing had happened."""
    path = tmp_path / "fit.checkpoint"

    def run(*callbacks):
        model = MendClassifier(n_rounds=2, n_landmarks=50, edge_power=1.0, device="cpu")
        return model.set_callbacks(*callbacks).fit(TASK.data, TASK.y)

    whole = run()
    run(Checkpoint(path), lambda record, _: record.iteration == n_stages)
    seen = []
    model = run(Checkpoint(path), lambda record, _: seen.append(record.iteration))
    assert seen == list(range(n_stages + 1, 7))[: len(whole.history_) - n_stages]
    assert model.history_ == whole.history_
    np.testing.assert_array_equal(model.label_distributions_, whole.label_distributions_)


@pytest.fixture
def few_digits():
    """What a user may have allowed: a function that tells whether it is so at the moment."""
    matmul = torch.backends.cuda.matmul
    # By its name in this version of PyTorch.
    has_words = hasattr(matmul, "fp32_precision")
    name, few = ("fp32_precision", "tf32") if has_words else ("allow_tf32", True)
    before = getattr(matmul, name)
    setattr(matmul, name, few)
    yield lambda: getattr(matmul, name) == few
    setattr(matmul, name, before)


@pytest.mark.parametrize("make", [MendClassifier, AGFTIClassifier])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_products_keep_their_digits_whatever_a_user_allowed(monkeypatch, few_digits, make):
    """Ten bits, as of products in "tf32", would not do for kernels and graphs."""
    seen = []

    class Watch:
        def on_stage(self, *_stage):
            seen.append(few_digits())

        def __call__(self, *_round):
            seen.append(few_digits())

    def watched(function):
        return lambda *args: (seen.append(few_digits()), function(*args))[1]

    for module, called in ((mend, "induce_classes"), (agfti, "induce_labels")):
        monkeypatch.setattr(module, called, watched(getattr(module, called)))
    model = make(device="cpu").set_callbacks(Watch())
    # Also where the halves of a fit are called one by one, as a search does.
    data, labels = model.fit(TASK.data, TASK.y).prepare(TASK.data, TASK.y)
    n_seen = len(seen)
    model.build_geometry(data, labels)
    assert 3 < n_seen < len(seen)
    model.predict(NEW)
    assert not any(seen)
    assert few_digits()


def test_a_fitted_model_needs_no_torch(monkeypatch, by_numpy):
    """Nothing of PyTorch is kept: the model goes to a machine without it."""
    model = fitted(tensors("float64"))
    model.predict(NEW)
    packed = pickle.dumps(model)
    assert b"torch" not in packed
    monkeypatch.setitem(sys.modules, "torch", None)
    assert_same_predictions(pickle.loads(packed), by_numpy())


def test_device_without_torch_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for device in ("cpu", "cuda"):
        with pytest.raises(ImportError, match=r"pip install .*\[torch\]', or set device=None"):
            fitted(device=device)


def test_cuda_without_a_gpu_says_what_to_do(monkeypatch, by_numpy):
    """In fit, and where a model that was fitted elsewhere is to predict."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    told = "got 'cuda' and no GPU; set device='auto'"
    with pytest.raises(InvalidParameterError, match=told):
        fitted(device="cuda")
    model = pickle.loads(pickle.dumps(by_numpy())).set_params(device="cuda")
    with pytest.raises(InvalidParameterError, match=told):
        model.predict(NEW)


def test_unknown_device_is_refused():
    with pytest.raises(InvalidParameterError, match="device of MendClassifier must be one of"):
        fitted(device="gpu")
