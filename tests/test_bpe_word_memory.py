"""Pretokens of any length go through the memory of words as if each were encoded by itself."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.bpe import word_memory
from tokpack_core.bpe.word_memory import Ids, Places, WordMemory
from tokpack_core.corpus.text_buffers import read_only

CALLS: list[list[bytes]] = []


def every_other_byte(data: npt.NDArray[np.uint8], offsets: Places) -> tuple[Ids, Places]:
    """A rule of which the place in `data` and all other words are no part."""
    words = [bytes(data[start:stop]) for start, stop in pairwise(offsets.tolist())]
    CALLS.append(words)
    lengths = [len(word[::2]) for word in words]
    ids = np.frombuffer(b"".join(word[::2] for word in words), np.uint8).astype(np.int32)
    return ids, np.cumsum([0, *lengths])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text("ab", min_size=1, max_size=9), max_size=20), st.integers(0, 3))
def test_words_of_any_length(words: list[str], before: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_memory, "LONGEST_KNOWN", 4)
        patch.setattr(word_memory, "MOST_AT_ONCE", 12)
        data = read_only(np.frombuffer(("x" * before + "".join(words) + "yyy").encode(), np.uint8))
        memory = WordMemory(every_other_byte)
        for _ in range(2):
            CALLS.clear()
            ends = before + np.cumsum([len(word) for word in words], dtype=np.int64)
            ids, id_ends = memory.encode_pretokens(data, before, ends)
            assert bytes(ids.astype(np.uint8)).decode() == "".join(word[::2] for word in words)
            assert id_ends.tolist() == np.cumsum([0, *(len(word[::2]) for word in words)]).tolist()
        long = [[word.encode()] for word in words if len(word) > 4]
        assert long == CALLS  # the second time the others are known
