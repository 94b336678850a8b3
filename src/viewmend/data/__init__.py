"""Read views from frames, arrays, AnnData, MuData and files, and write results back.

All of these become one `MultiViewData`. Every ``from_*`` and ``read_*`` function joins the views by
the identifiers of their rows: every identifier that occurs in some view is a sample, and it does
not have the views in which it does not occur.
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
