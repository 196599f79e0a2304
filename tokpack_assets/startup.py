"""Imported before anything else by the program `tokpack`, and only then does something: see interrupts.py."""

import atexit
import gc
import signal
import sys

OBJECTS_BETWEEN_COLLECTIONS = 400_000
"""Python's 700 would look for cycles through all that is imported and held, again and again: a tenth of a short run."""
PROGRAM = "tokpack"


def begin() -> None:
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    # Python looks for cycles three times more as it ends, through half a million objects: 0.4 s for nothing.
    atexit.register(gc.freeze)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until more is loaded, the signal ends the process by itself, without the traceback of an import.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tokpack_core.commands import interrupts

    interrupts.install()


if sys.argv[0].rpartition("/")[2] == PROGRAM:
    begin()
