"""Methods to compare with, under the interface of `viewmend.AGFTIClassifier`."""

from viewmend.baselines.mean_imputed import MeanImputedLabelSpreading
from viewmend.baselines.union_graph import UnionGraphClassifier

__all__ = ["MeanImputedLabelSpreading", "UnionGraphClassifier"]
