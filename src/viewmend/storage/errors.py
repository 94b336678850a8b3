"""The error of model files."""

from __future__ import annotations

from viewmend.parameters import short

# Remedy of most errors: nothing in the file can be trusted then.
DAMAGED = "the file is damaged or was not written by viewmend; save the model again"


class ModelFileError(ValueError):
    """A model cannot be written to a file, or a file is no model that can be read."""


def expect(holds: object, what: str, expected: str, got: object) -> None:
    """Raise unless ``holds``: ``what`` of a file must be ``expected``."""
    if not holds:
        msg = f"{what} must be {expected}, got {short(got)}; {DAMAGED}"
        raise ModelFileError(msg)
