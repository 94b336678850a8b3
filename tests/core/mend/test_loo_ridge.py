"""Leave-one-out in closed form equals leaving one out."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge
from sklearn.model_selection import LeaveOneOut as EachOut
from tests.core.cut_rows import CutRows, cuts

from viewmend.core.common.rows import RowsInMemory
from viewmend.core.mend import loo_ridge
from viewmend.core.mend.blocks import MendBlock, ViewRows
from viewmend.core.mend.loo_ridge import RIDGES, RidgeFit, leverages_of, regress_views

RNG = np.random.default_rng(0)
N_ROWS = 40


@dataclass
class Rotated:
    """Features of which the columns are orthogonal and sum to zero, as `kernel_features` gives."""

    Phi: np.ndarray
    spectrum: np.ndarray

    def view(self, rows, ridges):
        leverages = leverages_of(self.Phi, self.spectrum, len(self.Phi), ridges)
        return ViewRows(rows, self.Phi, leverages)


@dataclass
class Found:
    """A regression on one view, with left-out scores of its rows."""

    fit: RidgeFit
    scores: np.ndarray

    def __getattr__(self, name):
        return getattr(self.fit, name)


def rotated(X):
    U, s, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return Rotated((U * s)[:, ::-1], (s**2)[::-1])


def leave_one_out_ridge(features, T, ridges=RIDGES, known=None):
    """The regression on one view that all rows have."""
    classes = np.zeros(len(T), dtype=int) if known is None else np.where(known, 0, -1)
    view = features.view(np.arange(len(T)), ridges)
    block = MendBlock(np.ones((len(T), 1), dtype=bool), (view,))
    (fit,), Z = regress_views(RowsInMemory(), block, [features.spectrum], T, classes, ridges)
    return Found(fit, Z[:, 0])


X = RNG.normal(size=(N_ROWS, 6)) * 0.3
FEATURES = rotated(X)
T = X @ RNG.normal(size=(6, 3)) + 0.2 * RNG.normal(size=(N_ROWS, 3)) + 0.5


def refit_without_each(X, T, ridge):
    """Ridge regression with a free intercept, once per sample; the penalty stays that of all."""
    scores = np.empty_like(T)
    for kept, out in EachOut().split(X):
        model = Ridge(alpha=len(X) * ridge).fit(X[kept], T[kept])
        scores[out] = model.predict(X[out])
    return scores


@pytest.mark.parametrize("ridge", [1e-4, 1e-2, 1.0])
def test_scores_equal_refitting_without_each_sample(ridge):
    found = leave_one_out_ridge(FEATURES, T, (ridge,))
    np.testing.assert_allclose(found.scores, refit_without_each(X, T, ridge), atol=1e-10)


def test_the_ridge_of_least_error_is_taken():
    ridges = (1e-6, 1e-3, 1e-2, 0.1, 10.0)
    errors = [np.sum((T - refit_without_each(X, T, ridge)) ** 2) for ridge in ridges]
    best = int(np.argmin(errors))
    assert best not in (0, len(ridges) - 1)
    found = leave_one_out_ridge(FEATURES, T, ridges)
    assert found.ridge == ridges[best]
    alone = leave_one_out_ridge(FEATURES, T, (ridges[best],))
    np.testing.assert_allclose(found.scores, alone.scores, rtol=1e-12)
    np.testing.assert_allclose(found.coefficients, alone.coefficients, rtol=1e-12)


def test_explained_share_by_its_definition():
    found = leave_one_out_ridge(FEATURES, T)
    unexplained = np.sum((T - found.scores) ** 2) / np.sum((T - T.mean(axis=0)) ** 2)
    assert 0.5 < found.r2 < 1
    np.testing.assert_allclose(found.r2, 1 - unexplained)
    np.testing.assert_allclose(found.weight, found.r2 / (unexplained + 0.05))


def test_noise_explains_nothing():
    """Left-out predictions of noise are worse than the mean: the share is cut at its least."""
    found = leave_one_out_ridge(FEATURES, RNG.normal(size=(N_ROWS, 3)))
    assert found.r2 == 1e-3
    assert found.weight < 1e-3


def test_prediction_is_the_fit_to_all_rows():
    found = leave_one_out_ridge(FEATURES, T)
    model = Ridge(alpha=N_ROWS * found.ridge).fit(FEATURES.Phi, T)
    new = RNG.normal(size=(9, 6))
    np.testing.assert_allclose(found.predict(new), model.predict(new), atol=1e-10)


def test_own_target_does_not_reach_own_score():
    changed = T.copy()
    changed[7] += [5.0, -3.0, 1.0]
    before, after = (leave_one_out_ridge(FEATURES, t, (1e-2,)).scores for t in (T, changed))
    np.testing.assert_allclose(after[7], before[7], atol=1e-10)
    assert np.abs(after[8] - before[8]).max() > 1e-3


def test_targets_that_sum_to_one_have_scores_that_do():
    shares = np.exp(T) / np.exp(T).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(leave_one_out_ridge(FEATURES, shares).scores.sum(axis=1), 1)


def test_single_precision_features_agree():
    rough = Rotated(FEATURES.Phi.astype(np.float32), FEATURES.spectrum)
    exact, found = (leave_one_out_ridge(features, T) for features in (FEATURES, rough))
    assert exact.ridge == found.ridge
    np.testing.assert_allclose(found.scores, exact.scores, atol=1e-5)


@pytest.mark.parametrize("n_rows", [3, 5, 12])
def test_what_few_rows_with_many_features_explain_is_measured_without_them(n_rows):
    """Where features can fit any targets, only what is left out tells that they explain nothing."""
    few, targets = RNG.normal(size=(n_rows, 30)), RNG.normal(size=(n_rows, 3))
    scaled = few / np.linalg.norm(few, axis=1, keepdims=True)
    ridge = 1e-5
    expected = refit_without_each(scaled, targets, ridge)
    scatter = np.sum((targets - targets.mean(axis=0)) ** 2)
    explained = max(1 - np.sum((expected - targets) ** 2) / scatter, loo_ridge.LEAST_R2)
    for kind, tolerance in ((np.float64, 1e-8), (np.float32, 0.05)):
        features = rotated(scaled)
        features.Phi = features.Phi.astype(kind)
        found = leave_one_out_ridge(features, targets, (ridge,))
        np.testing.assert_allclose(found.r2, explained, atol=tolerance)
        assert found.r2 < 0.2


def test_equal_targets_of_single_precision_explain_nothing():
    """As those of a view that only samples of one class have, or a single one."""
    rough = Rotated(FEATURES.Phi.astype(np.float32), FEATURES.spectrum)
    for shares in RNG.dirichlet(np.ones(3), size=8):
        targets = np.tile(shares.astype(np.float32), (N_ROWS, 1))
        assert leave_one_out_ridge(rough, targets).r2 == 1e-3


def test_a_sample_that_decides_its_own_fit_stays_finite():
    """A feature that only one sample has: left out, nothing is known of it."""
    lonely = np.zeros((N_ROWS, 1))
    lonely[3] = 1e6
    found = leave_one_out_ridge(rotated(lonely), T, RIDGES)
    assert np.isfinite(found.scores).all()
    assert 1e-3 <= found.r2 <= 1


def test_leverages_near_one_are_corrected_in_full():
    """Up to the last thousandth, from which on a sample decides its own fit alone."""
    few = np.concatenate([0.01 * X[:20, :1], [[0.3]]])
    features, ridge = rotated(few), 1e-5
    highest = leverages_of(features.Phi, features.spectrum, 21, (ridge,)).max()
    assert 0.99 < highest < loo_ridge.MOST_LEVERAGE
    found = leave_one_out_ridge(features, T[:21], (ridge,))
    np.testing.assert_allclose(found.scores, refit_without_each(few, T[:21], ridge), atol=1e-9)


def test_constant_targets_are_predicted_and_explain_nothing():
    constant = np.tile([0.2, 0.8], (N_ROWS, 1))
    found = leave_one_out_ridge(FEATURES, constant)
    np.testing.assert_allclose(found.scores, constant, atol=1e-12)
    assert found.r2 == pytest.approx(1e-3)


def test_rows_without_target_are_predicted_and_nothing_else():
    """Their targets, whatever they are, change nothing, and the fit is that of the other rows."""
    known = np.arange(N_ROWS) % 4 != 0
    noise = np.where(known[:, None], T, 1e3)
    with_them = leave_one_out_ridge(FEATURES, T, (1e-2,), known=known)
    without = leave_one_out_ridge(FEATURES, noise, (1e-2,), known=known)
    np.testing.assert_allclose(without.scores, with_them.scores)
    centred = FEATURES.Phi[known] - FEATURES.Phi[known].mean(axis=0)
    targets = T[known] - T[known].mean(axis=0)
    ridge = 1e-2 * known.sum() * np.eye(centred.shape[1])
    B = np.linalg.solve(centred.T @ centred + ridge, centred.T @ targets)
    expected = T[known].mean(axis=0) + (FEATURES.Phi - FEATURES.Phi[known].mean(axis=0)) @ B
    np.testing.assert_allclose(with_them.scores[~known], expected[~known], atol=1e-5)
    np.testing.assert_allclose(with_them.predict(FEATURES.Phi), expected, atol=1e-5)


def test_rows_with_a_target_are_left_out_also_beside_rows_without():
    known = np.arange(N_ROWS) % 4 != 0
    found = leave_one_out_ridge(FEATURES, T, (1e-2,), known=known)
    expected = refit_without_each(X[known], T[known], 1e-2)
    np.testing.assert_allclose(found.scores[known], expected, atol=1e-5)


# ------------------------------------------------------------------ views and engines

OBSERVED = RNG.random((N_ROWS, 2)) < 0.7
OBSERVED[:, 1] |= ~OBSERVED[:, 0]
WIDE = np.column_stack([X, X**2])
VIEWS = [rotated(WIDE[OBSERVED[:, 0], :6]), rotated(WIDE[OBSERVED[:, 1], 4:])]
SPECTRA = [features.spectrum for features in VIEWS]


def block_of(part, convert=np.asarray):
    """Some rows of two views, each without those that it misses."""
    views = []
    for v, features in enumerate(VIEWS):
        seen = np.flatnonzero(OBSERVED[:, v])
        here = (seen >= part.start) & (seen < part.stop)
        whole = features.view(seen, RIDGES)
        views.append(
            ViewRows(
                convert(seen[here] - part.start),
                convert(whole.Phi[here]),
                convert(whole.leverages[here]),
            )
        )
    return MendBlock(convert(OBSERVED[part]), tuple(views))


WHOLE = block_of(slice(0, N_ROWS))
SOME = np.where(RNG.random(N_ROWS) < 0.8, 0, -1)


@pytest.mark.parametrize("classes", [np.zeros(N_ROWS, dtype=int), SOME], ids=["all", "some"])
class TestEngines:
    def test_every_view_is_regressed_on_its_own(self, classes):
        fits, Z = regress_views(RowsInMemory(), WHOLE, SPECTRA, T, classes)
        assert not Z[~OBSERVED].any()
        for v, features in enumerate(VIEWS):
            seen = OBSERVED[:, v]
            alone = leave_one_out_ridge(features, T[seen], known=classes[seen] >= 0)
            np.testing.assert_allclose(Z[seen, v], alone.scores, atol=1e-10)
            np.testing.assert_allclose(fits[v].coefficients, alone.coefficients, atol=1e-10)
            assert fits[v].r2 == pytest.approx(alone.r2)

    @settings(max_examples=15, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), n_blocks=st.integers(1, 5))
    def test_a_cut_of_the_rows_does_not_show(self, classes, seed, n_blocks):
        parts = cuts(np.random.default_rng(seed), N_ROWS, n_blocks)
        columns = [[array[part] for part in parts] for array in (T, classes)]
        blocks = [block_of(part) for part in parts]
        fits, Z = regress_views(CutRows(), blocks, SPECTRA, *columns)
        expected, whole = regress_views(RowsInMemory(), WHOLE, SPECTRA, T, classes)
        np.testing.assert_allclose(np.concatenate(Z), whole, atol=1e-10)
        for one, other in zip(fits, expected, strict=True):
            assert one.ridge == other.ridge
            np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-9)

    def test_pieces_do_not_show(self, classes, monkeypatch):
        _, whole = regress_views(RowsInMemory(), WHOLE, SPECTRA, T, classes)
        monkeypatch.setattr(loo_ridge, "PIECE", 50)
        _, Z = regress_views(RowsInMemory(), WHOLE, SPECTRA, T, classes)
        np.testing.assert_allclose(Z, whole, atol=1e-10)

    def test_tensors_agree(self, classes):
        torch = pytest.importorskip("torch")
        block = block_of(slice(0, N_ROWS), lambda array: torch.tensor(array.copy()))
        fits, Z = regress_views(
            RowsInMemory(), block, SPECTRA, torch.tensor(T), torch.tensor(classes)
        )
        expected, whole = regress_views(RowsInMemory(), WHOLE, SPECTRA, T, classes)
        np.testing.assert_allclose(Z, whole, atol=1e-10)
        assert [fit.ridge for fit in fits] == [fit.ridge for fit in expected]
