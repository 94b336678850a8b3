"""AGF-TI through PyTorch gives what it gives through NumPy."""

import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from viewmend import AGFTIClassifier  # noqa: E402
from viewmend.core import solve  # noqa: E402
from viewmend.core.agfti.graph_fourier import graph_spectrum, summed_graph  # noqa: E402
from viewmend.datasets import hide, make_multiview_blobs  # noqa: E402
from viewmend.exceptions import InvalidParameterError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# An odd number of samples: the highest frequency of the Fourier transform then has a mirror.
BLOBS = make_multiview_blobs(121, n_views=3, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.15, random_state=0)
NEW = hide(
    make_multiview_blobs(30, n_views=3, noise=2.0, random_state=1).views,
    BLOBS.y[:30],
    missing_rate=0.3,
    label_rate=0.5,
    random_state=1,
).data
MAKERS = {
    "graph": AGFTIClassifier,
    "fourier": AGFTIClassifier.from_paper,
    "released": lambda **kw: AGFTIClassifier.from_paper(compat="released", **kw),
}
ARRAYS = (
    "label_distributions_",
    "view_weights_",
    "fused_graph_",
    "view_graphs_",
    "anchor_alignments_",
)
DTYPES = ("float64", "float32")


def fitted(mode, X=TASK.data, **parameters):
    settings = {"random_state": 0, "max_iter": 12, "n_anchors": 16} | parameters
    return MAKERS[mode](**settings).fit(X, TASK.y)


@pytest.fixture(scope="module")
def by_numpy():
    return {(mode, dtype): fitted(mode, dtype=dtype) for mode in MAKERS for dtype in DTYPES}


def tensors(dtype):
    return [torch.tensor(view, dtype=getattr(torch, dtype)) for view in TASK.data.views]


def assert_same_model(model, expected, atol):
    assert (model.n_iter_, model.status_) == (expected.n_iter_, expected.status_)
    for name in ARRAYS:
        found = getattr(model, name)
        assert isinstance(found, np.ndarray), name
        np.testing.assert_allclose(found, getattr(expected, name), atol=atol, err_msg=name)
    np.testing.assert_array_equal(model.transduction_, expected.transduction_)
    np.testing.assert_allclose(model.predict_proba(NEW), expected.predict_proba(NEW), atol=atol)


@pytest.mark.parametrize("mode", MAKERS)
def test_fit_equals_that_of_numpy(by_numpy, mode):
    assert_same_model(fitted(mode, device="cpu"), by_numpy[mode, "float64"], atol=1e-6)


@pytest.mark.parametrize("mode", MAKERS)
def test_single_precision_gives_the_same_classes(by_numpy, mode):
    model = fitted(mode, device="cpu", dtype="float32")
    expected = by_numpy[mode, "float32"]
    assert model.fused_graph_.dtype == np.float32
    np.testing.assert_array_equal(model.transduction_, expected.transduction_)
    np.testing.assert_array_equal(model.predict(NEW), expected.predict(NEW))
    # "graph" draws anchors by the content of the views, which rounding changes.
    if mode != "graph":
        double = by_numpy[mode, "float64"]
        np.testing.assert_array_equal(model.transduction_, double.transduction_)
        np.testing.assert_array_equal(model.predict(NEW), double.predict(NEW))


@pytest.mark.parametrize("waves", [False, True])
def test_one_problem_in_both_precisions(make_problem, waves):
    problem = on_waves(make_problem()) if waves else make_problem()
    double, single = (
        solve(problem.converted(lambda array, kind=kind: tensor_of(array, kind)), max_iter=10)
        for kind in (torch.float64, torch.float32)
    )
    np.testing.assert_array_equal(single.F.argmax(1), double.F.argmax(1))
    np.testing.assert_allclose(single.F, double.F, atol=1e-4)
    np.testing.assert_allclose(single.alpha, double.alpha, atol=1e-4)


def tensor_of(array, kind):
    return torch.tensor(array, dtype=None if array.dtype == bool else kind)


def on_waves(problem):
    """The same problem with the tensor step along the waves of its own graph."""
    waves = graph_spectrum(summed_graph(problem.Z, problem.observed), 8).U
    return replace(problem, U=waves, G=problem.Z)


def test_final_labels_that_are_not_spread_once_more_agree_too():
    numpy, torch_ = (fitted("graph", final_damping=None, device=d) for d in (None, "cpu"))
    assert_same_model(torch_, numpy, atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", [list, tuple, lambda views: dict(zip("abc", views, strict=True))])
def test_tensors_in_give_what_arrays_give(dtype, form):
    """Tensors in float32 too: as with arrays, `dtype` tells the precision of the fit."""
    views = tensors(dtype)
    before = [view.clone() for view in views]
    same = fitted("graph", [view.astype(dtype) for view in TASK.data.views])
    model = fitted("graph", form(views))
    np.testing.assert_allclose(model.label_distributions_, same.label_distributions_, atol=1e-6)
    np.testing.assert_array_equal(model.transduction_, same.transduction_)
    for view, old in zip(views, before, strict=True):
        assert torch.equal(view.nan_to_num(9.0), old.nan_to_num(9.0))


def test_tensors_of_labels_masks_and_new_samples(by_numpy):
    expected = by_numpy["graph", "float64"]
    views = [view.nan_to_num(7.0) for view in tensors("float64")]
    mask = torch.tensor(TASK.data.observed)
    model = AGFTIClassifier(random_state=0, max_iter=12, n_anchors=16)
    model.fit(views, torch.tensor(np.asarray(TASK.y)), mask=mask)
    assert_same_model(model, expected, atol=1e-6)
    new = [torch.tensor(view) for view in NEW.views]
    np.testing.assert_allclose(model.predict_proba(new), expected.predict_proba(NEW), atol=1e-9)
    stacked = torch.hstack(new)
    np.testing.assert_allclose(model.predict_proba(stacked), expected.predict_proba(NEW), atol=1e-9)


def test_input_decides_where_nothing_else_does():
    """Tensors are solved by PyTorch, arrays by NumPy, also by a model that saw tensors before."""
    seen = []
    model = AGFTIClassifier(random_state=0, max_iter=1, n_anchors=16)
    model.set_callbacks(lambda _, state: seen.append(type(state.Z)))
    for X in (TASK.data, tensors("float64"), TASK.data):
        model.fit(X, TASK.y)
    model.set_params(device="cpu").fit(TASK.data, TASK.y)
    model.set_params(device="auto").fit(tensors("float64"), TASK.y)
    by_auto = torch.Tensor if torch.cuda.is_available() else np.ndarray
    assert seen == [np.ndarray, torch.Tensor, np.ndarray, torch.Tensor, by_auto]


def test_a_fitted_model_needs_no_torch(monkeypatch, by_numpy):
    """Nothing of PyTorch is kept: the model goes to a machine without it."""
    packed = pickle.dumps(fitted("graph", tensors("float64")))
    assert b"torch" not in packed
    without_torch(monkeypatch)
    model = pickle.loads(packed)
    expected = by_numpy["graph", "float64"].predict_proba(NEW)
    np.testing.assert_allclose(model.predict_proba(NEW), expected, atol=1e-6)


def without_torch(monkeypatch):
    """Make PyTorch look as if it was not installed."""
    monkeypatch.setitem(sys.modules, "torch", None)


def test_device_without_torch_says_what_to_install(monkeypatch):
    without_torch(monkeypatch)
    for device in ("cpu", "cuda"):
        with pytest.raises(ImportError, match=r"pip install .*\[torch\]', or set device=None"):
            fitted("graph", device=device)
    assert fitted("graph", device="auto", max_iter=1).n_iter_ == 1


def test_cuda_without_a_gpu_says_what_to_do(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InvalidParameterError, match="got 'cuda' and no GPU; set device='auto'"):
        fitted("graph", device="cuda")


def test_unknown_device_is_refused():
    with pytest.raises(InvalidParameterError, match="device of AGFTIClassifier must be one of"):
        fitted("graph", device="gpu")


@pytest.mark.parametrize("waves", [False, True])
def test_core_solves_a_problem_of_tensors(make_problem, waves):
    """All that the rounds report agrees too, not only where they end."""
    problem = on_waves(make_problem()) if waves else make_problem()
    expected = solve(problem, max_iter=6)
    placed = problem.converted(torch.tensor)
    before = placed.converted(torch.clone)
    found = solve(placed, max_iter=6)
    for one, other in zip(found.history, expected.history, strict=True):
        np.testing.assert_allclose(
            [one.change_F, one.change_Q, *one.alpha, one.primal_residual],
            [other.change_F, other.change_Q, *other.alpha, other.primal_residual],
            rtol=1e-7,
            atol=1e-9,
        )
        for name, number in other.objective.items():
            np.testing.assert_allclose(one.objective[name], number, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.F, expected.F, atol=1e-9)
    np.testing.assert_allclose(found.Z, expected.Z, atol=1e-9)
    for name in ("Z", "Y", "observed"):
        assert torch.equal(getattr(placed, name), getattr(before, name)), name
