"""Classifiers of incomplete multi-view data."""

from viewmend.models.agfti import AGFTIClassifier
from viewmend.models.mend import MendClassifier

__all__ = ["AGFTIClassifier", "MendClassifier"]
