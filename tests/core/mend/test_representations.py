"""Representations of a view: what each of them ignores, and how rows are mapped."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import ortho_group
from tests.core.cut_rows import CutRows, cuts

from viewmend.core.common.rows import RowsInMemory
from viewmend.core.common.scaling import unit_rows
from viewmend.core.mend import representations
from viewmend.core.mend.representations import (
    IN_NARROW_VIEW,
    MANY_COLUMNS,
    OF_AMOUNTS,
    REPRESENTATIONS,
    component_rows,
    n_effective,
    represent,
    rules_for,
)

RNG = np.random.default_rng(0)
# Positive and skewed, as counts are, so that no representation is a special case of another.
X = RNG.gamma(0.7, size=(60, 7)) + 0.05
OF_DIRECTIONS = ["unit", "centred_unit", "hellinger", "half_whitened"]
OF_COLUMNS = ["standard", "standard_unit"]
OF_ANGLES = ["unit", "centred_unit", "half_whitened"]


def fit(name, X):
    return represent(RowsInMemory(), X, [name], component_rows(X))[name]


def mapped(name, X):
    """Rows as the representation fitted to them sees them, in double precision."""
    return fit(name, X)(X).astype(np.float64)


def others(names):
    return [name for name in REPRESENTATIONS if name not in names]


# ------------------------------------------------------------------ what each ignores


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_directions_ignore_the_length_of_every_row(seed):
    lengths = np.exp(np.random.default_rng(seed).uniform(-5, 5, (60, 1)))
    for name in OF_DIRECTIONS:
        np.testing.assert_allclose(
            pdist(mapped(name, X * lengths)), pdist(mapped(name, X)), atol=1e-5
        )
    for name in others(OF_DIRECTIONS):
        assert np.abs(pdist(mapped(name, X * lengths)) - pdist(mapped(name, X))).max() > 0.1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_standard_columns_ignore_the_units_of_every_column(seed):
    rng = np.random.default_rng(seed)
    scales, shifts = np.exp(rng.uniform(-5, 5, 7)), rng.uniform(-3, 3, 7)
    flips = rng.choice([-1, 1], 7)
    for name in OF_COLUMNS:
        moved = mapped(name, X * scales * flips + shifts)
        np.testing.assert_allclose(moved, mapped(name, X) * flips, atol=1e-5)
    for name in others(OF_COLUMNS):
        assert np.abs(pdist(mapped(name, X * scales + shifts)) - pdist(mapped(name, X))).max() > 0.1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_angles_ignore_rotations_of_the_features(seed):
    rotation = ortho_group.rvs(7, random_state=np.random.default_rng(seed))
    for name in OF_ANGLES:
        np.testing.assert_allclose(
            pdist(mapped(name, X @ rotation)), pdist(mapped(name, X)), atol=1e-5
        )
    for name in others(OF_ANGLES):
        assert np.abs(pdist(mapped(name, X @ rotation)) - pdist(mapped(name, X))).max() > 0.1


def test_hellinger_is_the_distance_of_that_name_between_histograms():
    counts = RNG.poisson(3.0, size=(40, 9)) + (np.arange(9) == 0)
    shares = counts / counts.sum(axis=1, keepdims=True)
    found = pdist(mapped("hellinger", counts.astype(float)))
    np.testing.assert_allclose(found, pdist(np.sqrt(shares)), atol=1e-6)


def test_hellinger_keeps_signs():
    signed = RNG.normal(size=(20, 5))
    np.testing.assert_array_equal(mapped("hellinger", -signed), -mapped("hellinger", signed))
    np.testing.assert_array_equal(np.sign(mapped("hellinger", signed)), np.sign(signed))


# ------------------------------------------------------------------ what each is


def test_each_equals_its_formula():
    directions = X / np.linalg.norm(X, axis=1, keepdims=True)
    scores = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = {
        "unit": directions,
        "standard": scores,
        "standard_unit": unit_rows(scores),
        "centred_unit": unit_rows(directions - directions.mean(axis=0)),
        "hellinger": unit_rows(np.sqrt(X)),
    }
    for name, rows in expected.items():
        np.testing.assert_allclose(mapped(name, X), rows, atol=1e-6)


def half_whitened_by_svd(X):
    """Unit rows of the components, each over the root of its deviation; and their number."""
    rows = X / np.linalg.norm(X, axis=1, keepdims=True)
    _, s, Vt = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    kept = np.cumsum(s**2) / np.sum(s**2)
    q = min(max(int(np.sum(kept < 0.95)) + 1, 3), 64)
    deviations = s[:q] / np.sqrt(len(X))
    return unit_rows((rows - rows.mean(axis=0)) @ Vt[:q].T / np.sqrt(deviations)), q


@pytest.mark.parametrize(
    ("n_rows", "deviations", "expected"),
    [
        (50, 0.1 ** np.arange(8), 3),
        (90, 0.8 ** np.arange(20), None),
        (30, 0.9 ** np.arange(80), None),
        (300, np.ones(120), 64),
        (110, np.ones(120), 64),
    ],
    ids=["fewest", "tall", "wide", "most", "most of a wide one"],
)
def test_half_whitened_equals_a_plain_svd(n_rows, deviations, expected):
    data = np.random.default_rng(1).normal(size=(n_rows, len(deviations))) * deviations + 0.2
    rows, q = half_whitened_by_svd(data)
    fitted = fit("half_whitened", data)
    assert fitted.linear.shape[1] == q
    assert q == expected or (expected is None and 3 < q < 64)
    np.testing.assert_allclose(pdist(fitted(data)), pdist(rows), atol=1e-5)


def test_zero_columns_change_the_route_and_not_the_answer():
    wide = np.hstack([X, np.zeros((60, 100))])
    for name in others(()):
        np.testing.assert_allclose(pdist(mapped(name, wide)), pdist(mapped(name, X)), atol=1e-5)


def test_components_are_no_more_than_the_rank():
    flat = X[:, :1] * [1.0, 0.0, 0.5] + X[:, 1:2] * [0.0, 1.0, 0.5]
    fitted = fit("half_whitened", flat)
    # Directions within a plane lie on an arc, whose centred points span the plane.
    assert fitted.linear.shape[1] == 2
    np.testing.assert_allclose(pdist(fitted(flat)), pdist(half_whitened_by_svd(flat)[0]), atol=1e-4)


# ------------------------------------------------------------------ rows


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_rows_are_mapped_one_by_one(name):
    fitted = fit(name, X)
    rows = RNG.permutation(60)[:13]
    np.testing.assert_allclose(fitted(X)[rows], fitted(X[rows]), atol=1e-6)
    np.testing.assert_allclose(fitted(X)[rows[:1]], fitted(X[rows[:1]]), atol=1e-6)
    assert fitted(X).dtype == np.float32


@pytest.mark.parametrize("name", REPRESENTATIONS)
@pytest.mark.parametrize("n_rows", [1, 7, 40])
def test_identical_rows_stay_identical_and_finite(name, n_rows):
    Z = mapped(name, np.tile(RNG.normal(size=5), (n_rows, 1)))
    assert np.isfinite(Z).all()
    np.testing.assert_array_equal(Z, np.tile(Z[0], (n_rows, 1)))


@pytest.mark.parametrize("name", ["unit", "hellinger"])
def test_directions_that_hardly_differ_keep_their_distances(name):
    """They are moved to the origin before they are rounded to single precision."""
    near = 1 + 1e-5 * RNG.normal(size=(40, 6))
    exact = unit_rows(np.sqrt(near) if name == "hellinger" else near)
    np.testing.assert_allclose(pdist(mapped(name, near)), pdist(exact), rtol=1e-4)


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_a_tensor_far_outside_the_columns_is_mapped_as_an_array(name):
    torch = pytest.importorskip("torch")
    fitted, far = fit(name, X), np.where(np.arange(7) < 3, [[1e38], [-1e30]], X[:2])
    far = far.astype(np.float32)
    np.testing.assert_allclose(fitted(torch.tensor(far)), fitted(far), rtol=1e-5)
    assert np.isfinite(fitted(far) ** 2).all()


@pytest.mark.parametrize("name", REPRESENTATIONS)
def test_a_row_of_zeros_is_mapped_without_a_division_by_it(name):
    assert np.isfinite(mapped(name, np.vstack([X, np.zeros(7)]))).all()


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_constant_columns_say_nothing(name):
    padded = np.column_stack([X, np.full(60, 0.1), np.full(60, -7e5), np.zeros(60)])
    Z = mapped(name, padded)
    np.testing.assert_array_equal(Z[:, 7:], 0)
    np.testing.assert_allclose(Z[:, :7], mapped(name, X), atol=1e-6)


def test_units_of_columns_may_be_far_apart():
    scales = 10.0 ** np.array([0, 0, 0, 0, 0, 0, 12])
    np.testing.assert_allclose(mapped("standard", X * scales), mapped("standard", X), atol=1e-5)


def test_a_view_of_constant_columns_says_nothing():
    np.testing.assert_array_equal(mapped("standard", np.full((61, 3), 0.3)), 0)


def test_sampled_components_are_close_to_those_of_all_rows(monkeypatch):
    data = RNG.normal(size=(900, 12)) * 0.7 ** np.arange(12) + 0.3
    full = pdist(mapped("half_whitened", data))
    monkeypatch.setattr(representations, "PCA_ROWS", 300)
    sampled = pdist(mapped("half_whitened", data))
    assert not np.array_equal(sampled, full)
    assert np.corrcoef(sampled, full)[0, 1] > 0.99
    # The sample is chosen by content, so the order of the rows does not choose the components.
    order = RNG.permutation(900)
    again = fit("half_whitened", data[order])(data)
    np.testing.assert_allclose(pdist(again), sampled, atol=1e-5)


def test_represent_keeps_the_order_asked_for():
    fitted = represent(RowsInMemory(), X, ["standard", "unit"], X)
    assert list(fitted) == ["standard", "unit"]
    np.testing.assert_array_equal(fitted["unit"](X), mapped("unit", X))


# ------------------------------------------------------------------ engines


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_a_cut_of_the_rows_does_not_show(seed, n_blocks):
    parts = cuts(np.random.default_rng(seed), 60, n_blocks)
    blocks = [X[part] for part in parts]
    whole = represent(RowsInMemory(), X, REPRESENTATIONS, X)
    for name, fitted in represent(CutRows(), blocks, REPRESENTATIONS, X).items():
        found = np.concatenate([fitted(block) for block in blocks])
        np.testing.assert_allclose(found, whole[name](X), atol=1e-6)


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_tensors_agree(kind, offset):
    torch = pytest.importorskip("torch")
    rows = np.vstack([X + offset, np.zeros(7)]).astype(kind)
    tensor = torch.tensor(rows)
    whole = represent(RowsInMemory(), rows, REPRESENTATIONS, rows)
    for name, fitted in represent(RowsInMemory(), tensor, REPRESENTATIONS, rows).items():
        assert fitted(tensor).dtype == torch.float32
        np.testing.assert_allclose(fitted(tensor), whole[name](rows), atol=3e-5)


def test_pieces_do_not_show(monkeypatch):
    whole = represent(RowsInMemory(), X, REPRESENTATIONS, X)
    monkeypatch.setattr(representations, "PIECE", 40)
    for name, fitted in represent(RowsInMemory(), X, REPRESENTATIONS, X).items():
        np.testing.assert_allclose(fitted(X), whole[name](X), atol=1e-6)


# ------------------------------------------------------------------ narrow views


def adapted(X):
    """Rows in all representations, by the rules for views like this one."""
    sample = component_rows(X)
    rules = rules_for(RowsInMemory(), X, sample)
    return {name: r(X) for name, r in represent(RowsInMemory(), X, rules, sample, rules).items()}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_variance_lies_in_as_many_columns_as_vary_alike(seed, n_columns):
    rng = np.random.default_rng(seed)
    alike, scale = np.repeat([1.0, 0.0], [n_columns, 5]), np.exp(rng.uniform(-300, 300))
    assert n_effective(rng.permutation(alike) * scale) == pytest.approx(n_columns)
    few = np.concatenate([[1e6], rng.uniform(0, 1, n_columns)])
    assert n_effective(few * scale) == pytest.approx(1, abs=1e-6)
    assert 1 <= n_effective(rng.uniform(0.1, 1, n_columns)) <= n_columns


def test_a_narrow_view_tells_rows_of_one_direction_apart():
    """Scaled to unit length they are one point, and one of two columns is lost."""
    row = np.array([[3.0, 4.0]])
    view = np.concatenate([row * length for length in (0.5, 1, 2, 4)] + [RNG.normal(size=(30, 2))])
    assert pdist(mapped("unit", view)[:4]).max() < 1e-6
    for rows in adapted(view).values():
        assert pdist(rows[:4]).min() > 0.1


def test_in_a_narrow_view_the_units_of_columns_do_not_count():
    view = RNG.normal(size=(60, 7)) * [1e5, 1e3, 1, 1, 1, 1, 1]
    units = np.array([1e-5, 40.0, 1e4, 1, 1, 1, 1])
    for rows, others in zip(adapted(view).values(), adapted(view * units).values(), strict=True):
        np.testing.assert_allclose(rows, others, atol=1e-5)


def test_rules_follow_from_where_the_variance_lies():
    def rules(view):
        return rules_for(RowsInMemory(), view, component_rows(view))

    signed, amounts = RNG.normal(size=(50, 8)), RNG.gamma(2.0, size=(50, 8))
    steep = np.array([100.0, *[1.0] * 7])
    assert rules(signed) is rules(amounts) is REPRESENTATIONS
    assert rules(signed * steep) is rules(signed[:, :2]) is IN_NARROW_VIEW
    assert rules(amounts * steep) is OF_AMOUNTS
    many = RNG.normal(size=(50, MANY_COLUMNS + 1)) * [100, *[1] * MANY_COLUMNS]
    assert rules(many) is REPRESENTATIONS
    assert rules(many[:, :-1]) is IN_NARROW_VIEW


def test_roots_tell_small_amounts_apart_beside_a_large_one():
    """Of 0.1 to 0.9 and 1e6, those of `standard` lie a millionth of the widest distance apart."""
    view = np.array([[0.1], [0.3], [0.6], [0.9], [1e6]])
    gaps = {name: np.diff(rows[:4, 0]).min() for name, rows in adapted(view).items()}
    assert gaps["hellinger"] > 100 * max(gap for name, gap in gaps.items() if name != "hellinger")
