"""The demonstration: its scores, that it is not told the answers, and what its figure says."""

import dataclasses

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, classification_report

from viewmend import MendClassifier
from viewmend.baselines import (
    LateFusionClassifier,
    MeanImputedLabelSpreading,
    MeanImputedLogistic,
)
from viewmend.datasets import load_uci_digits, make_multiview_blobs
from viewmend.demo import (
    alike_nearby,
    draw_demo,
    graph_coordinates,
    in_the_plane,
    run_demo,
    run_on_task,
)
from viewmend.exceptions import InvalidParameterError

# Label spreading, one of the rivals, warns of what it cannot reach.
pytestmark = pytest.mark.filterwarnings("ignore:.*no label")


@pytest.fixture(scope="module")
def blobs():
    """Three classes that overlap, so that no score is perfect; rows sorted by class."""
    drawn = make_multiview_blobs(150, n_views=3, n_features=[3, 4, 5], noise=4.0, random_state=3)
    rows = np.argsort(drawn.y, kind="stable")
    return dataclasses.replace(
        drawn, views=tuple(view[rows] for view in drawn.views), y=drawn.y[rows]
    )


@pytest.fixture(scope="module")
def result(blobs):
    return run_demo(seed=1, missing_rate=0.4, label_rate=0.1, dataset=blobs)


@pytest.fixture(scope="module")
def figure(result):
    return draw_demo(result)


def panels(figure):
    """Axes of the figure: coverage, accuracy, confidence, confusion, before, after."""
    figure.draw_without_rendering()
    return figure.axes


def title(panel):
    return " ".join(panel.get_title(loc="left").split())


def test_scores_are_those_of_the_predictions_on_unlabelled_samples(result):
    task = result.task
    rows = np.flatnonzero(task.y == -1)
    predictions = {
        "MendClassifier": result.model.transduction_,
        "late fusion": LateFusionClassifier().fit(task.data, task.y).transduction_,
        "logistic regression": MeanImputedLogistic().fit(task.data, task.y).transduction_,
        "label spreading": MeanImputedLabelSpreading().fit(task.data, task.y).transduction_,
    }
    assert [score.name for score in result.scores] == list(predictions)
    for score in result.scores:
        y_pred = predictions[score.name][rows]
        report = classification_report(
            task.y_true[rows], y_pred, output_dict=True, zero_division=0
        )["macro avg"]
        assert score.accuracy == accuracy_score(task.y_true[rows], y_pred)
        assert 1 / 3 < score.accuracy < 1
        assert score.macro_f1 == pytest.approx(report["f1-score"], rel=1e-12)
        assert score.seconds > 0


def test_accuracies_by_number_of_views_add_up_to_that_of_all(result):
    task = result.task
    n_views = task.data.observed[task.unlabelled].sum(axis=1)
    counts = [np.sum(n_views == n) for n in (1, 2, 3)]
    assert min(counts) > 5
    for score in result.scores:
        assert np.average(score.by_views, weights=counts) == pytest.approx(score.accuracy)
    assert len(set(result.scores[0].by_views)) == 3


def test_given_labels_would_have_raised_the_score(result):
    """The score on all samples differs, so a score on the wrong rows is noticed above."""
    on_all = np.mean(result.model.transduction_ == result.task.y_true)
    assert on_all > result.scores[0].accuracy


def test_hidden_labels_change_no_prediction_and_no_place_in_the_figure(result, figure):
    task = result.task
    rows = np.flatnonzero(task.unlabelled)
    y_true = task.y_true.copy()
    y_true[rows] = np.random.default_rng(0).permutation(y_true[rows])
    assert np.mean(y_true == task.y_true) < 0.7
    other = run_on_task(dataclasses.replace(task, y_true=y_true))
    np.testing.assert_array_equal(other.model.transduction_, result.model.transduction_)
    np.testing.assert_array_equal(
        other.model.label_distributions_, result.model.label_distributions_
    )
    assert other.scores[0].accuracy != result.scores[0].accuracy
    for one, two in zip(panels(figure)[4:], panels(draw_demo(other))[4:], strict=True):
        np.testing.assert_array_equal(all_points(one), all_points(two))


def all_points(panel):
    """Places of the dots of all classes, sorted."""
    dots = np.concatenate([np.asarray(part.get_offsets()) for part in panel.collections])
    return dots[np.lexsort(dots.T)]


def test_rows_are_shuffled_and_hidden_as_asked(result, blobs):
    task = result.task
    assert np.any(np.diff(task.y_true) < 0), "rows of one class must not stand together"
    np.testing.assert_array_equal(task.y_true, blobs.y[task.order])
    assert task.labelled.sum() == 3 * 5
    assert 0.5 < task.data.observed.mean() < 0.7
    assert task.data.names == blobs.view_names


def test_same_seed_same_result_other_seed_other_task(result, blobs):
    same, other = (
        run_demo(seed=seed, missing_rate=0.4, label_rate=0.1, dataset=blobs) for seed in (1, 2)
    )
    np.testing.assert_array_equal(
        result.model.label_distributions_, same.model.label_distributions_
    )
    assert np.any(result.task.data.observed != other.task.data.observed)


def test_callback_sees_every_stage(blobs):
    seen = []
    done = run_demo(
        dataset=blobs,
        label_rate=0.1,
        callback=lambda round_, _state: seen.append(round_.iteration) and False,
    )
    assert seen == list(range(1, len(seen) + 1))
    assert len(seen) == done.model.n_iter_


def test_default_data_are_the_digits(monkeypatch):
    """Every tenth digit, to save time: three views, ten classes, half of the pairs."""
    tenth = load_uci_digits()[::10]
    monkeypatch.setattr("viewmend.demo.load_uci_digits", lambda: tenth)
    small = run_demo(label_rate=0.2)
    assert small.dataset == "UCI digits"
    assert small.task.data.names == ("Fourier", "profiles", "KL")
    assert small.scores[0].accuracy > 0.5


def test_bad_rates_are_refused_before_any_fit(blobs):
    with pytest.raises(InvalidParameterError, match="missing rate"):
        run_demo(missing_rate=1.0, dataset=blobs)
    with pytest.raises(InvalidParameterError, match="label rate"):
        run_demo(label_rate=0.0, dataset=blobs)


def test_titles_say_what_can_be_counted(result, figure):
    task, model = result.task, result.model
    coverage, accuracy, confidence, confusion, before, after = panels(figure)
    complete = np.mean(task.data.observed.sum(axis=1) == 3)
    assert f"{complete:.0%} have all 3" in title(coverage)

    alone = task.unlabelled & (task.data.observed.sum(axis=1) == 1)
    ours = np.mean(model.transduction_[alone] == task.y_true[alone])
    rivals = [score.by_views[0] for score in result.scores[1:]]
    assert f"only 1 view: {ours:.0%} right, {max(rivals):.0%} with the best" in title(accuracy)

    assert "points apart on average" in title(confidence)
    free = task.unlabelled
    pairs = list(zip(task.y_true[free], model.transduction_[free], strict=True))
    wrong = {
        (a, b): pairs.count((a, b)) / np.sum(task.y_true[free] == a) for a, b in pairs if a != b
    }
    (true, taken), share = max(wrong.items(), key=lambda pair: pair[1])
    assert f"{share:.0%} of class {true} is classified as {taken}" in title(confusion)
    for panel in (before, after):
        assert "of a sample's neighbours share its class" in title(panel)


def test_bars_are_the_accuracies_by_number_of_views(result, figure):
    bars = [bar.get_height() for bar in panels(figure)[1].patches]
    expected = [100 * share for score in result.scores for share in score.by_views]
    np.testing.assert_allclose(bars, expected)


def test_neighbours_alike_by_hand():
    points = np.array([[0, 0], [0, 1], [0, 2], [9, 9], [9, 8]])
    # All four others are among the ten nearest of each.
    assert alike_nearby(points, np.array([0, 0, 0, 1, 1])) == pytest.approx(
        np.mean([2 / 4, 2 / 4, 2 / 4, 1 / 4, 1 / 4])
    )
    assert alike_nearby(points, np.zeros(5)) == 1


def test_parts_of_a_graph_are_places_of_their_own():
    """Two cliques that one edge joins: neighbours in the plane are of the same clique."""
    clique = np.kron(np.eye(2), np.ones((30, 30)))
    clique[0, 59] = clique[59, 0] = 1
    from scipy.sparse import csr_array

    points = in_the_plane(graph_coordinates(csr_array(clique), 2))
    assert alike_nearby(points, np.repeat([0, 1], 30)) > 0.95


def test_complete_data_can_be_drawn(blobs):
    complete = run_demo(missing_rate=0.0, label_rate=0.1, dataset=blobs)
    titles = [title(panel) for panel in panels(draw_demo(complete))]
    assert "100% have all 3" in titles[0]
    assert "Samples with only 3 views" in titles[1]


def test_figure_can_be_written(figure, tmp_path):
    figure.savefig(tmp_path / "demo.png", dpi=40)
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_mend_is_fitted_with_its_defaults(result):
    assert result.model.get_params() == MendClassifier().get_params()
