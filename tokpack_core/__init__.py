"""From raw text to packed, verified Megatron datasets; knows nothing of Dagster."""

import ctypes
import os

MMAP_THRESHOLD = -3
LARGE = 2**22

# Batches of some MB come and go in every stage. Left alone, glibc raises the size from which a block has a mapping of
# its own to 32 MB, and the heap gets holes: encoding took 500 MB and grew, where it takes 380 with the size fixed. What
# a reader's block of 1 MB needs stays in the heap: a mapping for each cost a tenth of the time.
if hasattr(ctypes.CDLL(None), "mallopt"):
    ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE)
# Arrow's own allocator keeps what it freed.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
