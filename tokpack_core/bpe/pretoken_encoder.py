"""Encodes documents pretoken by pretoken, where ids of a pretoken depend on nothing but itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
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

    def parts() -> Iterator[npt.NDArray[np.int32]]:
        total = 0
        for chunk in automaton_chunks(data, offsets, automaton):
            ids, id_ends = words.encode_pretokens(data, chunk.begin, chunk.ends)
            borders[chunk.document + 1 : chunk.document + 1 + chunk.borders.size] = total + id_ends[chunk.borders]
            total += ids.size
            yield ids

    return Encoded(joined(parts(), data.size), borders)


def joined(parts: Iterator[npt.NDArray[np.int32]], most: int) -> npt.NDArray[np.int32]:
    """All parts in one array, `most` ids or fewer; each is copied as it comes, a single one is not."""
    first = next(parts, np.empty(0, np.int32))
    second = next(parts, None)
    if second is None:
        return first
    whole = np.empty(most, np.int32)  # what is not written to takes no memory
    at = 0
    for part in chain((first, second), parts):
        whole[at : at + part.size] = part
        at += part.size
    whole.resize(at, refcheck=False)
    return whole
