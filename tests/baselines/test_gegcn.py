"""GEGCN: graphs, the four networks against dense ones, limits, invariances, and fits."""

import dataclasses
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

torch = pytest.importorskip("torch")

from viewmend.baselines import gegcn, gegcn_networks  # noqa: E402
from viewmend.baselines.gegcn import GEGCNClassifier  # noqa: E402
from viewmend.baselines.gegcn_networks import GraphTask, Networks, shrink  # noqa: E402
from viewmend.baselines.torch_support import TorchRun  # noqa: E402
from viewmend.data.container import MultiViewData  # noqa: E402
from viewmend.data.labels import check_labels  # noqa: E402
from viewmend.datasets import hide, make_multiview_blobs  # noqa: E402
from viewmend.exceptions import InvalidParameterError  # noqa: E402

BLOBS = make_multiview_blobs(90, n_views=2, n_features=(6, 9), random_state=0)
HIDDEN = hide(BLOBS.views, BLOBS.y, missing_rate=0.0, label_rate=0.1, random_state=0)
SMALL = {
    "n_neighbors": 8,
    "n_components": 24,
    "n_hidden": 12,
    "n_edge_hidden": 8,
    "pretrain_iter": 150,
    "max_iter": 100,
    "device": "cpu",
    "random_state": 0,
}
SHORT = SMALL | {"pretrain_iter": 10, "max_iter": 5}
RNG = np.random.default_rng(0)
LABELLED = np.flatnonzero(HIDDEN.labelled)
TASK = GraphTask(
    np.hstack([normalize(X) for X in BLOBS.views]),
    [gegcn.pruned_graph(X, 6) for X in BLOBS.views],
    LABELLED,
    HIDDEN.y_true[LABELLED],
)
RATES = 1e-3, 1e-3, 1e-2, 1e-2


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Arrays so small are not worth a second one, least of all where others are at work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def fitted(one_thread):
    return GEGCNClassifier(**SMALL).fit(HIDDEN.data, HIDDEN.y)


def first_weights():
    return gegcn_networks.first_weights(TASK, (24, 8, 12, 3), np.random.default_rng(0))


def start(task=TASK, weights=None):
    """Networks without dropout."""
    weights = first_weights() if weights is None else weights
    return Networks(task, weights, 0.0, TorchRun.start("cpu", np.random.default_rng(1)))


def single(array):
    return torch.tensor(array, dtype=torch.float32)


class DenseNetworks:
    """The four networks as the paper has them, with dense arrays and PyTorch's own gradients."""

    def __init__(self):
        arrays = dict(vars(first_weights()))
        pattern = TASK.pattern.tocoo()
        self.i, self.j = (torch.tensor(ends).long() for ends in (pattern.row, pattern.col))
        V = torch.rand(90, 90, generator=torch.Generator().manual_seed(0))
        # The entry (i, j) has V_ji.
        V[self.j, self.i] = single(arrays.pop("critic"))
        self.V = V.requires_grad_()
        for name, array in arrays.items():
            setattr(self, name, single(array).requires_grad_())
        self.X, self.real = single(TASK.X), [single(A.toarray()) for A in TASK.graphs]
        self.rows, self.known = torch.tensor(TASK.labelled), torch.tensor(TASK.classes)

    def matrix(self, values):
        return torch.zeros(90, 90).index_put((self.i, self.j), values)

    def edges(self, Z):
        mean = (Z[self.i] + Z[self.j]) / 2
        H = torch.cat([mean, mean], 1) @ self.W1
        H = torch.nn.functional.batch_norm(H, None, None, self.scale, self.shift, training=True)
        return H.relu() @ self.W2 + self.b2

    def mismatch(self, values, Z):
        A = self.matrix(shrink(values, self.theta.sigmoid() / 2)) + torch.eye(90)
        # Constants in the gradients.
        degrees = A.detach().sum(1)
        A = A / (degrees[:, None] * degrees).sqrt()
        logits = (A @ (A @ Z @ self.C1).relu() @ self.C2).relu()
        return torch.nn.functional.cross_entropy(logits[self.rows], self.known)

    def reconstruction(self, Z):
        return (self.X - (Z @ self.U.T + self.u).relu()).square().sum() / 2

    def doubt(self, A, truth):
        scores = torch.diag(A @ self.V).sigmoid()
        return torch.nn.functional.binary_cross_entropy(scores, torch.full((90,), truth))


def naive_epochs(net, n_pretraining, n_epochs):
    """The epochs of the paper, one after the other, with nothing shared between them."""
    embedding, generator, evaluator, classifier = (
        torch.optim.Adam(parameters, rate, weight_decay=decay)
        for parameters, rate, decay in (
            ([net.W, net.U, net.u], 1e-3, 5e-5),
            ([net.W1, net.scale, net.shift, net.W2, net.b2], 1e-3, 5e-4),
            ([net.V], 1e-2, 5e-4),
            ([net.theta, net.C1, net.C2], 1e-2, 5e-4),
        )
    )

    def step(optimiser, loss):
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.item()

    history = [step(embedding, net.reconstruction(net.W.relu())) for _ in range(n_pretraining)]
    for _ in range(n_epochs):
        Z = net.W.relu().detach()
        moving = net.W.relu()
        loss = net.mismatch(net.edges(moving), moving) + net.reconstruction(moving)
        history.append(step(embedding, loss))
        values = net.edges(Z).sigmoid()
        step(generator, net.doubt(net.matrix(values), 1.0) + net.mismatch(values, Z))
        values = net.edges(Z).sigmoid().detach()
        real = sum(net.doubt(A, 1.0) for A in net.real) / len(net.real)
        step(evaluator, (real + net.doubt(net.matrix(values), 0.0)) / 2)
        step(classifier, net.mismatch(values, Z))
    return history


def epochs(net, n_pretraining, n_epochs):
    optimisers = net.optimisers(*RATES)
    history = [net.pretrain(optimisers) for _ in range(n_pretraining)]
    return [float(loss) for loss in history + [net.train(optimisers) for _ in range(n_epochs)]]


def test_epochs_equal_naive_ones():
    naive, net = DenseNetworks(), start()
    expected = naive_epochs(naive, 5, 25)
    np.testing.assert_allclose(epochs(net, 5, 25), expected, rtol=1e-4)
    A = naive.matrix(naive.edges(naive.W.relu()).sigmoid()).detach()
    np.testing.assert_allclose(net.outputs()[2].toarray(), A, atol=1e-3)
    np.testing.assert_allclose(net.threshold().item(), naive.theta.sigmoid().item() / 2, rtol=1e-3)
    # Each network must have moved, or else its steps would not have been seen.
    before = DenseNetworks()
    for name in ("W", "U", "W1", "W2", "V", "theta", "C1", "C2"):
        old, new = (getattr(nets, name).detach().numpy() for nets in (before, naive))
        assert np.abs(new - old).max() > 1e-3, name


def test_an_evaluator_without_weights_knows_nothing():
    """All its scores are one half, so that either loss is log 2."""
    net = start(weights=dataclasses.replace(first_weights(), critic=np.zeros(TASK.pattern.nnz)))
    A = torch.rand(TASK.pattern.nnz)
    assert net.doubt(A).item() == pytest.approx(np.log(2), rel=1e-6)
    assert net.critique(A).item() == pytest.approx(np.log(2), rel=1e-6)


def test_below_the_threshold_every_sample_is_alone():
    """The convolutions of a graph without edges are two layers of relu."""
    net = start()
    Z, w = net.coordinates(), net.weights
    weak = torch.full((TASK.pattern.nnz,), 0.99 * net.threshold().item())
    alone = ((Z @ w.C1).relu() @ w.C2).relu()
    np.testing.assert_allclose(net.logits(weak, Z).detach(), alone.detach(), atol=1e-6)


def test_samples_permute():
    order, weights, pattern = RNG.permutation(90), first_weights(), TASK.pattern
    critic = csr_array((weights.critic, pattern.indices, pattern.indptr), pattern.shape)
    critic = csr_array(critic[order][:, order])
    critic.sort_indices()
    moved = start(
        GraphTask(
            TASK.X[order],
            [csr_array(A[order][:, order]) for A in TASK.graphs],
            np.argsort(order)[TASK.labelled],
            TASK.classes,
        ),
        dataclasses.replace(weights, W=weights.W[order], critic=critic.data),
    )
    plain = start()
    np.testing.assert_allclose(epochs(moved, 3, 15), epochs(plain, 3, 15), rtol=1e-5)
    (logits, _, graph), (other_logits, _, other_graph) = plain.outputs(), moved.outputs()
    np.testing.assert_allclose(other_logits, logits[order], atol=1e-4)
    np.testing.assert_allclose(other_graph.toarray(), graph.toarray()[order][:, order], atol=1e-4)


def test_classes_permute():
    order, weights = np.array([2, 0, 1]), first_weights()
    moved = start(
        dataclasses.replace(TASK, classes=np.argsort(order)[TASK.classes]),
        dataclasses.replace(weights, C2=weights.C2[:, order]),
    )
    plain = start()
    np.testing.assert_allclose(epochs(moved, 3, 15), epochs(plain, 3, 15), rtol=1e-5)
    np.testing.assert_allclose(moved.outputs()[0], plain.outputs()[0][:, order], atol=1e-4)


def test_graph_equals_a_naive_one():
    X = BLOBS.views[0]
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    distances = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    joined = [set(np.argsort(distances[i])[:4]) for i in range(90)]
    neighbours = [{j for j in range(90) if j in joined[i] or i in joined[j]} for i in range(90)]
    expected = np.array(
        [
            [
                float(j in neighbours[i] and len(neighbours[i] & neighbours[j]) >= 2)
                for j in range(90)
            ]
            for i in range(90)
        ]
    )
    np.testing.assert_array_equal(gegcn.pruned_graph(X, 4).toarray(), expected)
    assert 0 < expected.sum() < sum(map(len, neighbours)), "some edges stay and some go"


@pytest.mark.parametrize("low", [0.01, 0.1, 0.44])
def test_shrink_is_zero_then_a_ramp_then_the_identity(low):
    weights = np.linspace(-1, 2, 61)
    shrunk = shrink(torch.tensor(weights), low).numpy()
    ramp = (low + 0.1) * (weights - low) / 0.1
    expected = np.where(weights <= low, 0, np.where(weights >= low + 0.1, weights, ramp))
    np.testing.assert_allclose(shrunk, expected, atol=1e-12)


def test_shrink_has_the_gradient_of_its_threshold():
    weights = torch.tensor([0.02, 0.13, 0.16, 0.5], dtype=torch.float64, requires_grad=True)
    low = torch.tensor([0.1], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(shrink, (weights, low))


def test_imputed_rows_count_by_their_angle():
    """Completion leaves rows of any length; as in the authors' program they are scaled to one."""
    lengths = RNG.uniform(0.1, 10, (90, 1))
    stretched = [X * lengths for X in BLOBS.views]
    labels = check_labels(HIDDEN.y, 90)
    plain, scaled = (
        GEGCNClassifier(**SHORT)._solve(
            MultiViewData(tuple(views), np.ones((90, 2), dtype=bool), HIDDEN.data.names),
            labels,
            np.random.default_rng(0),
        )
        for views in (BLOBS.views, stretched)
    )
    np.testing.assert_allclose(plain.F, scaled.F, atol=1e-4)


def test_both_losses_decrease_towards_what_relu_cannot_reach(fitted):
    floor = np.square(TASK.X.clip(max=0)).sum() / 2
    assert len(fitted.pretraining_history_) == 150
    assert len(fitted.history_) == fitted.n_iter_ == 100
    pretraining, history = (
        np.array(values) - floor for values in (fitted.pretraining_history_, fitted.history_)
    )
    assert (pretraining > 0).all()
    assert pretraining[-1] < 0.5 * pretraining[0]
    assert (history > 0).all()
    assert np.mean(history[-5:]) < 0.8 * history[0]


def test_learns_easy_blobs(fitted):
    unlabelled = ~HIDDEN.labelled
    assert np.mean((fitted.transduction_ == HIDDEN.y_true)[unlabelled]) > 0.9


def test_graph_and_embedding_belong_to_the_samples(fitted):
    y = HIDDEN.y_true
    union = sum(gegcn.pruned_graph(X, 8) for X in HIDDEN.data.views)
    np.testing.assert_array_equal(fitted.graph_.toarray() > 0, union.toarray() > 0)
    Z = normalize(fitted.embedding_)
    nearest = np.argmax(Z @ Z.T - 2 * np.eye(90), axis=1)
    assert np.mean(y[nearest] == y) > 0.9


def test_a_seed_fixes_the_fit_and_global_states_stay():
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    first, again, other = (
        GEGCNClassifier(**SHORT | {"random_state": seed}).fit(HIDDEN.data, HIDDEN.y)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.label_distributions_, again.label_distributions_)
    assert first.history_ == again.history_ != other.history_
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_absent_torch_is_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install .*\[torch\]'"):
        GEGCNClassifier(**SHORT).fit(HIDDEN.data, HIDDEN.y)


def test_parameters_are_checked():
    with pytest.raises(InvalidParameterError, match=r"dropout of .* must be .* got 1"):
        GEGCNClassifier(dropout=1).fit(HIDDEN.data, HIDDEN.y)


def test_a_graph_without_edges_is_an_error_that_names_the_remedy():
    """With one neighbour each, no two joined samples share two others."""
    with pytest.raises(InvalidParameterError, match=r"n_neighbors=1 .* got \d .*raise n_neighbors"):
        GEGCNClassifier(**SMALL | {"n_neighbors": 1}).fit(HIDDEN.data, HIDDEN.y)
