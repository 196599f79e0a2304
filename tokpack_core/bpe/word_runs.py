"""Counted words in runs, set apart by hash, in memory or on disk: any number of runs is summed up a part at a time.

This is how counts stay within a limit of memory (grouping by partitions, as in G. Graefe, "Query Evaluation Techniques
for Large Databases", section 4.2): a table that has grown to the limit becomes a run on disk, and starts anew.

A run on disk is a file: lengths, int32 [words], counts, int64 [words], bytes, uint8; each in the order of the parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.pretoken_counts import PretokenCounts, add_words, as_counts
from tokpack_core.bpe.word_runs_kernels import PART_BITS, set_apart
from tokpack_core.bpe.word_table import WordTable
from tokpack_core.corpus.text_buffers import read_only

PARTS = 1 << PART_BITS


class Run(Protocol):
    def part(self, number: int) -> PretokenCounts:
        """The words whose hash names this part, in no particular order."""


@dataclass(frozen=True)
class HeldRun:
    lengths: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    words_before: npt.NDArray[np.int64]
    """[PARTS + 1]"""
    bytes_before: npt.NDArray[np.int64]

    def part(self, number: int) -> PretokenCounts:
        first, stop = self.words_before[number : number + 2]
        data = self.data[self.bytes_before[number] : self.bytes_before[number + 1]]
        return words_of(self.lengths[first:stop], self.counts[first:stop], data)


@dataclass(frozen=True)
class SpilledRun:
    path: Path
    words_before: npt.NDArray[np.int64]
    bytes_before: npt.NDArray[np.int64]

    def part(self, number: int) -> PretokenCounts:
        first, stop = map(int, self.words_before[number : number + 2])
        words, (begin, end) = int(self.words_before[-1]), map(int, self.bytes_before[number : number + 2])
        lengths = np.fromfile(self.path, np.int32, stop - first, offset=4 * first)
        counts = np.fromfile(self.path, np.int64, stop - first, offset=4 * words + 8 * first)
        return words_of(lengths, counts, np.fromfile(self.path, np.uint8, end - begin, offset=12 * words + begin))


def words_of(
    lengths: npt.NDArray[np.int32], counts: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]
) -> PretokenCounts:
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return PretokenCounts(read_only(data), offsets, counts)


def held(table: WordTable) -> HeldRun:
    """A run of all that the table has counted; the table is empty afterwards."""
    run = HeldRun(
        np.empty(table.used, np.int32),
        np.empty(table.used, np.int64),
        np.empty(table.filled, np.uint8),
        np.empty(PARTS + 1, np.int64),
        np.empty(PARTS + 1, np.int64),
    )
    arrays = (run.lengths, run.counts, run.data, run.words_before, run.bytes_before)
    set_apart(table.entries, table.used, table.filled, table.arena, *arrays)
    table.clear()
    return run


def spilled(table: WordTable, path: Path) -> SpilledRun:
    """The same on disk. Raises OSError if the file cannot be written."""
    run = held(table)
    with path.open("xb") as file:
        for array in (run.lengths, run.counts, run.data):
            file.write(array.data)
    return SpilledRun(path, run.words_before, run.bytes_before)


def summed(runs: list[Run], part: int) -> PretokenCounts:
    """The words of one part, each once, with the counts of all runs."""
    table = WordTable()
    for run in runs:
        add_words(table, run.part(part))
    words = as_counts(table)
    return PretokenCounts(read_only(words.data.copy()), words.offsets, words.counts)
