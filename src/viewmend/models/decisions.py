"""From class probabilities to classes, with a weight per class if some matter more than others.

Probabilities do not change. With weights of one over the class shares, a rare class is chosen as
soon as it is more probable than usual, which maximises balanced accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from viewmend.exceptions import InvalidParameterError
from viewmend.parameters import AnyOf, OneOf, Rule, short

BALANCED = "balanced"
ClassWeight = str | Mapping[Any, float] | None


@dataclass(frozen=True)
class _WeightByClass:
    """A rule for dicts of class to weight."""

    expected: str = "a dict of class to positive number"

    def accepts(self, value: object) -> bool:
        return isinstance(value, Mapping) and all(map(_is_weight, value.values()))


def _is_weight(value: object) -> bool:
    real = isinstance(value, Real) and not isinstance(value, bool)
    return real and 0 < float(value) < math.inf  # type: ignore[arg-type]


# What the parameter ``class_weight`` may be.
CLASS_WEIGHT: Rule = AnyOf(OneOf(None, BALANCED), _WeightByClass())


def decision_weights(
    class_weight: ClassWeight, classes: np.ndarray, shares: np.ndarray
) -> np.ndarray:
    """Factors of the class probabilities before they are compared, (n_classes,).

    "balanced" is one over the ``shares`` (n_classes,) that the classes are estimated to have; a
    dict may leave classes out, whose weight is 1.
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        # A class that no sample seems to have must not win all of them.
        return np.asarray(1 / (len(classes) * np.maximum(shares, 1 / (len(classes) * 1000))))
    names = classes.tolist()
    unseen = [label for label in class_weight if label not in names]
    if unseen:
        msg = (
            f"class_weight names {short(unseen)}, but the labels seen are {short(names)}; label at "
            f"least one sample of it or leave it out"
        )
        raise InvalidParameterError(msg)
    return np.array([float(class_weight.get(label, 1.0)) for label in names])


def decide(shares: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Codes (n_samples,) of the classes whose probability times weight is largest."""
    return np.asarray(np.argmax(shares * weights, axis=1))
