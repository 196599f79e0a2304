"""What can be told of each token from its bytes alone, for all tokens at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tokpack_core.bpe.word_table import WordTable
from tokpack_core.bpe.word_table_kernels import add_counts
from tokpack_core.corpus.text_buffers import read_only, text_buffers
from tokpack_core.vocabulary.scripts import BYTES, scripts_of
from tokpack_core.vocabulary.spelling_kernel import are_utf8
from tokpack_core.vocabulary.utilization import SPECIAL, kinds_of_tokens

RESERVED = r"^<[^>]*(unused|reserved|extra_id|placeholder|dummy)[^>]*>$"
"""Names under which publishers keep entries free for later."""


@dataclass(frozen=True, eq=False)
class TokenFeatures:
    """All arrays are [rows] of the vocabulary, in its order.

    Attributes:
        text: string array; null where the bytes are not UTF-8.
        kind: int8, as `kinds_of_tokens`.
        bytes, characters: int64; characters are 0 where the bytes are not UTF-8.
        script: int8, index into `SCRIPTS`.
        space: begins with a space and goes on with something else.
        white: white space only. newline: holds a line end. digits: decimal digits only, after at most one space.
        reserved: special, or named like one that is kept free.
    """

    ids: NDArray[np.int32]
    tokens: pa.Array
    text: pa.Array
    kind: NDArray[np.int8]
    bytes: NDArray[np.int64]
    characters: NDArray[np.int64]
    script: NDArray[np.int8]
    space: NDArray[np.bool_]
    white: NDArray[np.bool_]
    newline: NDArray[np.bool_]
    digits: NDArray[np.bool_]
    reserved: NDArray[np.bool_]

    @property
    def entry(self) -> NDArray[np.bool_]:
        """Rows that are no special tokens."""
        return self.kind != SPECIAL


def token_features(vocabulary: pa.Table) -> TokenFeatures:
    """vocabulary: one row an id, as the tokenizer's protocol gives it."""
    tokens = vocabulary["token"].combine_chunks()
    data, offsets = text_buffers(tokens)
    valid = are_utf8(data, offsets)
    text = pc.if_else(pa.array(valid), tokens, pa.scalar(None, pa.binary())).cast(pa.string())
    characters = pc.fill_null(pc.utf8_length(text), 0).to_numpy().astype(np.int64)
    script = scripts_of("".join(pc.fill_null(text, "").to_pylist()), characters)
    script[~valid] = BYTES
    special = vocabulary["special"].to_numpy()
    return TokenFeatures(
        ids=vocabulary["id"].to_numpy(),
        tokens=tokens,
        text=text,
        kind=kinds_of_tokens(vocabulary, valid),
        bytes=np.diff(offsets),
        characters=characters,
        script=script,
        space=flags(text, r"^ [^ ]"),
        white=flags(text, r"^\s+$"),
        newline=flags(text, r"[\r\n]"),
        digits=flags(text, r"^ ?\p{Nd}+$"),
        reserved=flags(text, RESERVED) | special,
    )


def flags(text: pa.Array, pattern: str) -> NDArray[np.bool_]:
    """bool [rows]: where RE2 finds the pattern; False for null."""
    found = pc.fill_null(pc.match_substring_regex(text, pattern), False)
    return found.to_numpy(zero_copy_only=False).astype(bool)


def token_table(tokens: pa.Array, held: NDArray[np.bool_]) -> WordTable:
    """A table of the different byte strings among tokens; its values are above 0 for those that are `held`."""
    data, offsets = text_buffers(tokens)
    table = WordTable()
    table.reserve(len(tokens), max(data.size, len(tokens)))
    filled = np.flatnonzero(np.diff(offsets))
    table.used, table.filled = add_counts(
        read_only(data),
        0,
        offsets[filled + 1],
        held[filled].astype(np.int64),
        table.slots,
        table.entries,
        table.arena,
        0,
        0,
    )
    return table
