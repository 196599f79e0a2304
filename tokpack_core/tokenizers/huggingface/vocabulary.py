"""The vocabulary of a tokenizer.json as the protocol's table: what bytes of text each entry stands for.

Entries of a byte-level model are written in its alphabet; one with another character stands for itself. In other models
U+2581 is a space, `<0xNN>` a byte, and a continuing prefix such as `##` no text. Done for all entries at once: a
quarter of a million are usual.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import AddedToken
from tokenizers import Tokenizer as Engine

from tokpack_core.tokenizers.byteification.token_bytes import (
    BYTE_PIECE,
    META_SPACE,
    byte_level_tokens,
    byte_piece,
)
from tokpack_core.tokenizers.protocol import VOCABULARY_SCHEMA


def vocabulary_of(engine: Engine, byte_level: bool, prefix: str) -> pa.Table:
    """Rows of the protocol's vocabulary, in id order; `prefix`: of entries that continue a word, or nothing."""
    added: dict[int, AddedToken] = engine.get_added_tokens_decoder()
    by_name: dict[str, int] = engine.get_vocab(with_added_tokens=False)
    all_ids = np.fromiter(by_name.values(), np.int32, len(by_name))
    ids, rows = np.unique(all_ids, return_index=True)  # a file may give two entries one id
    own = ~np.isin(ids, np.array(list(added), np.int32))
    names = pa.array(list(by_name), pa.string()).take(pa.array(rows[own]))
    del by_name
    no = pa.array(np.zeros(len(names), np.bool_))
    byte_fallback = no if byte_level else is_byte_piece(names)
    tokens = byte_level_text(names) if byte_level else plain_text(names, prefix)
    table = pa.table([pa.array(ids[own]), tokens, no, byte_fallback], VOCABULARY_SCHEMA)
    return pa.concat_tables([table, table_of_added(added, byte_level, prefix)]).combine_chunks().sort_by("id")


def table_of_added(added: dict[int, AddedToken], byte_level: bool, prefix: str) -> pa.Table:
    """The rows of added tokens. Gemma's runs of spaces are such, written as its other entries are."""
    names = pa.array([token.content for token in added.values()], pa.string())
    special = pa.array([token.special for token in added.values()], pa.bool_())
    literal = names.cast(pa.binary())
    tokens = literal if byte_level else pc.if_else(special, literal, plain_text(names, prefix))
    no = pa.array(np.zeros(len(names), np.bool_))
    return pa.table([pa.array(added, pa.int32()), tokens, special, no], VOCABULARY_SCHEMA)


def byte_level_text(names: pa.Array) -> pa.Array:
    return pc.coalesce(byte_level_tokens(names), names.cast(pa.binary()))


def plain_text(names: pa.Array, prefix: str) -> pa.Array:
    """For what is not byte-level the nearest that can be said."""
    text = names
    if prefix:
        text = pc.if_else(pc.starts_with(names, prefix), pc.utf8_slice_codeunits(names, len(prefix)), names)
    tokens = pc.replace_substring(text, META_SPACE, " ").cast(pa.binary())
    of_bytes = is_byte_piece(names)
    pieces = [byte_piece(name) for name in names.filter(of_bytes).to_pylist()]
    return pc.replace_with_mask(tokens, of_bytes, pa.array(pieces, pa.binary()))


def is_byte_piece(names: pa.Array) -> pa.Array:
    return pc.match_substring_regex(names, f"^{BYTE_PIECE.pattern}$")
