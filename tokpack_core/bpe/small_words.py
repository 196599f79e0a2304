"""Words as symbols in one array of cells, in which pairs are merged by array operations: see `small_merges`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.small_pairs import BITS, Cells, Pairs, grouped
from tokpack_core.bpe.small_vocabulary import Vocabulary

GAP, INTERIOR = -1, -2
"""A symbol of several cells has its id in the first and the last of them."""


class Words:
    """`symbols` have one cell each at first, with a gap around every word; `weights` are the counts of their words."""

    def __init__(self, vocabulary: Vocabulary, symbols: Cells, weights: Cells) -> None:
        self.vocabulary = vocabulary
        self.symbols, self.weights = symbols, weights
        known = len(vocabulary.tokens)
        self.cells = np.ones(known + symbols.size, np.int64)
        """By symbol, as its bytes"""
        self.bytes = np.zeros(self.cells.size, np.int64)
        self.bytes[:known] = list(map(len, vocabulary.tokens))

    def pairs(self) -> Pairs:
        """All pairs with all their places, as long as symbols are one cell each."""
        symbols = self.symbols
        places = np.flatnonzero((symbols[:-1] >= 0) & (symbols[1:] >= 0))
        bits = int(symbols.max()).bit_length()
        found = grouped(symbols[places] << bits | symbols[places + 1], places, self.weights)
        return found._replace(keys=found.keys >> bits << BITS | found.keys & (1 << bits) - 1)

    def still(self, pairs: Pairs) -> npt.NDArray[np.bool_]:
        """At which of their places pairs stand."""
        lefts, rights = pairs.spread(pairs.lefts), pairs.spread(pairs.rights)
        still = self.symbols[pairs.places] == lefts
        still &= self.symbols[pairs.places + self.cells[lefts]] == rights
        return still

    def apart(self, pairs: Pairs) -> Pairs:
        """With the places to merge: of a pair that overlaps itself every other one of those that follow each other."""
        twins = pairs.lefts == pairs.rights
        if not twins.any():
            return pairs
        numbers = np.arange(pairs.places.size)
        follows = np.diff(pairs.places, prepend=-1) == pairs.spread(np.where(twins, self.cells[pairs.lefts], -1))
        follows[pairs.firsts] = False
        return pairs.at((numbers - np.maximum.accumulate(np.where(follows, 0, numbers))) % 2 == 0)

    def merge(self, pairs: Pairs, new: int) -> Pairs:
        """Makes pairs, at places that do not overlap, the symbols `new` and following.

        Returns the pairs that are born, of those that may be merged.
        """
        symbols, cells = self.symbols, self.cells
        lefts, rights, stop = pairs.lefts, pairs.rights, new + pairs.keys.size
        for sizes in (cells, self.bytes):
            sizes[new:stop] = sizes[lefts] + sizes[rights]
        tokens, places = pairs.spread(np.arange(new, stop)), pairs.places
        middles, followings = places + pairs.spread(cells[lefts]), places + pairs.spread(cells[new:stop])
        symbols[middles - 1] = INTERIOR
        symbols[middles] = INTERIOR
        symbols[places] = tokens
        symbols[followings - 1] = tokens
        return self.vocabulary.allowed(self.born(tokens, places, followings, new), self.bytes)

    def born(self, tokens: Cells, places: Cells, followings: Cells, new: int) -> Pairs:
        """The pairs that new symbols make with their neighbours; two new ones that are neighbours make one."""
        afters, befores = self.symbols[followings], self.symbols[places - 1]
        followed, preceded = afters >= 0, (befores >= 0) & (befores < new)
        befores = befores[preceded]
        bits = (new + places.size).bit_length()
        numbers = (tokens - new) << 1
        keys = np.concatenate([numbers[followed] << bits | afters[followed], (numbers[preceded] | 1) << bits | befores])
        found = grouped(keys, np.concatenate([places[followed], places[preceded] - self.cells[befores]]), self.weights)
        news, others = (found.keys >> bits + 1) + new, found.keys & (1 << bits) - 1
        before = (found.keys >> bits & 1).astype(bool)
        return found._replace(keys=np.where(before, others << BITS | news, news << BITS | others))

    def rename(self, names: Cells, known: int, places: Cells) -> None:
        """Gives the symbols from `known` on other ids; `places`: where they were made."""
        firsts = places[self.symbols[places] >= known]
        found = self.symbols[firsts]
        self.symbols[firsts] = self.symbols[firsts + self.cells[found] - 1] = names[found - known]
        stop = known + names.size
        for sizes in (self.cells, self.bytes):
            sizes[names] = sizes[known:stop].copy()

    def in_parts(self) -> Words:
        """With one cell a symbol, and without words that are a single one."""
        begins = self.symbols != INTERIOR
        # Of every symbol of several cells the last one goes.
        begins[np.flatnonzero((self.symbols >= 0) & (self.cells[self.symbols] > 1))[1::2]] = False
        symbols, weights = self.symbols[begins], self.weights[begins]
        single = np.flatnonzero((symbols[1:-1] >= 0) & (symbols[:-2] == GAP) & (symbols[2:] == GAP)) + 1
        kept = np.ones(symbols.size, bool)
        kept[single] = kept[single + 1] = False
        return Words(self.vocabulary, symbols[kept], weights[kept])
