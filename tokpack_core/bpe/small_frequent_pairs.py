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

from tokpack_core.bpe.small_pairs import BITS, RIGHT, Cells, Pairs
from tokpack_core.bpe.small_vocabulary import Entry, Vocabulary
from tokpack_core.bpe.small_words import Words

CANDIDATES = 64
"""Pairs that a round looks at."""


class FrequentPairs:
    """Merges pairs until none is left that occurs often."""

    def __init__(self, vocabulary: Vocabulary, words: Words, often: int) -> None:
        self.vocabulary, self.words = vocabulary, words
        self.places: dict[int, Cells] = {}
        self.heap: list[Entry] = []
        self.known: dict[int, int] = {}
        """How many tokens there were when a pair was counted."""
        self.parted_left: dict[int, int] = {}
        """How many there were when a symbol was last merged as the left one, which may have parted it from others."""
        self.parted_right: dict[int, int] = {}
        self.least = max(vocabulary.least, often)
        self.follow(vocabulary.allowed(words.pairs(), words.bytes))

    def follow(self, pairs: Pairs) -> None:
        places, now = pairs.places, len(self.vocabulary.tokens)
        for pair, count, first, stop in pairs.of_weight(self.least).rows():
            self.places[pair] = places[first:stop]
            self.known[pair] = now
            heappush(self.heap, self.vocabulary.entry(pair, count))

    def run(self) -> None:
        while self.heap and not self.vocabulary.full:
            ready = self.next_pairs()
            if ready:
                number = self.independent(ready)
                self.merge(ready[:number])
                for entry in ready[number:]:
                    heappush(self.heap, entry)

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
        pairs = self.with_places(entries)
        still = self.words.still(pairs)
        counts = np.add.reduceat(self.words.weights[pairs.places] * still, pairs.firsts)
        pairs = pairs.at(still)._replace(sums=counts)
        again = []
        now = len(self.vocabulary.tokens)
        for entry, (pair, count, first, stop) in zip(entries, pairs.rows(), strict=True):
            if count < self.least:
                del self.places[pair]
                continue
            self.places[pair] = pairs.places[first:stop]
            self.known[pair] = now
            again.append(entry if count == -entry[0] else self.vocabulary.entry(pair, count))
        return again

    def with_places(self, entries: list[Entry]) -> Pairs:
        keys = np.array([pair for _, _, pair in entries])
        sums = np.array([-negative for negative, _, _ in entries])
        found = [self.places[pair] for _, _, pair in entries]
        stops = np.cumsum([places.size for places in found])
        firsts = np.zeros_like(stops)
        firsts[1:] = stops[:-1]
        return Pairs(keys, sums, firsts, stops, np.concatenate(found))

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
        pairs, new = self.words.apart(self.with_places(entries)), len(self.vocabulary.tokens)
        for negative, _, pair in entries:
            token = self.vocabulary.add(pair, -negative)
            self.parted_left[pair >> BITS] = self.parted_right[pair & RIGHT] = token + 1
            del self.places[pair]
        self.follow(self.words.merge(pairs, new))


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
