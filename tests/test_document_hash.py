"""MurmurHash3 x64 128 against published digests, against SMHasher's verification value and against plain Python."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.corpus.document_hash import text_hash, text_ids

WORD = 2**64 - 1


def rotate(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & WORD


def finalize(lane: int) -> int:
    lane = (lane ^ lane >> 33) * 0xFF51AFD7ED558CCD & WORD
    lane = (lane ^ lane >> 33) * 0xC4CEB9FE1A85EC53 & WORD
    return lane ^ lane >> 33


def murmur3(data: bytes, seed: int) -> tuple[int, int]:
    """The algorithm in whole numbers of Python, a word at a time."""
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    first = second = seed
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        low, high = (int.from_bytes(data[at + k : at + k + 8], "little") for k in (0, 8))
        first = rotate(first ^ rotate(low * c1 & WORD, 31) * c2 & WORD, 27) + second
        first = first * 5 + 0x52DCE729 & WORD
        second = rotate(second ^ rotate(high * c2 & WORD, 33) * c1 & WORD, 31) + first
        second = second * 5 + 0x38495AB5 & WORD
    low, high = (int.from_bytes(data[whole + k : whole + k + 8], "little") for k in (0, 8))
    first ^= rotate(low * c1 & WORD, 31) * c2 & WORD ^ len(data)
    second ^= rotate(high * c2 & WORD, 33) * c1 & WORD ^ len(data)
    first = first + second & WORD
    second = second + first & WORD
    first, second = finalize(first), finalize(second)
    first = first + second & WORD
    return first, second + first & WORD


@pytest.mark.parametrize(
    ("text", "seed", "first", "second"),
    [
        ("", 0, 0, 0),
        ("hell", 0, 0x629942693E10F867, 0x92DB0B82BAEB5347),
        ("hello", 1, 0xA78DDFF5ADAE8D10, 0x128900EF20900135),
        ("hello ", 2, 0x8A486B23F422E826, 0xF962A2C58947765F),
        ("hello wor", 5, 0xC2219D213EC1F1B5, 0xA1D8E2E0A52785BD),
        ("The quick brown fox jumps over the lazy dog", 0, 0xE34BBC7BBC071B6C, 0x7A433CA9C49A9347),
        ("The quick brown fox jumps over the lazy cog", 0, 0x658CA970FF85269A, 0x43FEE3EAA68E5C3E),
    ],
)
def test_published_digests(text: str, seed: int, first: int, second: int) -> None:
    assert text_hash(pa.array([text]), seed).tolist() == [[first, second]]


def test_verification_value_of_the_algorithms_own_test_suite() -> None:
    """SMHasher: hash the keys 0, 01, 012… with the seeds 256, 255, …, then hash those digests: 0x6384BA69."""
    digests = [text_hash(pa.array([bytes(range(n))], pa.binary()), 256 - n).astype("<u8").tobytes() for n in range(256)]
    final = text_hash(pa.array([b"".join(digests)], pa.binary()))
    assert int(final[0, 0]) & 0xFFFFFFFF == 0x6384BA69


@settings(deadline=None, max_examples=200)
@given(st.lists(st.text(max_size=50), max_size=8), st.integers(-(2**70), 2**70), st.integers(0, 3))
def test_equals_plain_python_whatever_the_array(texts: list[str], seed: int, skip: int) -> None:
    expected = [list(murmur3(text.encode(), seed & WORD)) for text in texts[skip:]]
    for kind in (pa.string(), pa.large_string()):
        digests = text_hash(pa.array(texts, kind)[skip:], seed)
        assert digests.dtype == np.uint64
        assert digests.tolist() == expected


def test_ids_are_canonical_hexadecimal_digests() -> None:
    ids = text_ids(pa.array(["unseen", "foo", "foo", ""])[1:])
    assert ids.type == pa.string()
    assert ids.to_pylist() == ["6145f501578671e2877dba2be487af7e"] * 2 + ["0" * 32]
    assert text_ids(pa.array([], pa.string())).to_pylist() == []


def test_null_and_other_types_are_refused() -> None:
    with pytest.raises(ValueError, match="1 of 2 entries are null"):
        text_hash(pa.array(["a", None]))
    with pytest.raises(TypeError, match="int64"):
        text_hash(pa.array([1]))
