"""WordPiece's pieces from counted words (Schuster and Nakajima 2012; Wu et al. 2016, section 4.1).

A word is its first character and the others with `##` before them. The best pair is merged until the vocabulary is
full or no pair is left that occurs often enough. Best is, by name:

- `likelihood`: the greatest count(ab) / (count(a) · count(b)), which is what raises the likelihood of the text most;
- `frequency`: the greatest count(ab), as Hugging Face's trainer has it.

Ties: the smaller pair of ids. Ids are handed out in a fixed order (characters by code point, those that begin a word
before those that follow, then what merges made), so the pieces depend on nothing but the counts, while those of Hugging
Face's trainer also depend on the order in which a hash table gives the words. As there, two merges that spell the same
piece share its id.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.tokenizers.wordpiece.kernels import (
    HEAP,
    LEFT,
    NODES,
    NONE,
    OCCURRENCES,
    PAIRS,
    RIGHT,
    TOTAL,
    count_pairs,
    fill_slots,
    merge,
    write_links,
)

PREFIX = "##"
CODE_POINTS = 0x110000


class PairMerger:
    """The words and all that is known of their pairs; see `wordpiece_kernels` for the layout."""

    def __init__(self, links: npt.NDArray[np.int32], rows: int, weights: npt.NDArray[np.int64], ids: int) -> None:
        """`ids`: the most symbols that there will be."""
        self._links = links
        self._weights = weights
        self._members = np.full((ids, 3), NONE, np.int64)
        self._members[:, TOTAL] = 0
        self._pairs = np.empty((max(rows, 1), 9), np.int64)
        self._scores = np.empty(max(rows, 1))
        self._heap = np.empty(max(rows, 1), np.int64)
        self._nodes = np.empty((max(rows, 1), 2), np.int32)
        self._slots = np.zeros(1 << (2 * rows + 1).bit_length(), np.int64)
        self._state = np.array([0, 0, NONE, 0], np.int64)
        self._rows = rows

    def count(self, least: int, likelihood: bool) -> None:
        self._least, self._likelihood = least, likelihood
        count_pairs(
            self._links,
            self._rows,
            self._weights,
            self._slots,
            self._pairs,
            self._members,
            self._nodes,
            self._heap,
            self._scores,
            self._state,
            least,
            likelihood,
        )

    def best(self) -> tuple[int, int, int] | None:
        """Number, left and right symbol of the best pair; None if no pair may be merged."""
        pair = int(self._heap[0]) if self._state[HEAP] else NONE
        if pair == NONE or self._scores[pair] < 0:
            return None
        return pair, int(self._pairs[pair, LEFT]), int(self._pairs[pair, RIGHT])

    def merge(self, pair: int, token: int) -> None:
        self._reserve(2 * int(self._pairs[pair, OCCURRENCES]))
        merge(
            pair,
            token,
            self._links,
            self._weights,
            self._slots,
            self._pairs,
            self._members,
            self._nodes,
            self._heap,
            self._scores,
            self._state,
            self._least,
            self._likelihood,
        )

    def _reserve(self, more: int) -> None:
        pairs, nodes = int(self._state[PAIRS]) + more, int(self._state[NODES]) + more
        if nodes > len(self._nodes):
            self._nodes = grown(self._nodes, nodes)
        if pairs > len(self._pairs):
            self._pairs = grown(self._pairs, pairs)
            self._scores = grown(self._scores, pairs)
            self._heap = grown(self._heap, pairs)
        if 2 * pairs > self._slots.size:
            self._slots = np.zeros(1 << (2 * pairs).bit_length(), np.int64)
            fill_slots(self._slots, self._pairs, int(self._state[PAIRS]))


def grown(array: np.ndarray, needed: int) -> np.ndarray:
    larger = np.empty((needed * 3 // 2, *array.shape[1:]), array.dtype)
    larger[: len(array)] = array
    return larger


def learn_pieces(
    words: PretokenCounts, characters: list[str], size: int, min_frequency: int, likelihood: bool, longest: int
) -> list[str]:
    """Pieces in the order of their ids: `characters`, the same with `##`, then what merges make, `size` at most.

    Words with other characters, or with more than `longest`, are left out.
    """
    pieces = [*characters, *(PREFIX + character for character in characters)]
    codes = np.array([ord(character) for character in characters], np.int64)
    heads, tails = np.full((2, CODE_POINTS), NONE, np.int32)
    heads[codes] = np.arange(codes.size)
    tails[codes] = np.arange(codes.size) + codes.size
    links = np.empty((words.data.size, 4), np.int32)
    rows = write_links(words.data, words.offsets, heads, tails, longest, links)
    # Each merge takes a symbol away, so a larger size takes no more memory.
    most = len(pieces) + rows
    merger = PairMerger(links[:rows].copy(), rows, words.counts, min(max(size, len(pieces)), most))
    del links
    merger.count(max(min_frequency, 1), likelihood)
    ids = {piece: token for token, piece in enumerate(pieces)}
    while len(pieces) < size and (found := merger.best()):
        pair, left, right = found
        spelled = pieces[left] + pieces[right].removeprefix(PREFIX)
        token = ids.setdefault(spelled, len(pieces))
        if token == len(pieces):
            pieces.append(spelled)
        merger.merge(pair, token)
    return pieces
