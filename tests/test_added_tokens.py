"""Texts with added tokens that are not special have the library's ids without the library."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, normalizers, pre_tokenizers

from tests.tokenizer_samples import EOD, documents, ordinary_text, trained
from tokpack_core.tokenizers.byte_bpe.engine import ExactBpe, equal_encoder
from tokpack_core.tokenizers.encoded import Encoded, from_lists
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer
from tokpack_core.tokenizers.word_level_engine import equal_word_level_encoder

CONTENTS = ["<fim>", "<fim>x", "    ", "<|endo", "oftext|>", "中", "e\u0301", "the cat"]
"""One begins another, one is white space, two overlap a special token, one is not in NFC."""


class Library:
    """The library, which counts what it is given."""

    def __init__(self, engine: tokenizers.Tokenizer) -> None:
        self.engine = engine
        self.texts = 0

    def encode(self, texts: pa.Array) -> Encoded:
        self.texts += len(texts)
        encodings = self.engine.encode_batch_fast(texts.to_pylist(), add_special_tokens=False)
        return from_lists([encoding.ids for encoding in encodings])


def exact_of(flags: dict[str, bool], form: Any) -> tuple[ExactBpe, Library]:
    """`flags`: what some of the added tokens have."""
    tokenizer = trained("byte_bpe", form)
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    content = json.loads(tokenizer.as_json())
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    for place, text in enumerate(CONTENTS):
        row = {"id": tokenizer.vocab_size + place, "content": text} | plain
        content["added_tokens"].append(row | (flags if place % 2 else {}))
    engine = tokenizers.Tokenizer.from_str(json.dumps(content))
    engine.encode_special_tokens = True
    library = Library(engine)
    exact = equal_encoder(engine, library.encode)
    assert exact is not None
    return exact, library


@pytest.mark.parametrize("form", ["none", "nfc"])
@pytest.mark.parametrize("normalized", [False, True])
def test_ids_are_those_of_the_library(normalized: bool, form: Any) -> None:
    exact, library = exact_of({"normalized": normalized}, form)
    assert exact.added is not None
    pieces = st.sampled_from([*CONTENTS, EOD, "<", "é", " ", "  ", "\n", "cat", "\u0301"])
    text = st.lists(st.one_of(pieces, ordinary_text()), max_size=9).map("".join)

    @settings(max_examples=200, deadline=None)
    @given(st.lists(text, max_size=4))
    def same(texts: list[str]) -> None:
        array = pa.array(texts, pa.string())
        ours, theirs = exact.encode(array), library.encode(array)
        assert ours.ids.tolist() == theirs.ids.tolist()
        assert ours.offsets.tolist() == theirs.offsets.tolist()

    same()
    before = library.texts
    exact.encode(pa.array([f"{text}<fim>{text}" for text in documents()]))
    assert library.texts == before


FORMED = ["K", "\ufb01", "\u00e9", "<\uff21>", "1 2"]
"""Tokens that text gives only when it is normalized, or that normalization makes others of."""
PREIMAGES = [
    "\u212a",
    "K",
    "\ufb01",
    "fi",
    "\u00e9",
    "e\u0301",
    "e",
    "<A>",
    "<\uff21>",
    "1 2",
    "1\u00a02",
    "\u2460 2",
    "a",
]


def with_formed(model: tokenizers.Tokenizer, normalizer: Any, place: int) -> tokenizers.Tokenizer:
    """`place`: which of the tokens are not normalized, as bits."""
    content = json.loads(model.to_str())
    first = model.get_vocab_size()
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "special": False}
    content["added_tokens"] += [
        {"id": first + number, "content": text, "normalized": not place >> number & 1} | plain
        for number, text in enumerate(FORMED)
    ]
    engine = tokenizers.Tokenizer.from_str(json.dumps(content))
    engine.normalizer = normalizer
    engine.encode_special_tokens = True
    return engine


def word_level() -> tokenizers.Tokenizer:
    words = [*"abcdefghiK12<>A ", "\u00e9", "\u212a", "\ufb01", "fi", "[UNK]"]
    engine = tokenizers.Tokenizer(models.WordLevel(dict(zip(words, range(99), strict=False)), "[UNK]"))
    engine.pre_tokenizer = pre_tokenizers.Split(tokenizers.Regex(r"\p{L}|\p{N}|\s|[^\s\p{L}\p{N}]"), "isolated")
    return engine


def byte_level() -> tokenizers.Tokenizer:
    tokenizer = trained("byte_bpe")
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    return tokenizers.Tokenizer.from_str(tokenizer.as_json())


@pytest.mark.parametrize("place", [0, 1, 22])
@pytest.mark.parametrize("normalizer", [normalizers.NFC(), normalizers.NFKC()], ids=["nfc", "nfkc"])
@pytest.mark.parametrize("model", [byte_level, word_level])
def test_tokens_that_only_normalized_text_holds_are_found(model: Any, normalizer: Any, place: int) -> None:
    engine = with_formed(model(), normalizer, place)
    library = Library(engine)
    choose = {byte_level: equal_encoder, word_level: equal_word_level_encoder}[model]
    found: Any = choose(engine, library.encode)
    assert found is not None
    encode = found.encode if model is byte_level else found

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.lists(st.sampled_from([*PREIMAGES, " ", "x"]), max_size=6).map("".join), max_size=3))
    def same(texts: list[str]) -> None:
        array = pa.array(texts, pa.string())
        ours, theirs = encode(array), library.encode(array)
        assert ours.ids.tolist() == theirs.ids.tolist()
        assert ours.offsets.tolist() == theirs.offsets.tolist()

    same()


@pytest.mark.parametrize("flag", ["lstrip", "rstrip", "single_word"])
def test_tokens_that_look_at_what_is_beside_them_are_the_librarys(flag: str) -> None:
    exact, library = exact_of({flag: True}, "none")
    assert exact.added is None
    before = library.texts
    texts = pa.array(["a  <fim>x  b", "nothing added"])
    assert exact.encode(texts).ids.tolist() == library.encode(texts).ids.tolist()
    assert library.texts == before + 3
