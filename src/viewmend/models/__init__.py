"""Classifiers of incomplete multi-view data."""

from viewmend.models.agfti import AGFTIClassifier

__all__ = ["AGFTIClassifier"]
