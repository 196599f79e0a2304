"""Texts normalized in parts are what the library's normalizer makes of them whole."""

from __future__ import annotations

import sys
import unicodedata
from typing import Literal

import pyarrow as pa
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, normalizers

from tests.tokenizer_samples import HOSTILE, ordinary_text
from tokpack_core.tokenizers import library_texts
from tokpack_core.tokenizers.agreement.hard_texts import random_texts
from tokpack_core.tokenizers.library_texts import STARTS_ANEW, normalized_by

CODES = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
MARKS = "e\u0301\u0323\u0308\u1100\u1161\u11a8\uac00\u30ab\uff76\uff9e\u3099\u4e2d\ufb01\u2460\u0e33 \u0344"


def test_nothing_composes_with_what_stands_before_such_a_character() -> None:
    found = [code for code in CODES if STARTS_ANEW.match(code)]
    assert len(found) > 30_000
    decomposed = (unicodedata.decomposition(code).split() for code in CODES)
    seconds = {chr(int(parts[1], 16)) for parts in decomposed if len(parts) == 2 and not parts[0].startswith("<")}
    seconds |= {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}  # by rule, not by table
    for form in ("NFD", "NFKD"):
        firsts = {unicodedata.normalize(form, code)[0] for code in found}
        assert not firsts & seconds
        assert {unicodedata.combining(first) for first in firsts} == {0}


@pytest.mark.parametrize("form", ["nfc", "nfkc"])
def test_parts_of_any_length(form: Literal["nfc", "nfkc"]) -> None:
    engine = tokenizers.Tokenizer(models.BPE())
    engine.normalizer = normalizers.NFC() if form == "nfc" else normalizers.NFKC()
    prepared = normalized_by(engine, form)

    def expected(texts: list[str]) -> list[str]:
        return [engine.normalizer.normalize_str(text) for text in texts]

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.one_of(st.text(MARKS, max_size=30), ordinary_text()), max_size=5), st.integers(0, 9))
    def same(texts: list[str], length: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(library_texts, "BATCH_BYTES", length)
            assert prepared(pa.array(texts, pa.string())).to_pylist() == expected(texts)

    same()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library_texts, "BATCH_BYTES", 16)
        texts = [*HOSTILE, *random_texts()]
        assert prepared(pa.array(texts, pa.large_string())).to_pylist() == expected(texts)
