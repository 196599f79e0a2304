"""Our own WordPiece encoder in the place of Hugging Face's, for files that it gives the same ids for.

A tokenizer.json qualifies if its model is WordPiece and its pretokenizer splits by single characters: BertPreTokenizer,
alone or behind isolated Splits. What a character does (join a word, be one, vanish) is asked of the library itself, for
each code point that is or may be assigned. A normalizer, such as BERT's, runs in the library, text by text; a unicode
form only for texts that it changes. Before the encoder is used, its ids are compared with the library's on strings that
are hard for either; one difference, and the library stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from tokenizers import Tokenizer as Engine

from tokpack_core.bpe.unicode_categories import CODE_POINTS
from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.tokenizers.encoded import Encode, Encoded, concatenate, same_ids
from tokpack_core.tokenizers.huggingface.tokenizer_json import description_of
from tokpack_core.tokenizers.library_texts import STARTS_ANEW, Prepare, form_of, normalized_by, whole_again
from tokpack_core.tokenizers.long_documents import in_parts
from tokpack_core.tokenizers.sentencepiece.piece_trie import piece_trie
from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import (
    ALONE,
    BEGIN,
    CONTINUE,
    DROPPED,
    encode_documents,
)
from tokpack_core.tokenizers.text_batches import BATCH_BYTES, text_batches

BY_CHARACTER = ("NFC", "NFKC", "NFD", "NFKD", "BertNormalizer", "Lowercase", "StripAccents")
NO_PARTS = np.empty(0, np.int64)
ASKED = (range(0xD800), range(0xE000, 0x34000), range(0xE0000, 0xE1000))
"""Where characters are assigned, or may be; all others are parts of words."""


def equal_wordpiece_encoder(engine: Engine, by_library: Encode, hard_texts: list[str]) -> Encode | None:
    """An encoder that gives the library's ids on all hard texts, or None."""
    description = description_of(engine)
    if (
        description["model"]["type"] != "WordPiece"
        or not all(token["special"] for token in description["added_tokens"])
        or not splits_by_character(description["pre_tokenizer"])
    ):
        return None
    encoder = WordPieceEncoder(description["model"], character_classes(engine))
    prepared = prepared_by(engine, description["normalizer"])

    def encode(texts: pa.Array) -> Encoded:
        return encoder.encode(prepared(texts))

    texts = pa.array([*hard_texts, *words_to_try(description["model"])], pa.string())
    equal = same_ids(encode(texts), by_library(texts))
    return (lambda texts: concatenate(map(encode, text_batches(texts)))) if equal else None


class WordPieceEncoder:
    """Pieces in a trie, and what each character does to words."""

    def __init__(self, model: dict[str, Any], classes: npt.NDArray[np.uint8]) -> None:
        prefix = model["continuing_subword_prefix"]
        ids: dict[str, int] = model["vocab"]
        inside = [(piece[len(prefix) :], CONTINUE, token) for piece, token in ids.items() if piece.startswith(prefix)]
        entries = [entry for entry in inside if entry[0]] + [(piece, BEGIN, token) for piece, token in ids.items()]
        pieces, roots, tokens = zip(*entries, strict=True)
        trie = piece_trie(pieces, roots, tokens)
        self._keys, self._children, self._tokens = trie.keys, trie.children, trie.tokens
        self._classes = classes
        self._unk = ids[model["unk_token"]]
        self._longest = int(model["max_input_chars_per_word"])

    def encode(self, texts: pa.Array) -> Encoded:
        data, offsets = text_buffers(texts)
        ids = np.empty(data.size, np.int32)
        ends = np.zeros(offsets.size, np.int64)
        encode_documents(
            data,
            offsets,
            self._classes,
            self._keys,
            self._children,
            self._tokens,
            self._longest,
            self._unk,
            ids,
            ends[1:],
        )
        ids.resize(ends[-1], refcheck=False)
        return Encoded(ids, ends)


def prepared_by(engine: Engine, description: dict[str, Any] | None) -> Prepare:
    """Texts as the library's normalizer leaves them."""
    form = form_of(description)
    if form is not None:
        return normalized_by(engine, form)

    def normalized(texts: pa.Array) -> pa.Array:
        parts, edges = in_parts(texts, STARTS_ANEW, BATCH_BYTES) if by_character(description) else (texts, NO_PARTS)
        forms = pa.array(map(engine.normalizer.normalize_str, parts.to_pylist()), pa.large_string())
        return whole_again(forms, edges) if edges.size else forms

    return normalized


def by_character(description: dict[str, Any] | None) -> bool:
    """Whether a normalizer does nothing across the places where unicode forms do nothing."""
    if description is None:
        return False
    if description["type"] == "Sequence":
        return all(map(by_character, description["normalizers"]))
    return description["type"] in BY_CHARACTER


def splits_by_character(pretokenizer: dict[str, Any] | None) -> bool:
    if pretokenizer is None:
        return False
    steps = pretokenizer["pretokenizers"] if pretokenizer["type"] == "Sequence" else [pretokenizer]
    return steps[-1]["type"] == "BertPreTokenizer" and all(is_one_class(step) for step in steps[:-1])


def is_one_class(step: dict[str, Any]) -> bool:
    """Whether a Split isolates each character of one set, written in brackets."""
    pattern = step.get("pattern", {}).get("Regex", "")
    return (
        step["type"] == "Split"
        and step["behavior"] == "Isolated"
        and not step["invert"]
        and pattern.startswith("[")
        and pattern.find("]") == len(pattern) - 1
    )


def character_classes(engine: Engine) -> npt.NDArray[np.uint8]:
    """uint8 [0x110000]: what the library's pretokenizer does with each code point between two letters."""
    codes = np.concatenate([np.arange(span.start, span.stop) for span in ASKED])
    text = np.full(2 * codes.size + 1, ord("a"), "<u4")
    text[1::2] = codes
    pieces = engine.pre_tokenizer.pre_tokenize_str(text.tobytes().decode("utf-32-le"))
    starts, stops = np.array([span for _, span in pieces], np.int64).T
    alone = np.zeros(text.size, np.bool_)
    alone[starts[stops - starts == 1]] = True
    borders = np.zeros(text.size + 1, np.int64)
    np.add.at(borders, starts, 1)
    np.add.at(borders, stops, -1)
    kept = np.cumsum(borders[:-1]) > 0
    classes = np.zeros(CODE_POINTS, np.uint8)
    classes[codes] = np.where(alone, ALONE, np.where(kept, 0, DROPPED))[1::2]
    return classes


def words_to_try(model: dict[str, Any]) -> list[str]:
    """The vocabulary itself as words, glued to one another, and of every length about the limit."""
    prefix, longest = model["continuing_subword_prefix"], int(model["max_input_chars_per_word"])
    pieces = [piece.removeprefix(prefix) for piece in model["vocab"]]
    lengths = [f"{unit * (longest + more)} x" for unit in ("a", "é") for more in (-1, 0, 1)]
    return [" ".join(pieces), *("".join(pieces[start : start + 3]) for start in range(0, len(pieces), 7)), *lengths]
