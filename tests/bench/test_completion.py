"""A completion is made once, kept whole, and the same from the disk as from the imputer."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from viewmend.bench import completion as module
from viewmend.bench.completion import FixedCompletion, completed, imputer_of
from viewmend.bench.protocols import observed_pairs, pose
from viewmend.datasets import make_multiview_blobs

BLOBS = make_multiview_blobs(40, n_views=2, n_classes=2, random_state=0)
SOURCE = replace(BLOBS, names=("a", "b"))
RATE, SEED = 0.5, 11


def complete(folder, source=SOURCE, rate=RATE, seed=SEED):
    return completed(source, "independent", rate, seed, folder)


@pytest.fixture
def calls(monkeypatch):
    """Seeds of the imputers that were called."""
    real, made = module._complete, []

    def noted(given, imputer):
        made.append(imputer.random_state)
        return real(given, imputer)

    monkeypatch.setattr(module, "_complete", noted)
    return made


def test_it_is_the_imputers_on_unit_rows_and_keeps_what_was_observed(tmp_path):
    found = complete(tmp_path).data
    observed = observed_pairs(SOURCE, "independent", RATE, SEED)
    rows = [view / np.linalg.norm(view, axis=1, keepdims=True) for view in BLOBS.views]
    masked = [np.where(seen[:, None], X, np.nan) for X, seen in zip(rows, observed.T, strict=True)]
    direct = imputer_of(2, SEED).fit_transform(masked)
    for view, expected, X, seen in zip(found.views, direct.views, rows, observed.T, strict=True):
        assert_allclose(view, expected, rtol=1e-6)
        assert_allclose(view[seen], X[seen], rtol=1e-15)
    assert found.observed.all()


def test_the_paper_has_as_many_latent_variables_as_classes_and_ten_units_each():
    imputer = imputer_of(7, 3)
    assert (imputer.n_components, imputer.n_hidden, imputer.random_state) == (7, 70, 3)


def test_the_second_time_it_is_read_to_the_last_bit(tmp_path, calls):
    first, again = complete(tmp_path), complete(tmp_path)
    for a, b in zip(first.data.views, again.data.views, strict=True):
        assert_array_equal(a, b)
    # The time is that of the making, not of the reading.
    assert again.seconds == first.seconds > 0
    assert calls == [SEED]


def test_all_it_depends_on_tells_files_apart(tmp_path, calls):
    complete(tmp_path)
    complete(tmp_path, seed=SEED + 1)
    complete(tmp_path, rate=0.3)
    complete(tmp_path, source=replace(SOURCE, views=(BLOBS.views[0] + 1, BLOBS.views[1])))
    assert len(calls) == 4
    assert len(list(tmp_path.rglob("*.npz"))) == 4


@pytest.mark.parametrize("keep", [0, 100, -20])
def test_a_file_that_is_not_whole_is_made_again(tmp_path, calls, keep):
    first = complete(tmp_path)
    (path,) = tmp_path.rglob("*.npz")
    path.write_bytes(path.read_bytes()[:keep])
    again = complete(tmp_path)
    assert_array_equal(again.data.views[0], first.data.views[0])
    assert len(calls) == 2
    assert list(tmp_path.rglob("*.part*")) == []


def test_of_several_that_want_it_one_makes_it(tmp_path, calls, monkeypatch):
    """All of them come to the lock before any gets it."""
    real, all_want_it = module._locked, threading.Barrier(4)

    def locked(path):
        all_want_it.wait()
        return real(path)

    monkeypatch.setattr(module, "_locked", locked)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(complete, [tmp_path] * 4))
    assert calls == [SEED]
    for other in found[1:]:
        assert_array_equal(other.data.views[1], found[0].data.views[1])


def test_one_that_fails_leaves_nothing_and_frees_the_others(tmp_path, monkeypatch):
    def broken(given, imputer):
        raise RuntimeError("out of luck")

    with monkeypatch.context() as patch:
        patch.setattr(module, "_complete", broken)
        with pytest.raises(RuntimeError, match="out of luck"):
            complete(tmp_path)
    assert list(tmp_path.rglob("*.npz")) == []
    assert complete(tmp_path).data.observed.all()


def test_rows_of_zeros_are_data(tmp_path):
    views = [view.copy() for view in BLOBS.views]
    observed = observed_pairs(SOURCE, "independent", RATE, SEED)
    row = np.flatnonzero(observed.all(axis=1))[0]
    views[0][row] = 0
    found = complete(tmp_path, replace(SOURCE, views=tuple(views)))
    assert found.warned == ()
    assert not found.data.views[0][row].any()


def test_the_imputer_and_what_it_completes_know_no_class(tmp_path, monkeypatch):
    real, given = module._complete, []
    monkeypatch.setattr(
        module, "_complete", lambda data, imputer: given.append(data) or real(data, imputer)
    )
    assert complete(tmp_path).data.y is None
    assert [data.y for data in given] == [None]


def test_complete_views_are_left_alone(tmp_path):
    found = complete(tmp_path, rate=0.0)
    for view, given in zip(found.data.views, BLOBS.views, strict=True):
        assert_allclose(view, given / np.linalg.norm(given, axis=1, keepdims=True), rtol=1e-15)


def test_it_serves_every_order_of_the_rows(tmp_path):
    found = complete(tmp_path).data
    for name in ("paper", "honest"):
        task = pose(SOURCE, name, RATE, 0.1, SEED)
        ordered = found[task.order]
        for v, seen in enumerate(task.data.observed.T):
            rows = task.data.views[v][seen]
            unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
            assert_allclose(ordered.views[v][seen], unit, rtol=1e-15)


def test_a_copy_of_the_fixed_imputer_shares_the_views():
    imputer = FixedCompletion(SOURCE)
    assert clone(imputer).fit_transform(None) is SOURCE


def test_a_completion_of_an_older_imputer_is_made_again(tmp_path, calls, monkeypatch):
    complete(tmp_path)
    monkeypatch.setattr(module.DeepMatrixFactorization, "version", 99)
    complete(tmp_path)
    assert len(calls) == len(list(tmp_path.rglob("*.npz"))) == 2
