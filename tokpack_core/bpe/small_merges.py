"""The same training in plain Python, for texts so small that compiling or loading kernels would take longer.

As in `merge_kernels`, symbols of all words stand in one array with a gap between words, a symbol's id in its first and
last cell, and the places of a pair are complete when it is born. Pairs that occur often are merged by array operations,
and counted anew when they come up; when only rare ones are left, lists are faster.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, Merges, MergeSettings

BITS = 32
RIGHT = (1 << BITS) - 1
GAP, INTERIOR = -1, -2
OFTEN = 48
"""A pair of this count is merged by array operations, which take as long as some dozens of places in lists."""
COMPLEMENT = bytes(255 - byte for byte in range(256))
Cells = npt.NDArray[np.int64]


def learn_merges_in_python(words: Mapping[bytes, int], settings: MergeSettings) -> Merges:
    alphabet = bytes(sorted({*settings.alphabet, *b"".join(words)}, key=BYTE_LEVEL_ORDER.index))
    vocabulary = Vocabulary(settings, [bytes([byte]) for byte in alphabet])
    symbols, weights = FrequentPairs(vocabulary, *spelled(words, alphabet)).run()
    if not vocabulary.full:
        RarePairs(vocabulary, symbols, weights).run()
    rows = np.array(vocabulary.merged, np.int64).reshape(-1, 3)
    return Merges(vocabulary.tokens, rows[:, 0].astype(np.int32), rows[:, 1].astype(np.int32), rows[:, 2].copy())


def spelled(words: Mapping[bytes, int], alphabet: bytes) -> tuple[Cells, Cells]:
    """Symbols of all words with gaps around them, and the count of the word that each belongs to."""
    symbol_of = np.zeros(256, np.int64)
    symbol_of[np.frombuffer(alphabet, np.uint8)] = np.arange(len(alphabet))
    lengths = np.array([len(word) for word in words], np.int64)
    number = np.repeat(np.arange(lengths.size), lengths)
    places = np.arange(number.size) + number + 1
    symbols = np.full(number.size + lengths.size + 1, GAP)
    symbols[places] = symbol_of[np.frombuffer(b"".join(words), np.uint8)]
    weights = np.zeros(symbols.size, np.int64)
    weights[places] = np.array(list(words.values()), np.int64)[number]
    return symbols, weights


@dataclass
class Vocabulary:
    settings: MergeSettings
    tokens: list[bytes]
    merged: list[tuple[int, int, int]] = field(default_factory=list)
    """Left, right, count"""

    def __post_init__(self) -> None:
        self.least = max(self.settings.min_frequency, 1)
        self.limited = self.settings.max_token_length is not None

    @property
    def full(self) -> bool:
        return len(self.tokens) >= self.settings.vocab_size

    def add(self, pair: int, count: int) -> int:
        """Merges a pair; returns the new token."""
        left, right = pair >> BITS, pair & RIGHT
        self.merged.append((left, right, count))
        self.tokens.append(self.tokens[left] + self.tokens[right])
        return len(self.tokens) - 1

    def allows(self, pair: int) -> bool:
        """Whether two tokens, of which one is no single byte, may be merged."""
        if not self.limited:
            return True
        length = len(self.tokens[pair >> BITS]) + len(self.tokens[pair & RIGHT])
        return length < (self.settings.max_token_length or sys.maxsize)

    def entry(self, pair: int, count: int) -> tuple[int, Any, int]:
        """Sorts as pairs are merged."""
        if self.settings.tie_break == "hugging_face":
            return -count, pair, pair
        left, right = self.tokens[pair >> BITS], self.tokens[pair & RIGHT]
        if self.settings.tie_break == "lexicographic_smallest":
            return -count, (left, right), pair
        return -count, (inverted(left), inverted(right)), pair


def inverted(token: bytes) -> str:
    """A string that sorts the other way round."""
    return token.translate(COMPLEMENT).decode("latin-1") + "\u0100"


def grouped(keys: Cells, places: Cells, weights: Cells, least: int) -> tuple[list[int], list[int], Cells, Cells]:
    """Keys of at least that weight, their weights, all places sorted by key, and [keys, 2] where each key's are."""
    if not keys.size:
        return [], [], places, np.empty((0, 2), np.int64)
    # numpy sorts numbers of 16 bits by radix.
    order = np.argsort(keys.astype(np.uint16) if keys.max() < 2**16 else keys, kind="stable")
    ordered, places = keys[order], places[order]
    firsts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sums = np.add.reduceat(weights[places], firsts)
    kept = np.flatnonzero(sums >= least)
    spans = np.stack([firsts, np.append(firsts[1:], keys.size)], axis=1)[kept]
    return ordered[firsts[kept]].tolist(), sums[kept].tolist(), places, spans


def neighbours(symbols: Cells, weights: Cells, least: int) -> tuple[list[int], list[int], Cells, Cells]:
    """The pairs of symbols that are one cell each, as `grouped` gives them."""
    places = np.flatnonzero((symbols[:-1] >= 0) & (symbols[1:] >= 0))
    different = int(symbols.max()) + 1
    keys, sums, places, spans = grouped(symbols[places] * different + symbols[places + 1], places, weights, least)
    return [key // different << BITS | key % different for key in keys], sums, places, spans


class FrequentPairs:
    """Merges pairs until none is left that occurs often."""

    def __init__(self, vocabulary: Vocabulary, symbols: Cells, weights: Cells) -> None:
        self.vocabulary = vocabulary
        self.symbols, self.weights = symbols, weights
        self.begins = np.ones(symbols.size, bool)
        """Whether a cell is a gap or the first of a symbol."""
        self.cells = np.ones(max(vocabulary.settings.vocab_size, len(vocabulary.tokens)), np.int64)
        self.places: dict[int, Cells] = {}
        self.heap: list[tuple[int, Any, int]] = []
        self.counted: dict[int, int] = {}
        """How many merges there were when a pair was last counted."""
        self.least = max(vocabulary.least, OFTEN)
        self.follow(*neighbours(symbols, weights, self.least))

    def follow(self, pairs: list[int], counts: list[int], places: Cells, spans: Cells) -> None:
        for pair, count, (first, stop) in zip(pairs, counts, spans, strict=True):
            self.places[pair] = places[first:stop]
            heappush(self.heap, self.vocabulary.entry(pair, count))

    def run(self) -> tuple[Cells, Cells]:
        """Symbols, one cell each, of words that are more than one symbol, and their weights."""
        merged = self.vocabulary.merged
        while self.heap and not self.vocabulary.full:
            negative, _, pair = self.heap[0]
            count = -negative
            if self.counted.get(pair) != len(merged):
                self.counted[pair] = len(merged)
                places = self.places[pair] = self.still(pair)
                count = int(self.weights[places].sum())
            if count == -negative:
                heappop(self.heap)
                self.merge(pair, count, self.places.pop(pair))
            elif count >= self.least:
                heapreplace(self.heap, self.vocabulary.entry(pair, count))
            else:
                heappop(self.heap)
        symbols, weights = self.symbols[self.begins], self.weights[self.begins]
        inner = np.flatnonzero((symbols[1:-1] >= 0) & (symbols[:-2] == GAP) & (symbols[2:] == GAP)) + 1
        whole = np.concatenate([inner, inner + 1])
        return np.delete(symbols, whole), np.delete(weights, whole)

    def still(self, pair: int) -> Cells:
        """The places where the pair still stands."""
        places, left = self.places[pair], pair >> BITS
        found = self.symbols[places] == left
        found &= self.symbols[places + self.cells[left]] == pair & RIGHT
        return places[found]

    def merge(self, pair: int, count: int, places: Cells) -> None:
        left, right = pair >> BITS, pair & RIGHT
        symbols, cells = self.symbols, self.cells
        if left == right:
            places = apart(places, int(cells[left]))
        token = self.vocabulary.add(pair, count)
        cells[token] = cells[left] + cells[right]
        middles, followings = places + cells[left], places + cells[token]
        symbols[middles - 1] = INTERIOR
        symbols[middles] = INTERIOR
        symbols[places] = token
        symbols[followings - 1] = token
        self.begins[middles] = False
        afters = symbols[followings]
        known = afters >= 0
        self.give_birth(token << BITS | afters[known], places[known])
        befores = symbols[places - 1]
        known = (befores >= 0) & (befores != token)
        self.give_birth(befores[known] << BITS | token, places[known] - cells[befores[known]])

    def give_birth(self, pairs: Cells, places: Cells) -> None:
        born, counts, places, spans = grouped(pairs, places, self.weights, self.least)
        allowed = [self.vocabulary.allows(pair) for pair in born] if self.vocabulary.limited else []
        if not all(allowed):
            kept = np.flatnonzero(allowed)
            born, counts, spans = [born[k] for k in kept], [counts[k] for k in kept], spans[kept]
        self.follow(born, counts, places, spans)


def apart(places: Cells, cells: int) -> Cells:
    """Every other one of places that follow each other at that distance, from the first on."""
    numbers = np.arange(places.size)
    begins = np.concatenate([[True], np.diff(places) != cells])
    return places[(numbers - np.maximum.accumulate(np.where(begins, numbers, 0))) % 2 == 0]


class RarePairs:
    """Merges the pairs of symbols that are one cell each at the start."""

    def __init__(self, vocabulary: Vocabulary, symbols: Cells, weights: Cells) -> None:
        self.vocabulary = vocabulary
        self.cells = [1] * len(vocabulary.tokens)
        self.symbols, self.weights = symbols.tolist(), weights.tolist()
        self.counts: defaultdict[int, int] = defaultdict(int)
        self.places: dict[int, list[int]] = {}
        single = sum(len(token) == 1 for token in vocabulary.tokens)
        pairs, counts, found, spans = neighbours(symbols, weights, vocabulary.least)
        listed = found.tolist()
        for pair, count, (first, stop) in zip(pairs, counts, spans.tolist(), strict=True):
            if max(pair >> BITS, pair & RIGHT) < single or vocabulary.allows(pair):
                self.counts[pair] = count
                self.places[pair] = listed[first:stop]
        self.heap = [vocabulary.entry(pair, count) for pair, count in self.counts.items()]
        heapify(self.heap)

    def run(self) -> None:
        heap, counts, vocabulary = self.heap, self.counts, self.vocabulary
        while heap and not vocabulary.full:
            negative, _, pair = heap[0]
            count = counts[pair]
            if count != -negative:
                if count >= vocabulary.least:
                    heapreplace(heap, vocabulary.entry(pair, count))
                else:
                    heappop(heap)
                continue
            heappop(heap)
            for new, number, places in self.merge(pair, vocabulary.add(pair, count)):
                counts[new] = number
                self.places[new] = places
                heappush(heap, vocabulary.entry(new, number))

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
        least, allows = self.vocabulary.least, self.vocabulary.allows
        for old, new, places in found:
            number = sum(map(weights.__getitem__, places))
            counts[old] -= number
            if number >= least and allows(new):
                born.append((new, number, places))
        return born
