"""Imported before anything else by the program `tokpack`, and only then does something: see interrupts.py."""

import signal
import sys

PROGRAM = "tokpack"


def begin() -> None:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Until more is loaded, the signal ends the process by itself, without the traceback of an import.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tokpack_core.commands import interrupts

    interrupts.install()


if sys.argv[0].rpartition("/")[2] == PROGRAM:
    begin()
