"""Which pretokens are one token that may be part of a superword: all that counting runs of words asks of the encoder.

A pretoken is one token if its bytes are those of a token, and encoding these gives it. So the tokens are encoded once,
and a text is split and looked up among them: their table stays in cache, where encoding every pretoken would not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.automaton import compile_splits
from tokpack_core.bpe.pretokenization import automaton_chunks
from tokpack_core.bpe.superword_unit_kernels import join_whole, whole_words
from tokpack_core.bpe.superword_units import Joined, Part, WordEncoder, whole
from tokpack_core.bpe.word_table import WordTable
from tokpack_core.bpe.word_table_kernels import VALUE, add_counts
from tokpack_core.corpus.text_buffers import read_only, text_buffers

NO_COUNTS = np.empty(0, np.int64)


class WholeWords:
    def __init__(
        self,
        encoder: WordEncoder,
        splits: tuple[str, ...],
        tokens: Sequence[bytes],
        eligible: npt.NDArray[np.bool_],
    ) -> None:
        """`tokens`: bytes by id; `eligible` [ids]. Raises Unsupported for a regex that has no automaton."""
        self._automaton = compile_splits(splits, "16.0")
        chosen = np.flatnonzero(eligible)
        spelled = [tokens[token] for token in chosen.tolist()]
        ends = np.cumsum([len(token) for token in spelled], dtype=np.int64)
        data = read_only(np.frombuffer(b"".join(spelled), np.uint8))
        ids, id_ends = encoder.encode_pretokens(data, 0, ends)
        alone = (np.diff(id_ends) == 1) & (ids[id_ends[:-1]] == chosen) if chosen.size else np.zeros(0, np.bool_)
        self._table = WordTable()
        self._table.reserve(chosen.size, data.size)
        table = self._table
        table.used, table.filled = add_counts(
            data, 0, ends, NO_COUNTS, table.slots, table.entries, table.arena, table.used, table.filled
        )
        # Each word has an entry of its own, in this order; its value is now the token, or -1.
        table.entries[: table.used, VALUE] = np.where(alone, chosen, -1).astype(np.uint64)

    def encode(self, texts: pa.Array) -> Joined:
        """A token for each pretoken; what is not whole and eligible has no id and joins nothing."""
        return whole(self._parts(texts), len(texts), texts.nbytes)

    def _parts(self, texts: pa.Array) -> Iterator[Part]:
        table = self._table
        joined = False
        for chunk in automaton_chunks(*text_buffers(texts), self._automaton):
            ids, joins = np.empty(chunk.ends.size, np.int32), np.empty(chunk.ends.size, np.uint8)
            whole_words(chunk.data, chunk.begin, chunk.ends, table.slots, table.entries, table.arena, ids)
            joined = bool(join_whole(ids, joined, joins))
            yield Part(ids, joins, chunk.borders, chunk.document)
