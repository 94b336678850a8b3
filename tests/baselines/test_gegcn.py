"""GEGCN: graphs, shrinking, sparse gradients, the four networks, and fits."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse import csr_array

torch = pytest.importorskip("torch")

from viewmend.baselines import gegcn  # noqa: E402
from viewmend.baselines.gegcn import GEGCNClassifier, Networks  # noqa: E402
from viewmend.baselines.torch_support import Pairs, TorchRun  # noqa: E402
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
RUN = TorchRun.start("cpu", np.random.default_rng(0))
GRAPHS = [gegcn.pruned_graph(X, 6) for X in BLOBS.views]
PATTERN = csr_array(GRAPHS[0] + GRAPHS[1])


def networks(pattern=PATTERN, seed=0):
    run = TorchRun.start("cpu", np.random.default_rng(seed))
    return GEGCNClassifier(**SMALL)._networks(run, Pairs(run, pattern), (6, 9), 3)


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


@pytest.mark.parametrize("theta", [-4.0, -1.5, 2.0])
def test_shrink_is_zero_then_a_ramp_then_the_identity(theta):
    t1 = 0.5 / (1 + np.exp(-theta))
    weights = np.linspace(-1, 2, 61)
    found = gegcn.shrink(torch.tensor(weights), torch.tensor(theta, dtype=torch.float64)).numpy()
    ramp = (t1 + 0.1) * (weights - t1) / 0.1
    expected = np.where(weights <= t1, 0, np.where(weights >= t1 + 0.1, weights, ramp))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_shrink_of_a_low_threshold_keeps_all_and_of_a_high_one_drops_below_a_half():
    weights = torch.linspace(0.11, 0.49, 20, dtype=torch.float64)
    low, high = (torch.tensor(theta, dtype=torch.float64) for theta in (-40.0, 40.0))
    np.testing.assert_allclose(gegcn.shrink(weights, low).numpy(), weights.numpy(), atol=1e-12)
    np.testing.assert_allclose(gegcn.shrink(weights, high).numpy(), 0, atol=1e-12)


def test_shrink_has_the_gradient_of_its_threshold():
    weights = torch.tensor([0.02, 0.13, 0.16, 0.5], dtype=torch.float64, requires_grad=True)
    theta = torch.tensor([-1.5], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(gegcn.shrink, (weights, theta))


def test_pair_products_and_their_gradients_equal_dense_ones():
    pairs = Pairs(RUN, PATTERN)
    values = torch.tensor(RNG.normal(size=pairs.n_pairs), dtype=torch.float32, requires_grad=True)
    H = torch.tensor(RNG.normal(size=(90, 4)), dtype=torch.float32, requires_grad=True)
    G = torch.tensor(RNG.normal(size=(90, 4)), dtype=torch.float32)
    A = dense(pairs, values)
    np.testing.assert_array_equal(A, A.T)
    np.testing.assert_array_equal(A != 0, PATTERN.toarray() != 0)
    product = pairs.product(values, H)
    np.testing.assert_allclose(array(product), A @ array(H), atol=1e-5)
    (product * G).sum().backward()
    np.testing.assert_allclose(H.grad.numpy(), A @ G.numpy(), atol=1e-5)
    by_entry = G.numpy() @ array(H).T
    i, j = pairs.first.numpy(), pairs.second.numpy()
    assert (i < j).all()
    np.testing.assert_allclose(values.grad.numpy(), by_entry[i, j] + by_entry[j, i], atol=1e-5)
    np.testing.assert_allclose(array(pairs.row_sums(values)), A.sum(axis=1), atol=1e-5)


def test_values_of_a_graph_at_the_pairs_make_the_graph():
    pairs = Pairs(RUN, PATTERN)
    for graph in GRAPHS:
        np.testing.assert_array_equal(dense(pairs, pairs.values_of(graph)), graph.toarray())


def test_evaluator_equals_the_dense_one():
    """``diag(A V)`` with V on all pairs needs its entries on the edges only."""
    net = networks()
    pairs = net.pairs
    values = torch.rand(pairs.n_pairs, generator=torch.Generator().manual_seed(0))
    V = RNG.normal(size=(90, 90))
    i, j = pairs.first.numpy(), pairs.second.numpy()
    V[j, i], V[i, j] = array(net.critic)
    np.testing.assert_allclose(
        array(net.evaluate(values)), np.diag(dense(pairs, values) @ V), atol=1e-5
    )


def test_generator_equals_the_naive_one_on_edge_features():
    net = networks()
    Z = array(net.coordinates())
    mean = (Z[net.pairs.first] + Z[net.pairs.second]) / 2
    H = np.hstack([mean, mean]) @ array(net.W1) + array(net.b1)
    H = (H - H.mean(axis=0)) / np.sqrt(H.var(axis=0) + 1e-5)
    expected = np.maximum(H, 0) @ array(net.W2)[:, 0]
    np.testing.assert_allclose(array(net.edges()), expected, atol=1e-3)


def test_classifier_equals_the_dense_one():
    net = networks()
    values = torch.rand(net.pairs.n_pairs, generator=torch.Generator().manual_seed(0))
    A = dense(net.pairs, gegcn.shrink(values, net.theta)) + np.eye(90)
    A /= np.sqrt(np.outer(A.sum(axis=1), A.sum(axis=1)))
    hidden = np.maximum(A @ array(net.coordinates()) @ array(net.C1), 0)
    expected = np.maximum(A @ hidden @ array(net.C2), 0)
    np.testing.assert_allclose(array(net.classify(values)), expected, atol=1e-5)


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
    A, A_permuted = net.edges().sigmoid(), permuted.edges().sigmoid()
    np.testing.assert_allclose(
        dense(permuted.pairs, A_permuted), dense(net.pairs, A)[order][:, order], atol=1e-5
    )
    np.testing.assert_allclose(
        array(permuted.classify(A_permuted)), array(net.classify(A))[order], atol=1e-5
    )


def test_losses_of_the_evaluator_are_cross_entropies():
    net = networks()
    edges = [net.pairs.values_of(graph) for graph in GRAPHS]
    made = torch.full((net.pairs.n_pairs,), 0.3)

    def score(values):
        return 1 / (1 + np.exp(-array(net.evaluate(values))))

    real = np.mean([-np.log(score(A)).mean() for A in edges])
    false = -np.log(1 - score(made)).mean()
    np.testing.assert_allclose(
        gegcn.critique(net, edges, made).item(), (real + false) / 2, rtol=1e-4
    )


def test_a_step_changes_the_parameters_of_its_own_network_only():
    net = networks()
    before = {name: array(getattr(net, name)).copy() for name in ("W", "W1", "critic", "C1")}
    loss = gegcn.doubt(net, net.edges().sigmoid(), 1.0)
    net.run.step(net.run.adam(net.generator, 1e-3), loss)
    changed = {name for name, old in before.items() if (array(getattr(net, name)) != old).any()}
    assert changed == {"W1"}


def test_signed_columns_are_raised_and_distances_stay():
    X = np.array([[-1.0, 2.0, 0.5], [3.0, 4.0, -0.5]])
    np.testing.assert_array_equal(gegcn.non_negative(X), [[0, 2, 1], [4, 4, 0]])


def test_both_losses_decrease():
    assert len(MODEL.pretraining_history_) == 150
    assert MODEL.pretraining_history_[-1] < 0.5 * MODEL.pretraining_history_[0]
    assert len(MODEL.history_) == MODEL.n_iter_ == 100
    assert np.mean(MODEL.history_[-5:]) < 0.8 * MODEL.history_[0]


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
