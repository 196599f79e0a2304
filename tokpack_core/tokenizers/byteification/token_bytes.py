"""Tokens as raw bytes: the alphabets that hide bytes in printable characters, and decoding by concatenation.

Byte-level BPE files write each of the 256 bytes as one printable character (GPT-2, Radford et al. 2019): printable
Latin-1 bytes stand for themselves, the other 68 are U+0100 onwards in byte order. SentencePiece writes a space as
U+2581 and a byte without a piece as `<0xNN>`. Undone, the bytes of a document are its tokens' bytes in a row.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tokpack_core.corpus.text_buffers import text_array, text_buffers
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.protocol import VOCABULARY_SCHEMA

PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
SHIFTED = [byte for byte in range(256) if byte not in PRINTABLE]
CHARACTER_TO_BYTE = {chr(byte): byte for byte in PRINTABLE} | {
    chr(0x100 + rank): byte for rank, byte in enumerate(SHIFTED)
}

BYTE_TO_CHARACTER = {byte: character for character, byte in CHARACTER_TO_BYTE.items()}
ALPHABET = "".join(BYTE_TO_CHARACTER[byte] for byte in range(256))
"""A code page, so that Python's codecs translate tokens."""
CODES = codecs.charmap_build(ALPHABET)
BYTE_OF_CHARACTER = np.full(0x100 + len(SHIFTED) + 1, -1, np.int16)
"""By code point, -1 for what is not of the alphabet; the last one stands for all behind it."""
BYTE_OF_CHARACTER[list(map(ord, CHARACTER_TO_BYTE))] = list(CHARACTER_TO_BYTE.values())

BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
BYTE_PIECE_LENGTH = len("<0x00>")
META_SPACE = "\u2581"


def byte_level_bytes(token: str) -> bytes | None:
    """Bytes of a token written in the byte-level alphabet; None if a character is not of that alphabet."""
    try:
        return codecs.charmap_encode(token, "strict", CODES)[0]
    except UnicodeEncodeError:
        return None


def byte_level_tokens(names: pa.Array) -> pa.Array:
    """The same of many tokens (string array): binary, null where a character is not of that alphabet."""
    data, offsets = text_buffers(names)
    characters = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), "<u4")
    found = BYTE_OF_CHARACTER[np.minimum(characters, BYTE_OF_CHARACTER.size - 1)]
    starts_character = (data & 0xC0) != 0x80
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(starts_character)])[offsets]
    other = np.concatenate([np.zeros(1, np.int64), np.cumsum(found < 0)])[before]
    tokens = text_array(found.astype(np.uint8), before, pa.binary())
    return pc.if_else(pa.array(np.diff(other) == 0), tokens, None)


def byte_level_name(token: bytes) -> str:
    """A token written in the byte-level alphabet."""
    return codecs.charmap_decode(token, "strict", ALPHABET)[0]


def byte_piece(token: str) -> bytes | None:
    """The byte of a `<0xNN>` piece; None for any other token."""
    match = BYTE_PIECE.fullmatch(token) if len(token) == BYTE_PIECE_LENGTH else None
    return bytes([int(match[1], 16)]) if match else None


def vocabulary_table(
    ids: Sequence[int], tokens: Sequence[bytes], special: Sequence[bool], byte_fallback: Sequence[bool]
) -> pa.Table:
    """Rows of the protocol's vocabulary, put in id order."""
    table = pa.table([ids, tokens, special, byte_fallback], schema=VOCABULARY_SCHEMA)
    return table.sort_by("id")


class ByteDecoder:
    """Decodes by concatenating the bytes of tokens, without a loop over tokens."""

    def __init__(self, vocabulary: pa.Table, vocab_size: int) -> None:
        rows = np.full(vocab_size, -1, np.int64)
        rows[vocabulary["id"].to_numpy()] = np.arange(len(vocabulary))
        tokens = vocabulary["token"].combine_chunks().cast(pa.large_binary())
        self._tokens = tokens.take(pa.array(rows, mask=rows < 0))

    @cached_property
    def _begins_with_space(self) -> npt.NDArray[np.bool_]:
        return np.array([(token or b"")[:1] == b" " for token in self._tokens.to_pylist()], bool)

    def decode(self, encoded: Encoded, drop_first_space: bool = False) -> pa.Array:
        """Strings of the documents; `drop_first_space` leaves out the space that an encoder put before each text."""
        ids = encoded.ids
        known = len(self._tokens)
        if ids.size and (ids.min() < 0 or ids.max() >= known):
            raise unknown_id(ids, known)
        tokens = self._tokens.take(pa.array(ids))
        if tokens.null_count:
            raise unknown_id(ids[tokens.is_null().to_numpy(zero_copy_only=False)], known)
        ends = np.frombuffer(tokens.buffers()[1], np.int64)[: ids.size + 1] if ids.size else np.zeros(1, np.int64)
        borders = ends[encoded.offsets]
        if not drop_first_space:
            return to_strings(borders, tokens.buffers()[2])
        starts = borders[:-1].copy()
        filled = np.flatnonzero(encoded.lengths)
        starts[filled] += self._begins_with_space[ids[encoded.offsets[:-1][filled]]]
        whole = memoryview(tokens.buffers()[2] or b"")
        return pa.array(
            [
                bytes(whole[start:stop]).decode("utf-8", "replace")
                for start, stop in zip(starts, borders[1:], strict=True)
            ],
            pa.string(),
        )


def to_strings(borders: npt.NDArray[np.int64], data: pa.Buffer | None) -> pa.Array:
    """Strings between consecutive borders of a byte buffer; what is no UTF-8 becomes U+FFFD."""
    documents = borders.size - 1
    buffers = [None, pa.py_buffer(np.ascontiguousarray(borders)), data or pa.py_buffer(b"")]
    binary = pa.LargeBinaryArray.from_buffers(pa.large_binary(), documents, buffers)
    try:
        return binary.cast(pa.large_string()).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([value.decode("utf-8", "replace") for value in binary.to_pylist()], pa.string())


def unknown_id(ids: npt.NDArray[np.int32], vocab_size: int) -> InputError:
    """The error for ids of which the smallest or the largest is not in the vocabulary."""
    token = int(ids.min()) if ids.min() < 0 else int(ids.max())
    return InputError(
        f"id {token} is not in the vocabulary, whose ids are below {vocab_size}: decode with the tokenizer that encoded"
    )
