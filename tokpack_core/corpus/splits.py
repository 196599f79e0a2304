"""Which split a document belongs to, and keyed samples of documents: functions of (seed, id) and of nothing else.

The id's hash (MurmurHash3 x64 128, first lane, upper 63 bits) is a whole number u, uniform in [0, 2**63). A document
is in `train` if u < T1, else in `valid` if u < T2, else in `test`, where T1 and T2 are the cumulative shares times
2**63, rounded down in exact rational arithmetic. So a document keeps its split when files come, go or are reordered,
equal ids share a split, and raising `train` at the cost of `test` moves documents in one direction only.

A sample is drawn with another key, so it is independent of the split: a sample of `train` is a sample of everything.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.config import SPLITS, SplitShares
from tokpack_core.corpus.document_hash import text_hash

UNIT = 2**63
SAMPLE_KEY = int.from_bytes(b"sampling")


def assign_splits(ids: pa.Array, shares: SplitShares, seed: int) -> pa.Array:
    """The split of each document id (string array, not null): a string array of "train", "valid" and "test".

    Raises:
        ValueError: an id is null.
    """
    train, valid, test = (Fraction(share) for share in (shares.train, shares.valid, shares.test))
    total = train + valid + test  # the floats sum to 1 only nearly: a share of 0 must get nothing
    thresholds = np.array([UNIT * train // total, UNIT * (train + valid) // total], np.uint64)
    split = np.searchsorted(thresholds, unit_hash(ids, seed), side="right")
    return pa.array(SPLITS, pa.string()).take(pa.array(split, pa.int8()))


def sample_mask(ids: pa.Array, seed: int, fraction: float) -> npt.NDArray[np.bool_]:
    """Whether each document is in the sample `seed`, which keeps each with the probability `fraction`: bool [ids].

    A larger fraction keeps every document that a smaller one keeps.

    Raises:
        ValueError: `fraction` is outside [0, 1], or an id is null.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"the fraction to sample must lie between 0 and 1, not be {fraction}")
    return unit_hash(ids, seed ^ SAMPLE_KEY) < np.uint64(int(UNIT * Fraction(fraction)))


def unit_hash(ids: pa.Array, seed: int) -> npt.NDArray[np.uint64]:
    """A whole number in [0, 2**63) for each id: with 63 bits, a threshold of 1.0 is still a uint64."""
    return text_hash(ids, seed)[:, 0] >> np.uint64(1)
