"""Learning from incomplete multi-view data with few labels."""

from viewmend.containers import MultiViewData
from viewmend.models.agfti import AGFTIClassifier

__version__ = "0.1.0"

__all__ = ["AGFTIClassifier", "MultiViewData", "__version__"]
