"""What can go wrong with a fit over blocks, besides what can go wrong with any."""

__all__ = ["CheckpointError", "LostFitError"]


class LostFitError(RuntimeError):
    """Workers were lost, and with them blocks that Dask could not compute again."""


class CheckpointError(RuntimeError):
    """The folder of a checkpoint is of another fit, or cannot be used."""
