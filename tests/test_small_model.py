"""The small model that judges tokenizers by bits per byte."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.test_comparison import byte_bpe_file
from tokpack_core.comparison.held_out import Candidate
from tokpack_core.comparison.small_model import bits_per_byte, windows_of
from tokpack_core.tokenizers import registry


@pytest.fixture
def plain(tmp_path: Path) -> Candidate:
    return Candidate("plain", registry.load(byte_bpe_file(tmp_path / "bytes", [])))


def test_no_window_holds_two_documents(plain: Candidate) -> None:
    texts = pa.array(["abc", "", "x" * 130])
    windows = windows_of(plain, texts)
    assert windows.bytes == 133
    assert [int((row >= 0).sum()) for row in windows.ids] == [3, 128, 2]
    ids = plain.tokenizer.encode(texts).ids.tolist()
    assert [token for row in windows.ids.tolist() for token in row if token >= 0] == ids


def test_what_can_be_learned_is_learned_and_a_seed_says_it_all(plain: Candidate) -> None:
    """Documents repeat one letter of two, so the first byte is worth one bit, and the others next to none."""
    texts = pa.array([letter * 40 for letter in "ab"] * 160)
    read: list[int] = []
    first = bits_per_byte(plain, texts, texts.slice(0, 20), 0, read.append)
    assert sum(read) == sum(len(text.encode()) for text in [*texts.to_pylist(), *texts.to_pylist()[:20]])
    assert 1 / 40 <= first < 1
    assert bits_per_byte(plain, texts, texts.slice(0, 20), 0, read.append) == first
