"""Long texts encoded by ourselves have the ids that SentencePiece's own library gives."""

from __future__ import annotations

import io
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
from tokpack_core.tokenizers.sentencepiece import long_texts
from tokpack_core.tokenizers.sentencepiece import model as sentencepiece_model
from tokpack_core.tokenizers.sentencepiece.long_texts import LongTexts, equal_long_texts
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer

KINDS = ["our bpe", "our unigram", "bpe", "unigram", "unigram without bytes", "bpe without bytes"]


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


@pytest.mark.parametrize("kind", KINDS)
def test_any_text_in_windows_of_any_size(kind: str) -> None:
    model = model_of(kind)
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    encoders = [LongTexts(model, library, kind.startswith("our"), window) for window in (1, 7, 40)]

    def same(text: str, encoder: LongTexts) -> None:
        assert encoder.encode(pa.array([text])).tolist() == library.encode(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_texts, "NORMALIZED", 9)
        for text in filter(None, [*HOSTILE, *documents()[::5], *random_texts()[::8], "a" * 999, "字" * 300, " " * 300]):
            same(text, encoders[1])

        @settings(max_examples=100, deadline=None)
        @given(st.one_of(ordinary_text(), st.text("abé字 ", max_size=20)), st.integers(1, 9), st.sampled_from(encoders))
        def same_drawn(text: str, times: int, encoder: LongTexts) -> None:
            if text:
                same(text * times, encoder)

        same_drawn()


@pytest.mark.parametrize("kind", ["our unigram", "unigram"])
def test_sums_of_scores_that_are_too_large_for_32_bits(kind: str) -> None:
    model = model_of(kind)
    library = sentencepiece.SentencePieceProcessor(model_proto=model)
    found = equal_long_texts(model, library, own_rules=kind.startswith("our"))
    assert found is not None
    text = "".join(random_texts()[::-1]).replace(" ", "") * 4
    assert found.encode(pa.array([text])).tolist() == library.encode(text)


def test_models_that_the_library_keeps() -> None:
    model = by_library(model_type="bpe", user_defined_symbols=["<sep>"])
    assert equal_long_texts(model, sentencepiece.SentencePieceProcessor(model_proto=model), own_rules=False) is None


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

    long = Watched(tokenizer.model, tokenizer._engine, own_rules=True)
    monkeypatch.setattr(long_documents, "LONG", 1000)
    monkeypatch.setattr(sentencepiece_model, "LONG", 1000)
    monkeypatch.setattr(tokenizer, "_long_texts", lambda: long)
    monkeypatch.setattr(tokenizer, "_cut_at", 1000)
    found = tokenizer.encode(texts)
    assert [found.ids[a:b].tolist() for a, b in zip(found.offsets, found.offsets[1:], strict=False)] == expected
    assert len(given) >= 3
