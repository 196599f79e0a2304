"""Which entries a BPE goes through to make each of its entries, where the file lists entries and not merges.

Any two neighbours that spell an entry may merge, the entry of the lowest rank first, the left one of equals: the rule
of tiktoken's rank files (on bytes) and of SentencePiece's BPE (on characters, rank by score).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.word_table_kernels import ENTRY_MASK, ONE, VALUE, slot_of, word_key


@njit(cache=True, nogil=True)
def mark_paths(data, offsets, ranks, needed, by_character, slots, entries, arena):  # type: ignore[no-untyped-def]
    """Marks in `needed`, bool [rows], every row that is an intermediate of a row that is needed.

    Row i is data[offsets[i] : offsets[i + 1]]; the table holds the rows' bytes, with row + 1 as values; ranks: int64.
    """
    longest = 1
    for row in range(ranks.size):
        longest = max(longest, offsets[row + 1] - offsets[row])
    ends = np.empty(longest + 1, np.int64)
    for row in range(ranks.size):
        if not needed[row]:
            continue
        first = offsets[row]
        symbols = 0
        for at in range(first, offsets[row + 1]):
            if at > first and not (by_character and (data[at] & 0xC0) == 0x80):
                ends[symbols] = at
                symbols += 1
        ends[symbols] = offsets[row + 1]
        symbols += 1
        while symbols > 1:
            best = np.int64(-1)
            place = 0
            begin = first
            for k in range(symbols - 1):
                low, high = word_key(data, begin, ends[k + 1] - begin)
                slot = slot_of(data, begin, ends[k + 1] - begin, low, high, slots, entries, arena)
                if slots[slot] != 0:
                    found = np.int64(entries[(slots[slot] & ENTRY_MASK) - ONE, VALUE]) - 1
                    if found >= 0 and (best < 0 or ranks[found] < ranks[best]):
                        best = found
                        place = k
                begin = ends[k]
            if best < 0:
                break
            needed[best] = True
            for k in range(place, symbols - 1):
                ends[k] = ends[k + 1]
            symbols -= 1
