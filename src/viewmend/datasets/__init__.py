"""Data to learn from, and protocols that hide parts of it."""

from viewmend.datasets.base import MultiViewDataset
from viewmend.datasets.files import load_npz
from viewmend.datasets.labels import LABEL_PROTOCOLS, most_complete_first, random_stratified
from viewmend.datasets.mat import load_mat
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
