"""An exact encoder for byte-level BPE: split, look each pretoken up among those met before, merge the new ones.

A pretoken's ids depend on nothing but itself, so each different one is merged once and remembered, up to a limit of
memory. Everything is ordinary text: special tokens have no meaning here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.automaton import compile_splits
from tokpack_core.bpe.encoder_kernels import FREE, NONE, fill_merges
from tokpack_core.bpe.pretoken_encoder import encode_by_pretokens
from tokpack_core.bpe.pretoken_encoder_kernels import LENGTH_BITS, encode_pretokens
from tokpack_core.bpe.unicode_categories import UnicodeVersion
from tokpack_core.bpe.window_kernels import WINDOW
from tokpack_core.bpe.word_table import WordTable
from tokpack_core.bpe.word_table_kernels import VALUE, add_counts
from tokpack_core.tokenizers.encoded import Encoded

LONGEST_KNOWN = 128
MOST_KNOWN = 32 * 2**20
"""Bytes of memory for remembered pretokens, in each thread that encodes; at the limit they are forgotten. Eight times
as much was no faster on 155 MB in 26 languages: frequent words come back at once, and a small table stays in cache."""
MOST_KEPT = 2**21
"""Ids that a thread keeps room for. Of what is larger only the part that is written to takes memory."""


@dataclass(frozen=True)
class BpeModel:
    byte_ids: npt.NDArray[np.int32]
    """[256]: id of each byte"""
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    token: npt.NDArray[np.int32]
    """[merges]: the id that replaces left, right"""
    rank: npt.NDArray[np.int32]
    """[merges]: the lowest is merged first"""
    whole: tuple[tuple[bytes, int], ...] = ()
    """Pretokens that are tokens though merges may not lead to them (`ignore_merges` in Hugging Face files)."""


def from_ranks(ranks: dict[bytes, int]) -> BpeModel:
    """The model of a tiktoken rank file, where any two tokens that spell a third may merge into it."""
    rows = [
        (ranks[token[:cut]], ranks[token[cut:]], rank)
        for token, rank in ranks.items()
        for cut in range(1, len(token))
        if token[:cut] in ranks and token[cut:] in ranks
    ]
    left, right, token = np.array(rows, np.int32).reshape(-1, 3).T
    byte_ids = np.array([ranks[bytes([byte])] for byte in range(256)], np.int32)
    return BpeModel(byte_ids, left, right, token, token, tuple(ranks.items()))


@dataclass
class Remembered:
    table: WordTable = field(default_factory=WordTable)
    ids: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(1 << 16, np.int32))
    known: int = 0
    scratch: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))

    def written(self, size: int) -> npt.NDArray[np.int32]:
        """An array to write ids to; up to MOST_KEPT the same one as long as it is large enough."""
        if size > MOST_KEPT:
            return np.empty(size, np.int32)
        if self.scratch.size < size:
            self.scratch = np.empty(size, np.int32)
        return self.scratch

    def reserve(self, words: int, size: int) -> None:
        self.table.reserve(words, size)
        if self.known + size > self.ids.size:
            larger = np.empty(max(self.known + size, self.ids.size * 3 // 2), np.int32)
            larger[: self.known] = self.ids[: self.known]
            self.ids = larger


class ByteBpeEncoder:
    """Ids of ordinary text, in any number of threads; equal to what Hugging Face tokenizers or tiktoken give."""

    def __init__(
        self, model: BpeModel, splits: tuple[str, ...], version: UnicodeVersion = "16.0", window: int = WINDOW
    ) -> None:
        """`window`: bytes of a long pretoken that are merged at a time, which changes no id.

        Raises Unsupported for a regex that has no automaton.
        """
        self._automaton = compile_splits(splits, version)
        self._model = model
        rows = 1 << max(4 * model.left.size, 16).bit_length()
        self._merges = np.full((rows, 2), FREE, np.int64)
        fill_merges(self._merges, model.left, model.right, model.rank, model.token)
        self._byte_merges = byte_merges(model)
        self._longest_known = max([LONGEST_KNOWN, *(len(token) for token, _ in model.whole)])
        self._window = window
        self._threads = threading.local()

    @property
    def tables(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Merges of pairs of bytes and of any tokens, as `encoder_kernels` keeps them."""
        return self._byte_merges, self._merges

    def encode(self, texts: pa.Array) -> Encoded:
        """`texts`: string or binary array without nulls, UTF-8."""
        return encode_by_pretokens(texts, self._automaton, self)

    def encode_pretokens(
        self, data: npt.NDArray[np.uint8], begin: int, ends: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """Ids of pretokens that follow each other from `begin`, and [pretokens + 1] how many stand before each."""
        size = int(ends[-1]) - begin if ends.size else 0
        remembered = self._remembered()
        remembered.reserve(ends.size, min(size, ends.size * self._longest_known))
        table = remembered.table
        ids = remembered.written(size)
        id_ends = np.zeros(ends.size + 1, np.int64)
        table.used, table.filled, remembered.known = encode_pretokens(
            data,
            begin,
            ends,
            self._model.byte_ids,
            self._byte_merges,
            self._merges,
            self._longest_known,
            self._window,
            table.slots,
            table.entries,
            table.arena,
            table.used,
            table.filled,
            remembered.ids,
            remembered.known,
            ids,
            id_ends[1:],
        )
        if size <= MOST_KEPT:
            return ids[: id_ends[-1]].copy(), id_ends
        ids.resize(id_ends[-1], refcheck=False)
        return ids, id_ends

    def _remembered(self) -> Remembered:
        remembered: Remembered | None = getattr(self._threads, "remembered", None)
        if remembered is None or remembered.table.size + 4 * remembered.known > MOST_KNOWN:
            remembered = with_whole(self._model.whole)
            self._threads.remembered = remembered
        return remembered


def byte_merges(model: BpeModel) -> npt.NDArray[np.int64]:
    """By first byte << 8 | second: rank << 32 | token, or NONE."""
    byte_of = np.full(
        max(int(model.byte_ids.max()), int(model.left.max(initial=0)), int(model.right.max(initial=0))) + 1, -1
    )
    byte_of[model.byte_ids] = np.arange(256)
    first, second = byte_of[model.left], byte_of[model.right]
    both = (first >= 0) & (second >= 0)
    table = np.full(1 << 16, NONE, np.int64)
    values = model.rank[both].astype(np.int64) << 32 | model.token[both]
    np.minimum.at(table, first[both] << 8 | second[both], values)
    return table


def with_whole(whole: Iterable[tuple[bytes, int]]) -> Remembered:
    """A memory that knows whole pretokens from the start."""
    remembered = Remembered()
    tokens = [token for token, _ in whole]
    if not tokens:
        return remembered
    size = sum(map(len, tokens))
    remembered.reserve(len(tokens), max(size, len(tokens)))
    table = remembered.table
    ends = np.cumsum([len(token) for token in tokens])
    table.used, table.filled = add_counts(
        np.frombuffer(b"".join(tokens), np.uint8),
        0,
        ends,
        np.empty(0, np.int64),
        table.slots,
        table.entries,
        table.arena,
        0,
        0,
    )
    ids = np.array([token_id for _, token_id in whole], np.int32)
    remembered.ids[: ids.size] = ids
    remembered.known = ids.size
    table.entries[: ids.size, VALUE] = np.arange(ids.size, dtype=np.uint64) << LENGTH_BITS | np.uint64(1)
    return remembered
