"""Mend and AGF-TI on Dask: fits out of core and over workers, and lazy predictions.

``fit`` comes here by itself where its views are Dask collections; what it costs is in
``docs/distributed.md``. Of AGF-TI, `blocks` holds the tasks of the workers and `solver` what the
client does; the recipe of Mend is that of `viewmend.core.mend`, over the blocks of `mend_blocks`.
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
