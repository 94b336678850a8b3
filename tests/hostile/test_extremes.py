"""Mend at its limits: long ways, two samples, numbers beyond what float32 tells apart."""

import numpy as np
import pytest

from viewmend import MendClassifier
from viewmend.core.mend.evidence import combine
from viewmend.exceptions import TooLargeError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "error::RuntimeWarning")
RNG = np.random.default_rng(0)
DEVICES = [None, pytest.param("cpu", id="torch")]


def fit(device, *args, **parameters):
    if device is not None:
        pytest.importorskip("torch")
    return MendClassifier(device=device, **parameters).fit(*args)


@pytest.mark.parametrize("device", DEVICES)
def test_labels_travel_along_a_chain_as_far_as_it_goes(device):
    """Over 130 steps: what arrives first is below the smallest number that is worth a wait."""
    angles = np.linspace(0, 3, 400)
    y = np.full(400, -1)
    y[:2], y[-2:] = 0, 1
    chain = [100 * np.c_[np.cos(angles), np.sin(angles)]]
    model = fit(device, chain, y, n_rounds=0, representations=["standard"], n_neighbors=3)
    assert not model.unreachable_.any()
    assert np.mean(model.transduction_ == (np.arange(400) >= 200)) > 0.97


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("edge_power", [0.0, 1.0])
@pytest.mark.parametrize("n_samples", [2, 3])
def test_two_or_three_samples_keep_their_labels(device, edge_power, n_samples):
    X, y = RNG.normal(size=(n_samples, 3)), np.arange(n_samples) % 2
    model = fit(device, [X], y, edge_power=edge_power)
    np.testing.assert_array_equal(model.transduction_, y)
    np.testing.assert_array_equal(model.predict([X]), y)


def blobs():
    classes = np.arange(120) % 3
    views = [
        3 * np.eye(3)[classes] @ RNG.normal(size=(3, d)) + RNG.normal(size=(120, d))
        for d in (10, 30)
    ]
    mask = RNG.random((120, 2)) < 0.7
    mask[~mask.any(axis=1), 0] = True
    return views, np.where(np.arange(120) < 30, classes, -1), mask, classes


VIEWS, Y, MASK, CLASSES = blobs()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "odd",
    [
        {"consensus_weight": 1e300},
        {"consensus_weight": 1e-300},
        {"evidence_power": 1e300},
        {"homophily_power": 1e300},
        {"edge_power": 1e300},
        {"edge_power": 2.0, "edge_floor": 1e300},
        {"edge_power": 2.0, "edge_floor": 1e-300},
        {"kernel_width": 1e300},
        {"kernel_width": 1e-300},
        {"spreading": np.nextafter(1, 0)},
        {"spreading": 1e-300},
    ],
    ids=lambda odd: " ".join(f"{name}={value:.0e}" for name, value in odd.items()),
)
def test_parameters_beyond_what_float32_tells_apart_still_find_the_classes(device, odd):
    model = fit(device, VIEWS, Y, MASK, n_rounds=2, **odd)
    assert np.mean(model.transduction_ == CLASSES) > 0.9
    assert np.mean(model.predict(VIEWS, MASK) == CLASSES) > 0.9


def test_where_graph_and_evidence_rule_each_other_out_the_graph_has_its_say():
    P = np.array([[1.0, 0.0], [0.0, 0.0], [0.5, 0.5]], dtype=np.float32)
    evidence = np.array([[0.0, 1.0], [0.2, 0.8], [0.0, 1.0]], dtype=np.float32)
    found = combine(P, evidence, np.array([0.5, 0.5]), 1.0)
    np.testing.assert_allclose(found, [[1, 0], [0.2, 0.8], [0, 1]], rtol=1e-6)


def test_more_edges_than_four_bytes_can_count_are_refused(monkeypatch):
    monkeypatch.setattr("viewmend.core.graphs.graph.MOST_PLACES", 1000)
    with pytest.raises(TooLargeError, match=r"may have 1000 edges.*graph_samples"):
        MendClassifier().fit(VIEWS, Y, MASK)
