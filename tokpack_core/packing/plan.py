"""Which tokens stand in which pack: the plan that every strategy gives and every consumer reads.

A *segment* is a run of tokens of one document inside one pack; a *pack* is a run of segments that fills at most
`sequence_length` tokens. The plan is columnar and holds no tokens: 24 bytes a segment and 8 a pack.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PackingPlan:
    """Packs as runs of segments, in compressed sparse row form."""

    pack_offsets: Int64
    """[packs + 1]: the segments of pack p are [pack_offsets[p], pack_offsets[p + 1])."""
    document: Int32
    """[segments]: index into the lengths that were packed."""
    start: Int64
    """[segments]: first token of the segment within its document."""
    length: Int32
    """[segments]: tokens, never 0."""
    chunk: Int32
    """[segments]: 0-based number of this piece of its document."""
    chunks: Int32
    """[segments]: number of pieces of its document."""

    @property
    def packs(self) -> int:
        return self.pack_offsets.size - 1

    @property
    def segments(self) -> int:
        return self.document.size

    def loads(self) -> Int64:
        """Tokens in each pack, int64 [packs]."""
        if self.packs == 0:
            return np.zeros(0, np.int64)
        return np.add.reduceat(self.length, self.pack_offsets[:-1], dtype=np.int64)

    def in_order(self, order: Int64) -> PackingPlan:
        """The same packs in another order, [packs]: pack p of the result is pack order[p] of this plan."""
        counts = np.diff(self.pack_offsets)[order]
        pack_offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        first = np.repeat(self.pack_offsets[:-1][order] - pack_offsets[:-1], counts)
        rows = first + np.arange(pack_offsets[-1])
        columns = (column[rows] for column in (self.document, self.start, self.length, self.chunk, self.chunks))
        return PackingPlan(pack_offsets, *columns)

    def pack_numbers(self) -> Int64:
        """Pack of each segment, int64 [segments]."""
        return np.repeat(np.arange(self.packs, dtype=np.int64), np.diff(self.pack_offsets))
