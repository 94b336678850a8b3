"""The registry, and what every method of it promises."""

import importlib

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from typer.testing import CliRunner

import viewmend.baselines
from viewmend.baselines.registry import METHODS, get_method
from viewmend.cli import app
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError, InvalidViewsError, TooLargeError
from viewmend.impute import ColumnMeanImputer

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::viewmend.exceptions.DataWarning"),
]

BLOBS = make_multiview_blobs(90, n_views=3, noise=1.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.2, random_state=0)
QUICK = {
    "IMvGCN": {"max_iter": 60},
    "GEGCN": {"max_iter": 100, "pretrain_iter": 50},
    # Seven of the eight anchors that so few samples allow are hardly a neighbourhood.
    "AMSC": {"n_anchors": 16, "n_neighbors": 3},
}


def make(name, **parameters):
    method = get_method(name)
    if method.extra:
        pytest.importorskip(method.extra)
    known = method.estimator().get_params()
    settings = QUICK.get(name, {}) | parameters
    if "random_state" in known:
        settings["random_state"] = 0
    if method.needs_imputation:
        settings["imputer"] = ColumnMeanImputer()
    return method.estimator(**settings)


def test_every_exported_method_is_registered():
    registered = {method.estimator for method in METHODS.values()}
    exported = {getattr(viewmend.baselines, name) for name in viewmend.baselines.__all__}
    assert exported <= registered
    assert registered - exported == {METHODS[name].estimator for name in ("Mend", "AGF-TI")}


@pytest.mark.parametrize("name", METHODS)
def test_grid_names_parameters_and_its_values_are_accepted(name):
    estimator = get_method(name).estimator
    for grid in (estimator.grid, getattr(estimator, "script_grid", {})):
        assert set(grid) <= set(estimator().get_params())
        for values in ParameterGrid({key: list(column) for key, column in grid.items()}):
            rules = estimator._rules
            assert all(rules[key].accepts(value) for key, value in values.items() if key in rules)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_incomplete_blobs_and_keeps_given_labels(name):
    model = make(name).fit(TASK.data, TASK.y)
    np.testing.assert_array_equal(model.transduction_[TASK.labelled], TASK.y[TASK.labelled])
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1, atol=1e-6)
    assert (model.transduction_ == TASK.y_true)[TASK.unlabelled].mean() > 0.6
    if hasattr(model, "view_weights_"):
        np.testing.assert_allclose(model.view_weights_.sum(), 1, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("IMvGCN", "GEGCN")])
def test_labels_may_be_strings_and_a_clone_fits_the_same(name):
    names = np.array(["ant", "bee", "cat", None], dtype=object)
    model = make(name)
    first, second = model.fit(TASK.data, TASK.y), clone(model).fit(TASK.data, names[TASK.y])
    np.testing.assert_array_equal(second.transduction_, names[first.transduction_].astype(str))


@pytest.mark.parametrize("name", [name for name, m in METHODS.items() if m.inductive])
def test_inductive_methods_label_new_samples(name):
    model = make(name).fit(TASK.data, TASK.y)
    new = make_multiview_blobs(90, n_views=3, noise=1.0, random_state=0)
    assert (model.predict(list(new.views)) == new.y).mean() > 0.6


@pytest.mark.parametrize(
    "name", [n for n, m in METHODS.items() if m.inductive and m.needs_imputation]
)
def test_methods_fitted_on_complete_data_say_that_they_cannot_impute(name):
    model = make(name).fit(list(BLOBS.views), np.where(np.arange(90) < 30, BLOBS.y, -1))
    with pytest.raises(InvalidViewsError, match="was fitted on complete data and learnt no imput"):
        model.predict(TASK.data)


def test_memory_is_refused_with_an_estimate():
    base = importlib.import_module("viewmend.baselines.base")
    with pytest.raises(
        TooLargeError, match=r"AMGLClassifier would need about 931\d\.\d GiB for 2 "
    ):
        base.check_memory(1e13, viewmend.baselines.AMGLClassifier(), "2 dense arrays")


def test_unknown_method_lists_the_known_ones():
    with pytest.raises(
        InvalidParameterError, match="no method 'KNN'; choose one of Mend, AGF-TI, SLIM,"
    ):
        get_method("KNN")


def test_command_prints_every_method():
    result = CliRunner().invoke(app, ["methods"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for name, method in METHODS.items():
        assert name in result.output
        assert method.path.rsplit(".", 1)[1] in result.output
