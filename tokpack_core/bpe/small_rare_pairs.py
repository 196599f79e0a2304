"""Merges the pairs that occur seldom, by lists: see `small_merges`."""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np

from tokpack_core.bpe.small_places import INTERIOR, Cells, common, in_parts, neighbours
from tokpack_core.bpe.small_vocabulary import BITS, RIGHT, Vocabulary


class RarePairs:
    """Merges pairs of symbols that are one cell each at the start, of which none occurs `most` times.

    Only pairs that occur `least` times are followed. That is half as often as the last of as many pairs as there are
    merges to come: those that are born make up for those that break, and mostly nothing below is merged. If something
    is, it takes another turn, with what is `left_over`.
    """

    def __init__(self, vocabulary: Vocabulary, symbols: Cells, weights: Cells, most: int) -> None:
        self.vocabulary = vocabulary
        self.cells = [1] * len(vocabulary.tokens)
        self.symbols, self.weights = symbols.tolist(), weights.tolist()
        self.weights_at_start = weights
        self.counts: defaultdict[int, int] = defaultdict(int)
        self.places: dict[int, list[int]] = {}
        found = neighbours(symbols, weights)
        self.least = max(vocabulary.least, min(common(found.sums, vocabulary.missing) // 2, most // 2))
        for pair, count, first, stop in found.of_weight(self.least).rows():
            if vocabulary.allows(pair):
                self.counts[pair] = count
                self.places[pair] = found.places[first:stop].tolist()
        self.heap = [vocabulary.entry(pair, count) for pair, count in self.counts.items()]
        heapify(self.heap)

    def run(self) -> None:
        heap, counts, vocabulary = self.heap, self.counts, self.vocabulary
        while heap and not vocabulary.full:
            negative, _, pair = heap[0]
            count = counts[pair]
            if count != -negative:
                if count >= self.least:
                    heapreplace(heap, vocabulary.entry(pair, count))
                else:
                    heappop(heap)
                continue
            heappop(heap)
            for new, number, places in self.merge(pair, vocabulary.add(pair, count)):
                counts[new] = number
                self.places[new] = places
                heappush(heap, vocabulary.entry(new, number))

    def left_over(self) -> tuple[Cells, Cells]:
        """Symbols, one cell each, of words that are more than one symbol, and their weights."""
        symbols = np.array(self.symbols, np.int64)
        several = np.array(self.cells)[symbols] > 1
        # Of every symbol of several cells the last one goes.
        lasts = np.flatnonzero((symbols >= 0) & several)[1::2]
        begins = symbols != INTERIOR
        begins[lasts] = False
        return in_parts(symbols[begins], self.weights_at_start[begins])

    def merge(self, pair: int, token: int) -> list[tuple[int, int, list[int]]]:
        """Replaces a pair by a new symbol; returns the new symbol's pairs that may be merged: pair, count and places.

        Places are gathered by neighbouring symbol, and what their weights sum up to is taken from the old pair and is
        the count of the new one.
        """
        symbols, weights, counts, cells = self.symbols, self.weights, self.counts, self.cells
        left, right = pair >> BITS, pair & RIGHT
        left_cells, right_cells = cells[left], cells[right]
        cells.append(left_cells + right_cells)
        befores: defaultdict[int, list[int]] = defaultdict(list)
        afters: defaultdict[int, list[int]] = defaultdict(list)
        doubled: list[int] = []
        after_last = -1
        for place in self.places.pop(pair):
            middle = place + left_cells
            if symbols[place] != left or symbols[middle] != right:
                continue
            following = middle + right_cells
            before, after = symbols[place - 1], symbols[following]
            if place == after_last:
                doubled.append(afters[left].pop())
            elif before >= 0:
                befores[before].append(place - cells[before])
            if after >= 0:
                afters[after].append(place)
            symbols[middle - 1] = symbols[middle] = INTERIOR
            symbols[place] = symbols[following - 1] = token
            after_last = following
        found = [(before << BITS | left, before << BITS | token, places) for before, places in befores.items()]
        found += [(right << BITS | after, token << BITS | after, places) for after, places in afters.items()]
        found.append((right << BITS | left, token << BITS | token, doubled))
        counts[pair] = 0
        born = []
        least, allows = self.least, self.vocabulary.allows
        for old, new, places in found:
            number = sum(map(weights.__getitem__, places))
            counts[old] -= number
            if number >= least and allows(new):
                born.append((new, number, places))
        return born
