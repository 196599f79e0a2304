"""Merges the pairs that occur seldom one by one, in lists, where strings decide between equal counts."""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush

from tokpack_core.bpe.small_pairs import BITS, RIGHT, Pairs
from tokpack_core.bpe.small_vocabulary import Vocabulary
from tokpack_core.bpe.small_words import INTERIOR, Words


class RarePairs:
    """Merges pairs that occur `least` times or more, of symbols that are one cell each at the start."""

    def __init__(self, vocabulary: Vocabulary, words: Words, pairs: Pairs, least: int) -> None:
        self.vocabulary, self.words, self.least = vocabulary, words, least
        self.cells = [1] * len(vocabulary.tokens)
        self.symbols, self.weights = words.symbols.tolist(), words.weights.tolist()
        self.counts: dict[int, int] = {}
        self.places: dict[int, list[int]] = {}
        self.waiting: defaultdict[int, list[int]] = defaultdict(list)
        """Pairs by their count when they were last looked at."""
        places = pairs.places.tolist()
        for pair, count, first, stop in pairs.rows():
            self.counts[pair] = count
            self.places[pair] = places[first:stop]
            self.waiting[count].append(pair)

    def run(self) -> None:
        """Count by count from the greatest down: what is born, and what has become rarer, waits for its own."""
        vocabulary, counts, waiting = self.vocabulary, self.counts, self.waiting
        missing, limited = vocabulary.missing, vocabulary.limited
        while waiting and missing > 0:
            count = max(waiting)
            level = [vocabulary.entry(pair, count) for pair in waiting.pop(count)]
            heapify(level)
            while level and missing > 0:
                pair = heappop(level)[-1]
                now = counts[pair]
                if now < count:
                    if now >= self.least:
                        waiting[now].append(pair)
                    continue
                missing -= 1
                for new, number, places in self.merge(pair, vocabulary.add(pair, count)):
                    if limited and not vocabulary.allows(new):
                        continue
                    counts[new] = number
                    self.places[new] = places
                    if number < count:
                        waiting[number].append(new)
                    else:
                        heappush(level, vocabulary.entry(new, count))
        self.words.symbols[:] = self.symbols
        self.words.cells[: len(self.cells)] = self.cells

    def merge(self, pair: int, token: int) -> list[tuple[int, int, list[int]]]:
        """Replaces a pair by a new symbol; returns the new symbol's pairs of at least `least`: pair, count and places.

        What each place takes from the pairs of the old symbols, it gives to those of the new one.
        """
        symbols, weights, counts, cells = self.symbols, self.weights, self.counts, self.cells
        left, right = pair >> BITS, pair & RIGHT
        left_cells, right_cells = cells[left], cells[right]
        cells.append(left_cells + right_cells)
        counts[pair] = 0
        right_first, token_first = right << BITS, token << BITS
        born: dict[int, list[int]] = {}
        after_last = -1
        for place in self.places.pop(pair):
            middle = place + left_cells
            if symbols[place] != left or symbols[middle] != right:
                continue
            following = middle + right_cells
            before, after = symbols[place - 1], symbols[following]
            if place == after_last:
                # The one before was noted as followed by `left`.
                last = born[token_first | left].pop()
                born.setdefault(token_first | token, []).append(last)
            elif before >= 0:
                old = before << BITS | left
                if old in counts:
                    counts[old] -= weights[place]
                new = before << BITS | token
                if new in born:
                    born[new].append(place - cells[before])
                else:
                    born[new] = [place - cells[before]]
            if after >= 0:
                old = right_first | after
                if old in counts:
                    counts[old] -= weights[place]
                new = token_first | after
                if new in born:
                    born[new].append(place)
                else:
                    born[new] = [place]
            symbols[middle - 1] = symbols[middle] = INTERIOR
            symbols[place] = symbols[following - 1] = token
            after_last = following
        least, found = self.least, []
        for new, places in born.items():
            number = weights[places[0]] if len(places) == 1 else sum(map(weights.__getitem__, places))
            if number >= least:
                found.append((new, number, places))
        return found
