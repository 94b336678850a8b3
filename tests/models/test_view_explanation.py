"""Columns of a view: planted ones come first, and swaps are what predictions make of them."""

import io

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from viewmend import MendClassifier, load, save
from viewmend.core.mend.column_effects import _swapped_rows, column_effects
from viewmend.core.mend.components import weighed
from viewmend.core.mend.induction import represent_new, scores_of_new
from viewmend.exceptions import InvalidParameterError

N_SAMPLES, N_COLUMNS, N_CLASSES = 150, 12, 3
# The column that tells each class from the others; the rest is noise.
TELLING = (2, 5, 9)


def planted(seed=0):
    """A view in which one column tells each class, and another that tells little."""
    rng = np.random.default_rng(seed)
    y = np.arange(N_SAMPLES) % N_CLASSES
    X = rng.normal(size=(N_SAMPLES, N_COLUMNS))
    for code, column in enumerate(TELLING):
        X[y == code, column] += 3
    other = rng.normal(size=(N_SAMPLES, 4)) + y[:, None]
    return [X, other], np.where(rng.random(N_SAMPLES) < 0.3, y, -1)


VIEWS, Y = planted()


@pytest.fixture(scope="module")
def model():
    return MendClassifier(calibration=None).fit(VIEWS, Y)


def new_scores(model, v, rows):
    """Scores of rows of a view by the code that predicts new samples."""
    fit = model.fitted_state_.induction
    views = [np.zeros((rows.shape[0], width)) for width in model.view_n_features_]
    views[v] = rows
    observed = np.zeros((rows.shape[0], len(views)), dtype=bool)
    observed[:, v] = True
    new = represent_new(fit.views, views, observed)
    return scores_of_new(fit.views, new, len(model.classes_))[:, v]


@pytest.mark.parametrize("kind", ["numbers", "counts"])
def test_effects_are_those_of_predictions_for_swapped_samples(kind):
    """Zeros and rows of zeros among them; representations scale these in ways of their own."""
    views, y = planted(1)
    if kind == "counts":
        views[0] = np.maximum(np.round(views[0]), 0)
    model = MendClassifier(calibration=None).fit(views, y)
    view = model.fitted_state_.induction.views[0]
    rows = np.vstack([views[0], np.zeros(N_COLUMNS)])
    some, others = _swapped_rows(rows, 40)
    effects, before = column_effects(view, rows, 40), new_scores(model, 0, some)
    for column in range(N_COLUMNS):
        swapped = some.copy()
        swapped[:, column] = others[:, column]
        changes = new_scores(model, 0, swapped) - before
        lost = np.mean(changes**2, axis=0) / 2
        np.testing.assert_allclose(effects.lost[column], lost, rtol=2e-3, atol=1e-8)
        steps = others[:, column] - some[:, column]
        signs = steps @ changes / np.sqrt(np.sum(steps**2) * np.sum(changes**2, axis=0))
        np.testing.assert_allclose(effects.directions[column], signs, atol=2e-3)
    variances = np.mean((before - new_scores(model, 0, others)) ** 2, axis=0) / 2
    np.testing.assert_allclose(effects.variances, variances, rtol=1e-5)


def test_planted_columns_come_first_each_for_its_class(model):
    found = model.explain_view(0)
    assert set(found.ranking()[:3]) == set(TELLING)
    noise = np.delete(np.arange(N_COLUMNS), TELLING)
    assert found.importances[list(TELLING)].min() > 5 * found.importances[noise].max()
    for code, column in enumerate(TELLING):
        assert found.ranking(label=code)[0] == column
        assert found.directions[column, code] > 0.9
        assert (np.delete(found.directions[column], code) < -0.5).all()


def test_planted_columns_of_new_samples_too(model):
    new, _ = planted(7)
    found = model.explain_view("view 0", [new[0], None])
    assert found.n_samples == 128
    assert set(found.ranking()[:3]) == set(TELLING)


def test_order_of_columns_views_and_names_of_classes_do_not_matter(model):
    found = model.explain_view(0)
    turned = np.random.default_rng(0).permutation(N_COLUMNS)
    names = np.array(["c", "a", "b"])
    y = np.where(Y < 0, None, names[Y])
    again = MendClassifier(calibration=None).fit([VIEWS[1], VIEWS[0][:, turned]], y).explain_view(1)
    np.testing.assert_allclose(again.importances, found.importances[turned], rtol=0.02)
    codes = [names.tolist().index(name) for name in again.classes]
    np.testing.assert_allclose(again.by_class, found.by_class[turned][:, codes], rtol=0.02)


def test_a_single_column_has_all_and_a_constant_one_nothing():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    alone = y[:, None] + rng.normal(scale=0.3, size=(60, 1))
    constant = np.column_stack([alone, np.ones(60)])
    model = MendClassifier(calibration=None).fit([alone, constant], np.where(y < 9, y, -1))
    np.testing.assert_allclose(model.explain_view(0).importances, 1, rtol=1e-4)
    assert model.explain_view(1).importances[1] == 0


def test_of_many_classes_as_many_samples_are_swapped_as_show_all_of_them():
    """Without a sample of a class its score varies little, and every column seems to be all."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(50), 4)
    view = 5 * rng.normal(size=(50, 6))[y] + rng.normal(size=(200, 6))
    given = np.where(np.arange(200) % 4 < 2, y, -1)
    model = MendClassifier(calibration=None, n_rounds=1).fit([view], given)
    found, few = model.explain_view(0), model.explain_view(0, n_samples=128)
    assert (found.n_samples, few.n_samples) == (200, 128)
    assert 3 * found.by_class.max() < few.by_class.max()


def test_columns_keep_their_names():
    frame = pd.DataFrame(VIEWS[0], columns=[f"gene {j}" for j in range(N_COLUMNS)])
    model = MendClassifier(calibration=None).fit({"rna": frame, "size": VIEWS[1]}, Y)
    found = model.explain_view("rna")
    assert found.columns[found.ranking(0)[0]] == f"gene {TELLING[0]}"
    assert len(found.summary(most=0).splitlines()) == 1
    lines = found.summary(most=3).splitlines()
    assert len(lines) == 4
    assert all("larger values raise" in line for line in lines[1:])
    assert {line.split(":")[0].strip() for line in lines[1:]} == {f"gene {j}" for j in TELLING}
    assert model.explain_view("size").columns.tolist() == [0, 1, 2, 3]
    record = found.records()[0]
    assert record["column"] == found.columns[found.ranking()[0]]
    assert len(found.records()) == N_COLUMNS * N_CLASSES


def test_a_file_and_a_copy_for_prediction_explain_the_same(model):
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    for other in (load(file), model.for_prediction()):
        np.testing.assert_array_equal(
            other.explain_view(0).by_class, model.explain_view(0).by_class
        )


def test_columns_of_a_wide_sparse_view():
    """Its regression sees components; swaps go through these, as predictions do."""
    rng = np.random.default_rng(0)
    n, y = 120, np.arange(120) % 2
    cells = rng.random((n, 5000)) < 0.01
    for code in (0, 1):
        columns = slice(30 * code, 30 * code + 30)
        cells[y == code, columns] |= rng.random((60, 30)) < 0.4
    X = sp.csr_array(cells * rng.integers(1, 5, size=cells.shape).astype(float))
    with pytest.warns(match="sparse columns"):
        model = MendClassifier(calibration=None).fit([X], np.where(rng.random(n) < 0.3, y, -1))
    found = model.explain_view(0)
    for code in (0, 1):
        assert np.mean(found.ranking()[:30] < 60) > 0.9
        telling = found.ranking(code)[:10]
        assert ((telling < 30) == (found.directions[telling, code] * (1 - 2 * code) > 0)).all()
    view, rows = model.fitted_state_.induction.views[0], X[:30]
    some, others = _swapped_rows(weighed(rows, view.components.weights), 30)
    effects = column_effects(view, rows, 30)
    # Signed roots and weights undone: rows whose weighed ones have unit length again.
    before = new_scores(model, 0, csr_of(some.toarray(), view))
    for column in (0, 40, 3000):
        swapped = some.toarray()
        swapped[:, column] = others.toarray()[:, column]
        changes = new_scores(model, 0, csr_of(swapped, view)) - before
        lost = np.mean(changes**2, axis=0) / 2
        np.testing.assert_allclose(effects.lost[column], lost, rtol=5e-3, atol=1e-9)


def csr_of(rows, view):
    raw = rows / view.components.weights
    return sp.csr_array(np.sign(raw) * raw**2)


@pytest.mark.parametrize("change", [lambda X: 1e100 * X, lambda X: 1e-100 * X, lambda X: X + 1e9])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_of_any_size(change):
    views, y = planted()
    found = MendClassifier(calibration=None).fit([change(views[0])], y).explain_view(0)
    assert np.isfinite(found.by_class).all()
    assert set(found.ranking()[:3]) == set(TELLING)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_new_samples_that_are_far_from_all_others(model):
    found = model.explain_view(0, [1e130 * VIEWS[0], None])
    assert np.isfinite(found.by_class).all()
    assert np.isfinite(found.directions).all()


def test_dask_collections_are_refused(model):
    da = pytest.importorskip("dask.array")
    lazy = [da.from_array(view, chunks=(50, view.shape[1])) for view in VIEWS]
    with pytest.raises(InvalidParameterError, match="explain_view takes views in memory"):
        model.explain_view(0, lazy)
    with pytest.raises(InvalidParameterError, match="explain_new takes views in memory"):
        model.explain_new(lazy)


def test_what_cannot_be_explained_is_said(model):
    with pytest.raises(InvalidParameterError, match=r"view must be one of .*'view 1'.* got 'rna'"):
        model.explain_view("rna")
    with pytest.raises(InvalidParameterError, match="n_samples must be"):
        model.explain_view(0, n_samples=1)
    with pytest.raises(InvalidParameterError, match="two samples or more that have view 'view 1'"):
        model.explain_view(1, [VIEWS[0], None])
    with pytest.raises(InvalidParameterError, match="label must be one of the classes"):
        model.explain_view(0).ranking("four")
    with pytest.raises(InvalidParameterError, match="n_rounds=1 or more"):
        MendClassifier(n_rounds=0, calibration=None).fit(VIEWS, Y).explain_view(0)


def test_bars_are_the_importances(model):
    found = model.explain_view(0)
    ax = found.plot(label=1, most=4)
    first = found.ranking(1)[:4]
    widths = {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in ax.patches}
    np.testing.assert_allclose([widths[i] for i in range(4)], 100 * found.by_class[first, 1])
    assert [text.get_text() for text in ax.get_yticklabels()] == [str(j) for j in first]


@pytest.mark.parametrize("view", [True, 1.0, -1, "0", np.array([0, 1]), ["view 0"]])
def test_what_is_no_view_is_refused(view):
    views = [np.random.default_rng(0).normal(size=(30, 3)) for _ in range(2)]
    fitted = MendClassifier(n_rounds=1, calibration=None).fit(views, np.arange(30) % 2)
    with pytest.raises(InvalidParameterError, match="view must be one of"):
        fitted.explain_view(view)
