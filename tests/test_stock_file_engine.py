"""Files of BPE in SentencePiece's manner, such as Llama 2's, are encoded by gigatoken with the library's ids."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from tests.test_bpe_encoder import assert_equal, by_library
from tests.tokenizer_samples import HOSTILE, documents, ordinary_text
from tokpack_core.tokenizers.agreement.encoder_choice import EncoderChoice
from tokpack_core.tokenizers.byte_bpe import engine as byte_bpe_engine
from tokpack_core.tokenizers.byte_bpe import gigatoken_engine
from tokpack_core.tokenizers.byte_bpe.engine import FastEngine
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.sentencepiece import stock_file_engine
from tokpack_core.tokenizers.sentencepiece.stock_file_engine import StockFileEngine
from tokpack_core.tokenizers.sentencepiece.stock_long_texts import SPACES, equal_stock_long_encoder

TO_META = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
METASPACE = {"type": "Metaspace", "replacement": "▁", "split": False}
FORMS: dict[str, dict[str, Any]] = {
    "llama": {
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, TO_META]},
        "pre_tokenizer": None,
    },
    "gemma": {
        "normalizer": TO_META,
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"String": " "},
            "behavior": "MergedWithPrevious",
            "invert": False,
        },
    },
    "metaspace": {"normalizer": None, "pre_tokenizer": METASPACE | {"prepend_scheme": "always"}},
    "first": {"normalizer": None, "pre_tokenizer": METASPACE | {"prepend_scheme": "first"}},
}


@cache
def merges() -> tuple[list[str], list[list[str]]]:
    """Characters and merges of words that begin with U+2581."""
    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = pre_tokenizers.Metaspace()
    learned.train_from_iterator(documents(), trainers.BpeTrainer(vocab_size=900, show_progress=False))
    model = json.loads(learned.to_str())["model"]
    joined = {left + right for left, right in model["merges"]}
    return [token for token in model["vocab"] if token not in joined], model["merges"]


def stock_file(form: str) -> Tokenizer:
    characters, pairs = merges()
    runs = [["▁", "▁"], ["▁▁", "▁▁"]]
    names = ["<unk>", "<s>", "</s>", "\n\n", "<b>", *(f"<0x{byte:02X}>" for byte in range(256))]
    names += dict.fromkeys([*characters, *(left + right for left, right in [*runs, *pairs])])
    added = [(name, name.startswith(("<unk", "<s", "</s"))) for name in names[: 3 if form == "first" else 5]]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    content = {
        "version": "1.0",
        "added_tokens": [
            {"id": number, "content": name, "special": special} | flags for number, (name, special) in enumerate(added)
        ],
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "BPE",
            "unk_token": "<unk>",
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": {name: number for number, name in enumerate(names)},
            "merges": [*runs, *pairs],
        },
    }
    engine = Tokenizer.from_str(json.dumps(content | FORMS[form]))
    engine.encode_special_tokens = True
    return engine


TEXTS = [*documents(), *HOSTILE, *SPACES, "a\n\n b<b> c\n\n\n<s>d</s><unk>", "x" * 3000, " " * 3000]


@pytest.mark.parametrize("form", FORMS)
def test_the_ids_are_the_librarys(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = stock_file(form)
    fast = FastEngine(engine)
    monkeypatch.setattr(byte_bpe_engine, "WORTH_LOADING", 0)

    def reference(texts: pa.Array) -> Encoded:
        return by_library(engine, texts)

    assert_equal(fast.encode(pa.array(TEXTS), reference), reference(pa.array(TEXTS)))
    assert fast.choice == EncoderChoice("gigatoken")

    @settings(max_examples=150, deadline=None)
    @given(ordinary_text())
    def same(text: str) -> None:
        assert_equal(fast.encode(pa.array([text, ""]), reference), reference(pa.array([text, ""])))

    same()


@pytest.mark.parametrize("form", FORMS)
def test_long_documents_are_ours(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = stock_file(form)
    asked: list[str] = []

    def reference(texts: pa.Array) -> Encoded:
        asked.extend(texts.to_pylist())
        return by_library(engine, texts)

    found = StockFileEngine(engine, reference)
    found.choose()
    monkeypatch.setattr(stock_file_engine, "LONG", 10)
    texts = pa.array(["short", "a longer document\n\n with <b>", "你好你", " 𠀀 unknown ч\n\n"])
    found.encode(texts)
    asked.clear()
    assert_equal(found.encode(texts), by_library(engine, texts))
    assert not asked

    monkeypatch.setattr(stock_file_engine, "LONG", 0)
    assert_equal(found.encode(pa.array(TEXTS)), by_library(engine, pa.array(TEXTS)))

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.one_of(ordinary_text(), st.sampled_from(["\n\n", "<b>", " ", "▁", "<s>", "\n"]))).map("".join))
    def same(text: str) -> None:
        assert_equal(found.encode(pa.array([text, "", text])), by_library(engine, pa.array([text, "", text])))

    same()


@pytest.mark.parametrize("changed", [{"unk_token": "<unk>", "ignore_merges": True}, {"end_of_word_suffix": "</w>"}])
def test_long_documents_of_other_files_are_the_librarys(changed: dict[str, Any]) -> None:
    content = json.loads(stock_file("llama").to_str())
    content["model"] |= changed
    engine = Tokenizer.from_str(json.dumps(content))
    assert equal_stock_long_encoder(engine, lambda texts: by_library(engine, texts)) is None


def test_other_ids_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = stock_file("llama")
    encode = gigatoken_engine.LearningEngines.encode

    def wrong(self: gigatoken_engine.LearningEngines, texts: pa.Array) -> Encoded:
        found = encode(self, texts)
        return Encoded(np.where(np.arange(found.ids.size) == 7, 0, found.ids).astype(np.int32), found.offsets)

    monkeypatch.setattr(gigatoken_engine.LearningEngines, "encode", wrong)
    found = StockFileEngine(engine, lambda texts: by_library(engine, texts))
    assert found.choose() == EncoderChoice("tokenizers", (gigatoken_engine.OTHER_IDS,))
    assert_equal(found.encode(pa.array(TEXTS)), by_library(engine, pa.array(TEXTS)))
