"""Keys of a noisy-decreasing order, in integers only, so that they are the same on every machine: see `order`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from tokpack_core.packing.permutation_kernels import mix

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

FRACTION_BITS = 16
INDEX_BITS = 31
TOP = 1 << 31
"""Above every key: log2 of 63 bits is below 2^22, and the noise is cut to below 2^30."""


@njit(cache=True)
def log2_fixed(value: np.uint64) -> np.int64:
    """log2 of a number from 1 up to 2^63, rounded down to 16 fractional bits, by repeated squaring."""
    whole = 0
    left = value >> np.uint64(1)
    while left > np.uint64(0):
        whole += 1
        left >>= np.uint64(1)
    # 31 bits after the point: mantissa in [1, 2), whose square fits 64 bits.
    mantissa = value << np.uint64(31 - whole) if whole <= 31 else value >> np.uint64(whole - 31)
    result = np.int64(whole)
    for _ in range(FRACTION_BITS):
        mantissa = (mantissa * mantissa) >> np.uint64(31)
        result <<= 1
        if mantissa >> np.uint64(32):
            result |= 1
            mantissa >>= np.uint64(1)
    return result


@njit(cache=True)
def normal_fixed(index: int, keys: UInt64) -> np.int64:
    """About normal: the sum of four 16-bit uniform numbers less its mean, standard deviation 65,536 / sqrt(3)."""
    word = mix(mix(np.uint64(index) ^ keys[0]) + keys[1])
    total = np.int64(0)
    for part in range(4):
        total += np.int64((word >> np.uint64(16 * part)) & np.uint64(0xFFFF))
    return total - 2 * 65_535


@njit(cache=True)
def noisy_keys(scores: Int64, scale: int, keys: UInt64, out: Int64) -> None:
    """out[i] orders by decreasing log2(score) + scale x noise / 2^16, ties by i; scores are 1 or more."""
    for i in range(scores.size):
        key = log2_fixed(np.uint64(scores[i])) + ((scale * normal_fixed(i, keys)) >> FRACTION_BITS)
        out[i] = ((TOP - key) << INDEX_BITS) | i
