"""GEGCN: graphs, the four networks against dense ones, their epochs, and fits."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

torch = pytest.importorskip("torch")

from viewmend.backend.threads import limited_threads  # noqa: E402
from viewmend.baselines import gegcn  # noqa: E402
from viewmend.baselines.gegcn import GEGCNClassifier  # noqa: E402
from viewmend.baselines.gegcn_steps import CompiledNetworks  # noqa: E402
from viewmend.baselines.gegcn_torch import Problem, Settings, TorchNetworks, shrink  # noqa: E402
from viewmend.baselines.torch_support import TorchRun  # noqa: E402
from viewmend.data.container import MultiViewData  # noqa: E402
from viewmend.data.labels import check_labels  # noqa: E402
from viewmend.datasets import hide, make_multiview_blobs  # noqa: E402
from viewmend.exceptions import InvalidParameterError  # noqa: E402

BLOBS = make_multiview_blobs(90, n_views=2, n_features=(6, 9), random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.0, label_rate=0.1, random_state=0)
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
MODEL = GEGCNClassifier(**SMALL).fit(TASK.data, TASK.y)
RNG = np.random.default_rng(0)
ROWS = np.flatnonzero(TASK.labelled)
PROBLEM = Problem(
    np.hstack([normalize(X) for X in BLOBS.views]).astype(np.float32),
    [gegcn.pruned_graph(X, 6) for X in BLOBS.views],
    ROWS,
    TASK.y_true[ROWS],
)
SIZES = 24, 8, 12, 3
NO_DROPOUT = Settings(1e-3, 1e-3, 1e-2, 1e-2, 0.0)


@pytest.fixture(autouse=True)
def one_thread():
    """Arrays so small are not worth a second one, least of all where others are at work."""
    with limited_threads(1):
        yield


def start(kind, problem=PROBLEM, weights=None, settings=NO_DROPOUT):
    """Networks of either kind, from the same weights by default."""
    weights = (
        gegcn.first_weights(problem, SIZES, np.random.default_rng(0))
        if weights is None
        else weights
    )
    rng = np.random.default_rng(1)
    source = TorchRun.start("cpu", rng) if kind is TorchNetworks else rng
    return kind(problem, weights, settings, source)


both_kinds = pytest.mark.parametrize("kind", [TorchNetworks, CompiledNetworks])


class DenseNetworks:
    """The four networks as the paper has them, with dense arrays and PyTorch's own gradients."""

    def __init__(self):
        arrays = dataclasses.asdict(gegcn.first_weights(PROBLEM, SIZES, np.random.default_rng(0)))
        pattern = PROBLEM.pattern.tocoo()
        self.i, self.j = (torch.tensor(ends).long() for ends in (pattern.row, pattern.col))
        V = torch.rand(90, 90, generator=torch.Generator().manual_seed(0))
        # The entry (i, j) has V_ji.
        V[self.j, self.i] = torch.tensor(arrays.pop("critic"))
        self.V = V.requires_grad_()
        for name, array in arrays.items():
            setattr(self, name, torch.tensor(array).requires_grad_())
        self.X, self.real = (
            torch.tensor(PROBLEM.X),
            [torch.tensor(A.toarray(), dtype=torch.float32) for A in PROBLEM.graphs],
        )
        self.rows, self.known = torch.tensor(PROBLEM.rows), torch.tensor(PROBLEM.known)

    def matrix(self, values):
        return torch.zeros(90, 90).index_put((self.i, self.j), values)

    def edges(self, Z):
        mean = (Z[self.i] + Z[self.j]) / 2
        H = torch.cat([mean, mean], 1) @ self.W1
        H = torch.nn.functional.batch_norm(H, None, None, self.scale, self.shift, training=True)
        return H.relu() @ self.W2 + self.b2

    def mismatch(self, values, Z):
        A = self.matrix(shrink(values, self.theta.sigmoid() / 2, 0.1)) + torch.eye(90)
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
    history = [net.pretrain() for _ in range(n_pretraining)]
    return [float(loss) for loss in history + [net.train() for _ in range(n_epochs)]]


@both_kinds
def test_epochs_equal_naive_ones(kind):
    naive, net = DenseNetworks(), start(kind)
    expected = naive_epochs(naive, 5, 25)
    np.testing.assert_allclose(epochs(net, 5, 25), expected, rtol=1e-4)
    found = net.outcome()
    A = naive.edges(naive.W.relu()).sigmoid()
    np.testing.assert_allclose(found.graph.toarray(), naive.matrix(A).detach(), atol=1e-3)
    np.testing.assert_allclose(found.threshold, naive.theta.sigmoid().item() / 2, rtol=1e-3)
    # Each network must have moved, or else its steps would not have been seen.
    before = DenseNetworks()
    for name in ("W", "U", "W1", "W2", "V", "theta", "C1", "C2"):
        old, new = (getattr(nets, name).detach().numpy() for nets in (before, naive))
        assert np.abs(new - old).max() > 1e-3, name


def permuted(problem, weights, order):
    """The same problem and start with the samples in another order."""
    pattern = problem.pattern
    critic = csr_array((weights.critic, pattern.indices, pattern.indptr), pattern.shape)
    critic = csr_array(critic[order][:, order])
    critic.sort_indices()
    return problem.reordered(order), dataclasses.replace(
        weights, W=weights.W[order].copy(), critic=critic.data
    )


@both_kinds
def test_samples_permute(kind):
    order = RNG.permutation(90)
    weights = gegcn.first_weights(PROBLEM, SIZES, np.random.default_rng(0))
    copies = dataclasses.asdict(weights)
    moved = start(kind, *permuted(PROBLEM, type(weights)(**copies), order))
    plain = start(kind, weights=weights)
    np.testing.assert_allclose(epochs(moved, 3, 15), epochs(plain, 3, 15), rtol=1e-5)
    one, other = plain.outcome(), moved.outcome()
    np.testing.assert_allclose(other.logits, one.logits[order], atol=1e-4)
    np.testing.assert_allclose(
        other.graph.toarray(), one.graph.toarray()[order][:, order], atol=1e-4
    )


@both_kinds
def test_classes_permute(kind):
    order = np.array([2, 0, 1])
    weights = gegcn.first_weights(PROBLEM, SIZES, np.random.default_rng(0))
    renamed = dataclasses.replace(PROBLEM, known=np.argsort(order)[PROBLEM.known])
    copies = dataclasses.asdict(weights) | {"C2": weights.C2[:, order].copy()}
    moved = start(kind, renamed, type(weights)(**copies))
    plain = start(kind, weights=weights)
    np.testing.assert_allclose(epochs(moved, 3, 15), epochs(plain, 3, 15), rtol=1e-5)
    np.testing.assert_allclose(moved.outcome().logits, plain.outcome().logits[:, order], atol=1e-4)


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
    found = gegcn.pruned_graph(X, 4).toarray()
    np.testing.assert_array_equal(found, expected)
    assert 0 < expected.sum() < sum(map(len, neighbours)), "some edges stay and some go"


@pytest.mark.parametrize("low", [0.01, 0.1, 0.44])
def test_shrink_is_zero_then_a_ramp_then_the_identity(low):
    weights = np.linspace(-1, 2, 61)
    found = shrink(torch.tensor(weights), low, 0.1).numpy()
    ramp = (low + 0.1) * (weights - low) / 0.1
    expected = np.where(weights <= low, 0, np.where(weights >= low + 0.1, weights, ramp))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_shrink_has_the_gradient_of_its_threshold():
    weights = torch.tensor([0.02, 0.13, 0.16, 0.5], dtype=torch.float64, requires_grad=True)
    low = torch.tensor([0.1], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda A, t1: shrink(A, t1, 0.1), (weights, low))


def test_imputed_rows_count_by_their_angle():
    """Completion leaves rows of any length; as in the authors' program they are scaled to one."""
    short = SMALL | {"pretrain_iter": 10, "max_iter": 5}
    lengths = RNG.uniform(0.1, 10, (90, 1))
    stretched = [X * lengths for X in BLOBS.views]
    labels = check_labels(TASK.y, 90)
    plain, scaled = (
        GEGCNClassifier(**short)._solve(
            MultiViewData(tuple(views), np.ones((90, 2), dtype=bool), TASK.data.names),
            labels,
            np.random.default_rng(0),
        )
        for views in (BLOBS.views, stretched)
    )
    np.testing.assert_allclose(plain.F, scaled.F, atol=1e-4)


def test_both_losses_decrease_towards_what_relu_cannot_reach():
    floor = np.square(PROBLEM.X.clip(max=0)).sum() / 2
    assert len(MODEL.pretraining_history_) == 150
    assert len(MODEL.history_) == MODEL.n_iter_ == 100
    pretraining, history = (
        np.array(values) - floor for values in (MODEL.pretraining_history_, MODEL.history_)
    )
    assert (pretraining > 0).all()
    assert pretraining[-1] < 0.5 * pretraining[0]
    assert (history > 0).all()
    assert np.mean(history[-5:]) < 0.8 * history[0]


def test_learns_easy_blobs():
    unlabelled = ~TASK.labelled
    assert np.mean((MODEL.transduction_ == TASK.y_true)[unlabelled]) > 0.9


def test_attributes_are_in_the_order_of_the_samples():
    """Which is not the one in which the networks are trained."""
    rng, y = np.random.default_rng(0), TASK.y_true
    found = GEGCNClassifier(**SMALL)._solve(TASK.data, check_labels(TASK.y, 90), rng)
    union = sum(gegcn.pruned_graph(X, 8) for X in TASK.data.views)
    np.testing.assert_array_equal(found.extras["graph_"].toarray() > 0, union.toarray() > 0)
    Z = normalize(found.extras["embedding_"])
    nearest = np.argmax(Z @ Z.T - 2 * np.eye(90), axis=1)
    assert np.mean(y[nearest] == y) > 0.9
    assert np.mean(found.F.argmax(axis=1) == y) > 0.9


def test_a_seed_fixes_the_fit_and_global_states_stay():
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    short = SMALL | {"pretrain_iter": 20, "max_iter": 20}
    first, again, other = (
        GEGCNClassifier(**short | {"random_state": seed}).fit(TASK.data, TASK.y)
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first.label_distributions_, again.label_distributions_)
    assert first.history_ == again.history_ != other.history_
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_a_fit_does_not_depend_on_the_number_of_threads():
    short = SMALL | {"pretrain_iter": 10, "max_iter": 10}
    fits = []
    for n_jobs in (1, -1):
        with limited_threads(n_jobs):
            fits.append(GEGCNClassifier(**short).fit(TASK.data, TASK.y))
    assert fits[0].history_ == fits[1].history_
    np.testing.assert_array_equal(fits[0].label_distributions_, fits[1].label_distributions_)


def test_on_the_processor_nothing_is_asked_of_pytorch(monkeypatch):
    def refuse():
        raise ImportError("PyTorch is needed here")

    monkeypatch.setattr("viewmend.baselines.torch_support.import_torch", refuse)
    monkeypatch.setattr("viewmend.backend.torch_gpu.import_torch", refuse)
    short = SMALL | {"pretrain_iter": 2, "max_iter": 2}
    for device in ("cpu", "auto"):
        GEGCNClassifier(**short | {"device": device}).fit(TASK.data, TASK.y)
    with pytest.raises(ImportError, match="PyTorch is needed"):
        GEGCNClassifier(**short | {"device": "cuda"}).fit(TASK.data, TASK.y)


def test_parameters_are_checked():
    with pytest.raises(InvalidParameterError, match=r"dropout of .* must be .* got 1"):
        GEGCNClassifier(dropout=1).fit(TASK.data, TASK.y)


def test_a_graph_without_edges_is_an_error_that_names_the_remedy():
    """With one neighbour each, no two joined samples share two others."""
    with pytest.raises(InvalidParameterError, match=r"n_neighbors=1 .* got \d .*raise n_neighbors"):
        GEGCNClassifier(**SMALL | {"n_neighbors": 1}).fit(TASK.data, TASK.y)
