"""Mend and AGF-TI on Dask: fits of data that does not fit into memory, and lazy predictions.

``fit`` uses this package if the views are Dask collections; ``docs/distributed.md`` has the cost.
For AGF-TI, `blocks` has the tasks of the workers and `solver` the work of the client. The recipe of
Mend is that of `viewmend.core.mend`, over the blocks of `mend_blocks`.
"""

from viewmend.distributed.callbacks import BlockCheckpoint, LogBlocks
from viewmend.distributed.files import open_views
from viewmend.distributed.lazy import is_lazy
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
