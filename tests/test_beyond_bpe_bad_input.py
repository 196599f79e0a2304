"""What the families beyond plain BPE cannot do is one sentence that says what to do instead."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.command_line import refused, tokpack

TEXT = "\n".join(json.dumps({"text": f"the cat sat on the mat number {n}", "lang": "en"}) for n in range(40))
SMALL = ("--vocab-size", "300")


@pytest.fixture
def text(tmp_path: Path) -> str:
    (tmp_path / "text.jsonl").write_text(TEXT + "\n")
    return "text.jsonl"


def test_traces_without_phrases_extend_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "digits.jsonl").write_text('{"text": "12 345, 6 7 8"}\n')
    tokpack(tmp_path, "train", "--family", "byte_bpe", *SMALL, "--output", "base", text)
    message = refused(tmp_path, "supertokens", "--tokenizer", "base", "--output", "longer", "digits.jsonl")
    assert "no phrase of words" in message
    assert not (tmp_path / "longer").exists()


def test_encoding_by_language_needs_a_language(tmp_path: Path, text: str) -> None:
    tokpack(tmp_path, "train", "--family", "modular_bpe", *SMALL, "--lang-field", "lang", "--output", "whole", text)
    encode = ("encode", "--tokenizer", "whole", "--by-language", "--output", "ids", text)
    assert "--lang-field" in refused(tmp_path, *encode)
    assert "no document has a language of the tokenizer" in refused(tmp_path, *encode, "--lang-field", "language")
    assert "no document has a language of the tokenizer" in refused(tmp_path, *encode, "--lang", "de")
    tokpack(tmp_path, *encode, "--lang", "en")


def test_documents_of_other_languages_are_counted(tmp_path: Path, text: str) -> None:
    tokpack(tmp_path, "train", "--family", "modular_bpe", *SMALL, "--lang-field", "lang", "--output", "whole", text)
    others = [{"text": "the dog", "lang": "de"}, {"text": "the cat"}, {"text": "the cat", "lang": "en"}]
    (tmp_path / "mixed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in others))
    options = ("--by-language", "--lang-field", "lang", "--output", "ids")
    told = tokpack(tmp_path, "encode", "--tokenizer", "whole", *options, "mixed.jsonl").out
    assert "2 of 3 documents are in no language of the tokenizer" in " ".join(told.split())
    manifest = json.loads((tmp_path / "ids.manifest.json").read_text())
    assert manifest["counts"]["documents_by_whole"] == 2


def test_a_transition_size_is_a_number_or_auto(tmp_path: Path, text: str) -> None:
    for size in ("many", "0"):
        train = ("train", "--family", "superbpe", *SMALL, "--transition-size", size, "--output", "no", text)
        assert f"transition_size: '{size}' is neither a size, 1 or more, nor `auto`" in refused(tmp_path, *train)


def test_a_table_names_families_in_words(tmp_path: Path, text: str) -> None:
    tokpack(tmp_path, "train", "--family", "byte_bpe", *SMALL, "--output", "base", text)
    tokpack(tmp_path, "compare", "--tokenizer", "base", "--output", "compared", text)
    retrofit = pd.read_csv(tmp_path / "compared" / "retrofit.csv")
    assert "superbpe, boundless_bpe" in retrofit["families"].tolist()


def test_a_field_that_holds_no_language_is_told(tmp_path: Path, text: str) -> None:
    tokpack(tmp_path, "train", "--family", "byte_bpe", *SMALL, "--output", "base", text)
    for field, told in (("language", True), ("lang", False)):
        compare = ("compare", "--tokenizer", "base", "--lang-field", field, "--output", f"by_{field}", text)
        assert ("no document has a language in 'language'" in tokpack(tmp_path, *compare).out) is told
