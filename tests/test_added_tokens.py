"""Texts with added tokens that are not special have the library's ids without the library."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokenizer_samples import EOD, documents, ordinary_text, trained
from tokpack_core.tokenizers.byte_bpe.engine import ExactBpe, equal_encoder
from tokpack_core.tokenizers.encoded import Encoded, from_lists
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer

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


@pytest.mark.parametrize("flag", ["lstrip", "rstrip", "single_word"])
def test_tokens_that_look_at_what_is_beside_them_are_the_librarys(flag: str) -> None:
    exact, library = exact_of({flag: True}, "none")
    assert exact.added is None
    before = library.texts
    texts = pa.array(["a  <fim>x  b", "nothing added"])
    assert exact.encode(texts).ids.tolist() == library.encode(texts).ids.tolist()
    assert library.texts == before + 3
