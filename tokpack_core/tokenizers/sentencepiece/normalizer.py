"""What a SentencePiece model does to a text before it cuts it into pieces, in little more memory than the result.

From left to right, the longest user-defined piece stays as it is; else the longest rule replaces what it is for; else a
character stays. If the model says so, spaces at both ends go and several become one, a space is written as U+2581, and
one is put before a text or behind it. (normalizer.cc of SentencePiece 0.2.3.) The library's own keeps for each byte of
the result the place that it came from, in 8 bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokpack_core.tokenizers.byteification.token_bytes import META_SPACE
from tokpack_core.tokenizers.sentencepiece.normalizer_kernels import (
    AFTER_SPACE,
    ESCAPED,
    READ,
    WRITTEN,
    leading_spaces,
    normalize,
)
from tokpack_core.tokenizers.sentencepiece.piece_trie import PieceTrie
from tokpack_core.tokenizers.sentencepiece.proto import Normalization

Bytes = npt.NDArray[np.uint8]
UNIT = 4
"""Bytes of a double array's unit, and of the array's length before it."""


class TextNormalizer:
    def __init__(self, settings: Normalization, user_defined: PieceTrie, longest: int) -> None:
        """`longest`: bytes of the longest user-defined piece."""
        self._settings = settings
        rules = settings.rules
        stop = UNIT + int.from_bytes(rules[:UNIT], "little")
        self._units = np.frombuffer(rules[UNIT:stop], "<u4").astype(np.int64)
        self._replacements = read_only_bytes(rules[stop:])
        self._trie = (user_defined.keys, user_defined.children, user_defined.tokens)
        ends = np.flatnonzero(self._replacements == 0)
        most = max(longest, int(np.diff(ends, prepend=-1).max(initial=0)), UNIT)
        self._margin = most * len(ESCAPED)
        self._space = (META_SPACE if settings.escapes_spaces else " ").encode()

    def __call__(self, data: Bytes) -> Bytes:
        """`data`: UTF-8, read-only."""
        settings = self._settings
        rules = self._units, self._replacements
        begin = leading_spaces(data, *rules, self._trie) if settings.removes_extra_spaces else 0
        if begin == data.size:
            return read_only_bytes(b"")
        dummy = np.frombuffer(self._space if settings.adds_dummy_prefix else b"", np.uint8)
        prefix = dummy[: 0 if settings.space_as_suffix else dummy.size]
        written = np.empty(data.size + prefix.size + self._margin, np.uint8)
        written[: prefix.size] = prefix
        state = np.zeros(3, np.int64)
        state[[READ, WRITTEN, AFTER_SPACE]] = begin, prefix.size, settings.removes_extra_spaces
        while True:
            normalize(
                data,
                *rules,
                self._trie,
                settings.removes_extra_spaces,
                settings.escapes_spaces,
                state,
                written,
                self._margin,
            )
            if state[READ] == data.size:
                break
            written.resize(written.size + written.size // 4 + self._margin, refcheck=False)
        used = int(state[WRITTEN])
        while (
            settings.removes_extra_spaces and written[max(used - len(self._space), 0) : used].tobytes() == self._space
        ):
            used -= len(self._space)
        if settings.space_as_suffix:
            written[used : used + dummy.size] = dummy
            used += dummy.size
        written.resize(used, refcheck=False)
        written.flags.writeable = False
        return written


def read_only_bytes(content: bytes) -> Bytes:
    return np.frombuffer(content, np.uint8)
