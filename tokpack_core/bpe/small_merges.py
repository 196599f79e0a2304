"""The same training in plain Python, for texts so small that compiling or loading kernels would take longer.

As in `merge_kernels`: symbols of all words stand in one list with a gap between words, a symbol's id in its first and
last cell, and the places of a pair are complete when it is born.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from heapq import heapify, heappop, heappush, heapreplace
from itertools import pairwise
from typing import Any

import numpy as np

from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, Merges, MergeSettings

BITS = 32
RIGHT = (1 << BITS) - 1
GAP, INTERIOR = -1, -2
COMPLEMENT = bytes(255 - byte for byte in range(256))


def learn_merges_in_python(words: Mapping[bytes, int], settings: MergeSettings) -> Merges:
    alphabet = bytes(sorted({*settings.alphabet, *b"".join(words)}, key=BYTE_LEVEL_ORDER.index))
    return Training(words, alphabet, settings).run()


class Training:
    def __init__(self, words: Mapping[bytes, int], alphabet: bytes, settings: MergeSettings) -> None:
        self.settings = settings
        self.least = max(settings.min_frequency, 1)
        self.tokens = [bytes([byte]) for byte in alphabet]
        self.lengths = [1] * len(alphabet)
        symbol_of = {byte: symbol for symbol, byte in enumerate(alphabet)}
        self.symbols = [GAP]
        self.weights = [0]
        for word, count in words.items():
            self.symbols += [*map(symbol_of.__getitem__, word), GAP]
            self.weights += [count] * (len(word) + 1)
        self.counts: defaultdict[int, int] = defaultdict(int)
        self.places: defaultdict[int, list[int]] = defaultdict(list)
        for place, (left, right) in enumerate(pairwise(self.symbols)):
            if left >= 0 and right >= 0:
                self.counts[left << BITS | right] += self.weights[place]
                self.places[left << BITS | right].append(place)
        self.heap = [self.entry(pair, count) for pair, count in self.counts.items() if count >= self.least]
        heapify(self.heap)

    def entry(self, pair: int, count: int) -> tuple[int, Any, int]:
        """Sorts as pairs are merged."""
        if self.settings.tie_break == "hugging_face":
            return -count, pair, pair
        left, right = self.tokens[pair >> BITS], self.tokens[pair & RIGHT]
        if self.settings.tie_break == "lexicographic_smallest":
            return -count, (left, right), pair
        return -count, (inverted(left), inverted(right)), pair

    def run(self) -> Merges:
        merged: list[tuple[int, int, int]] = []
        heap, counts = self.heap, self.counts
        while heap and len(self.tokens) < self.settings.vocab_size:
            negative, _, pair = heap[0]
            count = counts[pair]
            if count != -negative:
                if count >= self.least:
                    heapreplace(heap, self.entry(pair, count))
                else:
                    heappop(heap)
                continue
            heappop(heap)
            merged.append((pair >> BITS, pair & RIGHT, count))
            for new, number, places in self.merge(pair >> BITS, pair & RIGHT):
                counts[new] = number
                self.places[new] = places
                heappush(heap, self.entry(new, number))
        rows = np.array(merged, np.int64).reshape(-1, 3)
        return Merges(self.tokens, rows[:, 0].astype(np.int32), rows[:, 1].astype(np.int32), rows[:, 2].copy())

    def merge(self, left: int, right: int) -> list[tuple[int, int, list[int]]]:
        """Replaces a pair by a new symbol; returns the new symbol's pairs that may be merged: pair, count and places.

        Places are gathered by neighbouring symbol, and what their weights sum up to is taken from the old pair and is
        the count of the new one.
        """
        symbols, weights, counts, lengths = self.symbols, self.weights, self.counts, self.lengths
        token = len(lengths)
        left_length, right_length = lengths[left], lengths[right]
        self.tokens.append(self.tokens[left] + self.tokens[right])
        lengths.append(left_length + right_length)
        befores: defaultdict[int, list[int]] = defaultdict(list)
        afters: defaultdict[int, list[int]] = defaultdict(list)
        doubled: list[int] = []
        after_last = -1
        for place in self.places.pop(left << BITS | right):
            middle = place + left_length
            if symbols[place] != left or symbols[middle] != right:
                continue
            following = middle + right_length
            before, after = symbols[place - 1], symbols[following]
            if place == after_last:
                doubled.append(afters[left].pop())
            elif before >= 0:
                befores[before].append(place - lengths[before])
            if after >= 0:
                afters[after].append(place)
            symbols[middle - 1] = symbols[middle] = INTERIOR
            symbols[place] = symbols[following - 1] = token
            after_last = following
        found = [(before << BITS | left, before << BITS | token, places) for before, places in befores.items()]
        found += [(right << BITS | after, token << BITS | after, places) for after, places in afters.items()]
        found.append((right << BITS | left, token << BITS | token, doubled))
        counts[left << BITS | right] = 0
        longest = self.settings.max_token_length or sys.maxsize
        born = []
        for old, new, places in found:
            number = sum(map(weights.__getitem__, places))
            counts[old] -= number
            if number >= self.least and lengths[new >> BITS] + lengths[new & RIGHT] < longest:
                born.append((new, number, places))
        return born


def inverted(token: bytes) -> str:
    """A string that sorts the other way round."""
    return token.translate(COMPLEMENT).decode("latin-1") + "\u0100"
