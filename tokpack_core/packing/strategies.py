"""Packing strategies by name. None of them loses or repeats a token; what may be dropped is said in `policies`.

naive      every document alone, in chunks of L; the rest of each pack is padding.
concat     documents end to end, cut wherever L falls; the last pack is kept and padded.
best_fit   "Fewer Truncations Improve Language Modeling" (arXiv 2404.10830): what is longer than L is cut into full
           chunks and a remainder, then remainders and short documents are packed best-fit-decreasing and never cut.
first_fit, first_fit_decreasing
           the same pieces, each put into the first pack that has room, in document order or longest first.

Pack and segment order is a function of the lengths alone. best_fit puts full chunks first, in document order, and
groups documents of like length, so its packs must be permuted before training.

Lognormal web lengths (median 600 tokens, L 4096), 10^6 documents: see `benchmarks/packing.py`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokpack_core.config import Strategy
from tokpack_core.errors import InputError
from tokpack_core.packing import best_fit_kernels as kernels
from tokpack_core.packing.first_fit import first_fit
from tokpack_core.packing.pieces import cut, in_packs, number_pieces
from tokpack_core.packing.plan import PackingPlan

Int64 = npt.NDArray[np.int64]
Lengths = npt.NDArray[np.integer]

LIMIT = 2**31 - 1
HISTOGRAM_ENTRIES = 1 << 18
"""Up to this many lengths a table over all of them is always cheap; a larger one only pays with as many documents."""


def pack(lengths: Lengths, sequence_length: int, strategy: Strategy) -> PackingPlan:
    """Plan packs of at most `sequence_length` tokens.

    lengths: tokens of each document, any integer dtype, [documents]; documents of 0 tokens are in no pack. int32 and
    int64 are read in place. At most 2^31 - 1 documents, and as many chunks a document.
    Raises InputError on a negative length or when a limit is passed, ValueError on a sequence length out of range.
    """
    lengths = check_lengths(lengths, sequence_length)
    if strategy == "naive":
        return naive(lengths, sequence_length)
    if strategy == "concat":
        return concat(lengths, sequence_length)
    if strategy in ("first_fit", "first_fit_decreasing"):
        pieces = cut(lengths, sequence_length)
        decreasing = strategy == "first_fit_decreasing"
        return in_packs(pieces, *first_fit(pieces.length, sequence_length, None, decreasing))
    return best_fit(lengths, sequence_length)


def check_lengths(lengths: Lengths, sequence_length: int) -> Lengths:
    if not 1 <= sequence_length <= LIMIT:
        raise ValueError(f"sequence_length must be 1 to {LIMIT}, not {sequence_length}")
    if lengths.ndim != 1 or not np.issubdtype(lengths.dtype, np.integer):
        raise ValueError(f"lengths must be integers in one dimension, not {lengths.dtype} in {lengths.ndim}")
    if lengths.dtype not in (np.int32, np.int64):
        lengths = lengths.astype(np.int64)
    if lengths.size > LIMIT:
        raise InputError(f"{lengths.size} documents are too many for one plan: pack blocks of fewer than 2^31")
    if lengths.size and lengths.min() < 0:
        raise InputError(f"document {int(np.argmin(lengths))} has a negative length: read the lengths again")
    if lengths.size and int(lengths.max()) > LIMIT * sequence_length:
        raise InputError(
            f"document {int(np.argmax(lengths))} has more than 2^31 - 1 chunks of {sequence_length} tokens: split it"
        )
    return np.ascontiguousarray(lengths)


def naive(lengths: Lengths, sequence_length: int) -> PackingPlan:
    p = cut(lengths, sequence_length)
    pack_offsets = np.arange(p.document.size + 1, dtype=np.int64)
    return PackingPlan(pack_offsets, p.document, p.start, p.length, p.chunk, p.chunks)


def concat(lengths: Lengths, sequence_length: int) -> PackingPlan:
    begin = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=begin[1:])
    end = begin[1:]
    first_pack = begin[:-1] // sequence_length
    last_pack = (end - 1) // sequence_length
    document, chunk, chunks = number_pieces(np.where(lengths > 0, last_pack - first_pack + 1, 0))
    of_pack = first_pack[document] + chunk
    left = np.maximum(begin[document], of_pack * sequence_length)
    right = np.minimum(end[document], (of_pack + 1) * sequence_length)
    packs = -(-int(begin[-1]) // sequence_length)
    return PackingPlan(
        pack_offsets=np.searchsorted(of_pack, np.arange(packs + 1)).astype(np.int64),
        document=document.astype(np.int32),
        start=left - begin[document],
        length=(right - left).astype(np.int32),
        chunk=chunk.astype(np.int32),
        chunks=chunks.astype(np.int32),
    )


def best_fit(lengths: Lengths, sequence_length: int) -> PackingPlan:
    small = sequence_length <= max(HISTOGRAM_ENTRIES, lengths.size)
    counts = np.zeros(sequence_length if small else 0, np.int64)
    if small:
        full = kernels.count_remainders(lengths, sequence_length, counts)
        items = lengths.size - int(counts[0])
    else:
        full = int((lengths // sequence_length).sum())
        items = int(np.count_nonzero(lengths % sequence_length))

    document = np.empty(full + items, np.int32)
    start = np.empty(full + items, np.int64)
    length = np.empty(full + items, np.int32)
    chunk = np.empty(full + items, np.int32)
    chunks = np.empty(full + items, np.int32)
    kernels.write_full_chunks(lengths, sequence_length, document, start, length, chunk, chunks)

    entries = start[full:]
    if small:
        values, cursor = sort_in_table(lengths, sequence_length, counts, entries)
    else:
        values, cursor = sort_by_comparison(lengths, sequence_length, entries)
    forest = kernels.fit_classes(values, np.diff(cursor, append=items), sequence_length, items)
    pack_offsets = np.arange(full + 1 + int(forest[3].sum(dtype=np.int64)), dtype=np.int64)
    ends = pack_offsets[full + 1 :]
    kernels.deal(forest, values, cursor, entries, document[full:], length[full:], chunk[full:], ends)
    ends += full
    kernels.number_rests(sequence_length, chunk[full:], start[full:], chunks[full:])
    return PackingPlan(pack_offsets, document, start, length, chunk, chunks)


def sort_in_table(lengths: Lengths, capacity: int, counts: Int64, entries: Int64) -> tuple[Int64, Int64]:
    """Fill `entries` by decreasing remainder, ties in document order; the distinct remainders and where each starts."""
    values = np.flatnonzero(counts[1:])[::-1] + 1
    cursor = np.cumsum(counts[values]) - counts[values]
    counts[values] = cursor
    kernels.sort_by_remainder(lengths, capacity, counts, entries)
    return values, cursor


def sort_by_comparison(lengths: Lengths, capacity: int, entries: Int64) -> tuple[Int64, Int64]:
    """The same as `sort_in_table`, for capacities whose table would outweigh the documents."""
    rest = lengths % capacity
    documents = np.flatnonzero(rest)
    # Distinct keys: any sorting algorithm gives the same order.
    entries[:] = (capacity - rest[documents].astype(np.int64)) << kernels.DOCUMENT_BITS | documents
    entries.sort()
    remainders = capacity - (entries >> kernels.DOCUMENT_BITS)
    entries &= kernels.DOCUMENT_MASK
    entries |= (lengths[entries].astype(np.int64) // capacity) << kernels.DOCUMENT_BITS
    cursor = np.flatnonzero(np.diff(remainders, prepend=capacity))
    return remainders[cursor], cursor
