"""Data sets, generated data, and functions that hide views and labels for experiments."""

from viewmend.data.container import MultiViewData
from viewmend.data.io.loading import load_folder, load_mat, load_npz
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
from viewmend.moved import old_names

__all__ = [
    "LABEL_PROTOCOLS",
    "MISSING_PROTOCOLS",
    "Completeness",
    "Task",
    "drop_from_samples",
    "drop_independently",
    "hide",
    "load_folder",
    "load_mat",
    "load_npz",
    "load_uci_digits",
    "make_broken_moons",
    "make_multiview_blobs",
    "most_complete_first",
    "random_stratified",
    "realised_completeness",
]

__getattr__ = old_names(
    __name__, {"MultiViewDataset": MultiViewData, "IncompleteDataset": MultiViewData}
)
