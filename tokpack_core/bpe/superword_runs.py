"""Runs of joinable tokens and how often each occurs: what supermerges are learned from.

"Faster Superword Tokenization" (arXiv 2604.05192) showed that runs can be counted like words, since supermerges never
change what a word is. Most runs of ordinary text occur once, though, and would have to be held. So they are cut first
where a pair of neighbours is too rare to be merged at all: whatever spans it would be as rare. Pairs are counted by
their hashes in a table of a fixed size, which never gives too few, so a cut is never wrong. What is left are phrases
that come back, and memory grows with these and not with the text.

Runs stand in a temporary file between the two passes: int32 tokens, -1 after each run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.pretoken_counting import MOST_CELLS, in_turn
from tokpack_core.bpe.pretoken_counts import NO_COUNTS, PretokenCounts, as_counts
from tokpack_core.bpe.superword_unit_kernels import count_neighbours, cut_runs, write_runs
from tokpack_core.bpe.superword_units import Joined
from tokpack_core.bpe.word_table import WordTable
from tokpack_core.bpe.word_table_kernels import add_counts
from tokpack_core.errors import InputError

PAIR_PLACES = 1 << 24
IN_MEMORY = 2**24


class Joinable(Protocol):
    def encode(self, texts: pa.Array) -> Joined: ...


@contextmanager
def run_spool() -> Iterator[Runs]:
    """Runs, none at first, whose file is gone at the end."""
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
        yield Runs(file)


class Runs:
    """The runs of a text, and how often neighbours occur in them."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sizes: list[int] = []
        self._pair_counts = np.zeros(PAIR_PLACES, np.uint32)
        self.joined = 0
        """Tokens in runs."""

    def collect(self, texts: Iterator[pa.Array], joinable: Joinable, workers: int) -> None:
        """Adds the runs of string arrays, which are read once."""

        def work(array: pa.Array) -> npt.NDArray[np.int32]:
            found = joinable.encode(array)
            runs = np.empty(found.ids.size * 3 // 2 + 1, np.int32)
            return runs[: write_runs(found.ids, found.joins, runs)].copy()

        with ThreadPoolExecutor(workers) as pool:
            for runs in in_turn(pool, work, texts, workers):
                count_neighbours(runs, self._pair_counts)
                self._file.write(runs.tobytes())
                self._sizes.append(runs.size)
                self.joined += int(np.count_nonzero(runs >= 0))

    def count(self, threshold: int) -> PretokenCounts:
        """The pieces of runs in which each pair may occur `threshold` times; a piece's bytes are its int32 tokens."""
        table = WordTable()
        self._file.seek(0)
        for size in self._sizes:
            runs = np.frombuffer(self._file.read(4 * size), np.int32)
            pieces, ends = np.empty(size, np.int32), np.empty(size // 2 + 1, np.int64)
            written, count = cut_runs(runs, self._pair_counts, min(threshold, 2**32 - 1), pieces, ends)
            table.reserve(count, 4 * written)
            table.used, table.filled = add_counts(
                pieces.view(np.uint8),
                0,
                ends[:count],
                NO_COUNTS,
                table.slots,
                table.entries,
                table.arena,
                table.used,
                table.filled,
            )
            if table.filled // 4 + table.used > MOST_CELLS:
                raise InputError(
                    "the training sample has more different runs of words than can be held: lower `sample_bytes`, or "
                    "raise `min_frequency`"
                )
        return as_counts(table)
