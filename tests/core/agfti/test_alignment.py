"""Anchor alignment: the best orthogonal map, with and without threads."""

import numpy as np
import pytest

from viewmend.backend import dispatch
from viewmend.backend.threads import limited_threads
from viewmend.core.agfti.alignment import align_products


def graphs(n_anchors, n_samples=300, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.dirichlet(np.full(n_anchors, 0.1), size=(3, n_samples))
    return Z, rng.dirichlet(np.full(n_anchors, 0.1), size=n_samples)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_maps_are_orthogonal_and_reach_the_nuclear_norm(n_threads):
    Z, P = graphs(128)
    with limited_threads(n_threads):
        T, agreed = align_products(dispatch.cross_products(Z, P))
    for Z_v, T_v, agreed_v in zip(Z, T, agreed, strict=True):
        np.testing.assert_allclose(T_v.T @ T_v, np.eye(len(T_v)), atol=1e-10)
        aim = Z_v.T @ P
        np.testing.assert_allclose(np.sum(Z_v @ T_v * P), np.linalg.norm(aim, "nuc"), rtol=1e-10)
        np.testing.assert_allclose(agreed_v, np.linalg.norm(aim, "nuc"), rtol=1e-10)


def test_a_shuffled_copy_is_put_back_in_order():
    Z, _ = graphs(12)
    order = np.random.default_rng(1).permutation(12)
    T, _ = align_products(dispatch.cross_products(Z[:1][:, :, order], Z[0]))
    np.testing.assert_allclose(Z[0][:, order] @ T[0], Z[0], atol=1e-10)


def test_threads_do_not_change_the_maps():
    Z, P = graphs(128)
    maps = []
    for n_threads in (1, 2):
        with limited_threads(n_threads):
            maps.append(align_products(dispatch.cross_products(Z, P))[0])
    np.testing.assert_array_equal(*maps)
