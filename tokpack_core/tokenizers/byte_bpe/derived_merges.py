"""Merges for entries that were not learned one upon the other: of several trainings, or asked for by name.

A byte-level BPE needs a merge for each entry, and merges of several trainings hinder each other: one takes apart what
another builds on. On 60 MB of English, Chinese and code, 50,000 entries interleaved with the merges that they were
learned by leave 6,007 entries that no text gives. So a merge is derived here instead: an entry becomes the merge of the
two tokens that the entries before it make of its bytes. If they make more than two of it, it is passed over, since no
text could give it.

So every entry is what its own bytes are encoded to, by induction: merges of lower rank than its own leave its two
parts, whatever stands around it, unless they take bytes of a neighbour along. The merge is the only one that makes the
entry, and ranks alone say what is merged (tiktoken's rule) with the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, Merges
from tokpack_core.errors import InputError

NEVER = 2**62


class GrownVocabulary:
    """All bytes, and entries that are added one by one, each with its merge."""

    def __init__(self) -> None:
        self.tokens = [bytes([byte]) for byte in BYTE_LEVEL_ORDER]
        self._ids = {token: place for place, token in enumerate(self.tokens)}
        self._ranks: dict[tuple[bytes, bytes], int] = {}
        self._rows: list[tuple[int, int, int]] = []

    def __contains__(self, content: bytes) -> bool:
        return content in self._ids

    def pieces(self, content: bytes) -> list[bytes]:
        """What is made of bytes that stand alone: the pair of the lowest rank first, the leftmost of equal ones."""
        pieces = [content[place : place + 1] for place in range(len(content))]
        ranks = [self._ranks.get(pair, NEVER) for pair in pairwise(pieces)]
        while ranks:
            lowest = min(ranks)
            if lowest == NEVER:
                break
            at = ranks.index(lowest)
            pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
            del ranks[at]
            for place in range(max(at - 1, 0), min(at + 1, len(ranks))):
                ranks[place] = self._ranks.get((pieces[place], pieces[place + 1]), NEVER)
        return pieces

    def add(self, content: bytes, count: int) -> bool:
        """Adds an entry if two tokens make it up; `count`: how often its pair occurred."""
        parts = self.pieces(content)
        if len(parts) == 2:
            self.merge(parts[0], parts[1], count)
        return len(parts) == 2

    def merge(self, left: bytes, right: bytes, count: int) -> None:
        """Adds the entry that two entries make up."""
        self._ranks[left, right] = len(self._rows)
        self._rows.append((self._ids[left], self._ids[right], count))
        self._ids[left + right] = len(self.tokens)
        self.tokens.append(left + right)

    def merges(self) -> Merges:
        rows = np.array(self._rows, np.int64).reshape(-1, 3)
        left, right = rows[:, 0].astype(np.int32), rows[:, 1].astype(np.int32)
        return Merges(self.tokens, left, right, rows[:, 2].copy())


def grown(merges: Merges, merged: int) -> GrownVocabulary:
    """The first merges of a training over all bytes, as they are."""
    vocabulary = GrownVocabulary()
    rows = zip(merges.left[:merged].tolist(), merges.right[:merged].tolist(), merges.count.tolist(), strict=False)
    for left, right, count in rows:
        vocabulary.merge(merges.tokens[left], merges.tokens[right], count)
    return vocabulary


def with_required(merges: Merges, entries: int, required: Iterable[str]) -> tuple[Merges, int]:
    """Merges that make each of some characters, and how many of the last ones are there for that alone.

    Merges over all bytes; the last of them give way where there would be more than so many entries. A character that
    the text has not taught is put last, so that all other tokens are what they were. Raises InputError if there is no
    room for them.
    """
    contents = [character.encode() for character in required]
    learned = min(merges.count.size, entries - 256)
    while True:
        vocabulary = grown(merges, learned)
        for content in contents:
            complete(vocabulary, content)
        added = len(vocabulary.tokens) - 256 - learned
        if learned + added <= entries - 256:
            return vocabulary.merges(), added
        if not learned:
            raise InputError(
                f"`vocab_size` is too small: bytes and required characters need {256 + added} entries beside special "
                "tokens: raise it, or leave `required_characters` out"
            )
        learned = max(entries - 256 - added, 0)


def complete(vocabulary: GrownVocabulary, content: bytes) -> None:
    """Adds an entry, and first what it lacks on the way, from the left."""
    while content not in vocabulary:
        first, second = vocabulary.pieces(content)[:2]
        vocabulary.merge(first, second, 0)
