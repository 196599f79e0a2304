"""Slices of a string array that hold a bounded amount of text, so that a library's output stays small."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BATCH_BYTES = 2**20
"""Libraries hold about 150 bytes a token while they encode: 1 MiB of text is some 50 MB."""


def text_batches(texts: pa.Array, limit: int = BATCH_BYTES) -> Iterator[pa.Array]:
    """Consecutive slices of at most `limit` UTF-8 bytes, or of one document that is longer.

    Raises ValueError when a text is null: an empty document is an empty string.
    """
    if texts.null_count:
        raise ValueError("texts hold a null: an empty document is an empty string")
    ends = np.cumsum(pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64))
    start = 0
    while start < len(texts):
        done = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, done + limit, side="right")), start + 1)
        yield texts.slice(start, stop - start)
        start = stop
