"""Encodes documents pretoken by pretoken, where ids of a pretoken depend on nothing but itself."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.automaton import Automaton
from tokpack_core.bpe.pretokenization import automaton_chunks
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.tokenizers.encoded import Encoded


class EncodesPretokens(Protocol):
    def encode_pretokens(
        self, data: npt.NDArray[np.uint8], begin: int, ends: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Ids of pretokens that follow each other from `begin`, and [pretokens + 1] how many stand before each."""


def encode_by_pretokens(texts: pa.Array, automaton: Automaton, words: EncodesPretokens) -> Encoded:
    """`texts`: string or binary array without nulls, UTF-8."""
    data, offsets = text_buffers(texts)
    borders = np.zeros(offsets.size, np.int64)
    parts: list[npt.NDArray[np.int32]] = []
    total = 0
    for chunk in automaton_chunks(data, offsets, automaton):
        ids, id_ends = words.encode_pretokens(data, chunk.begin, chunk.ends)
        borders[chunk.document + 1 : chunk.document + 1 + chunk.borders.size] = total + id_ends[chunk.borders]
        parts.append(ids)
        total += ids.size
    return Encoded(joined(parts, total), borders)


def joined(parts: list[npt.NDArray[np.int32]], size: int) -> npt.NDArray[np.int32]:
    """All parts in one array. The list is emptied on the way, so that no more than the largest is held twice."""
    if len(parts) == 1:
        return parts.pop()
    whole = np.empty(size, np.int32)
    while parts:
        last = parts.pop()
        whole[size - last.size : size] = last
        size -= last.size
    return whole
