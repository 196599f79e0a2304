"""Modular tokenizers in a comparison: each document by its language's sub-tokenizer, the whole as control."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests import test_modular_bpe, test_modular_unigram
from tests.command_line import tokpack
from tests.test_comparison import byte_bpe_file
from tests.test_modular_bpe import TEXTS
from tokpack_core.comparison.findings import causes
from tokpack_core.tokenizers.modular.sub_tokenizers import sub_tokenizer
from tokpack_core.tokenizers.protocol import Tokenizer

MIXED = [f"{english} {german}" for english, german in zip(TEXTS["en"], TEXTS["de"], strict=True)]
"""English with words that only the German sub-tokenizer has tokens for."""
OTHER = ["the dogs sleep in the brown hause", "und the schlafen andere jumps"] * 15
"""Documents of a language without a sub-tokenizer."""


def tokens(tokenizer: Tokenizer, texts: list[str]) -> int:
    return int(tokenizer.encode(pa.array(texts, pa.large_string())).ids.size)


@pytest.mark.parametrize("train", [test_modular_bpe.train, test_modular_unigram.train])
def test_counted_as_it_is_used(tmp_path: Path, train: Callable[[], Tokenizer]) -> None:
    tokenizer = train()
    texts = {language: found * 2 for language, found in TEXTS.items()} | {"en": MIXED, "nl": OTHER}
    rows = [{"text": text, "lang": language} for language, found in texts.items() for text in found]
    (tmp_path / "text.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    pairs = [{"text": {"en": one, "xx": other}} for one, other in zip(MIXED, MIXED, strict=True)]
    (tmp_path / "parallel.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs), encoding="utf-8")
    byte_bpe_file(tmp_path / "plain", [])
    (tmp_path / "modular").mkdir()
    tokenizer.save(tmp_path / "modular")
    arguments = ["--tokenizer", "plain", "--tokenizer", "modular", "--lang-field", "lang"]
    arguments += ["--parallel", "parallel.jsonl", "--model-seeds", "1", "--model-bytes", "10000"]
    told = tokpack(tmp_path, "compare", *arguments, "--output", "out", "text.jsonl").out

    own = {
        language: tokens(sub_tokenizer(tokenizer, [language]), found)
        for language, found in texts.items()
        if language in TEXTS
    }
    own["nl"] = tokens(tokenizer, OTHER)
    whole = sum(tokens(tokenizer, found) for found in texts.values())
    found = json.loads((tmp_path / "out" / "comparison.json").read_bytes())
    by_language: Counter[str] = Counter()
    for row in found["by_language"]:
        by_language[row["lang"].split("-")[0]] += row["tokens"] if row["tokenizer"] == "modular" else 0
    assert by_language == own
    plain, modular = found["controls"]["same_vocabulary_two_encoders"]
    assert plain["whole_vocabulary"] is None
    assert (modular["tokens"], modular["whole_vocabulary"]) == (sum(own.values()), whole)
    assert sum(own.values()) > whole
    aligned = {row["lang"]: row["tokens_per_sentence"] for row in found["parallel"] if row["tokenizer"] == "modular"}
    assert aligned["en"] == pytest.approx(tokens(sub_tokenizer(tokenizer, ["en"]), MIXED) / len(MIXED))
    assert aligned["xx"] == pytest.approx(tokens(tokenizer, MIXED) / len(MIXED))
    more = f"gives {100 * (sum(own.values()) / whole - 1):.4g} % more tokens than its whole vocabulary"
    assert f"modular is counted by the sub-tokenizer of each document's language, which {more}" in " ".join(
        told.split()
    )
    assert "by its sub-tokenizers" in told
    page = (tmp_path / "out" / "comparison.html").read_text(encoding="utf-8")
    assert "sub tokenizer excess" in page
    assert "by sub tokenizers" in page


def test_text_without_languages_is_counted_by_the_whole(tmp_path: Path) -> None:
    tokenizer = test_modular_bpe.train()
    (tmp_path / "text.txt").write_text("\n".join(MIXED), encoding="utf-8")
    (tmp_path / "modular").mkdir()
    tokenizer.save(tmp_path / "modular")
    tokpack(tmp_path, "compare", "--tokenizer", "modular", "--output", "out", "text.txt")
    found = json.loads((tmp_path / "out" / "comparison.json").read_bytes())
    (row,) = found["controls"]["same_vocabulary_two_encoders"]
    assert row["tokens"] == row["whole_vocabulary"]
    assert causes(found) == [
        "modular has no sub-tokenizer for the language of a document: counted by its whole vocabulary."
    ]
