"""Tokenizers of some of a modular tokenizer's languages, with the ids of the whole.

BPE: the vocabulary stays as it is, so that ids do not move and no library sees holes; of the merges those stay whose
two parts and product are among the languages' ids. So no other id is ever given, while all can be decoded.

Unigram: pieces of other languages stay in their places and are marked as unused, which SentencePiece never matches.

A document may be encoded by the sub-tokenizer of its own language; one whose language has none has ids of the whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from threading import Lock

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer as Engine

from tokpack_core.errors import InputError
from tokpack_core.tokenizers.encoded import Encoded, concatenate, documents_of
from tokpack_core.tokenizers.huggingface.model import MERGES_SCHEMA, HuggingFaceTokenizer
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer

Languages = Mapping[str, npt.NDArray[np.int32]]
PROBE_ENTRIES = 100
EncodeBy = Callable[[Tokenizer, pa.Array], Encoded]


def encode_plain(tokenizer: Tokenizer, texts: pa.Array) -> Encoded:
    return tokenizer.encode(texts)


class SubTokenizers:
    """The sub-tokenizer of each language, made when it is first needed; usable in several threads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Raises InputError for a tokenizer that has no languages."""
        self._whole = tokenizer
        self._known = require_languages(tokenizer)
        self._made: dict[str, Tokenizer] = {}
        self._making = Lock()

    def having_one(self, languages: pa.Array) -> int:
        """How many of the languages, strings or null, have a sub-tokenizer."""
        return int(pc.sum(pc.is_in(languages, pa.array(self._known, languages.type))).as_py() or 0)

    def of(self, language: str | None) -> Tokenizer:
        """That of a language; the whole where it has none."""
        if language is None or language not in self._known:
            return self._whole
        with self._making:
            if language not in self._made:
                self._made[language] = sub_tokenizer(self._whole, [language])
            return self._made[language]

    def encode(self, texts: pa.Array, languages: pa.Array, encode: EncodeBy = encode_plain) -> Encoded:
        """Each text by the sub-tokenizer of its language; `languages`: strings or null, as many as texts."""
        kinds = pc.dictionary_encode(languages, null_encoding="encode")
        numbers = kinds.indices.to_numpy(zero_copy_only=False)
        parts, rows = [], []
        for number, language in enumerate(kinds.dictionary.to_pylist()):
            own = np.flatnonzero(numbers == number)
            parts.append(encode(self.of(language), texts.take(pa.array(own)) if own.size < len(texts) else texts))
            rows.append(own)
        encoded = concatenate(parts)
        return encoded if len(parts) < 2 else documents_of(encoded, np.argsort(np.concatenate(rows)))


@lru_cache(maxsize=1)
def sub_tokenizers(tokenizer: Tokenizer) -> SubTokenizers:
    """Those of the tokenizer in use, which are made once as long as it is the same object."""
    return SubTokenizers(tokenizer)


def languages_of(tokenizer: Tokenizer) -> Languages:
    """language → its ids; empty for a tokenizer that is not modular."""
    return tokenizer.metadata.languages if isinstance(tokenizer, HuggingFaceTokenizer | SentencePieceTokenizer) else {}


def require_languages(tokenizer: Tokenizer) -> Languages:
    """The same. Raises InputError for a tokenizer that is not modular."""
    known = languages_of(tokenizer)
    if not known:
        raise InputError(
            f"a {tokenizer.family} tokenizer has no languages to choose from: give one of family modular_bpe or "
            "modular_unigram"
        )
    return known


def ids_of(tokenizer: Tokenizer, languages: Sequence[str]) -> npt.NDArray[np.int32]:
    """The ids of some languages together, ascending. Raises InputError if one is unknown, or none is given."""
    known = require_languages(tokenizer)
    for language in languages:
        if language not in known:
            raise InputError(f"the tokenizer has no language {language!r}: it has {', '.join(known)}")
    if not languages:
        raise InputError(f"no language is named: choose among {', '.join(known)}")
    return np.unique(np.concatenate([known[language] for language in languages]))


def probe_texts(tokenizer: Tokenizer, ids: npt.NDArray[np.int32]) -> pa.Array:
    """Texts of the tokenizer's entries, PROBE_ENTRIES in each; what is cut characters becomes U+FFFD."""
    ordinary = tokenizer.vocabulary().filter(pc.invert(tokenizer.vocabulary()["special"]))["id"].to_numpy()
    chosen = np.intersect1d(ids, ordinary)
    borders = np.append(np.arange(0, chosen.size, PROBE_ENTRIES), chosen.size)
    return tokenizer.decode(Encoded(chosen.astype(np.int32), borders))


def sub_tokenizer(tokenizer: Tokenizer, languages: Sequence[str]) -> Tokenizer:
    """The tokenizer of some languages. Raises InputError as `ids_of`."""
    ids = ids_of(tokenizer, languages)
    known = {language: own for language, own in languages_of(tokenizer).items() if language in languages}
    if isinstance(tokenizer, SentencePieceTokenizer):
        return tokenizer.using(known)
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    allowed = np.zeros(tokenizer.vocab_size, np.bool_)
    allowed[ids] = True
    content, metadata, merges = tokenizer.parts()
    model = content["model"]
    numbers: dict[str, int] = model["vocab"]
    pairs = model["merges"]
    rows = [(numbers[left], numbers[right], numbers[left + right]) for left, right in pairs]
    stays = np.logical_and.reduce(allowed[np.array(rows, np.int64).reshape(-1, 3)], axis=1)
    model["merges"] = [pairs[row] for row in np.flatnonzero(stays)]
    if merges is not None:
        kept = allowed[np.stack([merges[name].to_numpy() for name in ("left", "right", "token")])].all(axis=0)
        merges = merges.filter(pa.array(kept)).cast(MERGES_SCHEMA)
    engine = Engine.from_str(json.dumps(content, ensure_ascii=False))
    return HuggingFaceTokenizer(engine, replace(metadata, languages=known), "the sub-tokenizer", merges)
