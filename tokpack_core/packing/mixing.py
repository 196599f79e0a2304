"""How well packs are mixed: whether neighbours in the order that is written are alike.

Packers put like lengths together, so packs that follow each other as they were made have documents of like length, and
a trainer that reads them in order would see lengths drift. The measure is the correlation of a pack's mean piece
length with that of the next pack, as the packer made them and as the keyed permutation orders them: about 0.9 and 0
for best-fit-decreasing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokpack_core.packing.plan import PackingPlan


@dataclass(frozen=True)
class Mixing:
    """Neighbour correlations; those of several blocks are their mean, weighted by pairs of neighbours."""

    pairs: int = 0
    """Neighbours that were compared, 0 where there is nothing to tell: fewer than three packs, or all alike."""
    as_packed: float = 0.0
    as_written: float = 0.0

    def __add__(self, other: Mixing) -> Mixing:
        pairs = self.pairs + other.pairs
        if pairs == 0:
            return self
        as_packed = self.as_packed * self.pairs + other.as_packed * other.pairs
        as_written = self.as_written * self.pairs + other.as_written * other.pairs
        return Mixing(pairs, as_packed / pairs, as_written / pairs)

    def as_dict(self) -> dict[str, int | float]:
        return {"pairs": self.pairs, "as_packed": self.as_packed, "as_written": self.as_written}

    @classmethod
    def from_dict(cls, mixing: dict[str, int | float]) -> Mixing:
        """The inverse of `as_dict`."""
        return cls(int(mixing["pairs"]), float(mixing["as_packed"]), float(mixing["as_written"]))


def measure_mixing(plan: PackingPlan, order: npt.NDArray[np.int64]) -> Mixing:
    """Mixing of the plan's packs [packs] as they stand, and in the order given."""
    if plan.packs < 3:
        return Mixing()
    means = plan.loads() / np.diff(plan.pack_offsets)
    correlations = neighbour_correlation(means), neighbour_correlation(means[order])
    if None in correlations:
        return Mixing()
    return Mixing(plan.packs - 1, *(round(r, 6) for r in correlations if r is not None))


def neighbour_correlation(values: npt.NDArray[np.float64]) -> float | None:
    """Pearson's correlation of each value with the next; None where one of the two does not vary."""
    first, second = values[:-1] - values[:-1].mean(), values[1:] - values[1:].mean()
    scale = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / scale if scale > 0 else None
