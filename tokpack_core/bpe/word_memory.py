"""Encodes pretokens by any rule, each different one once (see `word_memory_kernels`)."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.word_memory_kernels import count_ids, find_words, write_ids
from tokpack_core.bpe.word_table import WordTable
from tokpack_core.bpe.word_table_kernels import PLACE

MOST_KNOWN = 32 * 2**20
"""Bytes of memory in each thread that encodes; at the limit all is forgotten."""
Ids = npt.NDArray[np.int32]
Places = npt.NDArray[np.int64]
EncodeWords = Callable[[npt.NDArray[np.uint8], Places], tuple[Ids, Places]]
"""Words data[offsets[k] : offsets[k + 1]] → their ids in a row, and [words + 1] where those of each begin."""


class Known:
    def __init__(self) -> None:
        self.table = WordTable()
        self.ids = np.empty(0, np.int32)
        self.ends = np.zeros(1, np.int64)

    @property
    def size(self) -> int:
        return self.table.size + self.ids.nbytes + self.ends.nbytes


class WordMemory:
    """Encodes runs of pretokens, in any number of threads."""

    def __init__(self, encode_words: EncodeWords) -> None:
        self._encode_words = encode_words
        self._threads = threading.local()

    def encode_pretokens(self, data: npt.NDArray[np.uint8], begin: int, ends: Places) -> tuple[Ids, Places]:
        """Ids of pretokens that follow each other from `begin`, and [pretokens + 1] how many stand before each."""
        known = self._known()
        table = known.table
        table.reserve(ends.size, int(ends[-1]) - begin if ends.size else 0)
        numbers = np.empty(ends.size, np.int64)
        before = table.used
        table.used, table.filled = find_words(
            data, begin, ends, table.slots, table.entries, table.arena, table.used, table.filled, numbers
        )
        if table.used > before:
            offsets = np.append(table.entries[before : table.used, PLACE].astype(np.int64), table.filled)
            ids, begins = self._encode_words(table.arena, offsets)
            known.ends = np.concatenate([known.ends, known.ids.size + begins[1:]])
            known.ids = np.concatenate([known.ids, ids])
        id_ends = np.zeros(ends.size + 1, np.int64)
        found = np.empty(int(count_ids(numbers, known.ends, id_ends[1:])), np.int32)
        write_ids(numbers, known.ids, known.ends, found)
        return found, id_ends

    def _known(self) -> Known:
        known: Known | None = getattr(self._threads, "known", None)
        if known is None or known.size > MOST_KNOWN:
            known = Known()
            self._threads.known = known
        return known
