"""A keyed permutation of 0 .. n - 1 that is the same on every machine and under every library version.

Eight rounds of a balanced Feistel network (Luby and Rackoff, "How to construct pseudorandom permutations", 1988) over
the smallest even number of bits that holds n, at least 16; values that land at n or above are sent through again
until they land below (cycle walking; Black and Rogaway, "Ciphers with arbitrary finite domains", 2002), at most four
times on average when n > 16,384. The round function is SplitMix64's finalizer (Steele, Lea and Flood, 2014) of the
half word xor a round key; round keys are the eight little-endian 64-bit words of BLAKE2b-512 of the key.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from tokpack_core.packing.permutation_kernels import walk

MIN_HALF_BITS = 8


def permuted(n: int, key: bytes) -> npt.NDArray[np.int64]:
    """The numbers 0 .. n - 1 in an order that depends on n and `key` alone, int64 [n]; n < 2^62."""
    round_keys = np.frombuffer(hashlib.blake2b(key, digest_size=64).digest(), "<u8").astype(np.uint64)
    half_bits = max(MIN_HALF_BITS, (max(n - 1, 0).bit_length() + 1) // 2)
    out = np.empty(n, np.int64)
    walk(n, half_bits, round_keys, out)
    return out
