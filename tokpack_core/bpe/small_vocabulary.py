"""The vocabulary that training in plain Python adds to, and the order in which pairs are merged."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np

from tokpack_core.bpe.merge_settings import MergeSettings
from tokpack_core.bpe.small_pairs import BITS, RIGHT, Cells, Pairs

Entry = tuple[int, Any, int]
"""A pair in the order of merging: minus its count, what decides between equal counts, the pair."""
COMPLEMENT = bytes(255 - byte for byte in range(256))


@dataclass
class Vocabulary:
    settings: MergeSettings
    tokens: list[bytes]
    lefts: list[int] = field(default_factory=list)
    """[merges], as the following"""
    rights: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.least = max(self.settings.min_frequency, 1)
        self.limited = self.settings.max_token_length is not None
        self.single = len(self.tokens)

    @property
    def missing(self) -> int:
        return self.settings.vocab_size - len(self.tokens)

    @property
    def full(self) -> bool:
        return self.missing <= 0

    def add(self, pair: int, count: int) -> int:
        """Merges a pair; returns the new token."""
        left, right = pair >> BITS, pair & RIGHT
        self.lefts.append(left)
        self.rights.append(right)
        self.counts.append(count)
        self.tokens.append(self.tokens[left] + self.tokens[right])
        return len(self.tokens) - 1

    def add_all(self, pairs: Cells, count: int) -> None:
        """Merges pairs of the same count."""
        lefts, rights = (pairs >> BITS).tolist(), (pairs & RIGHT).tolist()
        self.lefts += lefts
        self.rights += rights
        self.counts += repeat(count, len(lefts))
        tokens = self.tokens
        for left, right in zip(lefts, rights, strict=True):
            tokens.append(tokens[left] + tokens[right])

    def allowed(self, pairs: Pairs, lengths: Cells) -> Pairs:
        """Those that `allows`, by the lengths of symbols in bytes."""
        if not self.limited:
            return pairs
        short = lengths[pairs.lefts] + lengths[pairs.rights] < (self.settings.max_token_length or sys.maxsize)
        return pairs.those(short | (np.maximum(pairs.lefts, pairs.rights) < self.single))

    def allows(self, pair: int) -> bool:
        """Whether two tokens may be merged by their length; two single bytes always may."""
        if not self.limited or max(pair >> BITS, pair & RIGHT) < self.single:
            return True
        length = len(self.tokens[pair >> BITS]) + len(self.tokens[pair & RIGHT])
        return length < (self.settings.max_token_length or sys.maxsize)

    def entry(self, pair: int, count: int) -> Entry:
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
