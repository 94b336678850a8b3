"""Explanations of new samples, and samples by their identifiers."""

import io

import numpy as np
import pandas as pd
import pytest

from viewmend import AGFTIClassifier, MendClassifier, load, save
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError

BLOBS = make_multiview_blobs(160, n_views=3, n_classes=3, noise=3.0, random_state=1)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.2, random_state=0)
IDS = [f"P{i:03}" for i in range(160)]
VARIANTS = {
    "mend": {},
    "no evidence": {"n_rounds": 0},
    "guided": {"edge_power": 1.0},
    "uncalibrated": {"calibration": None},
    "doubting": {"label_noise": 0.05},
    "balanced": {"class_weight": "balanced"},
    "some in the graph": {"graph_samples": 100},
}


def frames(rows=slice(None)):
    """Views of the task as frames with identifiers; missing rows are NaN."""
    pairs = zip(TASK.data.views, TASK.data.observed.T, strict=True)
    return {
        f"view {v}": pd.DataFrame(np.where(seen[:, None], X, np.nan), index=IDS)[rows]
        for v, (X, seen) in enumerate(pairs)
    }


@pytest.fixture(scope="module")
def model():
    return MendClassifier().fit(frames(), TASK.y)


def new_samples(n=25):
    """Samples of the same classes that no fit saw; many miss a view, and the last misses all."""
    rng = np.random.default_rng(5)
    rows = rng.choice(160, n, replace=False)
    views = [X[rows] + rng.normal(scale=0.3, size=(n, X.shape[1])) for X in BLOBS.views]
    mask = rng.random((n, 3)) < 0.6
    mask[~mask.any(axis=1), 0] = True
    views[1][0] = 0
    mask[0], mask[-1] = [True, True, False], False
    return views, mask


@pytest.mark.parametrize("name", VARIANTS)
def test_reasons_add_up_to_the_odds_of_the_prediction(name):
    model = MendClassifier(**VARIANTS[name]).fit(TASK.data, TASK.y)
    views, mask = new_samples()
    with pytest.warns(match="no view at all"):
        shares = model.predict_proba(views, mask)
    with pytest.warns(match="no view at all"):
        explained = model.explain_new(views, mask)
    turn = np.arange(len(shares))
    codes, rivals = (
        np.searchsorted(model.classes_, found) for found in (explained.labels, explained.rivals)
    )
    odds = np.log(shares[turn, codes] / shares[turn, rivals])
    close = np.abs(odds) < 12
    assert close.sum() > 10
    sums = explained.log_odds.sum(axis=1)
    np.testing.assert_allclose(sums[close], odds[close], atol=5e-3)
    np.testing.assert_array_equal(explained.confidence, shares[turn, codes])
    assert "zero rows" in explained.reasons
    assert not explained.support[-1].any()
    with pytest.warns(match="no view at all"):
        np.testing.assert_array_equal(explained.labels, model.predict(views, mask))


def test_edges_of_new_samples_come_through_their_views(model):
    views, mask = new_samples()
    with pytest.warns(match="no view at all"):
        explained = model.explain_new(views, mask)
    seen = mask.copy()
    seen[0, 1] = False  # A row of zeros is compared with none.
    assert not explained.view_shares[~seen].any()
    assert (explained.view_shares[seen] > 0).all()
    np.testing.assert_allclose(explained.view_shares[:-1].sum(axis=1) + explained.borrowed[:-1], 1)


def test_a_copy_of_a_labelled_sample_is_supported_by_it(model):
    rows = np.flatnonzero(TASK.labelled)[:10]
    copies = [
        np.where(s[rows, None], X[rows], np.nan)
        for X, s in zip(TASK.data.views, TASK.data.observed.T, strict=True)
    ]
    explained = model.explain_new(copies)
    strongest = explained.supporters[np.argmax(explained.support, axis=1)]
    own = explained.support[:, np.searchsorted(explained.supporters, rows)].diagonal()
    # Labels spread far, so that all of them have a say; the own one has more than most.
    assert (own > 1.1 * explained.support.mean(axis=1)).all()
    assert np.mean(strongest == rows) >= 0.4
    lines = explained.summary(most=1).splitlines()
    assert lines[0].startswith("sample 0: class")
    assert f"sample {IDS[strongest[0]]} of class" in lines[1]


def test_identifiers_stand_for_rows(model):
    rows = [7, 3]
    named = model.explain([IDS[row] for row in rows])
    np.testing.assert_array_equal(named.samples, rows)
    np.testing.assert_array_equal(named.names, ["P007", "P003"])
    np.testing.assert_array_equal(named.log_odds, model.explain(rows).log_odds)
    assert model.explain("P007").summary().startswith("sample P007: class")
    with pytest.raises(InvalidParameterError, match=r"'P999'\], which fit did not see.*'P000'"):
        model.explain(["P007", "P999"])
    nameless = MendClassifier(calibration=None).fit(TASK.data, TASK.y)
    with pytest.raises(InvalidParameterError, match="fit saw no identifiers; pass rows"):
        nameless.explain("P007")


def test_advice_calls_samples_by_their_identifiers(model):
    found = model.suggest_labels(3)
    np.testing.assert_array_equal(found.names, [IDS[row] for row in found.samples])
    assert found.summary().startswith(f"sample {found.names[0]}: ")
    views = model.suggest_views(3)
    assert f"sample {IDS[views.samples[0]]}, {views.views[0]}: " in views.summary()
    suspects = model.suspect_labels()
    assert suspects.names[0] == IDS[suspects.samples[0]]
    first = MendClassifier().suggest_first_labels(frames(), 2)
    np.testing.assert_array_equal(first.names, [IDS[row] for row in first.samples])


def test_identifiers_survive_a_file_and_are_forgotten_for_prediction(model):
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    again = load(file)
    assert again.explain("P007").summary() == model.explain("P007").summary()
    light = model.for_prediction()
    assert len(light.sample_ids_) == 0
    with pytest.raises(InvalidParameterError, match="explain_new needs the samples of fit"):
        light.explain_new(frames(slice(3)))
    assert not hasattr(MendClassifier(calibration=None).fit(TASK.data, TASK.y), "sample_ids_")


def test_agfti_knows_identifiers_too():
    model = AGFTIClassifier(max_iter=3, calibration=None, random_state=0)
    with pytest.warns():
        model.fit(frames(), TASK.y)
    np.testing.assert_array_equal(model.explain("P010").samples, [10])
