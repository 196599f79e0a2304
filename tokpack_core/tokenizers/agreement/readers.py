"""A tokenizer's files as other libraries open them, and the first thing in which one of them is not as expected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import sentencepiece
from tokenizers import Tokenizer as Engine

from tokpack_core.tokenizers.agreement.normalization import differing_documents
from tokpack_core.tokenizers.encoded import Bools, Encoded, documents_of, from_lists
from tokpack_core.tokenizers.encoding_errors import lists_or_error
from tokpack_core.tokenizers.huggingface.model import ids_of
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.tiktoken import export as tiktoken_export


@dataclass(frozen=True)
class Reader:
    """A tokenizer file as another library opens it."""

    vocab_size: int
    token_id: Callable[[str], int | None]
    encode: Callable[[list[str]], list[list[int]]]
    decode: Callable[[list[list[int]]], list[str]]
    id_of_role: Callable[[str], int | None] | None = None
    """The id of a role's token, in a library that knows roles; of a role that it does not know, None."""


@dataclass(frozen=True)
class Expected:
    """What a library must read from the files."""

    vocab_size: int
    special: Mapping[str, tuple[str, int]]
    """role → string, id"""
    texts: pa.Array
    ids: Encoded
    restored: pa.Array
    """What the ids are decoded to."""

    def of(self, chosen: Bools) -> Expected:
        """The same of some texts only, bool [texts]."""
        mask, ids = pa.array(chosen), documents_of(self.ids, np.flatnonzero(chosen))
        return replace(self, texts=self.texts.filter(mask), ids=ids, restored=self.restored.filter(mask))


def expected_of(tokenizer: Tokenizer, texts: pa.Array, ids: Encoded) -> Expected:
    """`ids`: those of the texts."""
    special = {role: (text, tokenizer.special_tokens[role]) for role, text in special_strings(tokenizer).items()}
    return Expected(tokenizer.vocab_size, special, texts, ids, tokenizer.decode(ids))


def special_strings(tokenizer: Tokenizer) -> dict[str, str]:
    """role → string"""
    table = tokenizer.vocabulary()
    strings = dict(zip(table["id"].to_pylist(), table["token"].to_pylist(), strict=True))
    return {role: strings[token].decode() for role, token in tokenizer.special_tokens.items()}


def first_difference(reader: Reader, expected: Expected) -> str | None:
    """What the reader sees otherwise, in words; None if nothing."""
    entry = other_entry(reader, expected)
    if entry is not None:
        return entry
    theirs = from_lists(reader.encode(expected.texts.to_pylist()))
    for document in differing_documents(expected.ids, theirs):
        return f"other ids for the text that begins {expected.texts[document].as_py()[:80]!r}"
    return other_text(reader, expected)


def other_entry(reader: Reader, expected: Expected) -> str | None:
    """How the vocabulary's size or a special token is another; None if they are not."""
    if reader.vocab_size != expected.vocab_size:
        return f"{reader.vocab_size} entries, not {expected.vocab_size}"
    for role, (string, number) in expected.special.items():
        found = reader.token_id(string)
        if found != number:
            return f"id {found} for {string!r} ({role}), not {number}"
        known = None if reader.id_of_role is None else reader.id_of_role(role)
        if known not in (None, number):
            return f"id {known} as {role}, not {number}"
    return None


def other_text(reader: Reader, expected: Expected) -> str | None:
    """The first text that the ids are not decoded to; None if there is none."""
    restored = reader.decode(as_lists(expected.ids))
    for text, right in zip(restored, expected.restored.to_pylist(), strict=True):
        if text != right:
            return f"other text for the ids of {right[:80]!r}"
    return None


def as_lists(encoded: Encoded) -> list[list[int]]:
    """A list of ids a document."""
    lists: list[list[int]] = pa.LargeListArray.from_arrays(encoded.offsets, pa.array(encoded.ids)).to_pylist()
    return lists


def by_tokenizers(file: Path) -> Reader:
    # The library's own reading raises a bare Exception for a file that cannot be read.
    engine = Engine.from_buffer(file.read_bytes())
    return Reader(
        engine.get_vocab_size(),
        engine.token_to_id,
        partial(lists_or_error, partial(ids_of, engine)),
        lambda lists: engine.decode_batch(lists, skip_special_tokens=False),
    )


def by_tiktoken(folder: Path) -> Reader:
    encoding = tiktoken_export.open_with_tiktoken(folder)
    encode = partial(lists_or_error, encoding.encode_ordinary_batch)
    return Reader(encoding.n_vocab, encoding.encode_single_token, encode, encoding.decode_batch)


def by_sentencepiece(file: Path) -> Reader:
    processor = sentencepiece.SentencePieceProcessor(model_proto=file.read_bytes())
    return Reader(processor.vocab_size(), processor.piece_to_id, processor.encode, processor.decode)
