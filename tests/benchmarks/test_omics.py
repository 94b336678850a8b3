"""The benchmark of wide tables: drawn tasks have the signal they claim, tables compare pairs."""

import numpy as np
import omics
import pytest
from omics_tasks import N_GENES, N_SAMPLES, TASKS, breast_cancer, counts, with_noise


def rows_of(task, labels, **accuracies):
    return [
        {"task": task, "labels": omics.shown(labels), "method": method, "accuracy": str(value)}
        for method, values in accuracies.items()
        for value in values
    ]


def test_the_share_of_columns_that_differ_is_the_signal():
    views, y = counts(0.05, 3.0)(None, np.random.default_rng(0))
    assert [X.shape for X in views] == [(N_SAMPLES, N_GENES)] * 3
    logs = views[1] - views[1].mean(axis=1, keepdims=True)
    gaps = logs[y == 1].mean(axis=0) - logs[y == 0].mean(axis=0)
    errors = logs.std(axis=0) * np.sqrt(4 / N_SAMPLES)
    assert 0.02 < np.mean(np.abs(gaps) > 5 * errors) < 0.08


def test_counts_are_whole_numbers_of_the_same_logarithms():
    views, _ = counts(0.01, 1.0)(None, np.random.default_rng(0))
    np.testing.assert_array_equal(views[0], np.round(views[0]))
    assert views[0].min() >= 0


def test_noise_stands_beside_the_columns_and_tells_nothing():
    plain, y = breast_cancer(None, np.random.default_rng(0))
    noisy, again = with_noise(breast_cancer, 50)(None, np.random.default_rng(0))
    np.testing.assert_array_equal(y, again)
    for X, wide in zip(plain, noisy, strict=True):
        np.testing.assert_array_equal(wide[:, : X.shape[1]], X)
        noise = wide[:, X.shape[1] :]
        assert np.abs(np.corrcoef(noise.T, y)[-1, :-1]).max() < 0.3


def test_no_class_is_missing_and_every_seed_draws_anew():
    draw = TASKS["counts, two batches"]
    (first, y), (second, _) = (draw(None, np.random.default_rng(seed)) for seed in (0, 1))
    np.testing.assert_array_equal(np.unique(y), [0, 1])
    assert not np.allclose(first[1], second[1])


def test_mend_is_compared_on_the_same_tasks():
    rows = rows_of("a", 0.2, **{"Mend": [0.9, 0.8], "late fusion": [0.7, 0.7]})
    assert omics.difference(rows, "late fusion", labels=0.2) == "+15.0 ± 5.0"


def test_the_best_of_a_task_is_bold():
    rows = [
        row
        for n in omics.LABELS
        for row in rows_of("a", n, **{each: [0.5] for each in omics.METHODS})
    ]
    rows = [row | {"accuracy": "0.75"} if row["method"] == "Mend" else row for row in rows]
    line = omics.table(rows).splitlines()[2]
    assert line == "| a | 5% | **75.0** | 50.0 | 50.0 | 50.0 |"


@pytest.mark.filterwarnings("ignore")
def test_a_task_is_run_by_every_method():
    rows = omics.run("cell nuclei", 0.2, 1, None)
    assert [row["method"] for row in rows] == list(omics.METHODS)
    assert min(row["accuracy"] for row in rows) > 0.7
    assert {row["missing"] for row in rows} == {0.3}
