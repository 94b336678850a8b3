"""Methods compared on your own data, by the labels that it has."""

from viewmend.comparison.contest import DEFAULT_METHODS, compare_methods
from viewmend.comparison.result import MethodComparison
from viewmend.comparison.scores import ComparedMethod, PairedDifference, paired_difference

__all__ = [
    "DEFAULT_METHODS",
    "ComparedMethod",
    "MethodComparison",
    "PairedDifference",
    "compare_methods",
    "paired_difference",
]
