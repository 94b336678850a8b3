"""Imputers of missing views: scikit-learn transformers on the containers of `viewmend`."""

from viewmend.impute.column_mean import ColumnMeanImputer
from viewmend.impute.deep_matrix import DeepMatrixFactorization
from viewmend.impute.low_rank import LowRankImputer
from viewmend.impute.neighbours import NeighbourImputer

__all__ = [
    "ColumnMeanImputer",
    "DeepMatrixFactorization",
    "LowRankImputer",
    "NeighbourImputer",
]
