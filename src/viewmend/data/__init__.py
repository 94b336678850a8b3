"""Views from the containers and files people keep them in, and results back into them.

Whatever the views come from, they become one `MultiViewData`. Every ``from_*`` and ``read_*``
function joins them by the identifiers of their rows: a sample is any identifier that some view
holds, and it misses the views that do not hold it.
"""

from viewmend.data.arrays import from_arrays
from viewmend.data.container import MultiViewData
from viewmend.data.frames import from_frames
from viewmend.data.io.contents import Request
from viewmend.data.io.loading import (
    ViewTables,
    load_folder,
    load_mat,
    load_npz,
    read_view_tables,
    read_views,
)
from viewmend.data.results import result_frame
from viewmend.data.scverse import from_anndata, from_mudata, write_back
from viewmend.data.validation import check_views
from viewmend.moved import old_names

__all__ = [
    "MultiViewData",
    "Request",
    "ViewTables",
    "check_views",
    "from_anndata",
    "from_arrays",
    "from_frames",
    "from_mudata",
    "load_folder",
    "load_mat",
    "load_npz",
    "read_view_tables",
    "read_views",
    "result_frame",
    "write_back",
]

__getattr__ = old_names(__name__, {"AlignedViews": MultiViewData})
