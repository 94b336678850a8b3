"""Deep matrix factorisation."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.base import clone

from viewmend.backend.threads import limited_threads
from viewmend.data.container import MultiViewData
from viewmend.impute import ColumnMeanImputer, DeepMatrixFactorization, deep_matrix
from viewmend.impute.deep_matrix import FactorNetwork, random_weights


def nonlinear_data(n=100, seed=0):
    """Three views of a curved surface, half of the pairs missing, with the hidden truth."""
    rng = np.random.default_rng(seed)
    hidden = np.tanh(rng.normal(size=(n, 2)) @ rng.normal(size=(2, 12)))
    full = [hidden @ rng.normal(size=(12, d)) / np.sqrt(12 * d) for d in (7, 5, 9)]
    observed = rng.random((n, 3)) < 0.5
    observed[np.arange(n), rng.integers(3, size=n)] = True
    views = tuple(
        np.where(seen[:, None], X, np.nan) for seen, X in zip(observed.T, full, strict=True)
    )
    return MultiViewData(views, observed, ("a", "b", "c")), full


def hidden_error(completed, full, observed):
    """Relative Frobenius error on the missing rows."""
    pairs = zip(completed.views, full, ~observed.T, strict=True)
    gaps = [(found[rows] - true[rows], true[rows]) for found, true, rows in pairs]
    norms = [np.sqrt(sum(np.sum(part[k] ** 2) for part in gaps)) for k in range(2)]
    return norms[0] / norms[1]


DATA, FULL = nonlinear_data()
SMALL = DATA[:8]
MODEL = DeepMatrixFactorization(
    n_components=2, n_hidden=20, weight_decay=1e-4, latent_decay=1e-3, random_state=0
)


def small_problem(data=SMALL):
    rng = np.random.default_rng(1)
    unknown = [rng.normal(size=(8, 3)), *random_weights((3, 4, 21), rng)]
    return FactorNetwork(data, 0.03, 0.02, 4, "float64"), unknown


def naive_loss(Z, W1, W2):
    """The objective as it is printed, with a mask on the whole matrix."""
    X = np.nan_to_num(SMALL.stacked())
    O = np.repeat(SMALL.observed, SMALL.n_features, axis=1)  # noqa: E741
    ones = np.ones((8, 1))
    H = 1.7159 * np.tanh(2 / 3 * np.hstack([ones, Z]) @ W1)
    errors = O * (X - np.hstack([ones, H]) @ W2)
    decay = 0.03 / 2 * (np.sum(W1[1:] ** 2) + np.sum(W2[1:] ** 2))
    return np.sum(errors**2) / 16 + decay + 0.02 / 16 * np.sum(Z**2)


def test_loss_is_the_printed_objective():
    network, unknown = small_problem()
    np.testing.assert_allclose(network.loss(unknown)[0], naive_loss(*unknown), rtol=1e-12)


@pytest.mark.parametrize("block", [0, 1, 2], ids=["Z", "W1", "W2"])
def test_gradients_are_those_of_finite_differences(block):
    network, unknown = small_problem()

    def loss(flat):
        changed = [flat.reshape(a.shape) if i == block else a for i, a in enumerate(unknown)]
        return naive_loss(*changed)

    expected = approx_fprime(unknown[block].ravel(), loss, 1e-7)
    found = network.loss(unknown)[1][block]
    np.testing.assert_allclose(found.ravel(), expected, atol=2e-6)
    assert np.abs(expected).max() > 1e-2


def test_gradient_of_the_latent_rows_alone_is_the_same():
    network, (Z, *weights) = small_problem()
    together = network.loss([Z, *weights])[1][0].copy()
    np.testing.assert_allclose(network.latent_loss(Z, weights)[1][0], together, atol=1e-14)


def test_blocks_of_samples_add_up(monkeypatch):
    """Also where a block misses a view altogether."""
    observed = SMALL.observed.copy()
    observed[:2] = [True, False, False]
    data = MultiViewData(tuple(X[:8] for X in FULL), observed, SMALL.names)
    whole, unknown = small_problem(data)
    monkeypatch.setattr(deep_matrix, "_BLOCK_ROWS", 2)
    parts, _ = small_problem(data)
    assert [len(network.blocks) for network in (whole, parts)] == [1, 4]
    assert any(len(rows) == 0 for block in parts.blocks for rows in block.rows)
    for name, arguments in {"loss": (unknown,), "latent_loss": (unknown[0], unknown[1:])}.items():
        (loss, gradients), (expected, others) = (
            getattr(network, name)(*arguments) for network in (parts, whole)
        )
        np.testing.assert_allclose(loss, expected, rtol=1e-12)
        for one, other in zip(gradients, others, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-13)
    for one, other in zip(
        parts.views(unknown[0], unknown[1:]), whole.views(unknown[0], unknown[1:]), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-13)


def test_a_fit_does_not_depend_on_the_number_of_threads(monkeypatch):
    """To the last bit, also where linear algebra would use several for sums of this length."""
    monkeypatch.setattr(deep_matrix, "_BLOCK_ROWS", 25)
    data, _ = nonlinear_data(3000)
    found = []
    for n_jobs in (1, -1):
        with limited_threads(n_jobs):
            model = clone(MODEL).set_params(n_components=8, max_iter=4)
            found.append((model.fit_transform(data), model.history_))
    assert found[0][1] == found[1][1]
    for one, other in zip(found[0][0].views, found[1][0].views, strict=True):
        np.testing.assert_array_equal(one, other)


def test_first_weights_are_uniform_and_as_wide_as_the_layers_ask():
    W1, W2 = random_weights((10, 50, 300), np.random.default_rng(0))
    for W, bound in ((W1, 4 * np.sqrt(6 / 60)), (W2, 4 * np.sqrt(6 / 350))):
        assert 0.98 * bound < np.abs(W).max() <= bound
        np.testing.assert_allclose(W.std(), bound / np.sqrt(3), rtol=0.05)
        np.testing.assert_allclose(np.abs(W[0]).max(), bound, rtol=0.1)


def test_training_lowers_the_objective_and_stores_where_it_ended():
    model = DeepMatrixFactorization(random_state=0, max_iter=200, dtype="float64").fit(DATA)
    history = np.array(model.history_)
    tenths = history[: 10 * (len(history) // 10)].reshape(-1, 10).min(axis=1)
    assert np.all(np.diff(tenths) <= 0)
    network = FactorNetwork(DATA, 0.01, 0.01, 100, "float64")
    loss, _ = network.loss([model.latent_, *model.weights_])
    np.testing.assert_allclose(loss, history.min(), rtol=1e-12)
    assert model.n_iter_ == len(history) - 1


def test_hidden_rows_of_a_curved_surface_are_found():
    mean = hidden_error(ColumnMeanImputer().fit_transform(DATA), FULL, DATA.observed)
    deep = hidden_error(clone(MODEL).fit_transform(DATA), FULL, DATA.observed)
    assert deep < 0.6 * mean


def test_single_precision_fits_as_closely():
    losses = [
        clone(MODEL).set_params(dtype=dtype).fit(DATA).history_ for dtype in ("float32", "float64")
    ]
    np.testing.assert_allclose(losses[0][:20], losses[1][:20], rtol=1e-4)
    np.testing.assert_allclose(min(losses[0]), min(losses[1]), rtol=0.2)


def test_new_samples_keep_the_weights_and_are_completed():
    model = clone(MODEL).fit(DATA)
    weights = [W.copy() for W in model.weights_]
    rng = np.random.default_rng(3)
    rows = rng.permutation(100)[:40]
    shown = np.ones((40, 3), dtype=bool)
    shown[:, 1] = False
    completed = model.transform([X[rows] for X in FULL], mask=shown)
    fill = ColumnMeanImputer().fit(DATA).transform([X[rows] for X in FULL], mask=shown)
    truth = [X[rows] for X in FULL]
    assert hidden_error(completed, truth, shown) < 0.5 * hidden_error(fill, truth, shown)
    for W, before in zip(model.weights_, weights, strict=True):
        np.testing.assert_array_equal(W, before)


def test_new_rows_minimise_their_own_objective():
    """The same minimum as by a quasi-Newton method from the same start."""
    model = DeepMatrixFactorization(
        n_components=2, n_hidden=20, random_state=0, max_iter=2000, tol=1e-14, dtype="float64"
    ).fit(DATA)
    network = FactorNetwork(SMALL, 0.0, 0.01, 20, "float64")

    def flat(z):
        loss, (gradient,) = network.latent_loss(z.reshape(8, 2), model.weights_)
        return 1e3 * loss, 1e3 * gradient.ravel()

    Z = minimize(flat, np.zeros(16), jac=True, method="BFGS").x.reshape(8, 2)
    completed = model.transform(SMALL)
    for v, view in enumerate(network.views(Z, model.weights_)):
        lost = ~SMALL.observed[:, v]
        np.testing.assert_allclose(completed.views[v][lost], view[lost], atol=1e-4)
