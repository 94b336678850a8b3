"""A rare class that is one end of a continuum: given labels count beside what the rounds find."""

import dask
import dask.array as da
import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import roc_auc_score

from viewmend import MendClassifier, load, save
from viewmend.callbacks import Checkpoint
from viewmend.core.mend import label_reading
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.distributed import BlockCheckpoint
from viewmend.exceptions import DataWarning

SETTINGS = {"n_rounds": 3, "n_landmarks": 100, "calibration": None}


def linear_task(seed, n_samples=600, share=0.1):
    """Two views of Gaussian columns; positives are the samples of largest sums, 60 have a label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 16))
    score = X @ rng.normal(size=16)
    y = (score > np.quantile(score, 1 - share)).astype(int)
    return hide(np.split(X, 2, axis=1), y, missing_rate=0.3, label_rate=0.1, random_state=seed)


TASK = linear_task(1)


@pytest.fixture(scope="module")
def model():
    return fitted(TASK)


def fitted(task, **changes):
    return MendClassifier(**SETTINGS | changes).fit(task.data, task.y)


def is_read(model):
    evidence = model.fitted_state_.induction.evidence
    return evidence is not None and evidence.label_intercept is not None


def auc(model, task):
    free = task.unlabelled
    return roc_auc_score(task.y_true[free], model.label_distributions_[free, 1])


def test_a_rare_end_of_a_continuum_is_ranked_better_than_by_rounds_alone(monkeypatch):
    """Every round moves further away from the labels, so that many rounds show it best."""
    tasks = [linear_task(seed) for seed in range(1, 4)]
    models = [fitted(task, n_rounds=8) for task in tasks]
    assert all(map(is_read, models))
    monkeypatch.setattr(label_reading, "AGREEMENT", (-2.0, -1.0))
    rounds_alone = [fitted(task, n_rounds=8) for task in tasks]
    assert not any(map(is_read, rounds_alone))
    gains = [auc(a, t) - auc(b, t) for a, b, t in zip(models, rounds_alone, tasks, strict=True)]
    assert np.mean(gains) > 0.04


def test_rare_groups_of_samples_are_left_to_the_rounds():
    """A class that graphs and regressions can find needs no reading, however rare it is."""
    blobs = make_multiview_blobs(400, n_views=2, noise=1.5, random_state=0)
    kept = (blobs.y != 2) | (np.arange(400) % 6 == 0)
    y = (blobs.y[kept] == 2).astype(int)
    views = [view[kept] for view in blobs.views]
    task = hide(views, y, missing_rate=0.3, label_rate=0.3, random_state=0)
    assert label_reading.has_rare_class(np.bincount(task.y[task.labelled]))
    assert not is_read(fitted(task))


def test_views_of_noise_do_not_hide_a_rare_group():
    """They dilute the sum of all graphs, but two views still agree about the group."""
    rng, y = np.random.default_rng(0), (np.arange(500) < 50).astype(int)
    shift = 2.5 * y[:, None] * (np.arange(8) < 3)
    group = [rng.normal(size=(500, 8)) + shift for _ in range(2)]
    noise = [rng.normal(size=(500, 30)) for _ in range(6)]
    task = hide([*group, *noise], y, missing_rate=0.2, label_rate=0.2, random_state=0)
    assert label_reading.has_rare_class(np.bincount(task.y[task.labelled]))
    assert not is_read(fitted(task))


def test_a_rare_group_that_one_view_alone_sees_is_left_to_the_rounds():
    """No other view can agree about it, but the graphs of this one join its samples."""
    rng, y = np.random.default_rng(0), (np.arange(500) < 50).astype(int)
    views = [rng.normal(size=(500, 8)) + 4 * y[:, None], rng.normal(size=(500, 30))]
    task = hide(views, y, missing_rate=0.2, label_rate=0.2, random_state=0)
    assert not is_read(fitted(task))


def test_classes_of_equal_size_are_left_to_the_rounds():
    assert not is_read(fitted(linear_task(1, share=0.5)))


def test_a_saved_model_predicts_the_same_bits(model, tmp_path):
    save(model, tmp_path / "model.viewmend")
    again = load(tmp_path / "model.viewmend")
    assert is_read(again)
    np.testing.assert_array_equal(again.predict_proba(TASK.data), model.predict_proba(TASK.data))


def test_copies_of_samples_are_ranked_as_the_samples(model):
    free = TASK.unlabelled
    found = model.predict_proba(TASK.data)[free, 1]
    assert np.corrcoef(found, model.label_distributions_[free, 1])[0, 1] > 0.97


def test_explanations_sum_to_the_log_odds(model):
    rows = np.flatnonzero(TASK.unlabelled)[:40]
    told = model.explain(rows)
    shares = np.sort(model.label_distributions_[rows], axis=1)
    odds = np.log(shares[:, 1] / shares[:, 0])
    np.testing.assert_allclose(told.log_odds.sum(axis=1), odds, atol=1e-3)


def test_explanations_of_new_samples_sum_to_the_predicted_log_odds(model):
    some = TASK.data[:40]
    shares = np.sort(model.predict_proba(some), axis=1)
    odds = np.log(shares[:, 1] / shares[:, 0])
    np.testing.assert_allclose(model.explain_new(some).log_odds.sum(axis=1), odds, atol=1e-3)


@pytest.mark.parametrize("n_stages", [2, 3])
def test_a_fit_goes_on_from_its_checkpoint(model, tmp_path, n_stages):
    """The first stage decides whether labels are read, and is repeated where it was before."""
    path = tmp_path / "fit.checkpoint"
    stop = MendClassifier(**SETTINGS)
    stop.set_callbacks(Checkpoint(path), lambda record, _: record.iteration == n_stages)
    stop.fit(TASK.data, TASK.y)
    again = MendClassifier(**SETTINGS).set_callbacks(Checkpoint(path)).fit(TASK.data, TASK.y)
    assert is_read(again)
    np.testing.assert_array_equal(again.label_distributions_, model.label_distributions_)


def test_the_order_of_the_rows_does_not_matter(model):
    order = np.random.default_rng(0).permutation(len(TASK.y))
    moved = MendClassifier(**SETTINGS).fit(TASK.data[order], TASK.y[order])
    assert is_read(moved)
    np.testing.assert_array_equal(moved.label_distributions_, model.label_distributions_[order])


def test_the_order_of_views_and_classes_does_not_matter(model):
    views, observed = TASK.data.views[::-1], TASK.data.observed[:, ::-1]
    turned = np.where(TASK.y >= 0, 1 - TASK.y, -1)
    other = MendClassifier(**SETTINGS).fit(list(views), turned, mask=observed)
    assert is_read(other)
    found = other.label_distributions_[:, ::-1]
    np.testing.assert_allclose(found, model.label_distributions_, atol=1e-3)


def test_tensors_give_what_arrays_give(model):
    pytest.importorskip("torch")
    other = fitted(TASK, device="cpu")
    assert is_read(other)
    np.testing.assert_allclose(other.label_distributions_, model.label_distributions_, atol=1e-3)
    found = other.predict_proba(TASK.data)
    np.testing.assert_allclose(found, model.predict_proba(TASK.data), atol=1e-3)


def test_blocks_give_the_model_of_a_fit_in_memory(model, tmp_path):
    """Also where the fit stops in between and goes on."""
    views = [da.from_array(view, chunks=(180, -1)) for view in TASK.data.views]
    with dask.config.set(scheduler="synchronous"):
        whole = MendClassifier(**SETTINGS).fit(views, TASK.y)
        stop = MendClassifier(**SETTINGS)
        stop.set_callbacks(BlockCheckpoint(tmp_path, 1), lambda record, _: record.iteration == 3)
        stop.fit(views, TASK.y)
        again = MendClassifier(**SETTINGS).set_callbacks(BlockCheckpoint(tmp_path, 1))
        again.fit(views, TASK.y)
    assert is_read(whole)
    np.testing.assert_allclose(whole.label_distributions_, model.label_distributions_, atol=1e-3)
    np.testing.assert_array_equal(again.label_distributions_, whole.label_distributions_)


def test_samples_outside_the_graph_are_read_too(model):
    """In memory and over blocks, with the deviations of the samples of the graph."""
    views = [da.from_array(view, chunks=(180, -1)) for view in TASK.data.views]
    some = fitted(TASK, graph_samples=400)
    with dask.config.set(scheduler="synchronous"):
        blocks = MendClassifier(**SETTINGS, graph_samples=400).fit(views, TASK.y)
    assert is_read(some)
    assert is_read(blocks)
    np.testing.assert_allclose(blocks.label_distributions_, some.label_distributions_, atol=2e-2)
    assert auc(some, TASK) > auc(model, TASK) - 0.03


def test_sparse_views_and_missing_cells_are_read():
    """A wide view of counts has components, and a cell that is missing is filled before."""
    counts = np.random.default_rng(0).poisson(0.02, size=(600, 5000)).astype(float)
    cells = TASK.data.views[0].copy()
    cells[::7, 2] = np.nan
    views, observed = [cells, csr_array(counts)], TASK.data.observed
    model = MendClassifier(**SETTINGS)
    with pytest.warns(DataWarning):
        model.fit(views, TASK.y, mask=observed)
    assert is_read(model)
    free = TASK.unlabelled
    with pytest.warns(DataWarning):
        found = model.predict_proba(views, mask=observed)[free, 1]
    assert np.corrcoef(found, model.label_distributions_[free, 1])[0, 1] > 0.95
