"""Ctrl-C that is never lost."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Seconds until an interrupt that came at a bad moment is tried again.
LATER = 0.01


@contextmanager
def heard_interrupts() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, also if it comes while an object is being deleted.

    Python drops whatever is raised inside of ``__del__``: the command would go on as if nothing had
    been pressed. Such an interrupt is raised again a moment later. Handlers that somebody else
    has set are left alone, and so are threads other than the main one, which get no signals.
    """
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _raise_or_wait)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _raise_or_wait(signal_number: int, frame: FrameType | None) -> None:
    if not _in_finalizer(frame):
        signal.default_int_handler(signal_number, frame)
    retry = threading.Timer(LATER, _press_again)
    retry.daemon = True
    retry.start()


def _press_again() -> None:
    """A signal where the system has such: it ends what the main thread waits for."""
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _in_finalizer(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
