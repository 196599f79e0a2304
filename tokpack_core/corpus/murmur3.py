"""Numba kernels of MurmurHash3 x64 128.

Source: the algorithm that Austin Appleby described and placed in the public domain (SMHasher, MurmurHash3_x64_128),
with a seed of 64 bits where his has 32; for seeds below 2**32 the digests are the same.

Blocks of 16 bytes are read as two little-endian 64-bit words, each mixed into one of two lanes; the 0–15 bytes that
remain fill the words from their low end; then the length is added and both lanes are finalized. All arithmetic wraps
at 64 bits. Measured: see `document_hash`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

C1 = np.uint64(0x87C37B91114253D5)
C2 = np.uint64(0x4CF5AD432745937F)
BLOCK1 = np.uint64(0x52DCE729)
BLOCK2 = np.uint64(0x38495AB5)
FINAL1 = np.uint64(0xFF51AFD7ED558CCD)
FINAL2 = np.uint64(0xC4CEB9FE1A85EC53)
FIVE = np.uint64(5)
FINAL_SHIFT = np.uint64(33)


@njit(cache=True, inline="always")
def rotate_left(word: np.uint64, bits: int) -> np.uint64:
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@njit(cache=True, inline="always")
def load_word(data: npt.NDArray[np.uint8], at: int) -> np.uint64:
    """Eight bytes, little-endian, at any address: written as shifts, which LLVM turns into one load."""
    word = np.uint64(data[at])
    for k in range(1, 8):
        word |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return word


@njit(cache=True)
def load_tail(data: npt.NDArray[np.uint8], start: int, stop: int) -> np.uint64:
    """The bytes [start, stop), fewer than eight or none, in the low end of a word."""
    word = np.uint64(0)
    for at in range(start, stop):
        word |= np.uint64(data[at]) << np.uint64(8 * (at - start))
    return word


@njit(cache=True, inline="always")
def mix_first(word: np.uint64) -> np.uint64:
    return rotate_left(word * C1, 31) * C2


@njit(cache=True, inline="always")
def mix_second(word: np.uint64) -> np.uint64:
    return rotate_left(word * C2, 33) * C1


@njit(cache=True, inline="always")
def finalize(lane: np.uint64) -> np.uint64:
    lane = (lane ^ (lane >> FINAL_SHIFT)) * FINAL1
    lane = (lane ^ (lane >> FINAL_SHIFT)) * FINAL2
    return lane ^ (lane >> FINAL_SHIFT)


@njit(cache=True, nogil=True)
def hash_documents(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], seed: np.uint64
) -> npt.NDArray[np.uint64]:
    """Digest lanes, uint64 [documents, 2], of the documents data[offsets[d]:offsets[d + 1]]."""
    documents = len(offsets) - 1
    digests = np.empty((documents, 2), np.uint64)
    for document in range(documents):
        at, stop = offsets[document], offsets[document + 1]
        length = np.uint64(stop - at)
        first = second = seed
        while stop - at >= 16:
            first = rotate_left(first ^ mix_first(load_word(data, at)), 27) + second
            first = first * FIVE + BLOCK1
            second = rotate_left(second ^ mix_second(load_word(data, at + 8)), 31) + first
            second = second * FIVE + BLOCK2
            at += 16
        middle = min(at + 8, stop)
        first ^= mix_first(load_tail(data, at, middle)) ^ length
        second ^= mix_second(load_tail(data, middle, stop)) ^ length
        first += second
        second += first
        first, second = finalize(first), finalize(second)
        first += second
        second += first
        digests[document, 0], digests[document, 1] = first, second
    return digests
