"""Pictures of data, confidence and searches: what is drawn is what was counted."""

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.figure import Figure
from scipy.sparse import block_diag, csr_array
from sklearn.metrics import confusion_matrix

from viewmend import AGFTIClassifier, LabelSearchCV, MendClassifier
from viewmend.core.common.calibration import calibration_error
from viewmend.core.mend.recipe import StageRecord
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.exceptions import InvalidParameterError
from viewmend.plot import (
    confusion_shares,
    embed_graph,
    plot_class_confidence,
    plot_class_counts,
    plot_columns,
    plot_confidence,
    plot_confusion,
    plot_convergence,
    plot_coverage,
    plot_imputation,
    plot_overlap,
    plot_reliability,
    plot_sample_graph,
    plot_sensitivity,
    plot_view_weights,
    plot_weight_bars,
    reliability,
    view_patterns,
)
from viewmend.plot.coverage import coverage_size, overlap_size
from viewmend.plot.style import ELLIPSIS, label_texts
from viewmend.report.pictures import USUAL

OBSERVED = np.array([[1, 1], [1, 0], [1, 0], [1, 0], [0, 1], [0, 1]], dtype=bool)
RATES = {
    "param_spreading": [0.99, 0.9, 0.95],
    "mean_test_score": [0.8, 0.5, 0.6],
    "std_test_score": [0.02, 0.1, 0.05],
}


@pytest.fixture
def ax():
    return Figure(figsize=(6, 4), layout="constrained").subplots()


@pytest.fixture(scope="module")
def task():
    blobs = make_multiview_blobs(90, n_views=2, n_classes=3, random_state=0)
    return hide(blobs.views, blobs.y, missing_rate=0.4, label_rate=0.2, random_state=0)


@pytest.fixture(scope="module")
def mend(task):
    return MendClassifier(n_rounds=2).fit(task.data, task.y)


def texts_of(ax):
    return [text.get_text() for text in ax.texts]


def ticks_of(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_abstained_samples_leave_their_columns_and_rows_still_sum_to_one():
    rng = np.random.default_rng(0)
    y_true, y_pred = rng.integers(3, size=(2, 60))
    abstained = rng.random(60) < 0.3
    shares = confusion_shares(y_true, y_pred, [0, 1, 2], abstained)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    counts = np.bincount(y_true)[:, None]
    kept = confusion_matrix(y_true[~abstained], y_pred[~abstained])
    np.testing.assert_allclose(shares[:, :3] * counts, kept)
    np.testing.assert_allclose(shares[:, 3:] * counts, np.bincount(y_true[abstained])[:, None])


def test_confusion_draws_a_column_for_abstained_samples_only_if_asked(ax):
    plot_confusion(["a", "b"], ["a", "a"], ["a", "b"], ax, abstained=[False, True])
    np.testing.assert_array_equal(ax.images[0].get_array(), [[1, 0, 0], [0, 0, 1]])
    assert "abstained" in texts_of(ax)
    assert ticks_of(ax.xaxis) == ["a", "b"]
    other = Figure().subplots()
    plot_confusion(["a", "b"], ["a", "a"], ["a", "b"], other)
    assert texts_of(other) == ["100", "0", "100", "0"]


def test_labels_of_mixed_types_can_be_compared():
    shares = confusion_shares([1, "a"], ["a", "a"], np.array([1, "a"], dtype=object))
    np.testing.assert_array_equal(shares, [[0, 1, 0], [0, 1, 0]])


def test_label_outside_of_the_classes_is_named():
    with pytest.raises(InvalidParameterError, match="among the 2 classes, got 'c'; name every"):
        confusion_shares(["a", "c"], ["a", "b"], ["a", "b"])


def test_numbers_too_small_to_read_are_left_out(ax):
    names = np.arange(150)
    plot_confusion(names, names, names, ax)
    assert texts_of(ax) == []
    # Not every tick has room for its name, but those drawn are the right ones.
    places = ax.get_xticks()
    assert 5 < len(places) < 150
    assert ticks_of(ax.xaxis) == [str(place) for place in places]


def test_patterns_are_counted_most_frequent_first():
    patterns, counts = view_patterns(OBSERVED)
    np.testing.assert_array_equal(counts, [3, 2, 1])
    np.testing.assert_array_equal(patterns, [[1, 0], [0, 1], [1, 1]])


def test_coverage_tiles_and_counts_are_the_patterns(ax):
    plot_coverage(OBSERVED, ["left", "right"], ax)
    left, right, counts = ax.containers
    grey = mpl.colors.to_rgba("#e4e4e4")
    drawn = [[bar.get_facecolor() != grey for bar in tiles] for tiles in (left, right)]
    np.testing.assert_array_equal(np.transpose(drawn), view_patterns(OBSERVED)[0])
    np.testing.assert_allclose(
        [bar.get_width() * 3 / counts[0].get_width() for bar in counts], [3, 2, 1]
    )
    assert texts_of(ax) == ["3 (50%)", "2 (33%)", "1 (17%)"]
    assert ticks_of(ax.xaxis) == ["left 67%", "right 50%"]


def test_rarer_patterns_are_counted_together(ax):
    plot_coverage(OBSERVED, ["left", "right"], ax, n_patterns=1)
    assert texts_of(ax) == ["3 (50%)", "2 rarer sets: 3 samples"]


def test_overlap_counts_common_samples(ax):
    plot_overlap(OBSERVED, ["left", "right"], ax)
    assert texts_of(ax) == ["4\n67%", "1\n17%", "1\n17%", "3\n50%"]


def in_report(draw, observed, names):
    """Axes as large as a report makes them."""
    size = coverage_size(observed, names, USUAL)
    size = size if draw is plot_coverage else overlap_size(names, USUAL)
    return Figure(figsize=size, layout="constrained").subplots()


def touching(texts):
    """Pairs of texts of which one covers a part of the other."""
    boxes = np.array([text.get_window_extent().extents for text in texts]).reshape(-1, 4)
    x0, y0, x1, y1 = boxes.T
    touch = (x0[:, None] < x1) & (x0 < x1[:, None]) & (y0[:, None] < y1) & (y0 < y1[:, None])
    return [(a, b) for a, b in np.argwhere(touch).tolist() if a < b]


@pytest.mark.parametrize("draw", [plot_coverage, plot_overlap])
@pytest.mark.parametrize("name", ["v{}", "laboratory values of visit {}"], ids=["short", "long"])
@pytest.mark.parametrize("n_views", [3, 12])
def test_numbers_and_names_of_many_views_do_not_touch(draw, name, n_views):
    observed = np.random.default_rng(0).random((400, n_views)) < 0.5
    names = [name.format(v) for v in range(n_views)]
    for place in (None, in_report(draw, observed, names)):
        ax = draw(observed, names, place)
        ax.figure.draw_without_rendering()
        assert touching([*ax.texts, *ax.get_yticklabels()]) == []
        pyplot.close(ax.figure)


def test_numbers_shrink_where_long_names_take_the_room(ax):
    observed = np.random.default_rng(0).random((400, 8)) < 0.5
    plot_overlap(observed, [f"laboratory values of visit {v}" for v in range(8)], ax)
    ax.figure.draw_without_rendering()
    assert len(ax.texts) == 64
    assert touching(ax.texts) == []


def test_pictures_of_few_views_are_of_the_usual_size():
    observed = np.random.default_rng(0).random((60, 3)) < 0.5
    assert coverage_size(observed, ["rna", "atac", "protein"], USUAL) == USUAL
    assert overlap_size(["rna", "atac", "protein"], USUAL) == USUAL


@pytest.mark.parametrize("draw", [plot_coverage, plot_overlap])
def test_coverage_of_another_number_of_views_is_refused(draw, ax):
    with pytest.raises(InvalidParameterError, match=r"3 view names, got shape \(6, 2\)"):
        draw(OBSERVED, ["a", "b", "c"], ax)


@given(
    st.lists(st.tuples(st.floats(0.5, 1), st.booleans()), min_size=1, max_size=60),
    st.integers(1, 20),
)
def test_calibration_error_is_that_of_the_core(samples, n_bins):
    """By another route: shares of two classes and codes in place of confidence and hits."""
    confidence, right = (np.array(values) for values in zip(*samples, strict=True))
    shares = np.column_stack([confidence, 1 - confidence])
    codes = np.where(right, np.argmax(shares, axis=1), 2)
    found = reliability(confidence, right, n_bins)
    assert found.counts.sum() == len(samples)
    assert found.error == pytest.approx(calibration_error(shares, codes, n_bins), abs=1e-12)


def test_reliability_draws_its_bins_and_error(ax):
    confidence, right = [0.5, 0.6, 0.9, 1.0], [False, True, True, True]
    plot_reliability(confidence, right, ax, n_bins=2)
    _, dots = ax.lines
    np.testing.assert_allclose(np.transpose(dots.get_data()), [[0.55, 0.5], [0.95, 1.0]])
    assert ax.get_title(loc="left") == "calibration error 0.050"


@pytest.mark.parametrize("confidence", [[0.5, 1.2], [], [[0.5]], [np.nan]])
def test_confidence_outside_of_its_range_is_refused(confidence):
    with pytest.raises(InvalidParameterError, match="between 0 and 1, got shape"):
        reliability(confidence, [True] * len(confidence))


def test_confidence_and_hits_of_different_length_are_refused():
    with pytest.raises(InvalidParameterError, match="confidence has 2 samples and right has 1"):
        reliability([0.5, 0.6], [True])


def test_histogram_stacks_wrong_samples_on_right_ones(ax):
    plot_confidence([0.1, 0.1, 0.9, 1.0], ax, right=[True, False, True, True], n_bins=2)
    heights = [[bar.get_height() for bar in bars] for bars in ax.containers]
    assert heights == [[1, 2], [1, 0]]
    assert [bar.get_y() for bar in ax.containers[1]] == [1, 2]
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["right (3)", "wrong (1)"]


def test_class_confidence_draws_medians_and_counts(ax):
    plot_class_confidence([0.2, 0.4, 0.9, 0.5], ["b", "b", "b", "a"], ["a", "b", "c"], ax)
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    places = [(line.get_xdata()[0], line.get_ydata()[0]) for line in dots]
    assert places == [(0.5, 0), (0.4, 1)]
    assert ticks_of(ax.yaxis) == ["a (1)", "b (3)", "c (0)"]


def test_bars_are_the_weights_and_counts_given(ax):
    plot_weight_bars([0.3, 0.7], ["left", "right"], ax)
    np.testing.assert_allclose([bar.get_width() for bar in ax.containers[0]], [0.3, 0.7])
    assert texts_of(ax) == ["0.300", "0.700"]
    other = Figure().subplots()
    plot_class_counts({"given": [1, 2], "predicted": [3, 4]}, ["a", "b"], other)
    assert [[bar.get_width() for bar in bars] for bars in other.containers] == [[1, 2], [3, 4]]


def test_weights_without_a_name_each_are_refused(ax):
    with pytest.raises(InvalidParameterError, match="2 entries but view_names has 1"):
        plot_weight_bars([0.3, 0.7], ["left"], ax)


def test_stages_of_mend_are_drawn_after_the_first(mend, ax):
    plot_convergence(mend.history_, ax)
    heights = [bar.get_height() for bar in ax.containers[0]]
    np.testing.assert_allclose(heights, [100 * one.change for one in mend.history_[1:]])
    expected = [f"{one.iteration} {one.name}" for one in mend.history_[1:]]
    assert ticks_of(ax.xaxis) == expected


def test_explained_variance_of_mend_is_drawn_from_where_it_begins(mend, ax):
    plot_view_weights(mend.history_, mend.view_names_, ax)
    told = [one for one in mend.history_ if one.view_r2]
    for v, line in enumerate(ax.lines):
        np.testing.assert_array_equal(line.get_xdata(), [one.iteration for one in told])
        np.testing.assert_array_equal(line.get_ydata(), [one.view_r2[v] for one in told])
    assert len(ax.lines) == 2


def test_history_without_evidence_has_no_weights(ax):
    with pytest.raises(InvalidParameterError, match="n_rounds of at least 1"):
        plot_view_weights([StageRecord(1, "neighbours", 1.0, (1.0,))], ["left"], ax)


def test_objective_of_other_methods_is_drawn_and_has_no_weights(ax):
    plot_convergence((3.0, 2.0, 1.5), ax)
    np.testing.assert_array_equal(ax.lines[0].get_data(), [[1, 2, 3], [3, 2, 1.5]])
    with pytest.raises(InvalidParameterError, match="Round or StageRecord, got float"):
        plot_view_weights((3.0, 2.0), ["left"], ax)


def test_curve_is_sorted_and_hollow_where_the_race_was_left(ax):
    plot_sensitivity({**RATES, "n_folds": [3, 1, 3]}, ax)
    assert ticks_of(ax.xaxis) == ["0.9", "0.95", "0.99"]
    assert ax.get_xlabel() == "spreading"
    marks = [line for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose([mark.get_ydata()[0] for mark in marks], [50, 60, 80])
    assert [mark.get_markerfacecolor() == "white" for mark in marks] == [True, False, False]
    assert texts_of(ax) == ["hollow: left the race early"]


def test_surface_puts_scores_at_their_two_values(ax):
    table = {
        "param_a": [1, 2, 2],
        "param_b": ["x", "x", "y"],
        "param_fixed": [0, 0, 0],
        "mean_test_score": [0.1, 0.2, 0.3],
    }
    plot_sensitivity(table, ax)
    np.testing.assert_allclose(ax.images[0].get_array().filled(-1), [[10, 20], [-1, 30]])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    assert sorted(texts_of(ax)) == ["10.0", "20.0", "30.0"]


def test_results_of_a_search_can_be_drawn(task, ax):
    search = LabelSearchCV(MendClassifier(n_rounds=0), {"spreading": [0.5, 0.9]}, cv=2)
    results = search.fit(task.data, task.y).cv_results_
    plot_sensitivity(results, ax)
    assert ticks_of(ax.xaxis) == ["0.5", "0.9", "0.99"]
    drawn = {line.get_ydata()[0] for line in ax.lines if line.get_marker() == "o"}
    assert drawn == {100 * score for score in results["mean_test_score"]}


def test_unsuitable_tables_are_refused(ax):
    with pytest.raises(InvalidParameterError, match="parameters that vary, got none"):
        plot_sensitivity({"param_a": [1, 1], "mean_test_score": [0, 1]}, ax)
    with pytest.raises(InvalidParameterError, match="no column 'accuracy'; it has param_spreading"):
        plot_sensitivity(RATES, ax, score="accuracy")


def test_separate_parts_of_a_graph_lie_in_the_corners_of_their_classes():
    """The leading spectral coordinates of a graph in parts are constant on each of them."""
    graph = csr_array(block_diag([np.ones((5, 5)), np.ones((6, 6)), np.ones((7, 7))]))
    points = embed_graph(graph, np.repeat(["a", "b", "c"], [5, 6, 7]))
    angle = 2 * np.pi * np.arange(3) / 3
    corners = np.column_stack([np.sin(angle), np.cos(angle)])
    np.testing.assert_allclose(points, np.repeat(corners, [5, 6, 7], axis=0), atol=1e-8)


def test_places_of_samples_follow_the_samples_and_not_their_order(mend):
    points = embed_graph(mend.graph_, mend.transduction_)
    order = np.random.default_rng(0).permutation(len(points))
    shuffled = embed_graph(mend.graph_[order][:, order], mend.transduction_[order])
    np.testing.assert_allclose(shuffled, points[order], atol=1e-5)


def test_a_sample_without_neighbours_lies_in_the_middle():
    graph = csr_array(block_diag([np.ones((5, 5)), np.ones((5, 5)), np.zeros((1, 1))]))
    points = embed_graph(graph, [0] * 5 + [1] * 6)
    np.testing.assert_array_equal(points[-1], [0, 0])
    assert np.linalg.norm(points[:-1], axis=1).min() > 0.9


def test_sample_graph_draws_every_sample_as_a_dot(mend, ax):
    plot_sample_graph(mend, ax)
    (dots,) = ax.collections
    np.testing.assert_allclose(dots.get_offsets(), embed_graph(mend.graph_, mend.transduction_))


def test_imputation_moves_missing_samples_apart_and_leaves_the_others(task):
    model = AGFTIClassifier(random_state=0, tol=1e-3).fit(task.data, task.y)
    axes = Figure().subplots(1, 2)
    name = model.view_names_[1]
    plot_imputation(model, view=name, axes=axes)
    (seen, missing), (seen_after, missing_after) = (ax.collections for ax in axes)
    np.testing.assert_allclose(seen.get_offsets(), seen_after.get_offsets(), atol=1e-12)
    assert len(missing.get_offsets()) == (~task.data.observed[:, 1]).sum()
    assert np.ptp(missing.get_offsets(), axis=0).max() < 1e-12
    assert np.ptp(missing_after.get_offsets(), axis=0).min() > 0.1
    assert axes[0].get_title(loc="left") == f"{name}: before imputation"


def test_without_axes_a_figure_of_pyplot_is_made(task):
    for drawn in (plot_confidence([0.5]), plot_coverage(OBSERVED, ["a", "b"])):
        assert drawn.figure.number in pyplot.get_fignums()
        pyplot.close(drawn.figure)
    assert pyplot.get_fignums() == []


def test_names_are_no_mathematics_and_no_longer_than_asked(ax):
    assert label_texts(["a $b$", "two\nlines"]) == [r"a \$b\$", "two lines"]
    assert label_texts(["abcdefghijk", "x"], 7) == [f"abc{ELLIPSIS}ijk", "x"]
    plot_confusion(["$\\bad$"], ["$\\bad$"], ["$\\bad$"], ax)
    ax.figure.draw_without_rendering()


@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=6), st.integers(5, 30))
def test_shown_names_are_short(names, length):
    assert all(len(text.replace(r"\$", "$")) <= length for text in label_texts(names, length))


def test_names_that_differ_in_the_middle_stay_apart():
    names = [f"a long beginning {i} and a long common end" for i in range(3)]
    assert label_texts(names, 12) == [f"{ELLIPSIS}{i} and{ELLIPSIS}n end" for i in range(3)]


@pytest.mark.parametrize("n_columns", [2, 10, 40])
def test_the_legend_of_columns_hides_no_bar_and_no_label(n_columns):
    directions = np.resize([1.0, -1.0, 0.0], n_columns)
    ax = plot_columns(np.arange(n_columns), np.full(n_columns, 0.02), directions)
    ax.figure.draw_without_rendering()
    legend = ax.get_legend().get_window_extent()
    others = [*ax.patches, ax.xaxis.label, *ax.get_xticklabels()]
    assert len(ax.patches) == n_columns
    assert not any(legend.overlaps(other.get_window_extent()) for other in others)
    pyplot.close(ax.figure)
    inside = ax.figure.bbox
    assert inside.y0 <= legend.y0
    assert legend.x1 <= inside.x1
