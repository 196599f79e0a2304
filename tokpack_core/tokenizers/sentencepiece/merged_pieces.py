"""BPE over characters, as SentencePiece and files in its manner have it, of texts of any length.

A text is merged in windows, as bytes (see `window_kernels`): first of all characters are made of their bytes, and then
merges apply, the lowest rank first. A character that is not known stays bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.encoder import BpeModel, byte_merges
from tokpack_core.bpe.encoder_kernels import FREE, fill_merges
from tokpack_core.bpe.window_kernels import WINDOW
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.sentencepiece.merge_kernels import id_borders, merge_between, write_ids
from tokpack_core.tokenizers.sentencepiece.piece_trie import byte_trie

Ids = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Merges:
    """What text merges into, in UTF-8."""

    characters: AbstractSet[bytes]
    """Those that are symbols; all others stay bytes."""
    rows: Iterable[tuple[bytes, bytes, int]]
    """Two symbols that become one, and the rank of that, from 0 on; of several for the same two the last counts."""
    ids: dict[bytes, int]
    """Of what merges give, and of characters; one without an id is written with those of its bytes."""


def last_of_each_pair(rows: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    keys = rows[::-1, 0].astype(np.int64) << 32 | rows[::-1, 1]
    last = rows.shape[0] - 1 - np.unique(keys, return_index=True)[1]
    return rows[np.sort(last)]


class MergedPieces:
    def __init__(
        self,
        merges: Merges,
        apart: list[tuple[bytes, float, int]],
        byte_ids: Ids,
        window: int = WINDOW,
    ) -> None:
        """`apart`: bytes, score and id of pieces that are found first, from left to right the longest, and that nothing
        merges with; byte_ids: [256]; window: bytes that are merged at a time."""
        symbols = {bytes([byte]): byte for byte in range(256)}
        rows = array("i")  # left, right, what they become, rank
        for content in sorted(merges.characters):
            for stop in range(2, len(content) + 1):
                if content[:stop] not in symbols:
                    symbols[content[:stop]] = len(symbols)
                    rows.extend((symbols[content[: stop - 1]], content[stop - 1], symbols[content[:stop]], 0))
        for content in merges.ids:
            symbols.setdefault(content, len(symbols))
        for first, second, place in merges.rows:
            rows.extend((symbols[first], symbols[second], symbols[first + second], place + 1))
        left, right, token, rank = last_of_each_pair(np.array(rows, np.int32).reshape(-1, 4)).T.copy()
        model = BpeModel(np.arange(256, dtype=np.int32), left, right, token, rank)
        self._merges = np.full((1 << max(4 * left.size, 16).bit_length(), 2), FREE, np.int64)
        fill_merges(self._merges, left, right, rank, token)
        self._byte_merges = byte_merges(model)
        self._model = model
        self._window = window
        written = [
            [merges.ids[content]] if content in merges.ids else byte_ids[list(content)].tolist() for content in symbols
        ]
        written += [[token] for _, _, token in apart]
        self._ends = np.cumsum([0, *map(len, written)])
        self._written = np.array([token for tokens in written for token in tokens], np.int32)
        contents = pa.array([content for content, _, _ in apart], pa.binary())
        self._apart = byte_trie(contents, np.arange(len(symbols), len(written), dtype=np.int32))

    def encode(self, texts: pa.Array) -> Encoded:
        """`texts`: string array without nulls."""
        data, offsets = text_buffers(texts)
        found = np.empty(data.size, np.int32)
        tables = self._model.byte_ids, self._byte_merges, self._merges
        trie = (self._apart.keys, self._apart.children, self._apart.tokens)
        borders = np.zeros(offsets.size, np.int64)
        merge_between(data, offsets, trie, *tables, self._window, found, borders[1:])
        count = int(borders[-1])
        found.resize(count, refcheck=False)
        id_borders(found, borders, self._ends)
        ids = found if borders[-1] == count else np.empty(borders[-1], np.int32)
        write_ids(found, self._ends, self._written, ids)
        return Encoded(ids, borders)
