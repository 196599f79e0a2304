"""Documents padded to a multiple of 2 x CP, as context parallelism of Transformer Engine (THD) wants them.

Each of CP ranks takes two of 2 x CP equal chunks of each document, number r from the front and r from the back, which
balances causal attention. `cu_seqlens` then counts real tokens, `cu_seqlens_padded` counts places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokpack_core.training.layout import Int64, max_seqlen
from tokpack_core.training.segments import Int32


@dataclass(frozen=True)
class PaddedLayout:
    """A pack with room behind each document."""

    cu_seqlens: Int32
    """[documents + 1], in tokens: cu_seqlens_q and cu_seqlens_kv."""
    cu_seqlens_padded: Int32
    """[documents + 1], in places: cu_seqlens_q_padded and cu_seqlens_kv_padded."""
    max_seqlen: int
    """Places of the longest document."""
    source: Int64
    """[places]: the token that stands here, or -1 in padding."""

    def spread(self, values: npt.NDArray[np.generic], filler: int | float) -> npt.NDArray[np.generic]:
        """`values` [T] at their places, `filler` in padding: [places], same dtype."""
        out = np.full(self.source.size, filler, values.dtype)
        real = self.source >= 0
        out[real] = values[self.source[real]]
        return out


def pad_documents(edges: Int32, ranks: int) -> PaddedLayout:
    """Room for a multiple of 2 x ranks tokens in each document of cu_seqlens `edges`."""
    multiple = 2 * ranks
    lengths = np.diff(edges)
    rooms = -(-lengths // multiple) * multiple
    padded = np.concatenate([np.zeros(1, np.int32), np.cumsum(rooms, dtype=np.int32)])
    source = np.full(int(padded[-1]), -1, np.int64)
    tokens = np.arange(edges[-1])
    source[tokens + np.repeat(padded[:-1] - edges[:-1], lengths)] = tokens
    return PaddedLayout(edges, padded, max_seqlen(padded), source)


def rank_places(padded: Int32, ranks: int, rank: int) -> Int64:
    """Places of cu_seqlens_padded that rank `rank` of `ranks` works on, in order: int64 [places / ranks]."""
    chunk = np.diff(padded) // (2 * ranks)
    begins = np.stack([padded[:-1] + rank * chunk, padded[:-1] + (2 * ranks - 1 - rank) * chunk], axis=1).ravel()
    sizes = np.repeat(chunk, 2).astype(np.int64)
    return np.arange(sizes.sum()) + np.repeat(begins - (np.cumsum(sizes) - sizes), sizes)
