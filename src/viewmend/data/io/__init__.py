"""Views and labels from the files people keep them in.

Every format is read into tables (`viewmend.data.io.contents`). What follows is the same for all:
labels are looked up, columns that hold no number left out, empty cells filled, and the views
joined by the identifiers of their rows.
"""

from viewmend.data.io.contents import Request
from viewmend.data.io.loading import (
    ViewTables,
    load_folder,
    load_mat,
    load_npz,
    read_view_tables,
    read_views,
)

__all__ = [
    "Request",
    "ViewTables",
    "load_folder",
    "load_mat",
    "load_npz",
    "read_view_tables",
    "read_views",
]
