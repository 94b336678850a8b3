"""Learning from incomplete multi-view data with few labels."""

from viewmend.containers import MultiViewData
from viewmend.models.agfti import AGFTIClassifier
from viewmend.models.mend import MendClassifier
from viewmend.models.search import LabelSearchCV
from viewmend.persistence import load, save

__version__ = "0.1.0"

__all__ = [
    "AGFTIClassifier",
    "LabelSearchCV",
    "MendClassifier",
    "MultiViewData",
    "__version__",
    "load",
    "save",
]
