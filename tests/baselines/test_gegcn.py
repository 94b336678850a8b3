"""GEGCN: graphs, shrinking, sparse gradients, the four networks, and fits."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

torch = pytest.importorskip("torch")

from viewmend.baselines import gegcn  # noqa: E402
from viewmend.baselines.gegcn import GEGCNClassifier, Networks  # noqa: E402
from viewmend.baselines.gegcn_steps import CompiledPairs, Pairs, shrink  # noqa: E402
from viewmend.baselines.torch_support import TorchRun  # noqa: E402
from viewmend.containers import MultiViewData  # noqa: E402
from viewmend.datasets import hide, make_multiview_blobs  # noqa: E402
from viewmend.exceptions import InvalidParameterError  # noqa: E402
from viewmend.labels import check_labels  # noqa: E402

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
GRAPHS = [gegcn.pruned_graph(X, 6) for X in BLOBS.views]
PATTERN = csr_array(GRAPHS[0] + GRAPHS[1])
X_BOTH = torch.tensor(np.hstack([normalize(X) for X in BLOBS.views]), dtype=torch.float32)
TARGETS = torch.tensor(np.where(TASK.labelled, TASK.y_true, -1))


EVERYONE = torch.arange(90)


def networks(pattern=PATTERN, seed=0, kind=CompiledPairs):
    run = TorchRun.start("cpu", np.random.default_rng(seed))
    return GEGCNClassifier(**SMALL)._networks(run, kind(run, pattern), 15, 3)


def logits_of(net, A, Z):
    return net.classify(A, Z @ net.C1, EVERYONE)


class DenseNetworks:
    """The four networks with dense arrays and PyTorch's own gradients."""

    def __init__(self, net):
        self.net = net
        self.first, self.second = net.pairs.first.long(), net.pairs.second.long()
        V = torch.rand(90, 90)
        V[self.second, self.first], V[self.first, self.second] = net.critic.detach()
        self.V = V.requires_grad_()

    def matrix(self, values):
        A = torch.zeros(90, 90).index_put((self.first, self.second), values)
        return A + A.T

    def edges(self, Z):
        mean = (Z[self.first] + Z[self.second]) / 2
        H = torch.cat([mean, mean], 1) @ self.net.W1
        H = torch.nn.functional.batch_norm(
            H, None, None, self.net.scale, self.net.shift, training=True
        )
        return (H.relu() @ self.net.W2 + self.net.b2)[:, 0]

    def classify(self, values, Z):
        A = self.matrix(shrink(values, self.net.theta.sigmoid() / 2, 0.1)) + torch.eye(90)
        # Constants in the gradients.
        degrees = A.detach().sum(1)
        A = A / (degrees[:, None] * degrees).sqrt()
        return (A @ (A @ Z @ self.net.C1).relu() @ self.net.C2).relu()

    def mismatch(self, values, Z):
        logits = self.classify(values, Z)
        return torch.nn.functional.cross_entropy(logits, TARGETS, ignore_index=-1)

    def reconstruction(self, Z):
        return (X_BOTH - (Z @ self.net.U + self.net.u).relu()).square().sum() / 2

    def doubt(self, values, truth):
        scores = torch.diag(self.matrix(values) @ self.V).sigmoid()
        return torch.nn.functional.binary_cross_entropy(scores, torch.full((90,), truth))


def dense(pairs, values):
    return pairs.array(values).toarray()


def array(tensor):
    return tensor.detach().numpy()


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


def assert_same(found, expected, parameters):
    """Equal values, and equal gradients by the parameters."""
    np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-4)
    fast, naive = (torch.autograd.grad(loss, parameters) for loss in (found, expected))
    for one, other in zip(fast, naive, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3 * other.abs().max().item())


def test_loss_of_the_embedding_equals_the_dense_one():
    net = networks()
    naive, Z = DenseNetworks(net), net.coordinates()
    logits = logits_of(net, net.edges(Z), Z)
    found = torch.nn.functional.cross_entropy(logits, TARGETS, ignore_index=-1)
    # Weighed, or else the gradient of the reconstruction would hide the other.
    found = 1e3 * found + net.reconstruction(Z, X_BOTH)
    Z = net.coordinates()
    expected = 1e3 * naive.mismatch(naive.edges(Z), Z) + naive.reconstruction(Z)
    assert_same(found, expected, net.embedding)


def test_loss_of_the_generator_equals_the_dense_one():
    net = networks()
    naive, Z = DenseNetworks(net), net.coordinates().detach()
    A = net.edges(Z).sigmoid()
    logits = logits_of(net, A, Z)
    found = torch.nn.functional.cross_entropy(logits, TARGETS, ignore_index=-1)
    A_naive = naive.edges(Z).sigmoid()
    expected = naive.doubt(A_naive, 1.0) + naive.mismatch(A_naive, Z)
    assert_same(gegcn.doubt(net, A) + found, expected, net.generator)


def test_loss_of_the_evaluator_equals_the_dense_one():
    """``diag(A V)`` with V on all pairs needs its entries on the edges only."""
    net = networks()
    naive = DenseNetworks(net)
    edges = [net.pairs.values_of(graph) for graph in GRAPHS]
    made = net.edges(net.coordinates()).sigmoid().detach()
    found = gegcn.critique(net, torch.stack(edges, 1), made)
    real = (naive.doubt(edges[0], 1.0) + naive.doubt(edges[1], 1.0)) / 2
    expected = (real + naive.doubt(made, 0.0)) / 2
    np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-4)
    (fast,) = torch.autograd.grad(found, net.critic)
    (full,) = torch.autograd.grad(expected, naive.V)
    joined = torch.stack([full[naive.second, naive.first], full[naive.first, naive.second]])
    np.testing.assert_allclose(fast, joined, atol=1e-6)
    full[naive.second, naive.first] = full[naive.first, naive.second] = 0
    np.testing.assert_array_equal(full, 0)


def test_loss_of_the_classifier_equals_the_dense_one():
    net = networks()
    naive, Z = DenseNetworks(net), net.coordinates().detach()
    # Weights below, on and above the ramp, or else the threshold would have no gradient.
    A = torch.tensor(RNG.uniform(0, 0.4, net.pairs.n_pairs), dtype=torch.float32)
    found = torch.nn.functional.cross_entropy(logits_of(net, A, Z), TARGETS, ignore_index=-1)
    assert_same(found, naive.mismatch(A, Z), net.classifier)


def naive_history(net, n_epochs):
    """The epochs of the paper, one after the other, with nothing shared between them."""
    naive = DenseNetworks(net)
    edges = [net.pairs.values_of(graph) for graph in GRAPHS]
    adam = torch.optim.Adam
    embedding = adam(net.embedding, 1e-3, weight_decay=5e-5)
    generator = adam(net.generator, 1e-3, weight_decay=5e-4)
    evaluator = adam([naive.V], 1e-2, weight_decay=5e-4)
    classifier = adam(net.classifier, 1e-2, weight_decay=5e-4)

    def step(optimiser, loss):
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.item()

    history = []
    for _ in range(n_epochs):
        Z = net.coordinates().detach()
        moving = net.coordinates()
        loss = naive.mismatch(naive.edges(moving), moving) + naive.reconstruction(moving)
        history.append(step(embedding, loss))
        A = naive.edges(Z).sigmoid()
        step(generator, naive.doubt(A, 1.0) + naive.mismatch(A, Z))
        A = naive.edges(Z).sigmoid().detach()
        real = sum(naive.doubt(values, 1.0) for values in edges) / 2
        step(evaluator, (real + naive.doubt(A, 0.0)) / 2)
        step(classifier, naive.mismatch(A, Z))
    return history


@pytest.mark.parametrize("kind", [Pairs, CompiledPairs])
def test_epochs_equal_naive_ones(kind):
    n_epochs = 12
    model = GEGCNClassifier(**SMALL | {"dropout": 0.0, "max_iter": n_epochs})
    net = networks(kind=kind)
    embedding = net.run.adam(net.embedding, 1e-3, gegcn.EMBEDDING_DECAY)
    edges = torch.stack([net.pairs.values_of(graph) for graph in GRAPHS], 1)
    found = model._train(net, embedding, X_BOTH, edges, TARGETS)
    expected = naive_history(networks(), n_epochs)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_raises(
        AssertionError, np.testing.assert_allclose, expected[1:], expected[:-1], rtol=1e-4
    )


def test_rows_permute_with_the_same_weights():
    order = RNG.permutation(90)
    net = networks()
    permuted = networks(csr_array(PATTERN[order][:, order]))
    shared = {
        field.name: getattr(net, field.name)
        for field in dataclasses.fields(Networks)
        if field.name not in ("run", "pairs", "W", "critic")
    }
    permuted = dataclasses.replace(permuted, W=net.W[torch.tensor(order)], **shared)
    Z, Z_permuted = net.coordinates(), permuted.coordinates()
    A, A_permuted = net.edges(Z).sigmoid(), permuted.edges(Z_permuted).sigmoid()
    np.testing.assert_allclose(
        dense(permuted.pairs, A_permuted), dense(net.pairs, A)[order][:, order], atol=1e-5
    )
    np.testing.assert_allclose(
        array(logits_of(permuted, A_permuted, Z_permuted)),
        array(logits_of(net, A, Z))[order],
        atol=1e-5,
    )


def test_a_step_changes_the_parameters_of_its_own_network_only():
    net = networks()
    before = {name: array(getattr(net, name)).copy() for name in ("W", "W1", "critic", "C1")}
    loss = gegcn.doubt(net, net.edges(net.coordinates()).sigmoid())
    net.run.step(net.run.adam(net.generator, 1e-3), loss)
    changed = {name for name, old in before.items() if (array(getattr(net, name)) != old).any()}
    assert changed == {"W1"}


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
    floor = X_BOTH.clamp_max(0).square().sum().item() / 2
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


def test_parameters_are_checked():
    with pytest.raises(InvalidParameterError, match=r"dropout of .* must be .* got 1"):
        GEGCNClassifier(dropout=1).fit(TASK.data, TASK.y)


def test_a_graph_without_edges_is_an_error_that_names_the_remedy():
    """With one neighbour each, no two joined samples share two others."""
    with pytest.raises(InvalidParameterError, match=r"n_neighbors=1 .* got \d .*raise n_neighbors"):
        GEGCNClassifier(**SMALL | {"n_neighbors": 1}).fit(TASK.data, TASK.y)
