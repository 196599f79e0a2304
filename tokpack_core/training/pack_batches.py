"""The order in which ranks read packs: seeded, endless, the same from any step on.

Epoch e is the keyed permutation of all packs under "seed/e"; epochs follow one another without a gap, so no pack is
dropped where a batch straddles two. Position g of that stream belongs to step g // (batch x ranks), within it to rank
(g mod (batch x ranks)) // batch. A step therefore says all there is to resume: nothing else is saved. Only the epoch
being read is held, 8 bytes a pack, in the one process that hands numbers to workers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from tokpack_core.errors import InputError
from tokpack_core.packing.permutation import permuted


class PackBatches(torch.utils.data.Sampler[list[int]]):
    """Batch sampler of one rank: lists of `batch_size` pack numbers, from `start_step` to `steps` (None: without end).

    Raises InputError when there is no pack, or the rank is none of `ranks`.
    """

    def __init__(
        self,
        packs: int,
        batch_size: int,
        *,
        seed: int = 0,
        rank: int = 0,
        ranks: int = 1,
        start_step: int = 0,
        steps: int | None = None,
    ) -> None:
        if packs < 1 or batch_size < 1 or not 0 <= rank < ranks:
            raise InputError(
                f"cannot share {packs} packs in batches of {batch_size} with rank {rank} of {ranks}: "
                "packs and batches are at least 1, ranks count from 0"
            )
        self.packs = packs
        self.batch_size = batch_size
        self.seed = seed
        self.rank = rank
        self.ranks = ranks
        self.start_step = start_step
        self.steps = steps
        self._epoch = -1
        self._order = np.zeros(0, np.int64)

    def __iter__(self) -> Iterator[list[int]]:
        step = self.start_step
        while self.steps is None or step < self.steps:
            yield self.batch(step)
            step += 1

    def __len__(self) -> int:
        """Steps that are left; raises TypeError when they have no end."""
        if self.steps is None:
            raise TypeError("an endless sequence of batches has no length: give `steps`")
        return max(0, self.steps - self.start_step)

    def batch(self, step: int) -> list[int]:
        """Pack numbers of this rank in step `step`, counted from 0."""
        first = (step * self.ranks + self.rank) * self.batch_size
        return [self._pack_at(place) for place in range(first, first + self.batch_size)]

    def _pack_at(self, place: int) -> int:
        epoch, within = divmod(place, self.packs)
        if epoch != self._epoch:
            self._order = permuted(self.packs, f"{self.seed}/{epoch}".encode())
            self._epoch = epoch
        return int(self._order[within])
