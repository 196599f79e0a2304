"""Text survives every family; raw text gives the ids of normalized text."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings

from tests.tokenizer_samples import (
    FAMILIES,
    HOSTILE,
    documents,
    ids,
    normalized,
    ordinary_text,
    token_bytes,
    trained,
)
from tokpack_core.config import Family, UnicodeForm
from tokpack_core.tokenizers.agreement.normalization import agrees_with_normalized, differing_documents
from tokpack_core.tokenizers.agreement.round_trip import round_trip_failures
from tokpack_core.tokenizers.encoded import from_lists

FORMS: tuple[UnicodeForm, ...] = ("none", "nfc")
ALL = [(family, form) for family in FAMILIES for form in FORMS] + [("sentencepiece_bpe", "nfkc"), ("byte_bpe", "nfkc")]


@pytest.mark.parametrize(("family", "form"), ALL)
def test_ordinary_and_hostile_text_survives(family: Family, form: UnicodeForm) -> None:
    texts = [normalized(text, form) for text in [*HOSTILE, *documents()]]
    tokenizer = trained(family, form)
    assert tokenizer.unicode == form
    assert round_trip_failures(tokenizer, pa.array(texts)) == []
    assert round_trip_failures(tokenizer, pa.array(texts, pa.large_string())) == []


@pytest.mark.parametrize(("family", "form"), ALL)
def test_any_text_survives(family: Family, form: UnicodeForm) -> None:
    tokenizer = trained(family, form)
    tokens = token_bytes(tokenizer)
    special = set(tokenizer.special_tokens.values())

    @settings(max_examples=150, deadline=None)
    @given(ordinary_text())
    def survives(text: str) -> None:
        text = normalized(text, form)
        encoded = ids(tokenizer, text)
        assert b"".join(tokens[token] for token in encoded) == text.encode() or form != "none"
        assert not special & set(encoded)
        assert all(0 <= token < tokenizer.vocab_size for token in encoded)
        if form == "none":
            assert round_trip_failures(tokenizer, pa.array([text])) == []

    survives()


@pytest.mark.parametrize("family", FAMILIES)
def test_documents_do_not_influence_each_other(family: Family) -> None:
    tokenizer = trained(family)
    texts = ["", *HOSTILE, "", *documents()[:10], ""]
    encoded = tokenizer.encode(pa.array(texts))
    parts = [encoded.ids[encoded.offsets[d] : encoded.offsets[d + 1]].tolist() for d in range(encoded.documents)]
    assert parts == [ids(tokenizer, text) for text in texts]
    assert tokenizer.encode(pa.array([], pa.string())).offsets.tolist() == [0]


@pytest.mark.parametrize("family", FAMILIES)
def test_special_tokens_are_kept_when_decoding_and_cut_characters_replaced(family: Family) -> None:
    tokenizer = trained(family)
    eod = tokenizer.special_tokens["eod"]
    by_bytes = {token: id_ for id_, token in token_bytes(tokenizer).items()}
    cut = [by_bytes[b"\xe4"], by_bytes[b"\xbd"]]
    encoded = from_lists([[*ids(tokenizer, "a b"), eod], cut, [*cut, by_bytes[b"\xa0"]]])
    assert tokenizer.decode(encoded).to_pylist() == ["a b<|endoftext|>", b"\xe4\xbd".decode(errors="replace"), "你"]


@pytest.mark.parametrize("family", FAMILIES)
def test_raw_text_gives_the_ids_of_normalized_text(family: Family) -> None:
    raw = [*HOSTILE, *documents(), "e\u0301\u0323 Å \u1112\u1161\u11ab مُحَمَّد"]
    result = [normalized(text, "nfc") for text in raw]
    assert agrees_with_normalized(trained(family, "nfc"), pa.array(raw), pa.array(result)) == []


def test_texts_that_the_tokenizer_does_not_normalize_are_found() -> None:
    raw = pa.array(["plain", "e\u0301", "", "\u212b x"])
    result = pa.array(["plain", "\u00e9", "", "\u00c5 x"])
    assert agrees_with_normalized(trained("byte_bpe", "none"), raw, result) == [1, 3]
    assert agrees_with_normalized(trained("byte_bpe", "nfc"), raw, result) == []
    with pytest.raises(ValueError, match="not the same documents"):
        agrees_with_normalized(trained("byte_bpe"), raw, result.slice(1))


def test_documents_that_differ_are_found_by_length_and_by_id() -> None:
    one = from_lists([[1, 2], [3], [], [4, 5], [6]])
    other = from_lists([[1, 2], [3, 3], [], [4, 6], [6]])
    assert differing_documents(one, other) == [1, 3]
    assert differing_documents(one, one) == []


def test_failures_of_a_lossy_tokenizer_are_found() -> None:
    texts = pa.array(["plain", "ﬁ", "", "２"])
    assert round_trip_failures(trained("sentencepiece_bpe", "nfkc"), texts) == [1, 3]
