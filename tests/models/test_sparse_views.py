"""Wide sparse views: never dense, their components announced, and as good as dense ones."""

import io
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csc_matrix, csr_array, hstack

from viewmend import AGFTIClassifier, LabelSearchCV, MendClassifier, check_views
from viewmend.callbacks import Checkpoint
from viewmend.data.sparse import DENSE_COLUMNS, row_extremes
from viewmend.exceptions import DataWarning, InvalidViewsError, TooLargeError
from viewmend.persistence import load, save

N, WIDE, N_CLASSES = 150, DENSE_COLUMNS + 904, 3
TOLD = f"view 'text' has {WIDE} sparse columns; it is replaced by its 256 leading components"


def words(y, rng, n_words=40):
    """Word counts by Zipf's law, a third of them from the words of a class."""
    common = 1 / np.arange(1, WIDE + 1)
    own = [np.random.default_rng(c).choice(WIDE, 100, replace=False) for c in range(N_CLASSES)]
    rows = []
    for label in y:
        chances = 2 / 3 * common / common.sum()
        chances[own[label]] += 1 / 3 / 100
        drawn = rng.choice(WIDE, n_words, p=chances)
        rows.append(np.bincount(drawn, minlength=WIDE))
    return csr_array(np.array(rows, dtype=float))


RNG = np.random.default_rng(7)
TRUE = RNG.integers(N_CLASSES, size=N)
TEXT = words(TRUE, RNG)
NUMBERS = RNG.normal(size=(N_CLASSES, 5))[TRUE] + 1.5 * RNG.normal(size=(N, 5))
LABELS = np.where(np.arange(N) < 24, TRUE, -1)
MASK = np.column_stack([RNG.random(N) < 0.8, np.ones(N, dtype=bool)])
VIEWS = {"text": TEXT, "numbers": NUMBERS}


@pytest.fixture(autouse=True)
def nothing_wide_is_dense(monkeypatch):
    dense = csr_array.toarray

    def toarray(self, *arguments, **options):
        assert self.shape[1] < WIDE, "a wide view was made dense"
        return dense(self, *arguments, **options)

    monkeypatch.setattr(csr_array, "toarray", toarray)


def fitted(views=VIEWS, y=LABELS, mask=MASK, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return MendClassifier(n_rounds=2, **parameters).fit(views, y, mask)


MODEL = fitted()


def test_components_are_announced_in_one_line():
    with pytest.warns(DataWarning) as told:
        MendClassifier(n_rounds=1).fit(VIEWS, LABELS, MASK)
    assert [str(warning.message) for warning in told].count(TOLD) == 1


def test_layout_is_that_of_the_given_columns():
    assert MODEL.view_n_features_ == (WIDE, 5)
    assert MODEL.n_features_in_ == WIDE + 5


def test_text_finds_the_classes():
    """Numbers alone find two of three, text and numbers nine of ten."""
    free = LABELS < 0
    alone = fitted({"numbers": NUMBERS}, mask=None)
    assert np.mean((MODEL.transduction_ == TRUE)[free]) > 0.85
    assert np.mean((alone.transduction_ == TRUE)[free]) < 0.75


def test_order_of_rows_and_format_make_no_difference():
    order = np.random.default_rng(1).permutation(N)
    moved = {"text": coo_array(TEXT[order]), "numbers": NUMBERS[order]}
    again = fitted(moved, LABELS[order], MASK[order])
    assert_array_equal(again.label_distributions_, MODEL.label_distributions_[order])
    by_columns = fitted({"text": csc_matrix(TEXT), "numbers": NUMBERS})
    assert_array_equal(by_columns.label_distributions_, MODEL.label_distributions_)


def test_threads_make_no_difference():
    one, two = (fitted(n_jobs=n).label_distributions_ for n in (1, 2))
    assert_array_equal(one, two)


def test_rows_of_a_missing_sample_are_not_read():
    other = TEXT.tolil()
    other[np.flatnonzero(~MASK[:, 0])] = 3
    again = fitted({"text": other.tocsr(), "numbers": NUMBERS})
    assert_array_equal(again.label_distributions_, MODEL.label_distributions_)


def test_new_samples_may_be_sparse_dense_or_partly_missing():
    rng = np.random.default_rng(8)
    y = rng.integers(N_CLASSES, size=60)
    new = words(y, rng)
    assert np.mean(MODEL.predict({"text": new}) == y) > 0.85
    dense = np.zeros(new.shape)
    dense[new.nonzero()] = new.data
    assert_array_equal(MODEL.predict_proba({"text": dense}), MODEL.predict_proba({"text": new}))
    assert_array_equal(
        MODEL.predict_proba({"text": new, "numbers": None}), MODEL.predict_proba({"text": new})
    )


def test_a_stacked_sparse_array_is_split_and_stays_sparse():
    stacked = hstack([TEXT, csr_array(NUMBERS)], format="csr")
    model = fitted(stacked, view_sizes=(WIDE, 5))
    assert_array_equal(model.label_distributions_, MODEL.label_distributions_)
    assert_array_equal(model.predict_proba(stacked), MODEL.predict_proba(VIEWS))


def test_saved_models_predict_the_same_bits():
    file = io.BytesIO()
    save(MODEL, file)
    again = load(file)
    assert_array_equal(again.predict_proba(VIEWS), MODEL.predict_proba(VIEWS))
    assert again.explain([0, 99]).summary() == MODEL.explain([0, 99]).summary()


def test_checkpoints_keep_the_components(tmp_path):
    def stop(record, _stage):
        return record.iteration == 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        kept = Checkpoint(tmp_path / "fit.ckpt")
        MendClassifier(n_rounds=2).set_callbacks(kept, stop).fit(VIEWS, LABELS, MASK)
        model = MendClassifier(n_rounds=2).set_callbacks(kept).fit(VIEWS, LABELS, MASK)
    assert_array_equal(model.label_distributions_, MODEL.label_distributions_)


def test_a_search_over_parameters_takes_sparse_views():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        search = LabelSearchCV(MendClassifier(n_rounds=1), {"evidence_power": [0.5, 1.0]})
        search.fit(VIEWS, LABELS, MASK)
    assert np.mean((search.best_estimator_.transduction_ == TRUE)[LABELS < 0]) > 0.75


def test_rows_of_nan_are_missing_and_single_cells_refused():
    rows = TEXT.tolil()
    rows[3] = np.nan
    views = {"text": rows.tocsr(), "numbers": NUMBERS}
    data = check_views(views, dense_columns=DENSE_COLUMNS)
    assert np.flatnonzero(~data.observed[:, 0]).tolist() == [3]
    cell = TEXT.copy()
    cell.data[0] = np.nan
    with pytest.raises(InvalidViewsError, match="view 'text' is sparse and has NaN in some cells"):
        check_views({"text": cell}, dense_columns=DENSE_COLUMNS)


def test_infinite_and_huge_entries_are_refused():
    for value, message in ((np.inf, "infinite values in 1 row"), (1e200, "values beyond 1e\\+140")):
        broken = TEXT.copy()
        broken.data[5] = value
        with pytest.raises(InvalidViewsError, match=message):
            MendClassifier().fit({"text": broken, "numbers": NUMBERS}, LABELS)


def test_extremes_tell_what_rows_hold():
    rows = csr_array(np.array([[0, 2, -1], [np.nan] * 3, [0, np.nan, 5], [0, 0, 0], [4, 1, 3.0]]))
    assert_allclose(row_extremes(rows), [[2, -1], [np.nan] * 2, [np.nan, 0], [0, 0], [4, 1]])


def test_narrow_sparse_views_are_compared_in_full():
    narrow = csr_array(TEXT[:, :50])
    sparse, dense = (
        fitted({"text": text, "numbers": NUMBERS}) for text in (narrow, narrow.toarray())
    )
    assert_array_equal(sparse.label_distributions_, dense.label_distributions_)


def test_methods_that_need_dense_rows_refuse_those_that_would_fill_the_memory():
    huge = csr_array(([1.0], ([0], [0])), shape=(10**6, 10**7))
    with pytest.raises(TooLargeError, match="dense array of 1000000 x 10000000"):
        AGFTIClassifier().fit({"text": huge}, np.zeros(10**6))
