"""A decreasing order with seeded noise: by score x e^(sigma x g), g about standard normal.

Strictly decreasing order fills packs best but puts like lengths together, and with two limits it spends the items that
one limit needs before the other limit is met. A little noise costs few packs and mixes (see `benchmarks/packing.py`).

The noise of item i is a hash of i and the key (SplitMix64's finalizer, as in `permutation`), and the keys compared are
fixed-point logarithms: no library's random stream and no floating-point exponential takes part, so the order depends
on scores, sigma and key alone.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
import numpy.typing as npt

from tokpack_core.packing.order_kernels import INDEX_BITS, noisy_keys

Int64 = npt.NDArray[np.int64]
SCALE = 2**16 * math.log2(math.e) * math.sqrt(3.0)
"""Fixed-point log2 for one standard deviation of the noise, in units of the noise / 2^16 / sigma."""
MAX_SIGMA = 4.0


def noisy_decreasing(scores: npt.NDArray[np.integer], sigma: float, key: bytes) -> Int64:
    """Indices of the scores [items], each 1 to 2^62, in noisy-decreasing order; sigma 0 to 4, 0 for no noise."""
    if not 0 <= sigma <= MAX_SIGMA:
        raise ValueError(f"sigma must be 0 to {MAX_SIGMA:g}, not {sigma}")
    keys = np.frombuffer(hashlib.blake2b(key, digest_size=16).digest(), "<u8").astype(np.uint64)
    out = np.empty(scores.size, np.int64)
    noisy_keys(scores.astype(np.int64, copy=False), round(sigma * SCALE), keys, out)
    out.sort()
    return out & ((1 << INDEX_BITS) - 1)
