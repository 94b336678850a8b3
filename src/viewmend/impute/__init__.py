"""Imputers of missing views: scikit-learn transformers on the containers of `viewmend`."""

from viewmend.impute.deep_matrix import DeepMatrixFactorization

__all__ = ["DeepMatrixFactorization"]
