"""Classifiers of incomplete multi-view data."""

from viewmend.models.agfti import AGFTIClassifier
from viewmend.models.mend import MendClassifier
from viewmend.models.search import LabelSearchCV

__all__ = ["AGFTIClassifier", "LabelSearchCV", "MendClassifier"]
