"""The encoder of the fewest tokens, by hand and against a plain dynamic programme."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.tokenizers.minimum_cost.encoding import UNCOVERED_ID, MinimumCostEncoder
from tokpack_core.tokenizers.protocol import VOCABULARY_SCHEMA


def vocabulary(entries: list[bytes], special: tuple[bytes, ...] = ()) -> pa.Table:
    rows = [(token, False) for token in entries] + [(token, True) for token in special]
    columns = [
        pa.array(range(len(rows)), pa.int32()),
        pa.array([token for token, _ in rows], pa.binary()),
        pa.array([is_special for _, is_special in rows]),
        pa.array([False] * len(rows)),
    ]
    return pa.table(columns, schema=VOCABULARY_SCHEMA)


def encode(entries: list[bytes], *texts: str, special: tuple[bytes, ...] = ()) -> list[list[int]]:
    encoded = MinimumCostEncoder(vocabulary(entries, special)).encode(pa.array(texts, pa.string()))
    return [part.tolist() for part in np.split(encoded.ids, encoded.offsets[1:-1])]


def test_fewer_tokens_than_the_longest_match() -> None:
    entries = [b"a", b"b", b"c", b"d", b"ab", b"bcd"]
    assert encode(entries, "abcd") == [[0, 5]]  # the longest match from the left is ab, c, d


def test_of_equally_many_the_longest_last_token() -> None:
    assert encode([b"a", b"b", b"ab", b"aba", b"bab"], "abab") == [[0, 4]]


def test_documents_do_not_touch_and_may_be_empty() -> None:
    assert encode([b"a", b"b", b"ab"], "a", "", "b", "ab") == [[0], [], [1], [2]]


def test_special_tokens_take_no_part() -> None:
    assert encode([b"<", b"s", b">"], "<s>", special=(b"<s>",)) == [[0, 1, 2]]


def test_of_equal_entries_the_lowest_id() -> None:
    assert encode([b"a", b"b", b"a"], "aab") == [[0, 0, 1]]


def test_bytes_without_cover_are_counted() -> None:
    encoder = MinimumCostEncoder(vocabulary([b"a", "é".encode()]))
    assert encoder.encode(pa.array(["aéx", "ü"])).ids.tolist() == [0, 1, UNCOVERED_ID, UNCOVERED_ID, UNCOVERED_ID]
    assert encoder.uncovered == 3


@given(
    st.lists(st.text("abé", min_size=1, max_size=4), max_size=8),
    st.lists(st.text("abé", max_size=12), min_size=1, max_size=4),
)
@settings(max_examples=150, deadline=None)
def test_no_segmentation_is_shorter(entries: list[str], texts: list[str]) -> None:
    tokens = list(dict.fromkeys([b"a", b"b", "é".encode(), *(entry.encode() for entry in entries)]))
    for text, ids in zip(texts, encode(tokens, *texts), strict=True):
        assert b"".join(tokens[token] for token in ids) == text.encode()
        assert len(ids) == fewest(text.encode(), set(tokens))


def fewest(text: bytes, tokens: set[bytes]) -> int:
    best = [0] + [len(text) + 1] * len(text)
    for stop in range(1, len(text) + 1):
        best[stop] = min(
            (best[start] + 1 for start in range(stop) if text[start:stop] in tokens), default=len(text) + 1
        )
    return best[-1]
