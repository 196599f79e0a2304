"""Documents cut into pieces that fit a pack, before any strategy places them.

A document longer than a pack gives full chunks of L tokens and the rest. Where the rest would be shorter than
`min_chunk`, it and the chunk before it are evened out: the first of the two gets half of their tokens, rounded down to
a multiple of `align`, so both are at least `min_chunk` for every min_chunk up to half a pack, and there is no more
cut than before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokpack_core.packing.plan import PackingPlan

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Pieces:
    """Pieces in document order; the columns are those of a PackingPlan, [pieces]."""

    document: Int32
    start: Int64
    length: Int32
    chunk: Int32
    chunks: Int32


def cut(lengths: npt.NDArray[np.integer], sequence_length: int, min_chunk: int = 1, align: int = 1) -> Pieces:
    """All tokens of all documents, lengths [documents], as pieces of 1 to `sequence_length` tokens."""
    lengths = np.asarray(lengths, np.int64)
    document, chunk, chunks = number_pieces(np.asarray(-(-lengths // sequence_length), np.int64))
    start = chunk * sequence_length
    length = np.minimum(lengths[document] - start, sequence_length)
    last = np.flatnonzero((chunk > 0) & (length < min_chunk))
    both = sequence_length + length[last]
    length[last - 1] = both // 2 // align * align
    length[last] = both - length[last - 1]
    start[last] = start[last - 1] + length[last - 1]
    return Pieces(*(document.astype(np.int32), start), *(a.astype(np.int32) for a in (length, chunk, chunks)))


def number_pieces(pieces: Int64) -> tuple[Int64, Int64, Int64]:
    """Document, 0-based piece and number of pieces of every segment, when document d is cut into pieces[d]."""
    document = np.repeat(np.arange(pieces.size), pieces)
    before = np.cumsum(pieces) - pieces
    return document, np.arange(document.size) - before[document], pieces[document]


def in_packs(pieces: Pieces, order: npt.NDArray[np.integer], pack_offsets: Int64) -> PackingPlan:
    """The plan whose pack p holds pieces order[pack_offsets[p]] .. order[pack_offsets[p + 1] - 1]."""
    return PackingPlan(
        pack_offsets=pack_offsets,
        document=pieces.document[order],
        start=pieces.start[order],
        length=pieces.length[order],
        chunk=pieces.chunk[order],
        chunks=pieces.chunks[order],
    )
