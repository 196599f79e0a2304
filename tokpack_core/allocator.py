"""What the C library does with freed memory: keep some for the next batch, as each one needs what the last one did.

glibc gives memory back to the system after every batch, and each page that comes anew costs a fault: a tenth of the
CPU time of encoding what an encoder has seen before.
"""

from __future__ import annotations

import ctypes
from functools import cache

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt."""
KEPT = 32 * 2**20
"""Bytes that a heap may keep: more than the buffers of a batch, 20 MB."""
APART = 8 * 2**20
"""Bytes of a block from which on it is given back at once, and grows by moving pages: tables of encoders, one long
document."""


def give_back_freed_memory() -> None:
    """All that is free now, in the middle of the heap too; for after a large thing is loaded, in some milliseconds.

    Hugging Face's library needs 420 MB to read 256,000 entries, of which glibc would keep 190 that are free.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@cache
def keep_freed_memory() -> None:
    """For the rest of this process; nothing where the C library is another."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, KEPT)
        mallopt(M_MMAP_THRESHOLD, APART)
