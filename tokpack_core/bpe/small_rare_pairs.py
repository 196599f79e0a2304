"""Merges the pairs that occur seldom, by lists: see `small_merges`."""

from __future__ import annotations

from collections import defaultdict
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from tokpack_core.bpe.small_places import INTERIOR, Cells, common, in_parts, neighbours
from tokpack_core.bpe.small_vocabulary import BITS, RIGHT, Vocabulary


class RarePairs:
    """Merges pairs of symbols that are one cell each at the start, of which none occurs `most` times.

    Only pairs that occur `least` times are followed. That is half as often as the last of as many pairs as there are
    merges to come: those that are born make up for those that break, and mostly nothing below is merged. If something
    is, it takes another turn, with what is `left_over`; as for pairs that occur once, which are most of all.
    """

    def __init__(self, vocabulary: Vocabulary, symbols: Cells, weights: Cells, most: int) -> None:
        self.vocabulary = vocabulary
        self.cells = [1] * len(vocabulary.tokens)
        self.symbols, self.weights = symbols.tolist(), weights.tolist()
        self.weights_at_start = weights
        self.counts: dict[int, int] = {}
        self.places: dict[int, list[int]] = {}
        found = neighbours(symbols, weights)
        guess = max(common(found.sums, vocabulary.missing) // 2, 2)
        self.least = max(vocabulary.least, min(guess, most // 2))
        self.waiting: defaultdict[int, list[int]] = defaultdict(list)
        """Pairs by their count when they were last looked at."""
        places = found.places.tolist()
        for pair, count, first, stop in found.of_weight(self.least).rows():
            if vocabulary.allows(pair):
                self.counts[pair] = count
                self.places[pair] = places[first:stop]
                self.waiting[count].append(pair)

    def run(self) -> None:
        """Count by count from the greatest down: what is born, and what has become rarer, waits for its own."""
        vocabulary, counts, waiting = self.vocabulary, self.counts, self.waiting
        by_id = vocabulary.settings.tie_break == "hugging_face"
        missing, limited = vocabulary.missing, vocabulary.limited
        while waiting and missing > 0:
            count = max(waiting)
            waits = waiting.pop(count)
            level: list[Any] = waits if by_id else [vocabulary.entry(pair, count) for pair in waits]
            heapify(level)
            while level and missing > 0:
                pair = heappop(level) if by_id else heappop(level)[-1]
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
                        heappush(level, new if by_id else vocabulary.entry(new, count))

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
