"""Pictures say what the fit says: drawn numbers against the numbers they stand for."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.metrics import confusion_matrix

from viewmend import AGFTIClassifier
from viewmend.core import Round
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError
from viewmend.plot import (
    anchor_class_shares,
    embed_rows,
    plot_confusion,
    plot_convergence,
    plot_graph_embedding,
    plot_view_weights,
)
from viewmend.plot.style import _pushed_apart

VIEW_NAMES = ("left", "middle", "right")


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


@pytest.fixture(scope="module")
def fitted():
    """A task with missing views and the model fitted to it."""
    blobs = make_multiview_blobs(120, n_views=3, n_classes=4, random_state=0)
    task = hide(blobs.views, blobs.y, missing_rate=0.4, label_rate=0.2, random_state=0)
    return task, AGFTIClassifier(random_state=0, tol=1e-3).fit(task.data, task.y)


@pytest.fixture(scope="module")
def graphs(fitted):
    """One view's rows before and after imputation, who misses it, and the predicted classes."""
    task, model = fitted
    missing = ~task.data.observed[:, 1]
    after = model.view_graphs_[1]
    before = np.where(missing[:, None], 1 / after.shape[1], after)
    return before, after, missing, model.transduction_


def make_round(iteration, change_F=1e-2, change_Q=1e-3, change_alpha=1e-4, residual=1.0):
    return Round(
        iteration=iteration,
        change_F=change_F,
        change_Q=change_Q,
        change_alpha=change_alpha,
        alpha=(0.2, 0.3, 0.5),
        objective={},
        primal_residual=residual,
        inner=(),
    )


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


def test_convergence_lines_are_the_history(fitted, ax):
    history = fitted[1].history_
    plot_convergence(history, ax, tol=1e-3)
    soft_labels, weights, residual, tolerance = (line.get_ydata() for line in ax.lines)
    np.testing.assert_array_equal(
        soft_labels, [max(round_.change_F, round_.change_Q) for round_ in history]
    )
    np.testing.assert_array_equal(weights, [round_.change_alpha for round_ in history])
    np.testing.assert_array_equal(residual, [round_.primal_residual for round_ in history])
    np.testing.assert_array_equal(tolerance, 1e-3)
    for line in ax.lines[:3]:
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, len(history) + 1))
    assert ax.get_yscale() == "log"
    assert ax.get_xlabel() == "round"
    assert "change" in ax.get_ylabel()


def test_larger_of_both_soft_label_changes_is_drawn(ax):
    plot_convergence([make_round(1, 0.5, 0.1), make_round(2, 0.1, 0.4)], ax)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [0.5, 0.4])
    assert len(ax.lines) == 3, "no tolerance asked for, none drawn"


def test_frame_holds_every_change_and_the_tolerance_but_not_a_vanishing_residual(ax):
    history = [make_round(i, residual=10.0**-i) for i in range(1, 15)]
    plot_convergence(history, ax, tol=1e-6)
    low, high = ax.get_ylim()
    assert 1e-14 < low < 1e-6
    assert high > 0.1
    assert {"soft labels", "view weights", "tolerance"} < set(texts_of(ax))
    # All names stand right of the lines; that of the residual is the lowest, where it leaves.
    places = {text.get_text(): text.get_position() for text in ax.texts}
    assert min(x for x, _ in places.values()) > 1
    lowest = min(places, key=lambda name: places[name][1])
    assert lowest == "residual |Z - G|"
    assert abs(places[lowest][1]) < 0.15


def test_names_of_lines_that_leave_the_frame_do_not_touch_each_other(ax):
    plot_convergence(
        [make_round(i, change_alpha=0.0 if i > 5 else 1e-4, residual=10.0**-i) for i in range(15)],
        ax,
        tol=1e-5,
    )
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 4
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_still_weights_and_zero_tolerance_can_be_drawn_on_a_log_axis(ax):
    plot_convergence([make_round(1, change_alpha=0.0), make_round(2, change_alpha=0.0)], ax, tol=0)
    ax.figure.draw_without_rendering()
    assert "view weights" not in texts_of(ax)
    assert len(ax.lines) == 3


def test_diverged_round_can_be_drawn(ax):
    plot_convergence([make_round(1), make_round(2, change_F=np.inf, change_Q=np.nan)], ax)
    ax.figure.draw_without_rendering()
    assert np.isfinite(ax.get_ylim()).all()


def test_drawn_weights_are_the_history_and_sum_to_one(fitted, ax):
    history = fitted[1].history_
    plot_view_weights(history, VIEW_NAMES, ax)
    equal, *views = (np.asarray(line.get_ydata()) for line in ax.lines)
    np.testing.assert_allclose(equal, 1 / 3)
    np.testing.assert_array_equal(np.transpose(views), [round_.alpha for round_ in history])
    np.testing.assert_allclose(np.sum(views, axis=0), 1, rtol=1e-12)


def test_weights_are_named_with_their_last_value(ax):
    plot_view_weights([make_round(1)], VIEW_NAMES, ax)
    assert {"left 0.200", "middle 0.300", "right 0.500"} < set(texts_of(ax))
    colors = {text.get_text(): text.get_color() for text in ax.texts}
    assert [
        colors[f"{name} {weight}"]
        for name, weight in zip(VIEW_NAMES, ("0.200", "0.300", "0.500"), strict=True)
    ] == [line.get_color() for line in ax.lines[1:]]


def test_wrong_number_of_view_names_is_refused(ax):
    with pytest.raises(InvalidParameterError, match="2 names but the history has 3 views"):
        plot_view_weights([make_round(1)], ("left", "right"), ax)


@pytest.mark.parametrize("draw", [plot_convergence, lambda h, ax: plot_view_weights(h, (), ax)])
def test_empty_history_is_refused(draw, ax):
    with pytest.raises(InvalidParameterError, match="history is empty"):
        draw([], ax)


def test_crowded_labels_keep_order_mean_and_distance():
    places = np.array([0.5, 0.1, 0.51, 0.52])
    apart = _pushed_apart(places, 0.1)
    np.testing.assert_array_equal(np.argsort(apart), np.argsort(places))
    assert np.diff(np.sort(apart)).min() >= 0.1 - 1e-12
    assert apart.mean() == pytest.approx(places.mean())
    np.testing.assert_allclose(_pushed_apart(np.array([0.9, 0.1]), 0.1), [0.9, 0.1])


def test_confusion_numbers_are_scikit_learns(ax):
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(4, size=(2, 50))
    classes = [2, 0, 3, 1]
    plot_confusion(y_true, y_pred, classes, ax)
    expected = confusion_matrix(y_true, y_pred, labels=classes, normalize="true")
    np.testing.assert_array_equal(ax.images[0].get_array(), expected)
    # Text sits at (column, row) of its cell.
    for text in ax.texts:
        column, row = text.get_position()
        assert text.get_text() == f"{100 * expected[row, column]:.0f}"
    assert len(ax.texts) == 16
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["2", "0", "3", "1"]
    assert (ax.get_xlabel(), ax.get_ylabel().split(" (")[0]) == ("predicted class", "true class")


def test_confusion_of_a_class_without_samples_is_an_empty_row(ax):
    plot_confusion([0, 0, 1], [0, 1, 1], [0, 1, 2], ax)
    np.testing.assert_array_equal(ax.images[0].get_array(), [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 0]])


def test_missing_rows_share_one_point_before_imputation_and_not_after(graphs):
    rows_before, rows_after, missing, labels = graphs
    before, after = embed_rows(rows_before, rows_after, labels=labels, missing=missing)
    assert np.ptp(before[missing], axis=0).max() < 1e-12
    assert np.unique(after[missing].round(9), axis=0).shape[0] == missing.sum()


def test_observed_samples_stand_still(graphs):
    rows_before, rows_after, missing, labels = graphs
    before, after = embed_rows(rows_before, rows_after, labels=labels, missing=missing)
    np.testing.assert_allclose(after[~missing], before[~missing], atol=1e-14)
    assert np.ptp(before[~missing], axis=0).min() > 0.5


def test_one_linear_map_for_all_graphs(graphs):
    """A blend of two graphs lies at the blend of their points."""
    rows_before, rows_after, missing, labels = graphs
    blend = 0.3 * rows_before + 0.7 * rows_after
    before, after, between = embed_rows(
        rows_before, rows_after, blend, labels=labels, missing=missing
    )
    np.testing.assert_allclose(between, 0.3 * before + 0.7 * after, atol=1e-12)


def test_map_knows_nothing_of_missing_samples(graphs):
    """Neither their labels nor their imputed rows move a point."""
    rows_before, rows_after, missing, labels = graphs
    garbled = labels.copy()
    garbled[missing] = labels[missing][::-1]
    one = embed_rows(rows_before, rows_after, labels=labels, missing=missing)
    other = embed_rows(rows_after, rows_after, labels=garbled, missing=missing)
    np.testing.assert_allclose(one[1], other[1], atol=1e-14)


def test_rows_on_the_anchors_of_one_class_lie_in_its_corner():
    """Four classes with an anchor each: top, right, bottom, left."""
    rows, labels = np.eye(4), np.array(["a", "b", "c", "d"])
    (points,) = embed_rows(rows, labels=labels, missing=np.zeros(4, dtype=bool))
    np.testing.assert_allclose(points, [[0, 1], [1, 0], [0, -1], [-1, 0]], atol=1e-15)


def test_anchor_shares_are_class_shares_of_observed_weight():
    rows = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    shares = anchor_class_shares(rows, [0, 1, 1], [False, False, True])
    # Anchor 0 has weight 0.5 of class 0 and 1 of class 1; anchor 2 only a missing sample.
    np.testing.assert_allclose(shares, [[1 / 3, 2 / 3], [1, 0], [0, 0]])


def test_rows_and_labels_of_different_length_are_refused():
    with pytest.raises(InvalidParameterError, match="rows has 3 samples, labels has 2"):
        embed_rows(np.eye(3), labels=[0, 1], missing=[False] * 3)


def test_embedding_draws_observed_dots_and_missing_rings(graphs, ax):
    rows_before, rows_after, missing, labels = graphs
    _, points = embed_rows(rows_before, rows_after, labels=labels, missing=missing)
    plot_graph_embedding(points, labels, missing, ax, "after")
    dots, rings = ax.collections
    np.testing.assert_array_equal(dots.get_offsets(), points[~missing])
    np.testing.assert_array_equal(rings.get_offsets(), points[missing])
    assert rings.get_facecolors().size == 0
    # One colour per class, and different ones.
    edges = rings.get_edgecolors()
    for one, other in ((0, 1), (1, 2), (2, 3)):
        assert len(np.unique(edges[labels[missing] == one], axis=0)) == 1
        assert (edges[labels[missing] == one][0] != edges[labels[missing] == other][0]).any()
    assert ax.get_title(loc="left") == "after"
    assert {"0", "1", "2", "3"} <= set(texts_of(ax))


def test_samples_piled_on_one_point_are_counted(graphs, ax):
    rows_before, rows_after, missing, labels = graphs
    before, after = embed_rows(rows_before, rows_after, labels=labels, missing=missing)
    plot_graph_embedding(before, labels, missing, ax)
    assert f"{missing.sum()} samples" in texts_of(ax)
    other = Figure().subplots()
    plot_graph_embedding(after, labels, missing, other)
    assert f"{missing.sum()} samples" not in texts_of(other)


def test_magnified_picture_says_so(ax):
    points = np.array([[0.0, 0.25], [0.1, 0.0]])
    plot_graph_embedding(points, [0, 1], [False, False], ax)
    assert "magnified 4.0 times" in texts_of(ax)


def test_settings_of_the_caller_are_left_alone(fitted, ax):
    settings = dict(mpl.rcParams)
    plot_convergence(fitted[1].history_, ax)
    plot_confusion([0, 1], [0, 1], [0, 1], Figure().subplots())
    assert dict(mpl.rcParams) == settings


def test_without_matplotlib_drawing_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install .*\[plot\]'"):
        plot_confusion([0, 1], [0, 1], [0, 1], None)


def test_package_imports_without_matplotlib_and_never_loads_it():
    code = (
        "import sys; sys.modules['matplotlib'] = None; "
        "import viewmend, viewmend.plot, viewmend.report, viewmend.demo"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
