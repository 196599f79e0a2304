"""Merges the pairs that occur often, by array operations: see `small_merges`.

An array operation costs as much as dozens of places in lists, so as many merges as possible share it. A round takes the
next pairs in the order in which they are merged, up to the first that has a symbol on the left which another has on the
right. Then no places of theirs overlap, so none changes the count of another. Nor does what is born come between them:
a pair (ab, c) is born at most as often as (b, c) occurs, which overlaps (a, b) and so comes after the last of them; of
equal counts, a new id comes last. Of equal counts strings may go either way, so where those decide, all that occur as
often as the first pair left out are left out too.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from tokpack_core.bpe.small_places import INTERIOR, Cells, Groups, grouped, in_parts, neighbours
from tokpack_core.bpe.small_vocabulary import BITS, RIGHT, Entry, Vocabulary

CANDIDATES = 64
"""Pairs that a round looks at."""
SYMBOL_BITS = 24
SYMBOL = (1 << SYMBOL_BITS) - 1
"""More than little text can have."""


class FrequentPairs:
    """Merges pairs until none is left that occurs often."""

    def __init__(self, vocabulary: Vocabulary, symbols: Cells, weights: Cells, often: int) -> None:
        self.vocabulary = vocabulary
        self.symbols, self.weights = symbols, weights
        self.begins = np.ones(symbols.size, bool)
        """Whether a cell is a gap or the first of a symbol."""
        self.cells = np.ones(len(vocabulary.tokens) + min(max(vocabulary.missing, 0), symbols.size), np.int64)
        self.places: dict[int, Cells] = {}
        self.heap: list[Entry] = []
        self.known: dict[int, int] = {}
        """How many tokens there were when a pair was counted."""
        self.parted_left: dict[int, int] = {}
        """How many there were when a symbol was last merged as the left one, which may have parted it from others."""
        self.parted_right: dict[int, int] = {}
        self.least = max(vocabulary.least, often)
        self.follow(neighbours(symbols, weights))

    def follow(self, pairs: Groups) -> None:
        places, now = pairs.places, len(self.vocabulary.tokens)
        for pair, count, first, stop in pairs.of_weight(self.least).rows():
            if self.vocabulary.allows(pair):
                self.places[pair] = places[first:stop]
                self.known[pair] = now
                heappush(self.heap, self.vocabulary.entry(pair, count))

    def run(self) -> tuple[Cells, Cells]:
        """Symbols, one cell each, of words that are more than one symbol, and their weights."""
        while self.heap and not self.vocabulary.full:
            ready = self.next_pairs()
            if ready:
                number = self.independent(ready)
                self.merge(ready[:number])
                for entry in ready[number:]:
                    heappush(self.heap, entry)
        return in_parts(self.symbols[self.begins], self.weights[self.begins])

    def next_pairs(self) -> list[Entry]:
        """The next pairs in order, with their counts of now; CANDIDATES or fewer, and perhaps none."""
        width = min(CANDIDATES, len(self.heap), self.vocabulary.missing)
        entries: list[Entry] = []
        old: list[Entry] = []
        for entry in [heappop(self.heap) for _ in range(width)]:
            (entries if self.is_known(entry[2]) else old).append(entry)
        if old:
            entries = sorted(entries + self.counted(old))
        while entries and self.heap and self.heap[0] < entries[-1]:
            heappush(self.heap, entries.pop())
        return entries

    def is_known(self, pair: int) -> bool:
        """Whether nothing was merged with its neighbours since the pair was counted."""
        since = self.known[pair]
        return self.parted_left.get(pair & RIGHT, 0) <= since and self.parted_right.get(pair >> BITS, 0) <= since

    def counted(self, entries: list[Entry]) -> list[Entry]:
        """Counted anew, without those that have become rare; of their places those where the pair still stands."""
        pairs = np.array([pair for _, _, pair in entries])
        found = [self.places[pair] for _, _, pair in entries]
        sizes = np.array([places.size for places in found])
        places = np.concatenate(found)
        lefts = np.repeat(pairs >> BITS, sizes)
        still = self.symbols[places] == lefts
        still &= self.symbols[places + self.cells[lefts]] == np.repeat(pairs & RIGHT, sizes)
        starts = np.cumsum(sizes) - sizes
        counts = np.add.reduceat(self.weights[places] * still, starts).tolist()
        stops = np.cumsum(np.add.reduceat(still, starts, dtype=np.int64)).tolist()
        places = places[still]
        again = []
        now = len(self.vocabulary.tokens)
        for entry, count, first, stop in zip(entries, counts, [0, *stops], stops, strict=False):
            pair = entry[2]
            if count < self.least:
                del self.places[pair]
                continue
            self.places[pair] = places[first:stop]
            self.known[pair] = now
            again.append(entry if count == -entry[0] else self.vocabulary.entry(pair, count))
        return again

    def independent(self, ready: list[Entry]) -> int:
        """How many of the next pairs neither change nor overtake each other."""
        number = without_overlap(ready)
        if self.vocabulary.settings.tie_break == "hugging_face":
            return number
        following = ready[number : number + 1] or self.heap[:1]
        while number > 1 and following and ready[number - 1][0] == following[0][0]:
            number -= 1
        return number

    def merge(self, entries: list[Entry]) -> None:
        symbols, cells, new = self.symbols, self.cells, len(self.vocabulary.tokens)
        pairs = np.array([pair for _, _, pair in entries])
        found = [self.places[pair] for _, _, pair in entries]
        lefts, rights = pairs >> BITS, pairs & RIGHT
        if lefts[0] == rights[0]:
            found[0] = apart(found[0], int(cells[lefts[0]]))
        number = len(entries)
        tokens = np.repeat(np.arange(new, new + number), [places.size for places in found])
        places = np.concatenate(found)
        middles = places + cells[lefts][tokens - new]
        followings = middles + cells[rights][tokens - new]
        for negative, _, pair in entries:
            token = self.vocabulary.add(pair, -negative)
            self.parted_left[pair >> BITS] = self.parted_right[pair & RIGHT] = token + 1
            del self.places[pair]
        cells[new : new + number] = cells[lefts] + cells[rights]
        symbols[middles - 1] = INTERIOR
        symbols[middles] = INTERIOR
        symbols[places] = tokens
        symbols[followings - 1] = tokens
        self.begins[middles] = False
        self.follow(self.born(tokens, places, followings))

    def born(self, tokens: Cells, places: Cells, followings: Cells) -> Groups:
        """The pairs that new tokens make with their neighbours; two new ones that are neighbours make one."""
        afters, befores = self.symbols[followings], self.symbols[places - 1]
        followed, preceded = afters >= 0, (befores >= 0) & (befores < tokens[0])
        befores = befores[preceded]
        numbers = (tokens - tokens[0]) << 1
        keys = np.concatenate(
            [numbers[followed] << SYMBOL_BITS | afters[followed], (numbers[preceded] | 1) << SYMBOL_BITS | befores]
        )
        found = grouped(keys, np.concatenate([places[followed], places[preceded] - self.cells[befores]]), self.weights)
        new, others = (found.keys >> SYMBOL_BITS + 1) + tokens[0], found.keys & SYMBOL
        before = (found.keys >> SYMBOL_BITS & 1).astype(bool)
        return found._replace(keys=np.where(before, others << BITS | new, new << BITS | others))


def without_overlap(entries: list[Entry]) -> int:
    """How many of the first pairs have no symbol that is on the left of one and on the right of another."""
    lefts: set[int] = set()
    rights: set[int] = set()
    for number, (_, _, pair) in enumerate(entries):
        left, right = pair >> BITS, pair & RIGHT
        lefts.add(left)
        rights.add(right)
        if left in rights or right in lefts:
            # A symbol twice is a pair that overlaps itself, and is merged alone.
            return max(number, 1)
    return len(entries)


def apart(places: Cells, cells: int) -> Cells:
    """Every other one of places that follow each other at that distance, from the first on."""
    numbers = np.arange(places.size)
    begins = np.concatenate([[True], np.diff(places) != cells])
    return places[(numbers - np.maximum.accumulate(np.where(begins, numbers, 0))) % 2 == 0]
