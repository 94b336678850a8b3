"""The command ``viewmend``, which loads the library and hands over to `viewmend.cli`.

It is a package of its own, because loading any part of ``viewmend`` loads NumPy, scikit-learn and
Numba, which takes seconds: Ctrl-C in that time is to be told in a line as well.
"""

from __future__ import annotations

import sys

__all__ = ["main"]

# What shells expect of a command that Ctrl-C ended: 128 and the number of the signal.
INTERRUPTED = 130


def main() -> None:
    """Run the command line."""
    try:
        from viewmend.cli import app
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted: you stopped viewmend (Ctrl-C) while it was starting.\n")
        sys.stderr.write("Nothing was read or written.\n")
        sys.exit(INTERRUPTED)
    app()
