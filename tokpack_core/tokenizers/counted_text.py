"""The training text of a family that learns from counted words or characters."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.pretoken_counting import count_pretokens
from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.bpe.training import Seen, counting, refuse_unsplit
from tokpack_core.corpus.text_buffers import text_array, text_buffers
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.training_text import NO_TEXT
from tokpack_core.tokenizers.wordpiece.kernels import count_characters, only_of

MOST_WORKERS = 8
CODE_POINTS = 0x110000


@dataclass(frozen=True)
class CountedText:
    words: PretokenCounts
    seen: Seen

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Bytes of each word."""
        return np.diff(self.words.offsets)

    def strings(self) -> list[str]:
        """The words, in the order of the counts."""
        array = text_array(self.words.data, self.words.offsets, pa.large_string())
        found: list[str] = array.to_pylist()
        return found

    def character_counts(self) -> npt.NDArray[np.int64]:
        """[0x110000]"""
        totals = np.zeros(CODE_POINTS, np.int64)
        count_characters(self.words.data, self.words.offsets, self.words.counts, totals)
        return totals

    def words_of(self, codes: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which words have no other characters than these code points."""
        known = np.zeros(CODE_POINTS, bool)
        known[np.asarray(codes, np.int64)] = True
        return only_of(self.words.data, self.words.offsets, known)


def counted_text(texts: Iterator[pa.Array], splits: tuple[str, ...], remedy: str) -> CountedText:
    """Counts what a regex splits text into.

    Raises InputError for an empty sample, and for text that the regex hardly splits, with what may be done about it.
    """
    seen = Seen()
    words = count_pretokens(counting(texts, seen), splits, workers=min(os.cpu_count() or 1, MOST_WORKERS))
    if seen.bytes == 0:
        raise InputError(NO_TEXT)
    refuse_unsplit(np.diff(words.offsets), words.counts, remedy)
    return CountedText(words, seen)


def character_counts(texts: Iterator[pa.Array]) -> tuple[npt.NDArray[np.int64], Seen]:
    """Occurrences of each code point, int64 [0x110000]: no words, so text without boundaries is as good as any.

    Raises InputError for an empty sample.
    """
    seen, totals = Seen(), np.zeros(CODE_POINTS, np.int64)
    for array in counting(texts, seen):
        data, offsets = text_buffers(array)
        count_characters(data, offsets, np.ones(offsets.size - 1, np.int64), totals)
    if seen.bytes == 0:
        raise InputError(NO_TEXT)
    return totals, seen


def room_for_text(needed: int, special_tokens: int, what: str, vocab_size: int | None, remedy: str = "") -> int:
    """How many entries are left beside special tokens. Raises InputError if there are fewer than needed."""
    size = (vocab_size or 0) - special_tokens
    if size < needed:
        raise InputError(
            f"`vocab_size` {vocab_size} is too small: {what} and {special_tokens} special tokens need "
            f"{needed + special_tokens}{remedy}"
        )
    return size
