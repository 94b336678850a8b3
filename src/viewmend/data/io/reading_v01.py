"""``viewmend.reading`` as it was in version 0.1, where reading and joining were two steps."""

from viewmend.data.io.contents import Request
from viewmend.data.io.loading import ViewTables
from viewmend.data.io.loading import read_view_tables as read_views

__all__ = ["Request", "ViewTables", "read_views"]
