"""Texts that hold added tokens which are not special: they get their ids, what stands between them an encoder's.

Hugging Face tokenizers look for added tokens before all else: for those that are not `normalized` in the text as it is,
then for the others in what that leaves, normalized. Each time the leftmost one is taken, and of several the longest. A
special one that is found so is read as text (`encode_special_tokens`), and none is looked for within it. What stands
between tokens is normalized, split and encoded by itself, as if it were a text.

Tokens that take white space with them or want to be a word by themselves are left to the library.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.corpus.text_buffers import text_array, text_buffers
from tokpack_core.tokenizers.encoded import Encode, Encoded
from tokpack_core.tokenizers.library_texts import Prepare

Int64s = npt.NDArray[np.int64]
TEXT = -1
"""In the place of an id: a stretch of text."""
OF_CONTEXT = ("lstrip", "rstrip", "single_word")


@dataclass(frozen=True)
class Found:
    """Documents in pieces, in their order: the added tokens, and stretches of text that are not empty.

    Attributes:
        texts: the stretches.
        ids: of each piece the id, or TEXT.
        documents: the document of each piece.
    """

    texts: pa.Array
    ids: Int64s
    documents: Int64s


class Search:
    """One search for added tokens."""

    def __init__(self, tokens: dict[bytes, int]) -> None:
        """`tokens`: id, or TEXT for a special one, by what is looked for."""
        self._tokens = tokens
        longest_first = sorted(tokens, key=len, reverse=True)
        self._any = re.compile(b"|".join(map(re.escape, longest_first))) if tokens else None

    def find(self, texts: pa.Array) -> Found:
        data, offsets = text_buffers(texts)
        view = data.data
        borders: list[int] = [0]
        ids: list[int] = []
        documents: list[int] = []

        def add(stop: int, token: int, document: int) -> None:
            if stop > borders[-1]:
                borders.append(stop)
                ids.append(token)
                documents.append(document)

        for document in range(offsets.size - 1):
            stop = int(offsets[document + 1])
            for match in self._any.finditer(view, int(offsets[document]), stop) if self._any else ():
                token = self._tokens[match[0]]
                if token != TEXT:
                    add(match.start(), TEXT, document)
                    add(match.end(), token, document)
            add(stop, TEXT, document)
        pieces = text_array(data, np.array(borders, np.int64), pa.large_string())
        found = np.array(ids, np.int64)
        stretches = pieces if (found == TEXT).all() else pieces.filter(pa.array(found == TEXT))
        return Found(stretches, found, np.array(documents, np.int64))


class AddedTokens:
    def __init__(self, as_they_are: Search, normalized: Search, prepared: Prepare) -> None:
        """`prepared`: texts as the library's normalizer leaves them."""
        self._as_they_are, self._normalized, self._prepared = as_they_are, normalized, prepared

    def encode(self, texts: pa.Array, plain: Encode) -> Encoded:
        """`plain` encodes text that is normalized."""
        outer = self._as_they_are.find(texts)
        outer_ids, outer_documents, prepared = outer.ids, outer.documents, self._prepared(outer.texts)
        del outer  # a long text is not held longer than it takes
        inner = self._normalized.find(prepared)
        del prepared
        encoded = plain(inner.texts)
        # The pieces of both searches, each at the place of the outer one that it comes from.
        stretches, tokens = np.flatnonzero(outer_ids == TEXT), np.flatnonzero(outer_ids != TEXT)
        places = np.concatenate([stretches[inner.documents], tokens])
        order = np.argsort(places, kind="stable")
        ids = np.concatenate([inner.ids, outer_ids[tokens]])[order]
        lengths = np.ones(ids.size, np.int64)
        lengths[ids == TEXT] = encoded.lengths
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        written = np.empty(int(ends[-1]), np.int32)
        is_text = np.ones(written.size, np.bool_)
        is_text[ends[:-1][ids != TEXT]] = False
        written[is_text] = encoded.ids
        written[~is_text] = ids[ids != TEXT]
        documents = outer_documents[places[order]]
        return Encoded(written, ends[np.searchsorted(documents, np.arange(len(texts) + 1))])


def added_tokens(
    listed: list[dict[str, Any]], normalize: Callable[[str], str] | None, prepared: Prepare
) -> AddedTokens | None:
    """`listed`: as a tokenizer.json lists them. None where the library must look for them."""
    if any(token[flag] for token in listed if not token["special"] for flag in OF_CONTEXT):
        return None
    searches: tuple[dict[bytes, int], dict[bytes, int]] = {}, {}
    for token in listed:
        content = normalize(token["content"]) if normalize and token["normalized"] else token["content"]
        searches[token["normalized"]].setdefault(content.encode(), TEXT if token["special"] else token["id"])
    return AddedTokens(Search(searches[0]), Search(searches[1]), prepared)
