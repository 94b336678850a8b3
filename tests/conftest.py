"""Fixtures that several test files share."""

import os
import signal
from pathlib import Path

# Threads that wait by spinning slow a busy machine down tenfold; read when PyTorch is loaded.
os.environ["OMP_WAIT_POLICY"] = "passive"

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from viewmend.core import Problem
from viewmend.core.agfti.anchors import balanced_hierarchical
from viewmend.core.agfti.bipartite import anchor_graphs
from viewmend.datasets import hide, make_multiview_blobs

# No example has a time limit, which a busy machine would exceed, and every run draws the same ones:
# `pytest --hypothesis-profile=explore` draws others.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "same", settings.get_profile("explore"), max_examples=60, derandomize=True, database=None
)
settings.load_profile("same")

# A shell lets what it starts in the background ignore Ctrl-C, which some tests press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Marks of tests of what other systems than POSIX do not have.
OF_POSIX = {
    "posix": "permissions, links and signals of POSIX",
    "kills": "signals of POSIX to other processes",
}


def pytest_collection_modifyitems(items):
    """Skip tests of POSIX elsewhere, with the reason."""
    if os.name == "posix":
        return
    for item in items:
        for mark in item.iter_markers():
            if mark.name in OF_POSIX:
                item.add_marker(pytest.mark.skip(reason=f"needs {OF_POSIX[mark.name]}"))


DEFAULT_REFERENCE = Path(__file__).parents[2] / "shared"


@pytest.fixture(scope="session")
def reference_dir():
    """Folder with the outputs of the released code and the benchmark data, or a skip."""
    folder = Path(os.environ.get("VIEWMEND_REFERENCE", DEFAULT_REFERENCE))
    if not (folder / "golden").is_dir():
        pytest.skip(f"no reference files at {folder.name}/golden; set VIEWMEND_REFERENCE")
    return folder


@pytest.fixture(scope="session")
def make_problem():
    """Small AGF-TI problems on blobs; keyword arguments of Problem pass through."""

    def make(
        seed=0,
        n_samples=90,
        n_views=3,
        n_anchors=16,
        missing_rate=0.4,
        dtype="float64",
        **constants,
    ):
        blobs = make_multiview_blobs(n_samples, n_views=n_views, noise=2.0, random_state=seed)
        task = hide(
            blobs.views, blobs.y, missing_rate=missing_rate, label_rate=0.1, random_state=seed
        )
        observed, rng = task.data.observed, np.random.default_rng(seed)
        views = [view.astype(dtype) for view in task.data.views]
        seen = [view[observed[:, v]] for v, view in enumerate(views)]
        anchors = [balanced_hierarchical(rows, n_anchors, rng) for rows in seen]
        Z = anchor_graphs(views, observed, anchors, k=5)
        Y = (task.y[:, None] == np.arange(3)).astype(dtype)
        settings = {"lam": float(n_views**2), "beta": 2.0, "rho": 10.0} | constants
        return Problem(Z, Y, observed, **settings)

    return make
