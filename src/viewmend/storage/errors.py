"""The error of model files."""

from __future__ import annotations

import numpy as np

from viewmend.parameters import short

# No number of a fit is larger, but for those on the scale of the data: products of some of them
# do not overflow.
LARGEST = 1e15
# Remedy of most errors: nothing in the file can be trusted then.
DAMAGED = "the file is damaged or was not written by viewmend; save the model again"


class ModelFileError(ValueError):
    """A model cannot be written to a file, or a file is no model that can be read."""


def expect(holds: object, what: str, expected: str, got: object) -> None:
    """Raise unless ``holds``: ``what`` of a file must be ``expected``."""
    if not holds:
        msg = f"{what} must be {expected}, got {short(got)}; {DAMAGED}"
        raise ModelFileError(msg)


def expect_shape(what: str, array: np.ndarray, *shape: int, kinds: str = "f") -> None:
    """Raise unless an array of a file has that shape, and a dtype of one of these kinds."""
    expect(array.shape == shape, f"shape of {what}", str(shape), array.shape)
    expect(array.dtype.kind in kinds, f"dtype of {what}", f"of kind {kinds}", array.dtype.str)


def expect_floats(
    what: str, array: np.ndarray, *shape: int, low: float = -LARGEST, high: float = LARGEST
) -> None:
    """Raise unless an array of a file has that shape, and floats from ``low`` to ``high``."""
    expect_shape(what, array, *shape)
    # Compiled code knows the byte order of the machine only.
    expect(array.dtype.isnative, f"dtype of {what}", "of this machine", array.dtype.str)
    if array.size:
        expect_float(what, float(array.min()), low, high)
        expect_float(what, float(array.max()), low, high)


def expect_float(what: str, number: float, low: float = -LARGEST, high: float = LARGEST) -> None:
    """Raise unless a number of a file lies from ``low`` to ``high``."""
    expect(low <= number <= high, what, f"within [{low:g}, {high:g}]", number)


def expect_indices(what: str, array: np.ndarray, low: int, high: int) -> None:
    """Raise unless an array of a file has integers from ``low`` up to, but not, ``high``."""
    integers = array.dtype.kind in "iu" and array.dtype.isnative
    expect(integers, f"dtype of {what}", "integers of this machine", array.dtype.str)
    inside = ((array >= low) & (array < high)).all()
    expect(inside, what, f"within [{low}, {high})", array)
