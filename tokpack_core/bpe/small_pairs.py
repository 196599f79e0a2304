"""Pairs of neighbouring symbols with their places, as arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

BITS = 32
RIGHT = (1 << BITS) - 1
"""A pair is one number: left << BITS | right."""
Cells = npt.NDArray[np.int64]


class Pairs(NamedTuple):
    """Pair i, whose places weigh sums[i] together, has places[firsts[i] : stops[i]], ascending."""

    keys: Cells
    sums: Cells
    firsts: Cells
    stops: Cells
    places: Cells

    @property
    def lefts(self) -> Cells:
        return self.keys >> BITS

    @property
    def rights(self) -> Cells:
        return self.keys & RIGHT

    def of_weight(self, least: int) -> Pairs:
        """Those of at least that weight."""
        return self.those(self.sums >= least)

    def those(self, chosen: npt.NDArray[np.bool_]) -> Pairs:
        """Those chosen, among all places."""
        kept = np.flatnonzero(chosen)
        return Pairs(self.keys[kept], self.sums[kept], self.firsts[kept], self.stops[kept], self.places)

    def compact(self) -> Pairs:
        """With their places alone, one after the other."""
        sizes = self.stops - self.firsts
        stops = np.cumsum(sizes)
        firsts = stops - sizes
        places = self.places[np.repeat(self.firsts - firsts, sizes) + np.arange(sizes.sum())]
        return Pairs(self.keys, self.sums, firsts, stops, places)

    def at(self, kept: npt.NDArray[np.bool_]) -> Pairs:
        """At some of their places, if they are compact; where none is kept, a key has none."""
        stops = np.cumsum(np.add.reduceat(kept, self.firsts, dtype=np.int64))
        firsts = np.zeros_like(stops)
        firsts[1:] = stops[:-1]
        return self._replace(firsts=firsts, stops=stops, places=self.places[kept])

    def moved(self, start: int) -> Pairs:
        """As if so many places were before their own."""
        return self._replace(firsts=self.firsts + start, stops=self.stops + start)

    def spread(self, values: Cells) -> Cells:
        """Of each place the value of its key, if they are compact."""
        return np.repeat(values, self.stops - self.firsts)

    def rows(self) -> Iterator[tuple[int, int, int, int]]:
        """Key, sum, first, stop"""
        return zip(self.keys.tolist(), self.sums.tolist(), self.firsts.tolist(), self.stops.tolist(), strict=True)


def grouped(keys: Cells, places: Cells, weights: Cells) -> Pairs:
    """Sorts keys and places as one number each, which numpy does by vector instructions."""
    bits = weights.size.bit_length()
    both = keys << bits | places
    both.sort()
    ordered = both >> bits
    both &= (1 << bits) - 1
    changes = np.flatnonzero(ordered[1:] != ordered[:-1])
    changes += 1
    firsts = np.zeros(changes.size + (ordered.size > 0), np.int64)
    firsts[1:] = changes
    stops = np.empty_like(firsts)
    stops[:-1] = changes
    stops[-1:] = ordered.size
    sums = np.add.reduceat(weights[both], firsts) if firsts.size else firsts
    return Pairs(ordered[firsts], sums, firsts, stops, both)


def joined(several: list[Pairs]) -> Pairs:
    """All of them, of which each may have any key."""
    starts = np.cumsum([0, *(pairs.places.size for pairs in several)]).tolist()
    moved = [pairs.moved(start) for pairs, start in zip(several, starts, strict=False)]
    return Pairs(*map(np.concatenate, zip(*moved, strict=True)))


def common(counts: Cells, rank: int) -> int:
    """The count that so many reach; 0 if there are not as many."""
    return int(np.partition(counts, -rank)[-rank]) if 0 < rank <= counts.size else 0
