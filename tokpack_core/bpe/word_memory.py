"""Encodes pretokens by any rule, each different one once (see `word_memory_kernels`).

A pretoken that is longer than LONGEST_KNOWN is encoded where it stands and not remembered, and the others are taken a
bounded number of bytes at a time, so that memory is that of the ids.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.pretoken_encoder import joined
from tokpack_core.bpe.word_memory_kernels import count_ids, find_words, write_ids
from tokpack_core.bpe.word_table import WordTable
from tokpack_core.bpe.word_table_kernels import PLACE
from tokpack_core.corpus.text_buffers import read_only

MOST_KNOWN = 32 * 2**20
"""Bytes of memory in each thread that encodes; at the limit all is forgotten."""
LONGEST_KNOWN = 1 << 12
MOST_AT_ONCE = 1 << 22
"""Bytes of pretokens that are looked up before it is seen how much memory is taken."""
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
        id_ends = np.zeros(ends.size + 1, np.int64)

        def parts() -> Iterator[Ids]:
            total = 0
            for start, stop in runs(begin, ends):
                first = begin if start == 0 else int(ends[start - 1])
                ids, run_ends = self._encode_run(data, first, ends[start:stop])
                id_ends[start + 1 : stop + 1] = total + run_ends
                total += ids.size
                yield ids

        return joined(parts(), int(ends[-1]) - begin if ends.size else 0), id_ends

    def _encode_run(self, data: npt.NDArray[np.uint8], begin: int, ends: Places) -> tuple[Ids, Places]:
        if ends.size == 1 and ends[0] - begin > LONGEST_KNOWN:
            ids, begins = self._encode_words(data, np.array([begin, ends[0]], np.int64))
            return ids, begins[1:]
        return self._encode_known(data, begin, ends)

    def _encode_known(self, data: npt.NDArray[np.uint8], begin: int, ends: Places) -> tuple[Ids, Places]:
        known = self._known()
        table = known.table
        table.reserve(ends.size, int(ends[-1]) - begin)
        numbers = np.empty(ends.size, np.int64)
        before = table.used
        table.used, table.filled = find_words(
            data, begin, ends, table.slots, table.entries, table.arena, table.used, table.filled, numbers
        )
        if table.used > before:
            offsets = np.append(table.entries[before : table.used, PLACE].astype(np.int64), table.filled)
            ids, begins = self._encode_words(read_only(table.arena), offsets)
            known.ends = np.concatenate([known.ends, known.ids.size + begins[1:]])
            known.ids = np.concatenate([known.ids, ids])
        id_ends = np.empty(ends.size, np.int64)
        found = np.empty(int(count_ids(numbers, known.ends, id_ends)), np.int32)
        write_ids(numbers, known.ids, known.ends, found)
        return found, id_ends

    def _known(self) -> Known:
        known: Known | None = getattr(self._threads, "known", None)
        if known is None or known.size > MOST_KNOWN:
            known = Known()
            self._threads.known = known
        return known


def runs(begin: int, ends: Places) -> Iterator[tuple[int, int]]:
    """Pretokens in runs of up to MOST_AT_ONCE bytes, each one that is longer than LONGEST_KNOWN by itself."""
    lengths = np.diff(ends, prepend=begin)
    long = np.flatnonzero(lengths > LONGEST_KNOWN)
    start = 0
    for place in [*long.tolist(), ends.size]:
        while start < place:
            most = (begin if start == 0 else ends[start - 1]) + MOST_AT_ONCE
            stop = min(int(np.searchsorted(ends, most, side="right")), place)
            yield start, stop
            start = stop
        if place < ends.size:
            yield place, place + 1
        start = place + 1
