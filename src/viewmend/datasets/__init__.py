"""Data to learn from, and protocols that hide parts of it."""

from viewmend.data.complete import MultiViewDataset
from viewmend.data.io.mat import load_mat
from viewmend.data.io.npz import load_npz
from viewmend.datasets.labels import LABEL_PROTOCOLS, most_complete_first, random_stratified
from viewmend.datasets.missing import (
    MISSING_PROTOCOLS,
    Completeness,
    drop_from_samples,
    drop_independently,
    realised_completeness,
)
from viewmend.datasets.synthetic import make_broken_moons, make_multiview_blobs
from viewmend.datasets.task import Task, hide
from viewmend.datasets.uci_digits import load_uci_digits

__all__ = [
    "LABEL_PROTOCOLS",
    "MISSING_PROTOCOLS",
    "Completeness",
    "MultiViewDataset",
    "Task",
    "drop_from_samples",
    "drop_independently",
    "hide",
    "load_mat",
    "load_npz",
    "load_uci_digits",
    "make_broken_moons",
    "make_multiview_blobs",
    "most_complete_first",
    "random_stratified",
    "realised_completeness",
]
