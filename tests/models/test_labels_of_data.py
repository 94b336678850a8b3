"""``fit(data)`` uses the labels that the data carries, and no others."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.pipeline import make_pipeline

from viewmend import AGFTIClassifier, LabelSearchCV, MendClassifier
from viewmend.baselines import AMGLClassifier, MeanImputedLabelSpreading, UnionGraphClassifier
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidLabelsError
from viewmend.impute import ColumnMeanImputer

BLOBS = make_multiview_blobs(60, n_views=2, noise=3.0, random_state=0)
TASK = hide(BLOBS, missing_rate=0.3, label_rate=0.2, random_state=0)
# The same classes, of other samples.
OTHER = TASK.y[::-1].copy()

FITS = {
    "Mend": lambda: MendClassifier(n_rounds=1),
    "AGF-TI": lambda: AGFTIClassifier(tol=1.0, random_state=0),
    "search": lambda: LabelSearchCV(MendClassifier(n_rounds=0), {"spreading": [0.5, 0.9]}, cv=2),
    "union graph": UnionGraphClassifier,
    "mean imputed": MeanImputedLabelSpreading,
    "baseline": lambda: AMGLClassifier(random_state=0),
}


@pytest.mark.parametrize("make", FITS.values(), ids=FITS)
def test_labels_are_those_of_the_data_unless_others_are_given(make):
    told, given = make().fit(TASK.data), make().fit(TASK.data, TASK.y)
    assert_array_equal(told.label_distributions_, given.label_distributions_)
    other = make().fit(TASK.data, OTHER)
    again = make().fit(replace(TASK.data, y=None), OTHER)
    assert_array_equal(other.label_distributions_, again.label_distributions_)
    assert np.any(other.label_distributions_ != told.label_distributions_)


@pytest.mark.parametrize("make", FITS.values(), ids=FITS)
def test_data_without_labels_needs_them(make):
    with pytest.raises(InvalidLabelsError, match="requires y to be passed"):
        make().fit(replace(TASK.data, y=None))


def test_an_imputer_hands_the_labels_on():
    piped = make_pipeline(ColumnMeanImputer(), MendClassifier(n_rounds=0)).fit(TASK.data)
    imputed = ColumnMeanImputer().fit_transform(TASK.data)
    direct = MendClassifier(n_rounds=0).fit(imputed, TASK.y)
    assert_array_equal(piped[-1].label_distributions_, direct.label_distributions_)


def test_what_is_fitted_on_has_no_labels_beside_the_views():
    """A search fits on parts of the labels; the rest must be out of reach of these fits."""
    data, labels = MendClassifier()._check_fit(TASK.data, None, None)
    assert data.y is None
    assert_array_equal(labels.codes, TASK.y)
