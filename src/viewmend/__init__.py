"""Learning from incomplete multi-view data with few labels."""

from viewmend.containers import MultiViewData
from viewmend.inspection import inspect_data
from viewmend.models.agfti import AGFTIClassifier
from viewmend.models.mend import MendClassifier
from viewmend.models.search import LabelSearchCV
from viewmend.persistence import load, save
from viewmend.validation import check_views

__version__ = "0.1.0"

__all__ = [
    "AGFTIClassifier",
    "LabelSearchCV",
    "MendClassifier",
    "MultiViewData",
    "__version__",
    "check_views",
    "inspect_data",
    "load",
    "save",
]
