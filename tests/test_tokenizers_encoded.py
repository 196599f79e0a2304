"""Flat arrays of ids, bounded batches and decoding by bytes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byteification.token_bytes import (
    CHARACTER_TO_BYTE,
    ByteDecoder,
    byte_level_bytes,
    byte_level_tokens,
    vocabulary_table,
)
from tokpack_core.tokenizers.encoded import Encoded, concatenate, encode_apart, from_lists
from tokpack_core.tokenizers.text_batches import text_batches


def test_lists_become_flat_arrays_with_empty_documents_kept() -> None:
    encoded = from_lists([[], [5, 6], [], [7]])
    assert encoded.ids.tolist() == [5, 6, 7]
    assert encoded.offsets.tolist() == [0, 0, 2, 2, 3]
    assert encoded.ids.dtype == np.int32
    assert encoded.offsets.dtype == np.int64
    assert encoded.documents == 4
    assert encoded.lengths.tolist() == [0, 2, 0, 1]


def test_concatenation_keeps_documents_in_order() -> None:
    joined = concatenate([from_lists([[1], []]), from_lists([]), from_lists([[2, 3]])])
    assert joined.ids.tolist() == [1, 2, 3]
    assert joined.offsets.tolist() == [0, 1, 1, 3]
    assert concatenate([]).offsets.tolist() == [0]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("aé你", max_size=12)), st.integers(1, 20))
def test_batches_are_bounded_maximal_and_lose_nothing(texts: list[str], limit: int) -> None:
    batches = [batch.to_pylist() for batch in text_batches(pa.array(texts, pa.string()), limit)]
    assert [text for batch in batches for text in batch] == texts
    sizes = [[len(text.encode()) for text in batch] for batch in batches]
    assert all(sum(size) <= limit or len(size) == 1 for size in sizes)
    for size, following in pairwise(sizes):
        assert sum(size) + following[0] > limit


def test_slices_of_an_array_are_batched_by_their_own_texts() -> None:
    texts = pa.array(["aaaa", "bb", "cc", "d"]).slice(1, 2)
    assert [batch.to_pylist() for batch in text_batches(texts, 3)] == [["bb"], ["cc"]]


def test_a_null_text_is_refused() -> None:
    with pytest.raises(ValueError, match="null"):
        list(text_batches(pa.array(["a", None])))


def decoder() -> ByteDecoder:
    tokens = [b" a", "é".encode()[:1], "é".encode()[1:], b"<|end|>"]
    return ByteDecoder(vocabulary_table([0, 1, 2, 5], tokens, [False, False, False, True], [False] * 4), 6)


def test_bytes_are_joined_and_cut_characters_replaced_as_python_does() -> None:
    encoded = from_lists([[0, 1, 2, 5], [], [1], [2, 0], [0, 0]])
    assert decoder().decode(encoded).to_pylist() == [" aé<|end|>", "", "\ufffd", "\ufffd a", " a a"]
    expected = ["aé<|end|>", "", "\ufffd", "\ufffd a", "a a"]
    assert decoder().decode(encoded, drop_first_space=True).to_pylist() == expected


def test_no_documents_decode_to_none() -> None:
    assert decoder().decode(from_lists([])).to_pylist() == []
    assert decoder().decode(from_lists([[]])).to_pylist() == [""]


@pytest.mark.parametrize("token", [-1, 3, 6, 2**31 - 1])
def test_an_id_outside_the_vocabulary_is_named(token: int) -> None:
    with pytest.raises(InputError, match=f"id {token} is not in the vocabulary"):
        decoder().decode(Encoded(np.array([0, token], np.int32), np.array([0, 2])))


def test_the_byte_level_alphabet_is_that_of_gpt2() -> None:
    assert sorted(CHARACTER_TO_BYTE.values()) == list(range(256))
    assert byte_level_bytes("Ġhello") == b" hello"
    assert byte_level_bytes("Ċ") == b"\n"
    assert byte_level_bytes("ä½łå¥½") == "你好".encode()
    assert byte_level_bytes("你") is None


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.text(st.one_of(st.sampled_from(sorted(CHARACTER_TO_BYTE)), st.sampled_from("ſ\u0100\u0144你🙂 "))),
        max_size=9,
    )
)
def test_many_tokens_of_that_alphabet_are_read_as_each_of_them_is(names: list[str]) -> None:
    assert byte_level_tokens(pa.array(names, pa.string())).to_pylist() == list(map(byte_level_bytes, names))


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.text("abc", max_size=4), st.booleans(), st.booleans()), max_size=40))
def test_documents_that_are_encoded_apart_keep_their_places(documents: list[tuple[str, bool, bool]]) -> None:
    texts, *masks = zip(*documents, strict=True) if documents else ((), (), ())
    encoded = encode_apart(
        pa.array(texts, pa.string()),
        [np.array(mask, bool) for mask in masks],
        lambda some: from_lists([[0, *text.encode()] for text in some.to_pylist()]),
        lambda some: from_lists([list(text.encode()) for text in some.to_pylist()]),
    )
    expected = [[0] * (one or other) + list(text.encode()) for text, one, other in documents]
    assert [encoded.ids[start:stop].tolist() for start, stop in pairwise(encoded.offsets)] == expected
    assert (encoded.ids.dtype, encoded.offsets.dtype) == (np.int32, np.int64)
