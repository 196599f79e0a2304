"""A long word merged window by window has the tokens of the word merged at once, whatever the merges are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.bpe.encoder import BpeModel, byte_merges
from tokpack_core.bpe.encoder_kernels import FREE, fill_merges
from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.bpe.pretoken_encoder import joined
from tokpack_core.bpe.window_kernels import cut_long_words, encode_in_windows, encode_long, merge_long
from tokpack_core.corpus.text_buffers import read_only
from tokpack_core.tokenizers.byte_bpe import gigatoken_engine
from tokpack_core.tokenizers.byte_bpe.gigatoken_engine import GigatokenEncoder
from tokpack_core.tokenizers.encoded import Encoded
from tokpack_core.tokenizers.pretokenizers import SPLITS
from tokpack_core.vocabulary.merge_counts import MergeReplay

Merge = tuple[bytes, bytes]


@st.composite
def merge_lists(draw: st.DrawFn) -> list[Merge]:
    """Merges of tokens over a small alphabet, in an order that need not be one in which a trainer finds them."""
    tokens = [b"a", b"b", b"c"]
    merges: list[Merge] = []
    for _ in range(draw(st.integers(0, 14))):
        pair = draw(st.sampled_from(tokens)), draw(st.sampled_from(tokens))
        if pair not in merges:
            merges.append(pair)
            tokens += [] if pair[0] + pair[1] in tokens else [pair[0] + pair[1]]
    return draw(st.permutations(merges))


def merged(text: bytes | list[bytes], merges: list[Merge]) -> list[bytes]:
    """The definition: the lowest rank first, then the leftmost."""
    rank = {pair: number for number, pair in enumerate(merges)}
    tokens = [text[i : i + 1] for i in range(len(text))] if isinstance(text, bytes) else list(text)
    while True:
        found = [(rank[pair], i) for i, pair in enumerate(pairwise(tokens)) if pair in rank]
        if not found:
            return tokens
        place = min(found)[1]
        tokens[place : place + 2] = [tokens[place] + tokens[place + 1]]


class Windows:
    """The kernels for a list of merges."""

    def __init__(self, merges: list[Merge]) -> None:
        ids = {bytes([byte]): byte for byte in range(256)}
        for left, right in merges:
            ids.setdefault(left + right, len(ids))
        rows = [(ids[left], ids[right], ids[left + right]) for left, right in merges]
        left, right, token = np.array(rows, np.int32).reshape(-1, 3).T.copy()
        model = BpeModel(np.arange(256, dtype=np.int32), left, right, token, np.arange(left.size, dtype=np.int32))
        table = np.full((1024, 2), FREE, np.int64)
        fill_merges(table, left, right, model.rank, token)
        self.model, self.tables = model, (model.byte_ids, byte_merges(model), table)
        self.content = {token_id: token for token, token_id in ids.items()}

    def encode(self, text: bytes, window: int) -> list[bytes]:
        ids = np.empty(len(text), np.int32)
        count = encode_long(np.frombuffer(text, np.uint8), 0, len(text), *self.tables, window, ids, 0)
        return [self.content[token_id] for token_id in ids[:count].tolist()]

    def fits(self, text: bytes, window: int) -> bool:
        ids = np.empty(len(text), np.int32)
        count = encode_in_windows(np.frombuffer(text, np.uint8), 0, len(text), *self.tables, window, ids, 0)
        return bool(count >= 0)


@settings(max_examples=300, deadline=None)
@given(merge_lists(), st.text("abc", min_size=1, max_size=90), st.integers(1, 40))
def test_any_merges_in_windows_of_any_size(merges: list[Merge], text: str, window: int) -> None:
    content = text.encode()
    assert Windows(merges).encode(content, window) == merged(content, merges)


@settings(max_examples=150, deadline=None)
@given(merge_lists(), st.text("abc", min_size=1, max_size=7), st.integers(1, 30), st.integers(1, 40))
def test_text_that_repeats_itself(merges: list[Merge], unit: str, times: int, window: int) -> None:
    content = unit.encode() * times
    assert Windows(merges).encode(content, window) == merged(content, merges)


@settings(max_examples=150, deadline=None)
@given(merge_lists(), st.lists(st.text("abc", min_size=1, max_size=60), min_size=1, max_size=4), st.integers(1, 20))
def test_merges_do_the_same_in_pieces_of_a_word(merges: list[Merge], words: list[str], window: int) -> None:
    windows = Windows(merges)
    offsets = np.cumsum([0, *map(len, words)])
    counts = PretokenCounts(read_only(np.frombuffer("".join(words).encode(), np.uint8)), offsets, 3 + offsets[1:])
    pieces, weights = cut_long_words(counts.data, offsets, counts.counts, *windows.tables, window)
    assert set(offsets) <= set(pieces)
    assert np.repeat(weights, np.diff(pieces)).tolist() == np.repeat(counts.counts, np.diff(offsets)).tolist()
    one, other = (
        MergeReplay(windows.model, *windows.tables[1:], len(windows.content), size) for size in (window, 10_000)
    )
    assert one.add(counts).tolist() == other.add(counts).tolist()
    assert one.counts.consumed.tolist() == other.counts.consumed.tolist()
    assert one.counts.at_cut.tolist() == other.counts.at_cut.tolist()


@settings(max_examples=200, deadline=None)
@given(merge_lists(), st.data(), st.integers(1, 30))
def test_a_row_of_tokens(merges: list[Merge], data: st.DataObject, window: int) -> None:
    """Tokens that merges made before are merged as bytes are."""
    windows = Windows(merges)
    tokens = [token for token_id, token in windows.content.items() if token_id > 255 or token in (b"a", b"b", b"c")]
    row = data.draw(st.lists(st.sampled_from(tokens), min_size=1, max_size=60))
    ids = {token: token_id for token_id, token in windows.content.items()}
    found = np.array([ids[token] for token in row], np.int32)
    count = merge_long(found, windows.tables[2], window)
    assert [windows.content[token_id] for token_id in found[:count].tolist()] == merged(row, merges)


def test_a_long_word_is_cut() -> None:
    windows = Windows([(b"a", b"b"), (b"ab", b"c")])
    offsets, weights = np.array([0, 3, 3003]), np.array([5, 7])
    data = read_only(np.frombuffer(b"abc" * 1001, np.uint8))
    pieces, of_pieces = cut_long_words(data, offsets, weights, *windows.tables, 100)
    assert pieces.size > 20
    assert of_pieces.tolist() == [5] + [7] * (pieces.size - 2)
    assert set((pieces % 3).tolist()) == {0}
    assert np.diff(pieces)[1:].min() >= 50
    assert np.diff(pieces).max() <= 200


def test_what_reaches_far_to_the_left_takes_larger_windows() -> None:
    """In a descending row of bytes followed by 'A', each byte merges with what its right neighbour did not take."""
    row = bytes(range(200, 100, -1))
    pairs = [(row[k : k + 1], row[k + 1 : k + 2]) for k in range(99)]
    merges = [(row[99:], b"A"), *reversed(pairs)]
    windows = Windows(merges)
    for text in (row, row + b"A"):
        assert not windows.fits(text, 41)
        assert windows.encode(text, 41) == merged(text, merges)
    assert windows.encode(row, 41)[0] != windows.encode(row + b"A", 41)[0]


def test_parts_are_joined_in_order() -> None:
    parts = [np.arange(start, stop, dtype=np.int32) for start, stop in ((0, 3), (3, 3), (3, 9))]
    assert joined(iter(parts), 12).tolist() == list(range(9))
    assert joined(iter(parts[:1]), 12) is parts[0]
    assert joined(iter([]), 0).tolist() == []


def test_long_documents_are_not_given_to_gigatoken() -> None:
    pairs = [(b"a", b"b"), (b"ab", b"ab")]
    ids = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256, b"abab": 257}
    rows = np.array([(ids[x], ids[y], ids[x + y]) for x, y in pairs], np.int32)
    left, right, token = rows.T.copy()
    model = BpeModel(np.arange(256, dtype=np.int32), left, right, token, np.arange(2, dtype=np.int32))
    given_to_other = []

    def by_other(texts: pa.Array) -> Encoded:
        given_to_other.extend(texts.to_pylist())
        return Encoded(np.zeros(len(texts), np.int32), np.arange(len(texts) + 1))

    encoder = GigatokenEncoder(model, (SPLITS["gpt2"][0],), by_other)
    long = "ab" * (gigatoken_engine.LONG // 2)
    found = encoder.encode(pa.array(["abab", long, long[2:], "ab"]))
    assert given_to_other == [long]
    assert found.offsets.tolist() == [0, 1, 2, 2 + (len(long) - 2) // 4 + 1, 3 + (len(long) - 2) // 4 + 1]
