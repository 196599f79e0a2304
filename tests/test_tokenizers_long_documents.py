"""Documents cut into parts give the ids of the whole."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tokenizer_samples import HOSTILE, SPECIAL_TOKENS, documents, ids, ordinary_text, train, trained
from tokpack_core.config import Family, TrainConfig, UnicodeForm
from tokpack_core.tokenizers import long_documents
from tokpack_core.tokenizers.agreement.round_trip import LOSSY
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.long_documents import PLACES, encode_bounded, in_parts
from tokpack_core.tokenizers.text_batches import BATCH_BYTES


def lines() -> st.SearchStrategy[str]:
    ends = st.sampled_from(
        ["\n", "\r\n", "\n\n", " \n", ".\n", ".\n/", "\n  ", "'s\n's ", "\u00a0 ", "\u00a8\n", "\n\u0e33"]
    )
    return st.lists(st.one_of(ends, ordinary_text(), st.sampled_from(["word", "字", "。字、", "1", " a  b"]))).map(
        "".join
    )


@pytest.mark.parametrize("pretokenizer", ["gpt2", "cl100k", "o200k"])
@pytest.mark.parametrize("form", ["none", "nfkc"])
def test_parts_of_byte_bpe_have_the_ids_of_the_whole(
    pretokenizer: Literal["gpt2", "cl100k", "o200k"], form: UnicodeForm
) -> None:
    config = TrainConfig(
        family="byte_bpe", vocab_size=600, pretokenizer=pretokenizer, special_tokens=SPECIAL_TOKENS, min_frequency=1
    )
    tokenizer = train(config, [*documents()[:10], ".\n/ \n\n  x\n\ny" * 99], form)

    @settings(max_examples=150, deadline=None)
    @given(lines(), st.integers(0, 6))
    def same(text: str, length: int) -> None:
        parts = parts_of(text, PLACES["byte_bpe"], length)
        assert "".join(parts) == text
        assert [id_ for part in parts for id_ in ids(tokenizer, part)] == ids(tokenizer, text)

    same()


@pytest.mark.parametrize("form", ["none", "nfc", "nfkc"])
@pytest.mark.parametrize("family", ["sentencepiece_bpe", "sentencepiece_unigram"])
def test_parts_of_sentencepiece_have_the_ids_of_the_whole(
    family: Literal["sentencepiece_bpe", "sentencepiece_unigram"], form: UnicodeForm
) -> None:
    tokenizer = trained(family, form)

    @settings(max_examples=150, deadline=None)
    @given(lines(), st.integers(0, 6))
    def same(text: str, length: int) -> None:
        parts = parts_of(text, PLACES[family], length)
        assert "".join(parts) == text
        assert [id_ for part in parts for id_ in ids(tokenizer, part)] == ids(tokenizer, text)

    same()


@pytest.mark.parametrize("family", sorted(set(PLACES) - {"modular_unigram"}))
def test_a_long_document_among_short_ones(family: Family) -> None:
    tokenizer = trained(family)
    long = "\n".join(documents() * 4)
    assert len(long) > BATCH_BYTES
    texts = ["short", long, "", *HOSTILE, long]
    encoded = tokenizer.encode(pa.array(texts))
    assert encoded.documents == len(texts)
    first = encoded.ids[encoded.offsets[1] : encoded.offsets[2]].tolist()
    assert first == encoded.ids[encoded.offsets[-2] :].tolist()
    if family not in LOSSY:
        assert tokenizer.decode(encoded).to_pylist() == texts
    assert encoded.ids[: encoded.offsets[1]].tolist() == ids(tokenizer, "short")


def test_no_batch_is_larger_than_the_limit_where_the_text_has_places() -> None:
    seen: list[int] = []

    def encode(batch: pa.Array) -> Encoded:
        seen.append(sum(len(text.as_py().encode()) for text in batch))
        return trained("byte_bpe").encode(batch)

    text = "Zeile für Zeile.\n" * 500
    whole = ids(trained("byte_bpe"), text)
    assert encode_bounded(encode, pa.array([text]), "byte_bpe", limit=400).ids.tolist() == whole
    assert max(seen) <= 400
    seen.clear()
    assert encode_bounded(encode, pa.array([text]), "pretrained", limit=400).ids.tolist() == whole
    assert seen == [len(text.encode())]


def parts_of(text: str, place: re.Pattern[str], length: int) -> list[str]:
    parts: list[str] = in_parts(pa.array([text], pa.string()), place, length)[0].to_pylist()
    return parts


def test_parts_are_as_long_as_asked_and_end_at_places() -> None:
    place = re.compile(r"(?<=\S)(?= )")
    assert parts_of("aa bb cc dd", place, 3) == ["aa bb", " cc", " dd"]
    assert parts_of("aa bb cc dd", place, 11) == ["aa bb cc dd"]
    assert parts_of("", PLACES["byte_bpe"], 3) == [""]
    parts, edges = in_parts(pa.array(["x", "éé éé", "", "a b"]).slice(1), place, 1)
    assert parts.to_pylist() == ["éé", " éé", "", "a", " b"]
    assert edges.tolist() == [0, 2, 3, 5]


@settings(max_examples=200, deadline=None)
@given(st.text("a字é \n", max_size=60), st.integers(0, 20), st.sampled_from(sorted(PLACES)))
def test_places_are_found_window_by_window(text: str, length: int, family: str) -> None:
    place = PLACES[family]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_documents, "SEARCHED", 1)
        patch.setattr(long_documents, "MOST_SEARCHED", 3)
        parts = parts_of(text, place, length)
    assert parts == parts_of(text, place, length)
    assert "".join(parts) == text
    ends = np.cumsum([len(part) for part in parts])
    starts = [0, *ends[:-1]]
    for start, end in zip(starts, ends, strict=True):
        least = next((k for k in range(start, len(text)) if len(text[start:k].encode()) >= max(length, 1)), len(text))
        places = [found.start() for found in place.finditer(text) if found.start() >= least]
        whole = len(text[start:].encode()) <= length
        assert end == (len(text) if whole or not places else places[0])
