"""Errors and warnings of viewmend.

Every message says what was expected, what was given instead, and how to fix it.
"""


class InvalidViewsError(ValueError):
    """The views cannot be used as they are."""


class InvalidLabelsError(ValueError):
    """The labels cannot be used as they are."""


class InvalidParameterError(ValueError):
    """A parameter of an estimator is out of range or does not fit the data."""


class UnusableArgumentError(InvalidParameterError, TypeError):
    """A method was called with an argument that it cannot use."""


class CheckpointError(ValueError):
    """A checkpoint belongs to another fit, or cannot be read."""


class LostFitError(RuntimeError):
    """Workers were lost, and with them blocks that Dask could not compute again."""


class TooLargeError(MemoryError):
    """A method would need more memory than the machine has."""


class VersionWarning(UserWarning):
    """A model was saved by another version of viewmend, and may predict something else here."""


class DataWarning(UserWarning):
    """The data was used, but not quite as given (zero rows, fewer anchors, unreachable samples)."""
