"""Unique pretokens of a stream of documents and how often each occurs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.pretokenization import pretoken_chunks
from tokpack_core.bpe.unicode_categories import UnicodeVersion
from tokpack_core.bpe.word_table import WordTable
from tokpack_core.bpe.word_table_kernels import PLACE, VALUE, add_counts
from tokpack_core.corpus.text_buffers import read_only, text_buffers

NO_COUNTS = np.empty(0, np.int64)


@dataclass(frozen=True)
class PretokenCounts:
    """Word i is data[offsets[i] : offsets[i + 1]] and occurs counts[i] times; in no particular order."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]


def count_pretokens(
    texts: Iterator[pa.Array], splits: tuple[str, ...], workers: int = 1, version: UnicodeVersion = "16.0"
) -> PretokenCounts:
    """Counts over string arrays (not null; one entry a document), which are read once and not kept."""
    tables = [WordTable() for _ in range(workers)]
    free: SimpleQueue[WordTable] = SimpleQueue()
    for table in tables:
        free.put(table)

    def work(array: pa.Array) -> None:
        table = free.get()
        count_array(table, array, splits, version)
        free.put(table)

    with ThreadPoolExecutor(workers) as pool:
        running: set[Future[None]] = set()
        for array in texts:
            running.add(pool.submit(work, array))
            if len(running) > workers:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
        for future in running:
            future.result()
    whole = max(tables, key=lambda table: table.used)
    for table in tables:
        if table is not whole:
            add_table(whole, table)
            table.clear()
    return as_counts(whole)


def count_array(table: WordTable, texts: pa.Array, splits: tuple[str, ...], version: UnicodeVersion) -> None:
    for chunk in pretoken_chunks(texts, splits, version):
        ends = chunk.ends
        table.reserve(ends.size, int(ends[-1]) - chunk.begin if ends.size else 0)
        table.used, table.filled = add_counts(
            chunk.data, chunk.begin, ends, NO_COUNTS, table.slots, table.entries, table.arena, table.used, table.filled
        )


def add_table(table: WordTable, other: WordTable) -> None:
    words = as_counts(other)
    table.reserve(other.used, other.filled)
    table.used, table.filled = add_counts(
        words.data, 0, words.offsets[1:], words.counts, table.slots, table.entries, table.arena, table.used, table.filled
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
