"""Compiled functions, kept between processes where there is a place for them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import caching

__all__ = ["inlined", "is_cold", "jit"]

_log = logging.getLogger(__name__)
# Numba has no types.
_FunctionCache: Any = caching.FunctionCache


def jit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function at its first call, for one thread, without the interpreter's lock.

    Numba keeps what it compiled beside the source, in the cache folder of the user, or in
    ``NUMBA_CACHE_DIR``. Where it may write to none of them, every process compiles anew: nothing
    else depends on a folder. ``options`` are those of `numba.njit`.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        kernel = njit(nogil=True, **options)(function)
        try:
            # As ``cache=True`` does, which raises where there is no folder.
            kernel._cache = _Cache(function)
        except RuntimeError:
            _note_no_cache()
        return kernel

    return compiled


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a small function of arrays as a part of the loops that call it.

    A call counts the references to its arrays, which all threads do at the same place: it can take
    ten times as long as a distance of a few columns.
    """
    return jit(inline="always")(function)


class _Cache(_FunctionCache):  # type: ignore[misc]
    """Numba's cache, which may be full, gone or damaged at any time: it only saves time."""

    def load_overload(self, *arguments: Any) -> Any:
        try:
            kept = super().load_overload(*arguments)
        except Exception as error:
            # A damaged file can raise anything. It is left behind.
            _log.info("no compiled function from %s: %r", self.cache_path, error)
            with suppress(OSError):
                self.flush()
            kept = None
        if kept is None and is_cold(self.cache_path):
            _tell_of_compiling()
        return kept

    def save_overload(self, *arguments: Any) -> None:
        try:
            super().save_overload(*arguments)
        except Exception as error:
            _log.info("no compiled function kept in %s: %r", self.cache_path, error)


def is_cold(folder: str) -> bool:
    """Whether a folder of compiled functions has none yet, as on a machine without any fit."""
    return not any(Path(folder).glob("*.nbi"))


@cache
def _tell_of_compiling() -> None:
    """Say why the first fit of all takes longer; as a warning, which is shown where none asked."""
    _log.warning("viewmend compiles its kernels for this machine, once; it takes about 10 s")


@cache
def _note_no_cache() -> None:
    _log.info(
        "Numba finds no folder to keep compiled functions in, so that every process compiles them "
        "anew; set NUMBA_CACHE_DIR to a folder that can be written to"
    )
