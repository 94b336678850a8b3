"""scikit-learn's own checks, on one array as a single view.

What they ask of input is answered by the base classes: one estimator of each goes through all of
them, and every other through those about its own parameters, attributes and arithmetic.
"""

import pickle
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator

import viewmend.impute
from viewmend import AGFTIClassifier, LabelSearchCV, MendClassifier
from viewmend.baselines.registry import METHODS
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidViewsError
from viewmend.impute import ColumnMeanImputer

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::viewmend.exceptions.DataWarning"),
]

# Cheap settings, where an estimator has them.
QUICK = {
    "imputer": ColumnMeanImputer(),
    "max_iter": 3,
    "n_anchors": 16,
    "n_diffusions": 3,
    "n_edge_hidden": 4,
    "n_hidden": 4,
    "n_landmarks": 20,
    "n_outer": 2,
    "n_rounds": 1,
    "pretrain_iter": 2,
    "random_state": 0,
    "representations": ("unit", "standard"),
}
# A network that learns two columns in a few epochs.
SMALL_NETWORK = {"width_divisors": (1, 1), "dropout": 0.0, "learning_rate": 0.1, "max_iter": 10}


def quick(estimator):
    known = estimator.get_params()
    settings = QUICK | (SMALL_NETWORK if "width_divisors" in known else {})
    return estimator.set_params(**{name: settings[name] for name in settings if name in known})


def is_transductive(estimator):
    return is_classifier(estimator) and not hasattr(estimator, "predict")


def is_mend(estimator):
    return isinstance(getattr(estimator, "estimator", estimator), MendClassifier)


def every(_estimator):
    return True


# One of each base class, and those with a way of their own to read data or to predict.
REPRESENTATIVES = (
    "AGFTIClassifier",
    "AMGLClassifier",  # completed views
    "ColumnMeanImputer",
    "LabelSearchCV",
    "MVARClassifier",  # completed views, and new samples
    "MeanImputedLabelSpreading",
    "MendClassifier",
    "NaNBoostingClassifier",  # new samples
    "PoissonClassifier",
    "UnionGraphClassifier",
)
# Checks of what every estimator does by itself.
EACH = {
    "check_dict_unchanged",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_dont_overwrite_parameters",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_fit2d_1feature",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_non_transformer_estimators_n_iter",
    "check_parameters_default_constructible",
    "check_readonly_memmap_input",
    "check_set_params",
    "check_transformer_general",
    "check_transformer_n_iter",
}

# scikit-learn skips it where SciPy is not told to dispatch on arrays.
SKIPPED = "check_array_api_input"

# Checks that do not apply: the checks, the estimators, the reason. Each of them must fail.
NOT_APPLICABLE = (
    (("check_classifiers_classes",), is_classifier, "uses the class -1, which means unlabelled"),
    (
        (
            "check_classifier_data_not_an_array",
            "check_classifiers_train",
            "check_supervised_y_2d",
        ),
        is_transductive,
        "labels the samples of fit and no others, so there is no predict",
    ),
    (
        ("check_methods_subset_invariance",),
        is_mend,
        "kernels are float32, and batches of another size are rounded otherwise",
    ),
)


def not_applicable(estimator):
    return {
        check: reason
        for checks, applies, reason in NOT_APPLICABLE
        for check in checks
        if applies(estimator)
    }


CLASSIFIERS = [
    *(
        quick(method.estimator())
        for method in METHODS.values()
        if method.extra is None or find_spec(method.extra)
    ),
    quick(AGFTIClassifier(imputation="fourier")),
    LabelSearchCV(quick(MendClassifier()), {"spreading": [0.9]}),
]
IMPUTERS = [quick(getattr(viewmend.impute, name)()) for name in viewmend.impute.__all__]
ESTIMATORS = CLASSIFIERS + IMPUTERS
NAMES = [type(estimator).__name__ for estimator in ESTIMATORS]
all_estimators = pytest.mark.parametrize("estimator", ESTIMATORS, ids=NAMES)
numbered_estimators = pytest.mark.parametrize("number", range(len(ESTIMATORS)), ids=NAMES)


def checks_of(estimator):
    """The checks that an estimator goes through, applicable or not."""
    every_check = type(estimator).__name__ in REPRESENTATIVES
    return [
        check
        for _, check in estimator_checks_generator(estimator)
        if (every_check and check.func.__name__ != SKIPPED) or check.func.__name__ in EACH
    ]


def named(check):
    """With what tells apart the checks of one name."""
    return "-".join([check.func.__name__, *map(str, check.keywords.values())])


APPLICABLE = [
    pytest.param(estimator, check, id=f"{number}-{name}-{named(check)}")
    for number, (estimator, name) in enumerate(zip(ESTIMATORS, NAMES, strict=True))
    for check in checks_of(estimator)
    if check.func.__name__ not in not_applicable(estimator)
]


@pytest.mark.parametrize(("estimator", "check"), APPLICABLE)
def test_scikit_learn_checks(estimator, check):
    check(clone(estimator))


@all_estimators
def test_checks_that_do_not_apply_fail(estimator):
    """One that passes applies, and is to be taken off the list."""
    passing = {
        check.func.__name__
        for check in checks_of(estimator)
        if check.func.__name__ in not_applicable(estimator) and not fails(check, clone(estimator))
    }
    assert passing == set()


def fails(check, estimator):
    try:
        check(estimator)
    except Exception:
        return True
    return False


def test_only_existing_checks_and_estimators_are_named():
    checks = {check.func.__name__ for estimator in ESTIMATORS for check in checks_of(estimator)}
    listed = {check for names, _, _ in NOT_APPLICABLE for check in names}
    assert EACH | listed <= checks
    assert set(REPRESENTATIVES) <= set(NAMES)


# ------------------------------------------------- what these checks cannot see, on several views

BLOBS = make_multiview_blobs(60, n_views=3, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.3, label_rate=0.3, random_state=0)
VIEWS = list(TASK.data.views)
SPARSE = (scipy.sparse.csr_array, scipy.sparse.coo_matrix, scipy.sparse.csc_array)


def answers(estimator, X):
    """What a fitted estimator says of its own samples."""
    if hasattr(estimator, "transform"):
        return [estimator.transform(X).stacked()]
    told = [estimator.transduction_, estimator.label_distributions_]
    return [*told, estimator.predict_proba(X)] if hasattr(estimator, "predict") else told


def assert_same_answers(estimator, other, X):
    for found, expected in zip(answers(estimator, X), answers(other, X), strict=True):
        np.testing.assert_array_equal(found, expected)


@cache
def fitted(number):
    return clone(ESTIMATORS[number]).fit(VIEWS, TASK.y)


@numbered_estimators
def test_pickle_keeps_a_model(number):
    assert_same_answers(pickle.loads(pickle.dumps(fitted(number))), fitted(number), VIEWS)


@numbered_estimators
def test_sparse_views_are_those_they_stand_for(number):
    sparse = [kind(view) for kind, view in zip(SPARSE, VIEWS, strict=True)]
    model = clone(ESTIMATORS[number]).fit(sparse, TASK.y)
    assert_same_answers(model, fitted(number), sparse)


@numbered_estimators
def test_frames_are_those_they_stand_for(number):
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame(view).add_prefix("gene") for view in VIEWS]
    model = clone(ESTIMATORS[number]).fit(frames, pandas.Series(TASK.y))
    assert_same_answers(model, fitted(number), frames)


@numbered_estimators
def test_columns_are_matched_by_name(number):
    pandas = pytest.importorskip("pandas")
    frames = [pandas.DataFrame(view).add_prefix(x) for x, view in zip("abc", VIEWS, strict=True)]
    model = clone(ESTIMATORS[number]).fit(frames, TASK.y)
    kept = [model.view_feature_names_[view].tolist() for view in model.view_names_]
    assert kept == [frame.columns.tolist() for frame in frames]
    backwards = [frame[frame.columns[::-1]] for frame in frames]
    for found, expected in zip(answers(model, backwards), answers(model, frames), strict=True):
        np.testing.assert_array_equal(found, expected)
    for name in {"predict", "transform"} & set(dir(model)):
        with pytest.raises(InvalidViewsError, match="yet now missing: b0;"):
            getattr(model, name)([frame.rename(columns={"b0": "b9"}) for frame in frames])


@all_estimators
def test_tags_tell_what_is_accepted(estimator):
    tags = get_tags(estimator)
    assert tags.input_tags.allow_nan
    assert tags.input_tags.sparse
    assert tags.target_tags.required == (tags.estimator_type == "classifier")
    assert not tags.no_validation


@all_estimators
def test_only_who_predicts_can_be_scored(estimator):
    assert hasattr(estimator, "score") == hasattr(estimator, "predict")
