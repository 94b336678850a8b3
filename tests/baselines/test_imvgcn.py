"""IMvGCN: filters, orthonormal weights, gradients, the network, and new samples."""

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

torch = pytest.importorskip("torch")

from viewmend.baselines import imvgcn  # noqa: E402
from viewmend.baselines.imvgcn import IMvGCNClassifier  # noqa: E402
from viewmend.baselines.torch_support import SparseConstant, TorchRun  # noqa: E402
from viewmend.datasets import hide, make_multiview_blobs  # noqa: E402
from viewmend.exceptions import InvalidParameterError  # noqa: E402

BLOBS = make_multiview_blobs(120, n_views=3, n_features=12, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.0, label_rate=0.1, random_state=0)
SMALL = {"n_neighbors": 8, "max_iter": 40, "random_state": 0, "device": "cpu"}
MODEL = IMvGCNClassifier(**SMALL).fit(TASK.data, TASK.y)
RNG = np.random.default_rng(0)
RUN = TorchRun.start("cpu", np.random.default_rng(0))


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def network_on(views, weights):
    """The forward pass without dropout, from views of unit rows."""
    filters = [imvgcn.graph_filter(imvgcn.loop_graph(X, 8), 0.5) for X in views]
    inputs = imvgcn.NetworkInputs.of(RUN, views, filters)
    Q = [[RUN.tensor(q) for q in Q_v] for Q_v in weights]
    return imvgcn.outputs(RUN, inputs, Q, 0.0).numpy()


def test_graph_equals_a_naive_one():
    X = RNG.normal(size=(30, 4))
    rows = unit(X)
    distances = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    A = np.zeros((30, 30))
    for i in range(30):
        A[i, np.argsort(distances[i])[:5]] = 1
    A = np.maximum(A, A.T) + np.eye(30)
    np.testing.assert_array_equal(imvgcn.loop_graph(X, 5).toarray(), A)
    root = A.sum(axis=1) ** -0.5
    Phi = 0.3 * np.eye(30) + 0.7 * root[:, None] * A * root
    np.testing.assert_allclose(imvgcn.graph_filter(csr_array(A), 0.7).toarray(), Phi, atol=1e-12)


def test_columns_are_orthonormal_up_to_the_ridge():
    """``Q^T Q = I - 1e-4 (C C^T)^{-1}`` in the basis of C, so eigenvalues are w / (w + 1e-4)."""
    W = torch.tensor(RNG.normal(size=(20, 6)))
    Q = imvgcn.orthonormalise(torch, W).numpy()
    np.testing.assert_allclose(Q.T @ Q, np.eye(6), atol=1e-4)
    squares = np.linalg.svd(W.numpy(), compute_uv=False) ** 2
    found = np.linalg.eigvalsh(Q.T @ Q)
    np.testing.assert_allclose(np.sort(found), np.sort(squares / (squares + 1e-4)), atol=1e-10)
    # Same span: projecting W on the columns of Q changes it by the ridge only.
    np.testing.assert_allclose(Q @ (Q.T @ W.numpy()), W.numpy(), atol=1e-3)


def test_fitted_weights_are_orthonormal():
    """Up to the ridge, which weighs more where Adam made weights nearly dependent."""
    for Q_v in MODEL.weights_:
        for Q in Q_v:
            singular = np.linalg.svd(Q, compute_uv=False)
            assert 0.95 < singular.min() <= singular.max() <= 1


def test_narrow_views_get_as_many_units_as_classes():
    """A view with fewer columns than classes has dependent weights; the ridge keeps them finite."""
    W = torch.tensor(RNG.normal(size=(2, 5)))
    singular = np.linalg.svd(imvgcn.orthonormalise(torch, W).numpy(), compute_uv=False)
    np.testing.assert_allclose(singular, 1, atol=1e-3)
    weights = imvgcn.initial_weights(RUN, [2, 640], (8, 32), 5)
    assert [tuple(w.shape) for w in weights[0]] == [(2, 5), (5, 5), (5, 5)]
    assert [tuple(w.shape) for w in weights[1]] == [(640, 80), (80, 20), (20, 5)]


def test_gradient_of_the_orthonormalisation():
    W = torch.tensor(RNG.normal(size=(7, 3)), requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: imvgcn.orthonormalise(torch, w), (W,))


def test_sparse_product_and_its_gradient_equal_dense_ones():
    M = csr_array(random_array((9, 6), density=0.4, rng=np.random.default_rng(0)))
    H = torch.tensor(RNG.normal(size=(6, 3)), dtype=torch.float32, requires_grad=True)
    weight = torch.tensor(RNG.normal(size=(9, 3)), dtype=torch.float32)
    product = SparseConstant(RUN, M) @ H
    np.testing.assert_allclose(product.detach().numpy(), M @ H.detach().numpy(), atol=1e-6)
    (product * weight).sum().backward()
    np.testing.assert_allclose(H.grad.numpy(), M.T @ weight.numpy(), atol=1e-6)


def test_loss_equals_its_formula():
    views = [unit(X)[:40] for X in BLOBS.views]
    filters = [imvgcn.graph_filter(imvgcn.loop_graph(X, 8), 0.5) for X in views]
    inputs = imvgcn.NetworkInputs.of(RUN, views, filters)
    Q = [[RUN.tensor(q) for q in Q_v] for Q_v in MODEL.weights_]
    O = RNG.normal(size=(40, 3))  # noqa: E741
    codes = np.where(np.arange(40) % 4 == 0, np.arange(40) % 3, -1)
    S = O - np.log(np.exp(O).sum(axis=1, keepdims=True))
    expected = -np.mean([S[i, codes[i]] for i in range(40) if codes[i] >= 0])
    for X, Phi, (Q1, Q2, Q3) in zip(views, filters, MODEL.weights_, strict=True):
        expected += 0.01 * np.sum((X - S @ Q3.T @ Q2.T @ Q1.T) ** 2)
        expected += 0.01 * 0.5 * np.trace(S.T @ (Phi @ S))
    found = imvgcn.loss(torch, inputs, Q, RUN.tensor(O), RUN.tensor(codes), 0.01, 0.5)
    np.testing.assert_allclose(found.item(), expected, rtol=1e-5)


def test_loss_decreases():
    assert len(MODEL.history_) == MODEL.n_iter_ == 40
    assert np.mean(MODEL.history_[-5:]) < 0.8 * MODEL.history_[0]


def test_rows_permute_with_the_same_weights():
    order = RNG.permutation(120)
    views = [unit(X) for X in BLOBS.views]
    np.testing.assert_allclose(
        network_on([X[order] for X in views], MODEL.weights_),
        network_on(views, MODEL.weights_)[order],
        atol=1e-5,
    )


def test_arrays_and_tensors_give_the_same_network():
    views = [unit(X) for X in TASK.data.views]
    np.testing.assert_allclose(MODEL.network_.outputs, network_on(views, MODEL.weights_), atol=1e-5)


def test_without_filter_a_sample_of_fit_predicts_as_in_fit():
    """``lam=0`` cuts all edges: the network sees one sample at a time."""
    model = IMvGCNClassifier(**SMALL, lam=0.0).fit(TASK.data, TASK.y)
    np.testing.assert_allclose(
        model.predict_proba(TASK.data), model.label_distributions_, atol=1e-10
    )


def test_new_samples_see_their_nearest_samples_of_fit():
    """Against the rows of the filter of the enlarged graph, with the old degrees, by hand."""
    X, new = unit(RNG.normal(size=(25, 4))), unit(RNG.normal(size=(3, 4)))
    degrees = imvgcn.loop_graph(X, 6).sum(axis=1)
    loop, Phi = imvgcn.new_filter_rows(new, X, degrees, 6, 0.4)
    expected = np.zeros((3, 25))
    for i in range(3):
        near = np.argsort(((X - new[i]) ** 2).sum(axis=1))[:5]
        expected[i, near] = 0.4 / np.sqrt(7 * degrees[near])
    np.testing.assert_allclose(Phi.toarray(), expected, atol=1e-12)
    assert loop == pytest.approx(0.6 + 0.4 * 2 / 7)


def test_learns_easy_blobs_and_their_new_samples():
    rows = np.arange(120)
    seen, unseen = rows[:90], rows[90:]
    y = np.where(rows[:90] < 30, BLOBS.y[:90], -1)
    model = IMvGCNClassifier(**SMALL).fit([X[seen] for X in BLOBS.views], y)
    assert np.mean(model.transduction_[30:] == BLOBS.y[30:90]) > 0.9
    found = model.predict([X[unseen] for X in BLOBS.views])
    assert np.mean(found == BLOBS.y[unseen]) > 0.9


def test_a_seed_fixes_the_fit_and_global_states_stay():
    states = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    threads = torch.get_num_threads()
    again = IMvGCNClassifier(**SMALL).fit(TASK.data, TASK.y)
    other = IMvGCNClassifier(**SMALL | {"random_state": 1}).fit(TASK.data, TASK.y)
    np.testing.assert_array_equal(again.label_distributions_, MODEL.label_distributions_)
    assert again.history_ == MODEL.history_
    assert other.history_ != MODEL.history_
    assert torch.equal(torch.get_rng_state(), states[0])
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert torch.get_num_threads() == threads


def test_dropout_keeps_the_mean_and_follows_its_generator():
    run = TorchRun.start("cpu", np.random.default_rng(1))
    ones = torch.ones(200, 200)
    dropped = run.dropout(ones, 0.3).numpy()
    np.testing.assert_allclose(np.unique(dropped), [0, 1 / 0.7], rtol=1e-6)
    assert dropped.mean() == pytest.approx(1, abs=0.02)
    same = TorchRun.start("cpu", np.random.default_rng(1)).dropout(ones, 0.3).numpy()
    np.testing.assert_array_equal(same, dropped)


@pytest.mark.parametrize("name", sorted(IMvGCNClassifier.presets))
def test_presets_are_settings(name):
    model = IMvGCNClassifier(**IMvGCNClassifier.presets[name], device="cpu", random_state=0)
    model.set_params(max_iter=1).fit(TASK.data, TASK.y)
    assert np.isfinite(model.label_distributions_).all()
    if name == "default":
        defaults = IMvGCNClassifier().get_params()
        assert all(defaults[key] == value for key, value in IMvGCNClassifier.presets[name].items())


def test_parameters_are_checked():
    with pytest.raises(InvalidParameterError, match=r"lam of .* got 2; .*width_divisors.* got \(8"):
        IMvGCNClassifier(lam=2, width_divisors=(8,)).fit(TASK.data, TASK.y)


def test_absent_gpu_is_an_error(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InvalidParameterError, match="no GPU; use device='auto'"):
        IMvGCNClassifier(device="cuda").fit(TASK.data, TASK.y)


def test_absent_torch_is_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install .*\[torch\]'"):
        IMvGCNClassifier().fit(TASK.data, TASK.y)


def test_torch_is_imported_only_when_a_network_is_fitted():
    code = (
        "import sys, viewmend.baselines.imvgcn, viewmend.baselines.gegcn; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
