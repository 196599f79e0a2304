"""A Feistel network over integers, walked until it lands below n: see `permutation`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)


@njit(cache=True)
def mix(word: np.uint64) -> np.uint64:
    """The finalizer of SplitMix64: every bit of the result depends on every bit of `word`."""
    word = (word ^ (word >> np.uint64(30))) * MULTIPLIER_1
    word = (word ^ (word >> np.uint64(27))) * MULTIPLIER_2
    return word ^ (word >> np.uint64(31))


@njit(cache=True)
def walk(n: int, half_bits: int, round_keys: UInt64, out: Int64) -> None:
    """out[i] = image of i under the keyed permutation of 0 .. n - 1; n <= 2^(2 half_bits)."""
    shift = np.uint64(half_bits)
    mask = (np.uint64(1) << shift) - np.uint64(1)
    for i in range(n):
        word = np.uint64(i)
        while True:
            left = word >> shift
            right = word & mask
            for key in round_keys:
                left, right = right, left ^ (mix(right ^ key) & mask)
            word = left << shift | right
            if word < np.uint64(n):
                break
        out[i] = np.int64(word)
