"""The same training in plain Python, for texts so small that compiling or loading kernels would take longer.

As in `merge_kernels`, symbols of all words stand in one array with a gap between words, a symbol's id in its first and
last cell, and the places of a pair are complete when it is born (`small_words`). Pairs that occur often are merged
several at a time, and counted anew when they come up (`small_frequent_pairs`). When only rare ones are left, most of
them equally frequent, all of a count are merged together (`small_levels`) where ids decide between them, and one by one
in lists where strings do (`small_rare_pairs`).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tokpack_core.bpe.collection_pause import without_collection
from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, Merges, MergeSettings
from tokpack_core.bpe.small_frequent_pairs import FrequentPairs
from tokpack_core.bpe.small_levels import Levels
from tokpack_core.bpe.small_pairs import Cells, common
from tokpack_core.bpe.small_rare_pairs import RarePairs
from tokpack_core.bpe.small_vocabulary import Vocabulary
from tokpack_core.bpe.small_words import GAP, Words

OFTEN = 32
"""From this count on a few pairs at a time are worth a round of array operations; below, whole counts are there."""


def learn_merges_in_python(words: Mapping[bytes, int], settings: MergeSettings) -> Merges:
    seen = np.bincount(np.frombuffer(b"".join(words), np.uint8), minlength=256)
    alphabet = bytes(byte for byte in BYTE_LEVEL_ORDER if seen[byte] or byte in settings.alphabet)
    vocabulary = Vocabulary(settings, [bytes([byte]) for byte in alphabet])
    with without_collection():
        left = Words(vocabulary, *spelled(words, alphabet))
        FrequentPairs(vocabulary, left, OFTEN).run()
        least = OFTEN
        while least > vocabulary.least and not vocabulary.full:
            left = left.in_parts()
            least = merge_rare(vocabulary, left, least)
    lefts, rights = np.array(vocabulary.lefts, np.int32), np.array(vocabulary.rights, np.int32)
    return Merges(vocabulary.tokens, lefts, rights, np.array(vocabulary.counts, np.int64))


def merge_rare(vocabulary: Vocabulary, words: Words, most: int) -> int:
    """Merges pairs none of which occurs `most` times, down to the count that is returned.

    It is half as often as the last of as many pairs as there are merges to come: those that are born make up for those
    that break, and mostly nothing below is merged. If something is, it takes another turn, with what is left over; as
    for pairs that occur once, which are most of all.
    """
    pairs = words.pairs()
    guess = max(common(pairs.sums, vocabulary.missing) // 2, 2)
    least = max(vocabulary.least, min(guess, most // 2))
    followed = vocabulary.allowed(pairs.of_weight(least), words.bytes)
    if vocabulary.settings.tie_break == "hugging_face":
        Levels(vocabulary, words, followed, least).run()
    else:
        RarePairs(vocabulary, words, followed, least).run()
    return least


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
