"""A hash table from byte strings to numbers, kept in flat arrays that the caller owns and grows.

`slots`, uint64 [power of two], open addressing with linear probing: 0 is free, else the upper half of the hash over the
number of the entry plus one. `entries`, uint64 [capacity, 4], in the order of first occurrence, so that the frequent
ones lie together: low and high half of the key, a value, and where the bytes begin in `arena` (uint8).

The key of a word of up to 15 bytes is the word itself and its length, so that equal keys are equal words; of a longer
one it is a hash and the length, and the bytes are compared.

Callers leave room: fewer than half of the slots taken, an entry and the bytes free for each word that they add.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tokpack_core.bpe.intrinsics import load_uint64

KEY_LOW, KEY_HIGH, VALUE, PLACE = 0, 1, 2, 3
INLINE_BYTES = 15
LENGTH_SHIFT = np.uint64(56)
LONG = np.uint64(1 << 63)
ALL = np.uint64(2**64 - 1)
FIRST_FACTOR = np.uint64(0x9E3779B97F4A7C15)
SECOND_FACTOR = np.uint64(0xC2B2AE3D27D4EB4F)
ENTRY_MASK = np.uint64(2**32 - 1)
HALF = np.uint64(32)
EIGHT = np.uint64(8)
ONE = np.uint64(1)


@njit(cache=True, forceinline=True, _nrt=False)
def mixed(low, high):  # type: ignore[no-untyped-def]
    folded = (low * FIRST_FACTOR) ^ (high * SECOND_FACTOR)
    folded = (folded ^ (folded >> HALF)) * FIRST_FACTOR
    return folded ^ (folded >> HALF)


@njit(cache=True, forceinline=True, _nrt=False)
def word_key(data, first, length):  # type: ignore[no-untyped-def]
    """The two halves of the key of data[first : first + length]; length > 0."""
    if length <= INLINE_BYTES:
        size = np.uint64(length)
        if first + 16 <= data.size:
            low = load_uint64(data, first)
            high = load_uint64(data, first + 8)
            below = min(size, EIGHT)
            low &= ALL >> (EIGHT * (EIGHT - below))
            high &= (ALL >> ONE) >> (np.uint64(63) - EIGHT * (size - below))
        else:
            low = np.uint64(0)
            high = np.uint64(0)
            for place in range(min(length, 8)):
                low |= np.uint64(data[first + place]) << (EIGHT * np.uint64(place))
            for place in range(8, length):
                high |= np.uint64(data[first + place]) << (EIGHT * np.uint64(place - 8))
        return low, high | size << LENGTH_SHIFT
    low = FIRST_FACTOR
    place = first
    while place + 8 <= first + length:
        low = mixed(low, load_uint64(data, place))
        place += 8
    return mixed(low, load_uint64(data, first + length - 8)), LONG | np.uint64(length)


@njit(cache=True, forceinline=True, _nrt=False)
def same_bytes(data, first, arena, place, length):  # type: ignore[no-untyped-def]
    """Whether `length` (at least 8) bytes are equal."""
    at = 0
    while at + 8 <= length:
        if load_uint64(data, first + at) != load_uint64(arena, place + at):
            return False
        at += 8
    return load_uint64(data, first + length - 8) == load_uint64(arena, place + length - 8)


@njit(cache=True, forceinline=True, _nrt=False)
def slot_of(data, first, length, low, high, slots, entries, arena):  # type: ignore[no-untyped-def]
    """The slot that holds a word, or the free one where it belongs."""
    hashed = mixed(low, high)
    mask = np.uint64(slots.size - 1)
    slot = hashed & mask
    while True:
        found = slots[slot]
        if found == 0:
            return slot
        if (found ^ hashed) >> HALF == 0:
            entry = (found & ENTRY_MASK) - ONE
            if (
                entries[entry, KEY_LOW] == low
                and entries[entry, KEY_HIGH] == high
                and (high < LONG or same_bytes(data, first, arena, np.int64(entries[entry, PLACE]), length))
            ):
                return slot
        slot = (slot + ONE) & mask


@njit(cache=True, forceinline=True, _nrt=False)
def new_entry(data, first, length, low, high, slot, slots, entries, arena, used, filled):  # type: ignore[no-untyped-def]
    """Puts a word into a free slot as entry `used`, its bytes to arena[filled:]; its value is 0."""
    slots[slot] = (mixed(low, high) >> HALF << HALF) | np.uint64(used + 1)
    entries[used, KEY_LOW] = low
    entries[used, KEY_HIGH] = high
    entries[used, VALUE] = 0
    entries[used, PLACE] = filled
    for at in range(length):
        arena[filled + at] = data[first + at]


@njit(cache=True, nogil=True)
def add_counts(data, begin, ends, counts, slots, entries, arena, used, filled):  # type: ignore[no-untyped-def]
    """Adds counts[k], or 1 if `counts` is empty, to the word that ends at ends[k]; the first begins at `begin`.

    Returns the number of entries and of bytes in the arena.
    """
    first = begin
    for k in range(ends.size):
        length = ends[k] - first
        low, high = word_key(data, first, length)
        slot = slot_of(data, first, length, low, high, slots, entries, arena)
        if slots[slot] == 0:
            new_entry(data, first, length, low, high, slot, slots, entries, arena, used, filled)
            used += 1
            filled += length
        entries[(slots[slot] & ENTRY_MASK) - ONE, VALUE] += np.uint64(counts[k] if counts.size else 1)
        first = ends[k]
    return used, filled


@njit(cache=True, nogil=True)
def fill_slots(slots, entries, used):  # type: ignore[no-untyped-def]
    """Enters the first `used` entries into empty slots."""
    mask = np.uint64(slots.size - 1)
    for entry in range(used):
        hashed = mixed(entries[entry, KEY_LOW], entries[entry, KEY_HIGH])
        slot = hashed & mask
        while slots[slot] != 0:
            slot = (slot + ONE) & mask
        slots[slot] = (hashed >> HALF << HALF) | np.uint64(entry + 1)
