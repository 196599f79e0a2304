"""The vocabulary that training in plain Python adds to, and the order in which pairs are merged."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from tokpack_core.bpe.merge_settings import MergeSettings

BITS = 32
RIGHT = (1 << BITS) - 1
"""A pair is one number: left << BITS | right."""
Entry = tuple[int, Any, int]
"""A pair in the order of merging: minus its count, what decides between equal counts, the pair."""
COMPLEMENT = bytes(255 - byte for byte in range(256))


@dataclass
class Vocabulary:
    settings: MergeSettings
    tokens: list[bytes]
    merged: list[tuple[int, int, int]] = field(default_factory=list)
    """Left, right, count"""

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
        self.merged.append((left, right, count))
        self.tokens.append(self.tokens[left] + self.tokens[right])
        return len(self.tokens) - 1

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
