"""Runs the loop over merges: pairs with few places in the kernel, those with many by all threads together."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.merge_kernels import UNLIMITED
from tokpack_core.bpe.merge_loop_kernel import replace, settle, share_begins, write_noted
from tokpack_core.bpe.merge_while_kernel import heap_of, merge_while

MANY = 4_000
"""Places of a pair for which threads are worth while: 0.4 ms of work. Half of all the work on 155 MB of text."""
Pairs = tuple[npt.NDArray[np.int64], int, npt.NDArray[np.int32], int]
"""Table, entries, pool and how much of the pool is filled: see `merge_kernels`."""
Array = npt.NDArray[Any]
T = TypeVar("T")


@dataclass(frozen=True)
class MergeLoop:
    symbols: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int64]
    begins: npt.NDArray[np.int64]
    merges: npt.NDArray[np.int64]
    limits: tuple[int, int, int]
    """threshold, below_length, tie_break: see `merge_while`"""
    threads: ThreadPoolExecutor
    workers: int

    def run(self, pairs: Pairs, arena: Array, tokens: int) -> tuple[int, Array, Array]:
        """Merges all pairs that it may; symbols are one cell each at the start.

        Returns the number of tokens, the arena, and the length of each token in cells.
        """
        cells = np.ones(len(self.merges), np.int32)
        scratch = scratch_of(self.workers, len(self.merges))
        first_share = [array[:1] for array in scratch]
        many = MANY if self.workers > 1 else UNLIMITED
        rest: Any = [*pairs, *heap_of(*pairs[:2], arena, self.begins, *self.limits[1:])]
        while True:
            place, stop, tokens, arena, *rest = merge_while(
                self.symbols,
                self.weights,
                *rest,
                cells,
                *first_share,
                arena,
                self.begins,
                self.merges,
                tokens,
                *self.limits,
                many,
            )
            if place < 0:
                return tokens, arena, cells
            rest = self._merge_together(place, stop, tokens - 1, rest, cells, scratch, arena)

    def _merge_together(
        self, place: int, stop: int, token: int, rest: Any, cells: Array, scratch: tuple[Array, ...], arena: Array
    ) -> Any:
        numbers, totals, _, touched, tally = scratch
        left, right = self.merges[token, :2]
        pool = rest[2]
        guesses = (place + max((stop - place) * share // self.workers, 1) for share in range(1, self.workers))
        cuts = [place, *(share_begins(self.symbols, pool, guess, stop) for guess in guesses), stop]
        noted = [np.empty((2, 2, after - first), np.int32) for first, after in pairwise(cuts)]

        def replaced(share: int) -> int:
            own = (numbers[share], totals[share], touched[share], *noted[share], tally[share])
            first, after = cuts[share : share + 2]
            return int(replace(self.symbols, self.weights, pool, first, after, left, right, token, cells, *own))

        def written(share: int) -> None:
            write_noted(rest[2], *noted[share], *(array[share] for array in scratch))

        joined = sum(self._shared_out(replaced))
        rest = settle(*rest, *scratch, arena, self.begins, left, right, token, joined, *self.limits)
        self._shared_out(written)
        return rest

    def _shared_out(self, work: Callable[[int], T]) -> list[T]:
        """What `work` makes of each share, of which this thread does the first: waking another takes a while."""
        others = [self.threads.submit(work, share) for share in range(1, self.workers)]
        return [work(0), *(other.result() for other in others)]


def scratch_of(workers: int, tokens: int) -> tuple[Array, ...]:
    """numbers, totals, targets, touched, tally, with a share for each worker."""
    shape = (workers, 2, tokens)
    numbers, totals = np.zeros(shape, np.int32), np.zeros(shape, np.int64)
    targets, touched = np.empty(shape, np.int64), np.empty(shape, np.int32)
    return numbers, totals, targets, touched, np.zeros((workers, 4), np.int64)
