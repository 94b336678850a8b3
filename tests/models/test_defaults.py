"""What "auto" and the starts that nobody sees mean."""

import numpy as np
import pytest

from viewmend import AGFTIClassifier, MendClassifier
from viewmend.datasets import hide, make_multiview_blobs
from viewmend.models import agfti_geometry

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

BLOBS = make_multiview_blobs(150, n_views=3, noise=2.0, random_state=0)
TASK = hide(BLOBS.views, BLOBS.y, missing_rate=0.4, label_rate=0.1, random_state=0)
AGFTI = {"random_state": 0, "max_iter": 3, "tol": 0.0}


def test_auto_weights_of_agfti_follow_the_number_of_views():
    """Of V views: fusion V^2, so that all together weigh as one, and smoothing half of V."""
    auto = AGFTIClassifier(**AGFTI).fit(TASK.data, TASK.y)
    told = AGFTIClassifier(**AGFTI, fusion_weight=9.0, graph_smoothing=1.5).fit(TASK.data, TASK.y)
    np.testing.assert_array_equal(auto.label_distributions_, told.label_distributions_)
    np.testing.assert_array_equal(auto.fused_graph_, told.fused_graph_)


def test_neighbours_of_mend_are_half_the_samples_of_a_class():
    """36 complete samples of 3 classes: 6 neighbours, within the bounds of 3 and 10."""
    blobs = make_multiview_blobs(36, n_views=2, noise=2.0, random_state=0)
    y = np.where(np.arange(36) % 3 == 0, blobs.y, -1)
    by_rule, told = (
        MendClassifier(n_neighbors=k, n_rounds=1).fit(blobs.views, y) for k in ((3, 10), 6)
    )
    np.testing.assert_array_equal(by_rule.label_distributions_, told.label_distributions_)


def geometry_of(model):
    return model.build_geometry(*model.prepare(TASK.data, TASK.y))


def test_missing_rows_start_among_samples_of_their_class():
    """Where the views a sample has place it, its row in a view it lacks begins."""
    geometry = geometry_of(AGFTIClassifier(**AGFTI))
    y = TASK.y_true[geometry.order]
    same = y[:, None] == y[None, :]
    for v, graph in enumerate(geometry.graphs):
        seen = geometry.observed[:, v]
        similarity = graph[~seen] @ graph[seen].T
        alike = same[~seen][:, seen]
        assert similarity[alike].mean() > 3 * similarity[~alike].mean()


def moved_in_a_round():
    """How far missing rows are from their start after one round."""
    model = AGFTIClassifier(**(AGFTI | {"max_iter": 1})).fit(TASK.data, TASK.y)
    geometry = geometry_of(model)
    start = geometry.graphs[:, np.argsort(geometry.order)]
    missing = ~TASK.data.observed.T
    return np.abs(model.view_graphs_ - start)[missing].sum(axis=1).mean()


def test_a_good_start_of_missing_rows_is_left_slowly(monkeypatch):
    """The penalty of the paper would let the fused graph replace them at once."""
    slowly = moved_in_a_round()
    monkeypatch.setattr(agfti_geometry, "WARM_PENALTY", 1e-4)
    assert slowly < 0.5 * moved_in_a_round()
