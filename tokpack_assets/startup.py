"""Imported before anything else by the program `tokpack`, and only then does something: see interrupts.py."""

import sys

from tokpack_core.commands import interrupts

PROGRAM = "tokpack"

if sys.argv[0].rpartition("/")[2] == PROGRAM:
    interrupts.install()
