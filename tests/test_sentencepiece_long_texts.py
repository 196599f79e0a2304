"""Long texts encoded by ourselves have the ids that SentencePiece's own library gives."""

from __future__ import annotations

import io
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokenizer_samples import HOSTILE, documents, ordinary_text, trained
from tokpack_core.tokenizers import long_documents
from tokpack_core.tokenizers.agreement.hard_texts import random_texts
from tokpack_core.tokenizers.byteification.token_bytes import META_SPACE
from tokpack_core.tokenizers.sentencepiece import model as sentencepiece_model
from tokpack_core.tokenizers.sentencepiece.long_texts import LongTexts, equal_long_texts
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer
from tokpack_core.tokenizers.sentencepiece.proto import fields, message, pieces, varint, with_new_pieces

KINDS = ["our bpe", "our unigram", "bpe", "unigram", "unigram without bytes", "bpe without bytes", "char"]
USER_DEFINED = [
    "<sep>",
    "ab",
    "abc",
    "bcde",
    "\n",
    "\n\n",
    "\n\n\n",
    "▁▁",
    "▁a",
    "字字",
    "é",
    "e\u0301",
    "A",
    " b",
    "  ",
    "\t",
]
DRAWN = "abcdeé字 A\n\u0301\u00a0▁"


@cache
def model_of(kind: str) -> bytes:
    if kind.startswith("our"):
        tokenizer = (
            trained("sentencepiece_bpe", "none") if kind == "our bpe" else trained("sentencepiece_unigram", "nfc")
        )
        assert isinstance(tokenizer, SentencePieceTokenizer)
        return tokenizer.model
    return by_library(
        model_type=kind.split()[0],
        byte_fallback="without" not in kind,
        normalization_rule_name="identity" if "without" in kind else "nmt_nfkc",
    )


def by_library(**options: Any) -> bytes:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for text in documents() for line in text.splitlines() if line.strip()]),
        model_writer=written,
        vocab_size=800,
        character_coverage=0.98,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        **options,
    )
    return written.getvalue()


def with_user_defined(model: bytes) -> bytes:
    """Some of its own pieces are now user-defined, and others are new."""
    own = [(text, score, 4 if text in USER_DEFINED and kind == 1 else kind) for text, score, kind in pieces(model)]
    new = sorted(set(USER_DEFINED) - {text for text, _, _ in own})
    return with_new_pieces(model, [*own, *((text, 0.0, 4) for text in new)])


def with_settings(model: bytes, **changed: bool) -> bytes:
    """The model with other settings of its normalizer, or with spaces at the ends of words."""
    numbers = {"add_dummy_prefix": (3, 3), "remove_extra_whitespaces": (3, 4), "suffix": (2, 24)}
    parts = []
    for number, _, content, whole in fields(model):
        added = [varint(at << 3) + bytes([changed[key]]) for key, (of, at) in numbers.items() if of == number]
        parts.append(message(number, [content, *added]) if number in (2, 3) else whole)
    return b"".join(parts)


@pytest.mark.parametrize("with_symbols", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_any_text_in_windows_of_any_size(kind: str, with_symbols: bool) -> None:
    model = with_user_defined(model_of(kind)) if with_symbols else model_of(kind)
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    encoders = [LongTexts(model, window) for window in (1, 7, 40)]

    def same(text: str, encoder: LongTexts) -> None:
        assert encoder.encode(pa.array([text])).tolist() == library.encode(text)

    for text in filter(None, [*HOSTILE, *documents()[::9], *random_texts()[::12], "a" * 999, "字" * 300, " " * 300]):
        same(text, encoders[1])

    @settings(max_examples=100, deadline=None)
    @given(st.one_of(ordinary_text(), st.text(DRAWN, max_size=20)), st.integers(1, 9), st.sampled_from(encoders))
    def same_drawn(text: str, times: int, encoder: LongTexts) -> None:
        if text:
            same(text * times, encoder)

    same_drawn()


RULES = [
    ("A", "a"),
    ("ab", "x"),
    ("abcd", "dd"),
    ("b", " "),
    ("c", ""),
    ("é", " e\u0301 "),
    ("字", "a  b"),
    ("\n", "  "),
    (" d", "d"),
]


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_rules_of_a_models_own(model_type: str, tmp_path: Path) -> None:
    def coded(text: str) -> str:
        return " ".join(f"{ord(character):X}" for character in text)

    table = tmp_path / "rules.tsv"
    table.write_text("".join(f"{coded(source)}\t{coded(target)}\n" for source, target in RULES))
    plain = by_library(model_type=model_type, byte_fallback=True, normalization_rule_tsv=str(table))
    flags = [
        dict(zip(("add_dummy_prefix", "remove_extra_whitespaces", "suffix"), row, strict=True))
        for row in product((False, True), repeat=3)
    ]
    models = [with_settings(model, **flag) for model in (plain, with_user_defined(plain)) for flag in flags]
    made = [(LongTexts(model), sentencepiece.SentencePieceProcessor(model_proto=model)) for model in models]

    @settings(max_examples=300, deadline=None)
    @given(st.text(DRAWN, min_size=1, max_size=20), st.sampled_from(range(len(made))))
    def same(text: str, number: int) -> None:
        encoder, library = made[number]
        assert encoder.encode(pa.array([text])).tolist() == library.encode(text)

    same()


def test_trained_with_user_defined_symbols() -> None:
    symbols = ["<sep>", "the", "then ", "字", "e\u0301"]
    for model_type in ("bpe", "unigram"):
        model = by_library(model_type=model_type, user_defined_symbols=symbols)
        library = sentencepiece.SentencePieceProcessor(model_proto=model)
        found = equal_long_texts(model, library)
        assert found is not None
        text = "then the<sep>theorem of athena 字字, e\u0301t\u00e9 then  then the" * 50
        assert found.encode(pa.array([text])).tolist() == library.encode(text)


@pytest.mark.parametrize("kind", ["our unigram", "unigram"])
def test_sums_of_scores_that_are_too_large_for_32_bits(kind: str) -> None:
    model = model_of(kind)
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    found = equal_long_texts(model, library)
    assert found is not None
    text = "".join(random_texts()[::-1]).replace(" ", "") * 4
    assert found.encode(pa.array([text])).tolist() == library.encode(text)


def test_models_that_the_library_keeps() -> None:
    words = by_library(model_type="word")
    bpe = model_of("bpe")
    unused = with_new_pieces(bpe, [(text, score, 5 if text == "▁the" else kind) for text, score, kind in pieces(bpe)])
    for model in (words, unused):
        assert equal_long_texts(model, sentencepiece.SentencePieceProcessor(model_proto=model)) is None


@pytest.mark.parametrize("family", ["sentencepiece_bpe", "sentencepiece_unigram"])
def test_a_tokenizer_gives_them_long_texts(family: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = trained(family, "nfc")
    assert isinstance(made, SentencePieceTokenizer)
    tokenizer = SentencePieceTokenizer(made.model, made.metadata, "a copy")  # that no test has given much text before
    unbroken = "".join(documents()).replace(" ", "")[:3000]
    texts = pa.array(["short text", unbroken, f"{unbroken}{META_SPACE}{unbroken[::-1]}e\u0301", "", unbroken[5:300]])
    expected = [tokenizer._encode_batch(texts.slice(row, 1)).ids.tolist() for row in range(len(texts))]
    given: list[int] = []

    class Watched(LongTexts):
        def encode(self, text: pa.Array) -> Any:
            given.append(len(text[0].as_py()))
            return super().encode(text)

    long = Watched(tokenizer.model)
    monkeypatch.setattr(long_documents, "LONG", 1000)
    monkeypatch.setattr(sentencepiece_model, "LONG", 1000)
    monkeypatch.setattr(tokenizer, "_long_texts", lambda: long)
    monkeypatch.setattr(tokenizer, "_cut_at", 1000)
    found = tokenizer.encode(texts)
    assert [found.ids[a:b].tolist() for a, b in zip(found.offsets, found.offsets[1:], strict=False)] == expected
    assert len(given) >= 3
