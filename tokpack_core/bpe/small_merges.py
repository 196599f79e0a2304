"""The same training in plain Python, for texts so small that compiling or loading kernels would take longer.

As in `merge_kernels`, symbols of all words stand in one array with a gap between words, a symbol's id in its first and
last cell, and the places of a pair are complete when it is born. Pairs that occur often are merged by array operations,
several at a time, and counted anew when they come up (`small_frequent_pairs`); when only rare ones are left, lists are
faster (`small_rare_pairs`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tokpack_core.bpe.collection_pause import without_collection
from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, Merges, MergeSettings
from tokpack_core.bpe.small_frequent_pairs import FrequentPairs
from tokpack_core.bpe.small_places import GAP, Cells
from tokpack_core.bpe.small_rare_pairs import RarePairs
from tokpack_core.bpe.small_vocabulary import Vocabulary

OFTEN = 16
"""Pairs of this count are merged by array operations, which take as long as some dozens of places in lists."""


def learn_merges_in_python(words: Mapping[bytes, int], settings: MergeSettings) -> Merges:
    alphabet = bytes(sorted({*settings.alphabet, *b"".join(words)}, key=BYTE_LEVEL_ORDER.index))
    vocabulary = Vocabulary(settings, [bytes([byte]) for byte in alphabet])
    with without_collection():
        symbols, weights = FrequentPairs(vocabulary, *spelled(words, alphabet), OFTEN).run()
        least = OFTEN
        while least > vocabulary.least and not vocabulary.full:
            rare = RarePairs(vocabulary, symbols, weights, least)
            rare.run()
            least = rare.least
            if not vocabulary.full:
                symbols, weights = rare.left_over()
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
