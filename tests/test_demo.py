"""The demonstration: its scores, that it is not told the answers, and what its figure says."""

import dataclasses

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, classification_report

from viewmend import MendClassifier
from viewmend.baselines import MeanImputedLabelSpreading, UnionGraphClassifier
from viewmend.datasets import load_uci_digits, make_multiview_blobs
from viewmend.demo import draw_demo, run_demo, run_on_task
from viewmend.exceptions import InvalidParameterError


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


def third(round_, _state):
    """Stop a fit early where only the first rounds matter."""
    return round_.iteration == 3


def panels(figure):
    """Axes of the figure: convergence, weights, confusion, before, after, fused."""
    figure.draw_without_rendering()
    return figure.axes


def test_scores_are_those_of_the_predictions_on_unlabelled_samples(result):
    task = result.task
    rows = np.flatnonzero(task.y == -1)
    predictions = {
        "AGF-TI": result.model.transduction_,
        "Mend": MendClassifier().fit(task.data, task.y).transduction_,
        "mean imputation": MeanImputedLabelSpreading().fit(task.data, task.y).transduction_,
        "union graph": UnionGraphClassifier().fit(task.data, task.y).transduction_,
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
        assert score.macro_precision == pytest.approx(report["precision"], rel=1e-12)
        assert score.macro_recall == pytest.approx(report["recall"], rel=1e-12)
        assert score.seconds > 0


def test_given_labels_would_have_raised_the_score(result):
    """The score on all samples differs, so a score on the wrong rows is noticed above."""
    on_all = np.mean(result.model.transduction_ == result.task.y_true)
    assert on_all > result.scores[0].accuracy


def test_hidden_labels_change_no_prediction_and_no_place_in_the_figure(result):
    task = result.task
    rows = np.flatnonzero(task.unlabelled)
    y_true = task.y_true.copy()
    y_true[rows] = np.random.default_rng(0).permutation(y_true[rows])
    assert np.mean(y_true == task.y_true) < 0.7
    other = run_on_task(dataclasses.replace(task, y_true=y_true), seed=1)
    np.testing.assert_array_equal(other.model.transduction_, result.model.transduction_)
    np.testing.assert_array_equal(
        other.model.label_distributions_, result.model.label_distributions_
    )
    assert other.scores[0].accuracy != result.scores[0].accuracy
    for one, two in zip(panels(draw_demo(result))[3:], panels(draw_demo(other))[3:], strict=True):
        for drawn, redrawn in zip(one.collections, two.collections, strict=True):
            np.testing.assert_array_equal(drawn.get_offsets(), redrawn.get_offsets())


def test_rows_are_shuffled_and_hidden_as_asked(result, blobs):
    task = result.task
    assert np.any(np.diff(task.y_true) < 0), "rows of one class must not stand together"
    np.testing.assert_array_equal(task.y_true, blobs.y[task.order])
    assert task.labelled.sum() == 3 * 5
    assert 0.5 < task.data.observed.mean() < 0.7
    assert task.data.names == blobs.view_names


def test_same_seed_same_result_other_seed_other_task(blobs):
    one, same, other = (
        run_demo(seed=seed, label_rate=0.1, dataset=blobs, callback=third) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.model.label_distributions_, same.model.label_distributions_)
    assert np.any(one.task.data.observed != other.task.data.observed)


def test_callback_sees_every_round_and_can_stop(blobs):
    seen = []

    def stop_at_third(round_, _state):
        seen.append(round_.iteration)
        return round_.iteration == 3

    stopped = run_demo(dataset=blobs, label_rate=0.1, callback=stop_at_third)
    assert seen == [1, 2, 3]
    assert stopped.model.status_ == "stopped"


def test_default_data_are_the_digits(monkeypatch):
    """Every tenth digit, to save time: three views, ten classes, half of the pairs."""
    tenth = load_uci_digits()[::10]
    monkeypatch.setattr("viewmend.demo.load_uci_digits", lambda: tenth)
    small = run_demo(label_rate=0.2)
    assert small.dataset == "UCI digits"
    assert small.task.data.names == ("fou", "fac", "kar")
    assert small.model.random_state == 0
    assert small.scores[0].accuracy > 0.5


def test_bad_rates_are_refused_before_any_fit(blobs):
    with pytest.raises(InvalidParameterError, match="missing rate"):
        run_demo(missing_rate=1.0, dataset=blobs)
    with pytest.raises(InvalidParameterError, match="label rate"):
        run_demo(label_rate=0.0, dataset=blobs)


def test_figure_shows_the_view_that_misses_most_samples(result):
    convergence, weights, confusion, before, after, fused = panels(draw_demo(result))
    view = int(np.argmax((~result.task.data.observed).sum(axis=0)))
    missing = ~result.task.data.observed[:, view]
    assert f"'{result.task.data.names[view]}'" in before.get_title(loc="left")
    assert f"{missing.sum()} samples" in before.get_title(loc="left")
    for panel in (before, after, fused):
        dots, rings = panel.collections
        assert (len(dots.get_offsets()), len(rings.get_offsets())) == (sum(~missing), sum(missing))
    assert np.ptp(before.collections[1].get_offsets(), axis=0).max() < 1e-9
    assert np.ptp(after.collections[1].get_offsets(), axis=0).max() > 1e-3
    np.testing.assert_allclose(
        before.collections[0].get_offsets(), after.collections[0].get_offsets(), atol=1e-12
    )
    assert result.model.status_ in convergence.get_title(loc="left")
    assert len(weights.lines) == 1 + 3
    assert len(confusion.texts) == 9


def test_printed_leaning_is_counted_by_hand(result):
    task, model = result.task, result.model
    view = int(np.argmax((~task.data.observed).sum(axis=0)))
    missing = ~task.data.observed[:, view]
    imputed = model.view_graphs_[view]
    fused = np.einsum("ij,kj->ik", model.fused_graph_, model.anchor_alignments_[view])
    observed = ~missing
    served = np.array(
        [imputed[observed & (model.transduction_ == c)].sum(axis=0) for c in model.classes_]
    )
    served /= served.sum(axis=0)
    judged = np.flatnonzero(missing & (task.y == -1))
    for panel, rows in zip(panels(draw_demo(result))[4:], (imputed, fused), strict=True):
        right = [model.classes_[np.argmax(served @ rows[i])] == task.y_true[i] for i in judged]
        assert f"{np.mean(right):.0%} of them lean" in panel.get_title(loc="left")


def test_complete_data_can_be_drawn(blobs):
    complete = run_demo(missing_rate=0.0, label_rate=0.1, dataset=blobs, callback=third)
    titles = [panel.get_title(loc="left") for panel in panels(draw_demo(complete))]
    assert "the 0 samples without it" in titles[3]
    assert "none of them lean" in titles[4]


def test_figure_can_be_written(result, tmp_path):
    draw_demo(result).savefig(tmp_path / "demo.png", dpi=40)
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
