"""AGF-TI on Dask: fits out of core and over workers, and lazy predictions.

`AGFTIClassifier.fit` comes here by itself where its views are Dask collections; what it costs is in
``docs/distributed.md``. `blocks` holds the tasks of the workers, `solver` what the client does.
"""

from viewmend.distributed.callbacks import BlockCheckpoint, LogBlocks
from viewmend.distributed.inputs import is_lazy, open_views
from viewmend.distributed.mixin import DaskMixin
from viewmend.exceptions import CheckpointError, LostFitError

__all__ = [
    "BlockCheckpoint",
    "CheckpointError",
    "DaskMixin",
    "LogBlocks",
    "LostFitError",
    "is_lazy",
    "open_views",
]
