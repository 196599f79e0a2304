"""Utilization against vocabulary size: what smaller vocabularies of the same training make of the same text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokpack_core.bpe.encoder import BpeModel
from tokpack_core.vocabulary.merge_counts import MergeCounts

RARE_BELOW = 5


def size_row(entries: int, frequencies: NDArray[np.int64], total_bytes: int) -> dict[str, Any]:
    """frequencies: int64, occurrences of the entries of this size; those beyond `entries` do not occur."""
    tokens = int(frequencies.sum())
    seen, common = int((frequencies > 0).sum()), int((frequencies >= RARE_BELOW).sum())
    return {
        "entries": entries,
        "seen": seen,
        "utilization": seen / entries,
        "rare_share": 1 - common / entries,
        "tokens": tokens,
        "bytes_per_token": total_bytes / tokens if tokens else None,
    }


def merge_sizes(
    model: BpeModel, merges: MergeCounts, final: NDArray[np.int64], extra: int, total_bytes: int
) -> list[dict[str, Any]]:
    """Rows of `size_row`, smallest size first, the whole vocabulary last.

    final: int64 [vocab_size], occurrences of entries (no special tokens); extra: entries that are neither bytes nor
    merged, which every size has.
    """
    rows = []
    for cut, frequencies in zip(merges.cuts, merges.at_cut, strict=True):
        entries = extra + np.unique(np.append(model.byte_ids, model.token[model.rank < cut])).size
        rows.append(size_row(int(entries), frequencies, total_bytes))
    whole = extra + np.unique(np.append(model.byte_ids, model.token)).size
    return [*rows, size_row(int(whole), final, total_bytes)]
