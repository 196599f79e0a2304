"""Runs the loop over rounds of merges: those of few places in the kernel, those of many by all threads together."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.merge_heap_kernels import heap_of
from tokpack_core.bpe.merge_kernels import UNLIMITED, Pairs, Words
from tokpack_core.bpe.merge_loop_kernel import merge_rounds
from tokpack_core.bpe.merge_round_kernels import Scratch, merge_share, new_scratch, with_notes
from tokpack_core.bpe.spelling_kernels import Spelling

MANY = 1_000
"""Places of a round for which threads are worth while."""


@dataclass(frozen=True)
class MergeLoop:
    symbols: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int64]
    merges: npt.NDArray[np.int64]
    """see `merge_rounds`"""
    tie_break: int
    threads: ThreadPoolExecutor
    workers: int

    def run(self, pairs: Pairs, spelling: Spelling, tokens: int) -> tuple[int, Spelling, npt.NDArray[np.int32]]:
        """Merges all pairs that it may; symbols are one cell each at the start.

        Returns the number of tokens, their spelling, and the length of each in cells.
        """
        words = Words(self.symbols, self.weights, np.ones(len(self.merges), np.int32))
        borders = [0, *(first for first, _ in list(ranges(self.symbols, self.workers))[1:]), self.symbols.size]
        shares = len(borders) - 1
        scratch = new_scratch(shares, len(self.merges))
        many = MANY if shares > 1 else UNLIMITED
        heap = heap_of(pairs, spelling, self.tie_break)
        chosen = 0
        while True:
            chosen, places, tokens, spelling, pairs, heap = merge_rounds(
                words, pairs, heap, scratch, spelling, self.merges, tokens, chosen, many
            )
            if not chosen:
                return tokens, spelling, words.cells
            if 2 * places > scratch.notes.shape[1]:
                scratch = with_notes(scratch, places)
            self._make(words, pairs, chosen, scratch, borders)

    def _make(self, words: Words, pairs: Pairs, chosen: int, scratch: Scratch, borders: list[int]) -> None:
        """The merges of a round, of which this thread has the first share: waking another takes a while."""

        def make(share: int) -> None:
            merge_share(words, pairs.pool, chosen, scratch, share, borders[share], borders[share + 1])

        others = [self.threads.submit(make, share) for share in range(1, len(borders) - 1)]
        make(0)
        for other in others:
            other.result()


def ranges(symbols: npt.NDArray[np.int32], number: int) -> Iterator[tuple[int, int]]:
    """About equal ranges of whole words, at most so many."""
    first = 1
    for place in range(1, number + 1):
        stop = max(symbols.size * place // number, first)
        while stop < symbols.size and symbols[stop - 1] >= 0:
            stop += 1
        if stop > first:
            yield first, stop
        first = stop
