"""Learning from incomplete multi-view data with few labels."""

from viewmend import moved
from viewmend.comparison import compare_methods
from viewmend.data.container import MultiViewData
from viewmend.data.validation import check_views
from viewmend.inspection import inspect_data
from viewmend.models.agfti import AGFTIClassifier
from viewmend.models.mend import MendClassifier
from viewmend.models.search import LabelSearchCV
from viewmend.persistence import load, save
from viewmend.preprocessing import PerView
from viewmend.version import __version__

moved.install()

__all__ = [
    "AGFTIClassifier",
    "LabelSearchCV",
    "MendClassifier",
    "MultiViewData",
    "PerView",
    "__version__",
    "check_views",
    "compare_methods",
    "inspect_data",
    "load",
    "save",
]
