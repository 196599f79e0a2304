"""The small model that judges tokenizers by bits per byte."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.test_comparison import byte_bpe_file
from tokpack_core.comparison.held_out import Candidate
from tokpack_core.comparison.model_difference import bits_verdict, critical, model_difference, two_sided_t
from tokpack_core.comparison.small_model import bits_of_documents, small_model_rows, trained_model, windows_of
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry


@pytest.fixture
def plain(tmp_path: Path) -> Candidate:
    return Candidate("plain", registry.load(byte_bpe_file(tmp_path / "bytes", [])))


def documents(texts: list[str]) -> pa.Table:
    return pa.table({"text": pa.array(texts), "lang": pa.nulls(len(texts), pa.string())})


def test_no_window_holds_two_documents(plain: Candidate) -> None:
    texts = ["abc", "", "x" * 130]
    windows = windows_of(plain, documents(texts))
    assert windows.bytes == 133
    assert windows.documents.tolist() == [0, 2, 2]
    assert [int((row >= 0).sum()) for row in windows.ids] == [3, 128, 2]
    ids = plain.tokenizer.encode(pa.array(texts)).ids.tolist()
    assert [token for row in windows.ids.tolist() for token in row if token >= 0] == ids


def test_what_can_be_learned_is_learned_and_a_seed_says_it_all(plain: Candidate) -> None:
    """Documents repeat one letter of two, so the first byte is worth one bit, and the others next to none."""
    training, judged = documents([letter * 40 for letter in "ab"] * 160), documents(["a" * 40, "", "b" * 40])
    read: list[int] = []
    bits = bits_of_documents(trained_model(plain, training, 0, read.append), plain, judged)
    assert sum(read) == 320 * 40
    assert bits[1] == 0
    assert (bits[[0, 2]] < 40).all()
    # Half of the documents begin with either letter, so that 2 bits are the least that two of them take together.
    assert bits.sum() > 1.99
    again = bits_of_documents(trained_model(plain, training, 0, read.append), plain, judged)
    assert again.tolist() == bits.tolist()


def test_rows_of_tokenizers(plain: Candidate) -> None:
    """A tokenizer against itself, and against one that loses text, which is no question asked."""
    candidates = [plain, Candidate("same", plain.tokenizer), Candidate("lossy", plain.tokenizer)]
    read: list[int] = []
    texts = documents([f"{number} apples" for number in range(200)])
    rows = small_model_rows(candidates, texts, 2, "plain", frozenset({"lossy"}), read.append)
    assert sum(read) == 3 * 2 * sum(len(text) for text in texts["text"].to_pylist())
    assert [row["verdict"] for row in rows] == ["baseline", "not significant", "loses text"]
    assert [row["p"] for row in rows] == [None, 1, None]
    assert rows[1]["ratio"] == 1
    assert rows[1]["seeds"] == rows[0]["seeds"]
    assert rows[0]["mean"] == pytest.approx(sum(rows[0]["seeds"]) / 2)


def test_few_documents_and_none(plain: Candidate) -> None:
    texts = documents([f"{number} apples" for number in range(30)])
    candidates = [plain, Candidate("same", plain.tokenizer)]
    rows = small_model_rows(candidates, texts, 2, "plain", frozenset(), print)
    assert [row["verdict"] for row in rows] == ["baseline", "too few documents or seeds"]
    with pytest.raises(InputError, match="raise --model-bytes"):
        small_model_rows(candidates, texts.slice(0, 9), 2, "plain", frozenset(), print)


def test_chances_are_those_of_students_t() -> None:
    # Tables of t: 2.776 for 4 degrees of freedom and 4.303 for 2 are exceeded in size with a chance of 5 %.
    assert critical(2) == pytest.approx(4.303, abs=0.001)
    assert critical(4) == pytest.approx(2.776, abs=0.001)
    assert two_sided_t(2.776, 4) == pytest.approx(0.05, abs=0.0001)
    assert two_sided_t(0.0, 4) == 1


def test_a_difference_counts_against_both_spreads() -> None:
    documents, seeds = np.full(40, 10.0), np.array([[0.99], [1.0], [1.01]])
    bits = documents * seeds
    # All documents alike, so that the seeds alone spread: twice 0.01 / sqrt 3, against 1 % and 10 % fewer bits.
    near, far = (model_difference(share * bits, bits) for share in (0.99, 0.9))
    assert (bits_verdict(near["ratio"], near["p"]), bits_verdict(far["ratio"], far["p"])) == (
        "not significant",
        "fewer bits",
    )
    reach = 2.776 * 0.01 * math.sqrt(2 / 3)
    assert math.log(far["high"]) == pytest.approx(math.log(0.9) + reach, rel=0.001)
    # Half of the documents need half the bits and half 1.4 times: every seed says so, the documents do not.
    uneven = np.where(np.arange(40) % 2, 5.0, 14.0) * np.ones((3, 1))
    found = model_difference(uneven, documents * np.ones((3, 1)))
    assert found["ratio"] == pytest.approx(0.95)
    assert found["p"] > 0.3
    assert model_difference(bits[:1], bits[:1])["p"] is None
    assert model_difference(0 * bits, bits)["ratio"] is None
