"""Unique pretokens of a stream of documents and how often each occurs: hash tables of words, one a worker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.automaton import Automaton
from tokpack_core.bpe.pretokenization import automaton_chunks
from tokpack_core.bpe.word_table import WordTable
from tokpack_core.bpe.word_table_kernels import PLACE, VALUE, add_counts
from tokpack_core.corpus.text_buffers import read_only, text_array, text_buffers

NO_COUNTS = np.empty(0, np.int64)


@dataclass(frozen=True)
class PretokenCounts:
    """Word i is data[offsets[i] : offsets[i + 1]] and occurs counts[i] times; in no particular order."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def count_array(table: WordTable, texts: pa.Array, automaton: Automaton) -> int:
    """Adds the pretokens of `texts`; returns how many bytes the regex did not match."""
    bytes_unmatched = np.zeros(1, np.int64)
    for chunk in automaton_chunks(*text_buffers(texts), automaton, bytes_unmatched):
        ends = chunk.ends
        table.reserve(ends.size, int(ends[-1]) - chunk.begin if ends.size else 0)
        table.used, table.filled = add_counts(
            chunk.data, chunk.begin, ends, NO_COUNTS, table.slots, table.entries, table.arena, table.used, table.filled
        )
    return int(bytes_unmatched[0])


def add_words(table: WordTable, words: PretokenCounts) -> None:
    table.reserve(words.counts.size, words.data.size)
    table.used, table.filled = add_counts(
        words.data,
        0,
        words.offsets[1:],
        words.counts,
        table.slots,
        table.entries,
        table.arena,
        table.used,
        table.filled,
    )


def as_counts(table: WordTable) -> PretokenCounts:
    offsets = np.append(table.entries[: table.used, PLACE], np.uint64(table.filled)).astype(np.int64)
    return PretokenCounts(
        read_only(table.arena[: table.filled]), offsets, table.entries[: table.used, VALUE].astype(np.int64)
    )


def without_long(words: PretokenCounts, limit: int | None) -> tuple[PretokenCounts, int]:
    """The words of up to `limit` bytes, and how many bytes of text the others made up."""
    lengths = np.diff(words.offsets)
    if limit is None or not (lengths > limit).any():
        return words, 0
    kept = lengths <= limit
    array = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), kept.size, [None, pa.py_buffer(words.offsets), pa.py_buffer(words.data)]
    )
    data, offsets = text_buffers(array.filter(pa.array(kept)))
    return PretokenCounts(data, offsets, words.counts[kept]), int((lengths * words.counts)[~kept].sum())


def in_byte_order(words: PretokenCounts) -> PretokenCounts:
    # To learn merges needs none of its functions.
    import pyarrow.compute as pc

    array = text_array(words.data, words.offsets, pa.large_binary())
    order = pc.sort_indices(array)
    data, offsets = text_buffers(array.take(order))
    return PretokenCounts(data, offsets, words.counts[order.to_numpy()])
