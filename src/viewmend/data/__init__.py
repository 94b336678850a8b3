"""Views from the containers people keep them in, and results back into them.

Every ``from_*`` function joins its views by the identifiers of their rows into one `AlignedViews`:
a sample is any identifier that some view holds, and it misses the views that do not hold it.
"""

from viewmend.data.aligned import AlignedViews
from viewmend.data.arrays import from_arrays
from viewmend.data.frames import from_frames
from viewmend.data.results import result_frame
from viewmend.data.scverse import from_anndata, from_mudata, write_back

__all__ = [
    "AlignedViews",
    "from_anndata",
    "from_arrays",
    "from_frames",
    "from_mudata",
    "result_frame",
    "write_back",
]
