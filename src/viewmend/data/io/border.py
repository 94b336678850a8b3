"""Protection against damaged or hostile files: every problem becomes one kind of error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from viewmend.exceptions import InvalidLabelsError, InvalidViewsError, TooLargeError
from viewmend.memory import check_memory

# What is said well already, or is no fault of the file. Everything else is: on damaged bytes
# the libraries raise KeyError, zlib.error, RuntimeError, MemoryError, AssertionError, ...
PASSED = (
    InvalidViewsError,
    InvalidLabelsError,
    TooLargeError,
    ImportError,
    FileNotFoundError,
    PermissionError,
    Warning,
)
# What to do about it, by the ending of the file.
REMEDIES = {
    ".csv": "save it as CSV in UTF-8, or as Parquet",
    ".tsv": "save it as CSV in UTF-8, or as Parquet",
    ".parquet": "write it again with frame.to_parquet(path)",
    ".npz": "save it with np.savez_compressed(path, y=y, view_0=..., ...)",
    ".mat": "save X and gnd with save(file, 'X', 'gnd', '-v7')",
    ".h5ad": "write it again with adata.write_h5ad(path)",
    ".h5mu": "write it again with mdata.write_h5mu(path)",
    ".zarr": "write it with array.to_zarr(path), one array per path",
}
KINDS = {
    ".parquet": "a Parquet table",
    ".npz": "a NumPy archive of plain arrays",
    ".mat": "a MATLAB file",
    ".h5ad": "an AnnData file",
    ".h5mu": "a MuData file",
    ".zarr": "a Zarr array",
}
# No more of an error of others than this is repeated.
LONGEST = 200
# A file may declare this many times its own size, about what Deflate can reach, and this much
# whatever its size.
EXPANSION = 1000
ALWAYS_ALLOWED = 2**24


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one error with its name and the reason."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        msg = f"{path} must be a file but is a pipe or a device; write its content into a file"
        raise InvalidViewsError(msg)
    try:
        yield
    except PASSED:
        raise
    except Exception as error:
        raise unreadable(path, f"{type(error).__name__}: {error}") from error


def unreadable(path: Path, reason: str) -> InvalidViewsError:
    """The error that says why a file cannot be read, in one line."""
    kind = KINDS.get(path.suffix.lower(), "a table")
    remedy = REMEDIES.get(path.suffix.lower(), "write it again")
    words = " ".join(reason.split())
    words = words if len(words) <= LONGEST else f"{words[:LONGEST]}..."
    return InvalidViewsError(f"{path} cannot be read as {kind} ({words}); {remedy}")


def check_size(path: Path, n_bytes: int) -> None:
    """Refuse to read more than the memory holds, or than a file of this size can truly mean.

    ``n_bytes`` is what the file says its arrays take. They must fit twice into four fifths of the
    memory, as given and as joined views, and take at most `EXPANSION` times the size of the file.
    """
    size = path.stat().st_size
    if n_bytes > ALWAYS_ALLOWED + EXPANSION * size:
        reason = f"its {size} bytes claim to be {n_bytes} bytes of data"
        raise unreadable(path, reason)
    remedy = "leave out columns or arrays that are not needed"
    check_memory(2 * n_bytes, str(path), "as given and as joined views", remedy)
