"""Takes the entries of a word table (see `word_table_kernels`) apart by hash."""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.word_table_kernels import KEY_HIGH, KEY_LOW, PLACE, VALUE, mixed

PART_BITS = 6
PART_SHIFT = np.uint64(64 - PART_BITS)
"""The highest bits of the hash name the part, the lowest the slot within its table."""


@njit(cache=True, nogil=True)
def set_apart(entries, used, filled, arena, lengths, counts, data, words_before, bytes_before):  # type: ignore[no-untyped-def]
    """Writes the entries part after part; words and bytes before each part, and in all, go to the last two."""
    words_before[:] = 0
    bytes_before[:] = 0
    for entry in range(used):
        part = np.int64(mixed(entries[entry, KEY_LOW], entries[entry, KEY_HIGH]) >> PART_SHIFT)
        after = np.int64(entries[entry + 1, PLACE] if entry + 1 < used else filled)
        words_before[part + 1] += 1
        bytes_before[part + 1] += after - np.int64(entries[entry, PLACE])
    for before in range(words_before.size - 1):
        words_before[before + 1] += words_before[before]
        bytes_before[before + 1] += bytes_before[before]
    words, spelled = words_before.copy(), bytes_before.copy()
    for entry in range(used):
        part = np.int64(mixed(entries[entry, KEY_LOW], entries[entry, KEY_HIGH]) >> PART_SHIFT)
        first = np.int64(entries[entry, PLACE])
        after = np.int64(entries[entry + 1, PLACE] if entry + 1 < used else filled)
        lengths[words[part]] = after - first
        counts[words[part]] = entries[entry, VALUE]
        words[part] += 1
        for at in range(first, after):
            data[spelled[part] + at - first] = arena[at]
        spelled[part] += after - first
