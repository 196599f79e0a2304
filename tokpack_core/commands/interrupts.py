"""What Ctrl-C does to a command: one line and exit code 130, at whatever instant.

Before and after its work a command has nothing to undo and ends at once, without the traceback of an import that was
cut short. During its work an interrupt is raised as usual, so that what is half done is removed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SENTENCE = "stopped; what was finished is kept, nothing is left half-written"
CODE = 130


def end_at_once(number: int, frame: FrameType | None) -> None:
    os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, f"{SENTENCE}\n".encode())
    os._exit(CODE)


def install() -> None:
    """From now on an interrupt ends this process at once; one that was told to ignore interrupts goes on doing so."""
    if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, signal.SIG_DFL):
        signal.signal(signal.SIGINT, end_at_once)


@contextmanager
def raised() -> Iterator[None]:
    """Within, an interrupt is a KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is not end_at_once:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, end_at_once)
