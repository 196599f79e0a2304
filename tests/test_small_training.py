"""Training on a little text: nothing is compiled, and the text is what the kernels make of it."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.command_line import tokpack
from tests.tokenizer_samples import HOSTILE, OTHER_SCRIPTS, documents
from tokpack_core.config import NormalizeConfig, UnicodeForm
from tokpack_core.corpus.canonical_order import LONG
from tokpack_core.corpus.normalization import normalize
from tokpack_core.corpus.small_normalization import normalized_in_python

LOADED = """
import sys
sys.argv = {arguments!r}
from tokpack_assets.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print([name for name in ("numba", "pandas", "scipy", "torch", "transformers", "dagster") if name in sys.modules])
"""


@pytest.mark.parametrize("more", [[], ["--allocation", "text=900", "--allocation", "reserved=3"]])
def test_neither_kernels_nor_pandas_are_loaded(tmp_path: Path, more: list[str]) -> None:
    lines = [json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in [*documents(), *OTHER_SCRIPTS]]
    (tmp_path / "text.jsonl").write_text("".join(lines), encoding="utf-8")
    size = [] if more else ["--vocab-size", "900"]
    arguments = ["tokpack", "train", "--family", "byte_bpe", *size, *more, "--output", "model", "text.jsonl"]
    program = LOADED.format(arguments=arguments)
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout.splitlines()[-1:] == ["[]"], run.stdout[-300:] + run.stderr[-2000:]
    assert (tmp_path / "model" / "tiktoken" / "tokenizer.tiktoken").is_file()


@pytest.mark.parametrize("family", ["byte_bpe", "wordpiece", "word", "character", "boundless_bpe"])
def test_entries_that_the_text_has_not_are_told(tmp_path: Path, family: str) -> None:
    (tmp_path / "text.txt").write_text("a few words, and again a few words\n" * 9)
    train = ["train", "--family", family, "--vocab-size", "5000", "--output", "model", "text.txt"]
    out = tokpack(tmp_path, *train).out
    counts = json.loads((tmp_path / "model.manifest.json").read_bytes())["counts"]
    assert counts["entries_missing"] == 5000 - counts["vocab_size"] > 4000
    assert f"note: the text gives {counts['vocab_size']} entries and no more" in out


@pytest.mark.parametrize("form", ["nfc", "nfkc", "none"])
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5))
@settings(max_examples=100, deadline=None)
def test_python_normalizes_as_the_kernels_do_or_not_at_all(form: UnicodeForm, texts: list[str]) -> None:
    array = pa.array([*texts, *(text for text in HOSTILE if len(text) < 1000)], pa.string())
    found = normalized_in_python(array, form)
    unknown = any(unicodedata.category(character) == "Cn" for text in array.to_pylist() for character in text)
    assert (found is None) == unknown
    known = pa.array([t for t in array.to_pylist() if not any(unicodedata.category(c) == "Cn" for c in t)], pa.string())
    expected, _ = normalize(known, NormalizeConfig(unicode=form))
    again = normalized_in_python(known, form)
    assert again is not None
    assert again.equals(expected)


def test_long_runs_of_marks_are_left_to_the_kernels() -> None:
    assert normalized_in_python(pa.array(["a" + "\u0301" * (LONG - 1)]), "nfc") is not None
    assert normalized_in_python(pa.array(["a" + "\u0301\u0323" * LONG]), "nfc") is None


def test_special_tokens_in_the_text_are_told(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a few words <|eod|> and again <|eod|>\n" * 9)
    train = ["train", "--family", "byte_bpe", "--vocab-size", "270", "--special-token", "eod=<|eod|>"]
    out = tokpack(tmp_path, *train, "--output", "model", "text.txt").out
    assert "note: the text holds 18 strings that are special tokens: they are ordinary text" in out
