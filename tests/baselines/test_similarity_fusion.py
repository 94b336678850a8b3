"""Similarity network fusion against a transcription in loops."""

import numpy as np
import pytest

from viewmend import memory
from viewmend.baselines.similarity_fusion import (
    SimilarityFusionClassifier,
    fuse_similarities,
    local_kernel,
    nearest_transition,
    transition,
)
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError, TooLargeError

BLOBS = make_multiview_blobs(90, n_views=3, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=0)
ROWS = [np.flatnonzero(seen) for seen in TASK.data.observed.T]
KERNELS = [local_kernel(TASK.data.rows_seen(v), 6, 0.5) for v in range(3)]


def test_local_kernel_is_that_of_a_loop():
    X, k, width = np.random.default_rng(0).normal(size=(12, 3)), 4, 0.6
    d = np.array([[np.linalg.norm(a - b) for b in X] for a in X])
    reach = [np.sort(np.delete(d[i], i))[:k].mean() for i in range(12)]
    expected = [
        [np.exp(-(d[i, j] ** 2) / (width * (reach[i] + reach[j] + d[i, j]) / 3)) for j in range(12)]
        for i in range(12)
    ]
    np.testing.assert_allclose(local_kernel(X, k, width), expected, rtol=1e-7)


def test_duplicates_are_as_similar_as_can_be():
    X = np.repeat(np.eye(3), 5, axis=0)
    kernel = local_kernel(X, 3, 0.5)
    np.testing.assert_allclose(kernel[:5, :5], 1)
    assert (kernel[:5, 5:] < 1).all()


def test_transition_halves_stay_and_halves_leave():
    P = transition(KERNELS[0])
    np.testing.assert_allclose(P.diagonal(), 0.5)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_allclose(P[0, 1] / P[0, 2], KERNELS[0][0, 1] / KERNELS[0][0, 2])


def test_nearest_transition_keeps_the_most_similar():
    S = nearest_transition(KERNELS[0], 6).toarray()
    for kept, row in zip(S, KERNELS[0], strict=True):
        nearest = np.sort(np.argsort(-row)[:6])
        np.testing.assert_array_equal(np.flatnonzero(kept), nearest)
        np.testing.assert_allclose(kept[nearest], row[nearest] / row[nearest].sum())


def naive_fusion(n_samples, k, n_diffusions):
    """Every P_v as a dictionary over pairs of samples."""
    P = [
        {(i, j): D[a, b] for a, i in enumerate(e) for b, j in enumerate(e)}
        for e, D in zip(ROWS, map(transition, KERNELS), strict=True)
    ]
    S = [nearest_transition(K, k).toarray() for K in KERNELS]
    for _ in range(n_diffusions):
        new = []
        for v, e in enumerate(ROWS):
            M = np.empty((len(e), len(e)))
            for a, i in enumerate(e):
                for b, j in enumerate(e):
                    others = [P[u][i, j] for u in range(3) if u != v and (i, j) in P[u]]
                    M[a, b] = np.mean(others) if others else P[v][i, j]
            D = transition(S[v] @ M @ S[v].T)
            new.append({(i, j): D[a, b] for a, i in enumerate(e) for b, j in enumerate(e)})
        P = new
    W = np.zeros((n_samples, n_samples))
    for i in range(n_samples):
        for j in range(n_samples):
            seen = [P_v[i, j] for P_v in P if (i, j) in P_v]
            W[i, j] = np.mean(seen) if seen and i != j else 0
    return (W + W.T) / 2


@pytest.mark.parametrize("n_diffusions", [0, 1, 3])
def test_fusion_is_that_of_loops(n_diffusions):
    W = fuse_similarities(KERNELS, ROWS, 90, 6, n_diffusions)
    np.testing.assert_allclose(W, naive_fusion(90, 6, n_diffusions), atol=1e-12)


def test_complete_data_is_the_textbook_method():
    """P_v <- S_v mean of the other P_u S_v^T, on whole matrices."""
    kernels = [local_kernel(view, 6, 0.5) for view in BLOBS.views]
    everyone = [np.arange(90)] * 3
    P = [transition(kernel) for kernel in kernels]
    S = [nearest_transition(kernel, 6).toarray() for kernel in kernels]
    for _ in range(4):
        P = [
            transition(S[v] @ sum(P[u] for u in range(3) if u != v) / 2 @ S[v].T) for v in range(3)
        ]
    W = sum(P) / 3
    W = (W + W.T) / 2
    np.fill_diagonal(W, 0)
    np.testing.assert_allclose(fuse_similarities(kernels, everyone, 90, 6, 4), W, atol=1e-12)


def test_pairs_without_a_common_view_stay_apart():
    model = SimilarityFusionClassifier(n_neighbors=6).fit(TASK.data, TASK.y)
    observed = TASK.data.observed.astype(int)
    apart = observed @ observed.T == 0
    assert apart.any()
    assert not model.similarity_[apart].any()
    assert (model.similarity_[~apart & ~np.eye(90, dtype=bool)] > 0).mean() > 0.5


def test_rows_permute_and_classes_relabel():
    model = SimilarityFusionClassifier(n_neighbors=6).fit(TASK.data, TASK.y)
    order, swap = np.random.default_rng(0).permutation(90), np.array([2, 0, 1, -1])
    other = SimilarityFusionClassifier(n_neighbors=6).fit(TASK.data[order], swap[TASK.y[order]])
    np.testing.assert_allclose(
        other.label_distributions_[:, swap[:3]], model.label_distributions_[order], atol=1e-5
    )
    assert (model.transduction_ == TASK.y_true)[TASK.unlabelled].mean() > 0.8


def test_class_mass_follows_the_prior():
    equal = SimilarityFusionClassifier(n_neighbors=6).fit(TASK.data, TASK.y)
    skewed = SimilarityFusionClassifier(n_neighbors=6, class_prior=[0.7, 0.2, 0.1])
    odds = skewed.fit(TASK.data, TASK.y).label_distributions_ / equal.label_distributions_
    expected = np.broadcast_to([1, 2 / 7, 1 / 7], odds.shape)
    np.testing.assert_allclose(odds / odds[:, [0]], expected, rtol=1e-9)


def test_refuses_what_the_memory_cannot_hold(monkeypatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 10**5)
    with pytest.raises(TooLargeError, match="12 dense arrays of 90 x 90"):
        SimilarityFusionClassifier().fit(TASK.data, TASK.y)


def test_parameters_are_checked():
    with pytest.raises(InvalidParameterError, match=r"kernel_width of .* > 0, got 0"):
        SimilarityFusionClassifier(kernel_width=0).fit(TASK.data, TASK.y)
