"""Learning from incomplete multi-view data with few labels."""

from viewmend.containers import MultiViewData

__version__ = "0.1.0"

__all__ = ["MultiViewData", "__version__"]
