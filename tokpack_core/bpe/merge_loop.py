"""Runs the loop over rounds of merges: those of few places in the kernel, those of many by all threads together."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.merge_choice_kernel import heap_of
from tokpack_core.bpe.merge_kernels import UNLIMITED
from tokpack_core.bpe.merge_loop_kernel import merge_rounds
from tokpack_core.bpe.merge_round_kernels import MOST_MERGES, Scratch, merge_share, new_scratch, with_notes

MANY = 1_000
"""Places of a round for which threads are worth while."""
Pairs = tuple[npt.NDArray[np.int64], int, npt.NDArray[np.int32], int]
"""Table, entries, pool and how much of the pool is filled: see `merge_kernels`."""
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class MergeLoop:
    symbols: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int64]
    begins: npt.NDArray[np.int64]
    merges: npt.NDArray[np.int64]
    limits: tuple[int, int, int]
    """threshold, below_length, tie_break: see `merge_rounds`"""
    threads: ThreadPoolExecutor
    workers: int

    def run(self, pairs: Pairs, arena: Array, tokens: int) -> tuple[int, Array, Array]:
        """Merges all pairs that it may; symbols are one cell each at the start.

        Returns the number of tokens, the arena, and the length of each token in cells.
        """
        cells = np.ones(len(self.merges), np.int32)
        batch = empty_batch()
        borders = [0, *(first for first, _ in list(ranges(self.symbols, self.workers))[1:]), self.symbols.size]
        shares = len(borders) - 1
        scratch = new_scratch(shares, len(self.merges))
        sides = np.zeros((2, len(self.merges)), np.int64)
        many = MANY if shares > 1 else UNLIMITED
        rest: Any = [*pairs, *heap_of(*pairs[:2], arena, self.begins, *self.limits[1:])]
        chosen = 0
        while True:
            chosen, places, tokens, arena, *rest = merge_rounds(
                self.symbols,
                self.weights,
                *rest,
                cells,
                batch,
                chosen,
                scratch,
                sides,
                arena,
                self.begins,
                self.merges,
                tokens,
                *self.limits,
                many,
            )
            if not chosen:
                return tokens, arena, cells
            if 2 * places > scratch.notes.shape[1]:
                scratch = with_notes(scratch, places)
            self._make(batch, chosen, cells, scratch, rest[2], borders)

    def _make(self, batch: Array, chosen: int, cells: Array, scratch: Scratch, pool: Array, borders: list[int]) -> None:
        """The merges of a round, of which this thread has the first share: waking another takes a while."""

        def make(share: int) -> None:
            own = (share, borders[share], borders[share + 1])
            merge_share(self.symbols, self.weights, pool, batch, chosen, cells, scratch, *own)

        others = [self.threads.submit(make, share) for share in range(1, len(borders) - 1)]
        make(0)
        for other in others:
            other.result()


def empty_batch() -> Array:
    return np.empty((MOST_MERGES, 5), np.int64)


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
