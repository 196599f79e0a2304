"""The first of two steps of a superword encoder: the tokens of the word merges, and which of them may join.

A superword model merges words first, then whole neighbours. Which neighbours, is one of two rules:

- `words` (BoundlessBPE, arXiv 2504.00178): pretokens that are one token each, and eligible;
- `pieces` (SuperBPE, arXiv 2503.13423): all tokens within a piece that the second regex leaves together.

A piece is a sentence or more, and would be met once only. So it is cut wherever no word merge reaches over: between two
bytes that no merge has at the end of its left and the start of its right side. That changes no token, and what is left
are words, which come back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.automaton import compile_splits
from tokpack_core.bpe.encoder import BpeModel, ByteBpeEncoder
from tokpack_core.bpe.pretokenization import CHUNK_PRETOKENS, automaton_chunks
from tokpack_core.bpe.superword_unit_kernels import cut_pieces, join_pieces, join_words
from tokpack_core.corpus.text_buffers import text_buffers

Item = TypeVar("Item", bound=np.generic)


@dataclass(frozen=True)
class Joined:
    """Tokens of documents: document d holds ids[borders[d] : borders[d + 1]]."""

    ids: npt.NDArray[np.int32]
    joins: npt.NDArray[np.uint8]
    """[ids]: 1 where a token may be merged with the one before it"""
    borders: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Part:
    """Tokens that follow on those before, and where documents end among them."""

    ids: npt.NDArray[np.int32]
    joins: npt.NDArray[np.uint8]
    ended: npt.NDArray[np.int64]
    """[documents that end here]: tokens of this part before their ends"""
    first: int
    """Place of the first of these documents."""


class WordEncoder(Protocol):
    def encode_pretokens(
        self, data: npt.NDArray[np.uint8], begin: int, ends: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]: ...


class JoinableWords:
    def __init__(
        self,
        model: BpeModel,
        splits: tuple[str, ...],
        eligible: npt.NDArray[np.bool_],
        encoder: WordEncoder | None = None,
    ) -> None:
        """`eligible` [ids]; `encoder` of words: by the merges of the model, if it is not another one.

        Raises Unsupported for a regex that has no automaton.
        """
        self._encoder = encoder or ByteBpeEncoder(model, splits)
        self._automaton = compile_splits(splits, "16.0")
        self._eligible = eligible

    def encode(self, texts: pa.Array) -> Joined:
        return whole(self._parts(texts), len(texts), texts.nbytes)

    def _parts(self, texts: pa.Array) -> Iterator[Part]:
        joined = False
        for chunk in automaton_chunks(*text_buffers(texts), self._automaton):
            ids, id_ends = self._encoder.encode_pretokens(chunk.data, chunk.begin, chunk.ends)
            joins = np.empty(ids.size, np.uint8)
            joined = bool(join_words(ids, id_ends[1:], self._eligible, joined, joins))
            yield Part(ids, joins, id_ends[chunk.borders], chunk.document)


class JoinablePieces:
    def __init__(self, model: BpeModel, splits: tuple[str, ...], tokens: dict[int, bytes]) -> None:
        """`tokens`: bytes of the tokens that the merges name. Raises Unsupported for a regex without an automaton."""
        self._encoder = ByteBpeEncoder(model, splits)
        self._automaton = compile_splits(splits, "16.0")
        self._crossing = crossings(model, tokens)

    def encode(self, texts: pa.Array) -> Joined:
        return whole(self._parts(texts), len(texts), texts.nbytes)

    def _parts(self, texts: pa.Array) -> Iterator[Part]:
        data, offsets = text_buffers(texts)
        unit_ends = np.empty(CHUNK_PRETOKENS, np.int64)
        begins_piece = np.empty(CHUNK_PRETOKENS, np.bool_)
        for chunk in automaton_chunks(data, offsets, self._automaton):
            place, at = 0, chunk.begin
            ended = 0
            while place < chunk.ends.size or ended < chunk.borders.size:
                begin = at
                count, place, at = cut_pieces(
                    data, chunk.begin, chunk.ends, place, at, self._crossing, unit_ends, begins_piece
                )
                ids, id_ends = self._encoder.encode_pretokens(data, begin, unit_ends[:count])
                joins = np.empty(ids.size, np.uint8)
                join_pieces(id_ends[1:], begins_piece, joins)
                first = chunk.document + ended
                here = offsets[first + 1 : chunk.document + 1 + chunk.borders.size]
                here = here[: np.searchsorted(here, at, side="right")]
                ended += here.size
                # A document ends where a unit does, or is empty and ends where this part begins.
                units = np.where(here == begin, 0, np.searchsorted(unit_ends[:count], here) + 1)
                yield Part(ids, joins, id_ends[units], first)


def whole(parts: Iterator[Part], documents: int, most: int) -> Joined:
    """All parts in one, of up to `most` tokens; each is copied as it comes, and a single one is not."""
    borders = np.zeros(documents + 1, np.int64)
    ids, joins = np.empty(0, np.int32), np.empty(0, np.uint8)
    total = 0
    for part in parts:
        borders[part.first + 1 : part.first + 1 + part.ended.size] = total + part.ended
        if total == 0:
            ids, joins = part.ids, part.joins
        elif part.ids.size:
            if total + part.ids.size > ids.size:
                ids, joins = with_room(ids, most), with_room(joins, most)
            ids[total : total + part.ids.size] = part.ids
            joins[total : total + part.ids.size] = part.joins
        total += part.ids.size
    joined = Joined(ids[:total], joins[:total], borders)
    starts = borders[:-1]
    joined.joins[starts[starts < total]] = 0
    return joined


def with_room(row: npt.NDArray[Item], size: int) -> npt.NDArray[Item]:
    """The row with room for `size` entries; what is not written to takes no memory."""
    larger = np.empty(size, row.dtype)
    larger[: row.size] = row
    return larger


def crossings(model: BpeModel, tokens: dict[int, bytes]) -> npt.NDArray[np.bool_]:
    """[65536]: whether some merge joins a left side that ends in the first byte to a right one that starts with the
    second, by first << 8 | second."""
    known = sorted(tokens)
    last, first = np.zeros(known[-1] + 1, np.int64), np.zeros(known[-1] + 1, np.int64)
    last[known] = [tokens[token][-1] for token in known]
    first[known] = [tokens[token][0] for token in known]
    table = np.zeros(1 << 16, np.bool_)
    table[last[model.left] << 8 | first[model.right]] = True
    return table
