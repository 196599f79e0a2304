"""What a tokenizer is to the rest of tokpack, whatever its family and the library behind it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from tokpack_core.tokenizers.encoded import Encoded

if TYPE_CHECKING:
    from tokpack_core.config import TrainConfig, UnicodeForm

VOCABULARY_SCHEMA = pa.schema(
    [("id", pa.int32()), ("token", pa.binary()), ("special", pa.bool_()), ("byte_fallback", pa.bool_())]
)


class Tokenizer(Protocol):
    """Encodes and decodes ordinary text; knows its special tokens by role."""

    family: str
    vocab_size: int
    """Largest possible id + 1, added tokens included."""
    special_tokens: dict[str, int]
    """Role (eod, pad, bos, unk, image) → id; a role that the tokenizer lacks has no entry."""
    unicode: UnicodeForm
    """The unicode form that the tokenizer's own file applies to raw text."""
    training: Mapping[str, Any]
    """Figures of its training (documents, bytes, bytes_dropped, …); empty for a tokenizer trained elsewhere."""

    def __hash__(self) -> int:
        """By identity: what is made from a tokenizer may be kept for as long as it is in use."""
        ...

    def encode(self, texts: pa.Array) -> Encoded:
        """Ids of a string array without nulls. Text that looks like a special token is text; nothing is added."""
        ...

    def decode(self, encoded: Encoded) -> pa.Array:
        """One string a document, special tokens kept; bytes that are no UTF-8 become U+FFFD as Python's `replace` does.

        Raises InputError for an id that is not in the vocabulary.
        """
        ...

    def vocabulary(self) -> pa.Table:
        """One row an existing id, in id order (ids may have holes): see VOCABULARY_SCHEMA.

        `token` holds the bytes of text that the id stands for; for a special token, its string.
        """
        ...

    def save(self, folder: Path) -> None:
        """Write the tokenizer's files and `tokenizer_config.json` into an existing folder."""
        ...


def describe(tokenizer: Tokenizer) -> dict[str, Any]:
    """What the manifest says of a tokenizer."""
    return {
        "family": tokenizer.family,
        "vocab_size": tokenizer.vocab_size,
        "special_tokens": tokenizer.special_tokens,
        "unicode": tokenizer.unicode,
    }


def missing_entries(config: TrainConfig, tokenizer: Tokenizer) -> dict[str, int]:
    """How many entries the text had not for a vocabulary of the size that was asked for, if any."""
    missing = (config.vocab_size or 0) - tokenizer.vocab_size
    return {"entries_missing": missing} if missing > 0 else {}
