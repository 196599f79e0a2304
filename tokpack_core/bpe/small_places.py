"""Symbols of all words in one array with a gap between words, and the places of pairs in it, by array operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.small_vocabulary import BITS

GAP, INTERIOR = -1, -2
"""A symbol of several cells has its id in the first and the last of them."""
Cells = npt.NDArray[np.int64]


class Groups(NamedTuple):
    """Places by key: key i, whose places weigh sums[i] together, has places[firsts[i] : stops[i]], ascending."""

    keys: Cells
    sums: Cells
    firsts: Cells
    stops: Cells
    places: Cells

    def of_weight(self, least: int) -> Groups:
        """Those of at least that weight."""
        kept = np.flatnonzero(self.sums >= least)
        return Groups(self.keys[kept], self.sums[kept], self.firsts[kept], self.stops[kept], self.places)

    def rows(self) -> Iterator[tuple[int, int, int, int]]:
        """Key, sum, first, stop"""
        return zip(self.keys.tolist(), self.sums.tolist(), self.firsts.tolist(), self.stops.tolist(), strict=True)


def grouped(keys: Cells, places: Cells, weights: Cells) -> Groups:
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
    return Groups(ordered[firsts], sums, firsts, stops, both)


def neighbours(symbols: Cells, weights: Cells) -> Groups:
    """The pairs of symbols that are one cell each, with all their places."""
    places = np.flatnonzero((symbols[:-1] >= 0) & (symbols[1:] >= 0))
    bits = int(symbols.max()).bit_length()
    found = grouped(symbols[places] << bits | symbols[places + 1], places, weights)
    return found._replace(keys=found.keys >> bits << BITS | found.keys & (1 << bits) - 1)


def in_parts(symbols: Cells, weights: Cells) -> tuple[Cells, Cells]:
    """Without the words that are a single symbol."""
    inner = np.flatnonzero((symbols[1:-1] >= 0) & (symbols[:-2] == GAP) & (symbols[2:] == GAP)) + 1
    kept = np.ones(symbols.size, bool)
    kept[inner] = kept[inner + 1] = False
    return symbols[kept], weights[kept]


def common(counts: Cells, rank: int) -> int:
    """The count that so many reach; 0 if there are not as many."""
    return int(np.partition(counts, -rank)[-rank]) if 0 < rank <= counts.size else 0
