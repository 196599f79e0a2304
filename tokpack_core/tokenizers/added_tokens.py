"""Texts that hold added tokens which are not special: they get their ids, what stands between them an encoder's.

Hugging Face tokenizers look for added tokens before all else: for those that are not `normalized` in the text as it is,
then for the others in what that leaves, normalized. Each time the leftmost one is taken, and of several the longest. A
special one that is found so is read as text (`encode_special_tokens`), and none is looked for within it. What stands
between tokens is normalized, split and encoded by itself, as if it were a text.

Tokens that take white space with them or want to be a word by themselves are left to the library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.corpus.text_buffers import text_array, text_buffers
from tokpack_core.tokenizers.encoded import Encode, Encoded, concatenate
from tokpack_core.tokenizers.library_texts import Prepare
from tokpack_core.tokenizers.long_documents import parts_at
from tokpack_core.tokenizers.text_batches import BATCH_BYTES, text_batches

if TYPE_CHECKING:
    from tokpack_core.tokenizers.sentencepiece.piece_trie import PieceTrie

SPECIAL = -2
"""In the place of an id: what is found, and is text all the same."""
OF_CONTEXT = ("lstrip", "rstrip", "single_word")


class Search:
    """One search for added tokens."""

    def __init__(self, tokens: dict[bytes, int], batch: int = BATCH_BYTES) -> None:
        """`tokens`: id, or SPECIAL, by what is looked for; `batch`: bytes that are looked through at a time."""
        self._tokens = tokens
        self._batch = batch
        self._trie: PieceTrie | None = None

    def around(self, texts: pa.Array, encode: Encode) -> Encoded:
        """`encode` is given the text between the tokens, without empty stretches."""
        if not self._tokens:
            return encode(texts)
        parts, edges = self._cut(texts)
        encoded = concatenate(self._around(batch, encode) for batch in text_batches(parts, self._batch))
        return Encoded(encoded.ids, encoded.offsets[edges])

    def _cut(self, texts: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
        """Long texts after tokens: what follows is looked through as if it began there."""
        from tokpack_core.tokenizers.added_tokens_kernels import cuts_after_pieces

        data, offsets = text_buffers(texts)
        cuts: list[int] = []
        for document in np.flatnonzero(np.diff(offsets) > self._batch).tolist():
            text = data[offsets[document] : offsets[document + 1]]
            found = np.empty(text.size // self._batch + 1, np.int64)
            count = cuts_after_pieces(text, self._searched(), self._batch, found)
            cuts += (found[:count] + offsets[document]).tolist()
        return parts_at(texts, cuts)

    def _around(self, texts: pa.Array, encode: Encode) -> Encoded:
        from tokpack_core.tokenizers.added_tokens_kernels import TEXT, find_pieces

        data, offsets = text_buffers(texts)
        trie, none = self._searched(), np.empty(0, np.int64)
        count = find_pieces(data, offsets, trie, none, np.empty(0, np.int32), none)
        ends, ids, documents = np.empty(count, np.int64), np.empty(count, np.int32), np.empty(count, np.int64)
        find_pieces(data, offsets, trie, ends, ids, documents)
        is_text = ids == TEXT
        pieces = text_array(data, np.concatenate([np.zeros(1, np.int64), ends]), pa.large_string())
        encoded = encode(pieces if is_text.all() else pieces.filter(pa.array(is_text)))
        lengths = np.ones(count, np.int64)
        lengths[is_text] = encoded.lengths
        borders = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        starts = borders[np.searchsorted(documents, np.arange(len(texts) + 1))]
        if is_text.all():
            return Encoded(encoded.ids, starts)
        written = np.empty(int(borders[-1]), np.int32)
        from_text = np.ones(written.size, np.bool_)
        from_text[borders[:-1][~is_text]] = False
        written[from_text] = encoded.ids
        written[~from_text] = ids[~is_text]
        return Encoded(written, starts)

    def _searched(self) -> tuple[npt.NDArray[Any], ...]:
        from tokpack_core.tokenizers.sentencepiece.piece_trie import byte_trie

        if self._trie is None:
            ids = np.array(list(self._tokens.values()), np.int32)
            self._trie = byte_trie(pa.array(list(self._tokens), pa.binary()), ids)
        return self._trie.keys, self._trie.children, self._trie.tokens


class AddedTokens:
    def __init__(self, as_they_are: Search, normalized: Search, prepared: Prepare) -> None:
        """`prepared`: texts as the library's normalizer leaves them."""
        self._as_they_are, self._normalized, self._prepared = as_they_are, normalized, prepared

    def encode(self, texts: pa.Array, plain: Encode) -> Encoded:
        """`plain` encodes text that is normalized."""
        return self._as_they_are.around(
            texts, lambda stretches: self._normalized.around(self._prepared(stretches), plain)
        )


def added_tokens(
    listed: list[dict[str, Any]], normalize: Callable[[str], str] | None, prepared: Prepare
) -> AddedTokens | None:
    """`listed`: as a tokenizer.json lists them. None where the library must look for them."""
    if any(token[flag] for token in listed if not token["special"] for flag in OF_CONTEXT):
        return None
    searches: tuple[dict[bytes, int], dict[bytes, int]] = {}, {}
    for token in listed:
        content = normalize(token["content"]) if normalize and token["normalized"] else token["content"]
        searches[token["normalized"]].setdefault(content.encode(), SPECIAL if token["special"] else token["id"])
    return AddedTokens(Search(searches[0]), Search(searches[1]), prepared)
