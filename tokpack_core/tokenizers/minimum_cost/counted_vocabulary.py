"""Counted vocabularies: CNF, the count-and-filter half of CNF-MCE (arXiv 2610.01127).

All substrings of the words of a text are counted. Then, again and again, the words are segmented into the fewest
tokens, those that save the least are filtered out, and the vocabulary is refilled with the candidates that would save
the most. A token saves its occurrences times the tokens more that its own bytes would need without it; a candidate
saves what the segmentation would lose if it alone were added.

The paper gives neither the number of rounds nor how much of the vocabulary is exchanged in each; ours are parameters.
What the candidates taken before leave of one in the same round is guessed (see `refill`), and what is true is known in
the next. The best round's vocabulary is kept. Nothing depends on the order of documents, or on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.pretoken_counts import PretokenCounts, in_byte_order
from tokpack_core.corpus.text_buffers import read_only
from tokpack_core.tokenizers.minimum_cost.counted_vocabulary_kernels import costs_without, refill, segment_words
from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import BEGIN, NONE, build
from tokpack_core.tokenizers.sentencepiece.substring_counts import frequent_substrings

BYTES = 256
CANDIDATES_EACH = 16
"""Candidates for each token wanted."""
LONGEST_WORD = 1000
"""Words are cut after so many bytes."""


@dataclass(frozen=True)
class CountedVocabulary:
    tokens: list[bytes]
    """The single bytes, then by what they save."""
    counts: npt.NDArray[np.int64]
    """[tokens]: occurrences in the text"""
    refills: int
    """Rounds of filtering and refilling up to the vocabulary that was kept."""


def counted_vocabulary(
    words: PretokenCounts, size: int, min_frequency: int, longest: int, rounds: int, exchanged: float
) -> CountedVocabulary:
    """`size` tokens, bytes included, or fewer if the text has no more; `longest`: bytes of a token.

    `exchanged`: the share of the vocabulary that the first round filters out; it falls evenly to none.
    """
    search = Search(words, size, min_frequency, longest)
    search.fill(search.first_choice())
    best = search.segment()
    kept, improved = search.active.copy(), 0
    for number in range(rounds):
        search.exchange(round(exchanged * (1 - number / rounds) * (size - BYTES)))
        tokens = search.segment()
        if tokens < best:
            best, kept, improved = tokens, search.active.copy(), number + 1
    search.active[:] = kept
    search.segment()
    return search.result(improved)


class Search:
    """Tokens and candidates by number: the single bytes first, then substrings."""

    def __init__(self, words: PretokenCounts, size: int, min_frequency: int, longest: int) -> None:
        self._data, self._offsets, self._weights = cut(in_byte_order(words))
        self._size, self._longest = size, longest
        occurrences = int((self._weights * np.diff(self._offsets)).sum())
        least = max(min_frequency, occurrences // (BYTES * max(size, 1)))
        found = frequent_substrings(self._data, self._offsets, self._weights, longest, least)
        while found.counts.size < size and least > min_frequency:
            least = max(min_frequency, least // 8)
            found = frequent_substrings(self._data, self._offsets, self._weights, longest, least)
        parts = np.where(found.characters > 1, found.characters, found.lengths)
        order = np.argsort(-(found.counts * (parts - 1)), kind="stable")[: CANDIDATES_EACH * size]
        lengths = np.concatenate([np.ones(BYTES, np.int64), found.lengths[order]])
        self._spans = np.concatenate([[0], np.cumsum(lengths)])
        first = np.concatenate([np.zeros(BYTES, np.int64), found.firsts[order]])
        places = np.repeat(first - self._spans[:-1], lengths) + np.arange(self._spans[-1])
        self._spelled = self._data[places]
        self._spelled[:BYTES] = np.arange(BYTES)
        self._counts = np.concatenate([np.zeros(BYTES, np.int64), found.counts[order]])
        self._trie = trie_of(self._spelled, self._spans)
        self.active = np.arange(lengths.size) < BYTES
        self._uses = self._savings = np.zeros(lengths.size, np.int64)

    @property
    def _lengths(self) -> npt.NDArray[np.int64]:
        return np.diff(self._spans)

    def first_choice(self) -> npt.NDArray[np.int64]:
        """What candidates save where all is single bytes."""
        return self._counts * (self._lengths - 1)

    def fill(self, savings: npt.NDArray[np.int64]) -> None:
        wanted = self._size - int(np.count_nonzero(self.active))
        refill(
            read_only(self._spelled),
            self._spans,
            np.maximum(self._counts, 1),
            savings,
            *self._trie,
            self.active,
            self._costs(),
            wanted,
        )

    def segment(self) -> int:
        """The tokens of all words; what each token does, and each candidate would, is known afterwards."""
        self._uses, self._savings = np.zeros((2, self.active.size), np.int64)
        words = read_only(self._data), self._offsets, self._weights
        tokens: int = segment_words(*words, *self._trie, self.active, self._longest, self._uses, self._savings)
        return tokens

    def exchange(self, number: int) -> None:
        """Filters out so many tokens, or all but the single bytes if there are fewer, and refills."""
        worth = self._uses * (self._costs() - 1)
        made = BYTES + np.flatnonzero(self.active[BYTES:])
        self.active[made[np.argsort(worth[made], kind="stable")[:number]]] = False
        self.fill(self._savings)

    def result(self, rounds: int) -> CountedVocabulary:
        chosen = np.flatnonzero(self.active)
        worth = self._uses[chosen] * (self._costs()[chosen] - 1)
        worth[:BYTES] = np.iinfo(np.int64).max
        chosen = chosen[np.argsort(-worth, kind="stable")]
        spelled = self._spelled.tobytes()
        tokens = [spelled[self._spans[number] : self._spans[number + 1]] for number in chosen.tolist()]
        return CountedVocabulary(tokens, self._uses[chosen], rounds)

    def _costs(self) -> npt.NDArray[np.int64]:
        """[numbers]: the fewest tokens that spell each without itself."""
        costs = np.empty(self.active.size, np.int64)
        numbers = np.arange(self.active.size)
        costs_without(read_only(self._spelled), self._spans, numbers, *self._trie, self.active, costs)
        return costs


Trie = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int32]]


def trie_of(spelled: npt.NDArray[np.uint8], spans: npt.NDArray[np.int64]) -> Trie:
    keys = np.zeros(1 << (2 * spelled.size + 1).bit_length(), np.int64)
    children = np.zeros(keys.size, np.int32)
    tokens = np.full(spelled.size + 2, NONE, np.int32)
    numbers = np.arange(spans.size - 1, dtype=np.int32)
    nodes = build(read_only(spelled), spans, np.full(numbers.size, BEGIN, np.int32), numbers, keys, children, tokens)
    return keys, children, tokens[:nodes].copy()


def cut(words: PretokenCounts) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The words, longer ones in pieces of LONGEST_WORD bytes: data, offsets, counts."""
    pieces = -(-np.diff(words.offsets) // LONGEST_WORD)
    begins = np.repeat(words.offsets[:-1], pieces)
    rank = np.arange(int(pieces.sum())) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    offsets = np.append(begins + rank * LONGEST_WORD, words.offsets[-1])
    return words.data, offsets, np.repeat(words.counts, pieces)
