"""Utilization, rare tokens, the rank curve and fertility: values derived by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokpack_core.errors import InputError
from tokpack_core.tokenizers.protocol import VOCABULARY_SCHEMA
from tokpack_core.vocabulary.counts import LANGUAGE_SCHEMA, TokenCounts
from tokpack_core.vocabulary.fertility import fertility, overall_fertility, writes_spaces
from tokpack_core.vocabulary.utilization import (
    SPECIAL,
    frequency_of_frequencies,
    kinds_of_tokens,
    rank_curve,
    rare_entries,
    rare_token_share,
    vocabulary_utilization,
)

# id 4 is a hole, id 0 a special token; the byte piece <0xE4> is declared to be one, the single byte E4 is not.
VOCABULARY = pa.table(
    {
        "id": [0, 1, 2, 3, 5, 6, 7, 8],
        "token": [b"<eod>", b"a", b"\xe4", b"\xe4", b"\xe4\xb8", "中".encode(), b" the", b" cat"],
        "special": [True, False, False, False, False, False, False, False],
        "byte_fallback": [False, False, False, True, False, False, False, False],
    },
    schema=VOCABULARY_SCHEMA,
)
COUNTS = TokenCounts(np.array([50, 4, 0, 0, 0, 1, 0, 30, 5]), LANGUAGE_SCHEMA.empty_table())


def flat_vocabulary(size: int) -> pa.Table:
    columns = [range(size), [b"x%d" % i for i in range(size)], [False] * size, [False] * size]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, VOCABULARY_SCHEMA, strict=True)], VOCABULARY_SCHEMA)


def test_utilization_leaves_out_special_tokens_and_holes() -> None:
    # Entries 1 2 3 5 6 7 8; seen: 1, 5, 7, 8.
    assert vocabulary_utilization(COUNTS, VOCABULARY) == 4 / 7


def test_rare_token_share_includes_the_never_seen() -> None:
    # Counts 4 0 0 1 0 30 5.
    shares = [rare_token_share(COUNTS, VOCABULARY, below) for below in (1, 2, 4, 5, 6, 30, 31)]
    assert shares == [3 / 7, 4 / 7, 4 / 7, 5 / 7, 6 / 7, 6 / 7, 1.0]


def test_kinds_take_the_last_that_fits() -> None:
    assert kinds_of_tokens(VOCABULARY).tolist() == [SPECIAL, 2, 2, 3, 1, 0, 0, 0]


def test_rare_entries_are_listed_by_threshold_and_kind() -> None:
    assert rare_entries(COUNTS, VOCABULARY, (1, 5)) == [
        {"below": 1, "entries": 3, "share": 3 / 7, "text": 1, "partial_utf8": 0, "single_byte": 1, "byte_fallback": 1},
        {"below": 5, "entries": 5, "share": 5 / 7, "text": 1, "partial_utf8": 1, "single_byte": 2, "byte_fallback": 1},
    ]
    assert [row["below"] for row in rare_entries(COUNTS, VOCABULARY)] == [1, 2, 5, 20, 100]


@given(st.lists(st.integers(0, 1200), min_size=1, max_size=30), st.integers(1, 1001))
def test_frequency_of_frequencies_tells_every_rare_share(frequencies: list[int], below: int) -> None:
    counts = TokenCounts(np.array(frequencies), LANGUAGE_SCHEMA.empty_table())
    vocabulary = flat_vocabulary(len(frequencies))
    histogram = frequency_of_frequencies(counts, vocabulary)
    assert len(histogram) == 1001
    assert sum(histogram[:below]) / len(frequencies) == rare_token_share(counts, vocabulary, below)


def test_rank_curve_of_few_entries_has_them_all() -> None:
    # Entries seen: 30, 5, 4, 1 of 40 tokens; the special token's 50 do not count.
    curve = rank_curve(COUNTS, VOCABULARY)
    assert curve.rank.tolist() == [1, 2, 3, 4]
    assert curve.count.tolist() == [30, 5, 4, 1]
    assert curve.coverage.tolist() == [30 / 40, 35 / 40, 39 / 40, 1.0]


def test_rank_curve_of_many_entries_is_thinned_between_first_and_last() -> None:
    size = 20_000
    curve = rank_curve(TokenCounts(np.arange(size), LANGUAGE_SCHEMA.empty_table()), flat_vocabulary(size))
    assert 200 < len(curve.rank) <= 300
    assert np.all(np.diff(curve.rank) > 0)
    assert (curve.rank[0], curve.rank[-1]) == (1, size - 1)
    assert curve.count.tolist() == (size - curve.rank).tolist()
    total = size * (size - 1) // 2
    rest = size - 1 - curve.rank
    assert curve.coverage.tolist() == ((total - rest * (rest + 1) // 2) / total).tolist()


def test_nothing_seen_gives_an_empty_curve_and_no_utilization() -> None:
    counts = TokenCounts.zero(9)
    assert rank_curve(counts, VOCABULARY).rank.tolist() == []
    assert vocabulary_utilization(counts, VOCABULARY) == 0.0
    assert rare_token_share(counts, VOCABULARY, 1) == 1.0


def test_a_vocabulary_of_special_tokens_only_is_refused() -> None:
    with pytest.raises(InputError, match="nothing but special tokens"):
        vocabulary_utilization(COUNTS, VOCABULARY.slice(0, 1))


def languages(*rows: tuple[str | None, int, int, int, int, int]) -> pa.Table:
    names = LANGUAGE_SCHEMA.names
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=LANGUAGE_SCHEMA)


def test_fertility_by_language_most_text_first() -> None:
    table = languages(
        ("en", 2, 100, 100, 20, 25), ("zh", 1, 300, 100, 3, 80), ("und", 1, 6, 6, 1, 2), (None, 1, 4, 4, 1, 2)
    )
    rows = {row.pop("lang"): row for row in fertility(table).to_pylist()}
    assert list(rows) == ["zh", "en", "und"]
    assert rows["en"] == {
        "documents": 2,
        "bytes": 100,
        "characters": 100,
        "words": 20,
        "tokens": 25,
        "bytes_per_token": 4.0,
        "characters_per_token": 4.0,
        "tokens_per_character": 0.25,
        "tokens_per_word": 1.25,
    }
    assert rows["zh"]["bytes_per_token"] == 3.75
    assert rows["zh"]["characters_per_token"] == 1.25
    assert rows["zh"]["tokens_per_character"] == 0.8
    assert rows["zh"]["tokens_per_word"] is None
    assert (rows["und"]["documents"], rows["und"]["tokens"], rows["und"]["tokens_per_word"]) == (2, 4, 2.0)


def test_a_language_without_tokens_or_text_has_null_ratios() -> None:
    row = fertility(languages(("en", 1, 0, 0, 0, 0))).to_pylist()[0]
    assert [row[name] for name in row if "_per_" in name] == [None] * 4


def test_overall_tokens_per_word_is_over_languages_that_write_spaces() -> None:
    overall = overall_fertility(languages(("en", 2, 100, 100, 20, 25), ("zh", 1, 300, 100, 3, 80)))
    assert (overall["documents"], overall["bytes"], overall["tokens"], overall["words"]) == (3, 400, 105, 23)
    assert overall["bytes_per_token"] == 400 / 105
    assert overall["characters_per_token"] == 200 / 105
    assert overall["tokens_per_character"] == 105 / 200
    assert overall["tokens_per_word"] == 25 / 20
    assert overall_fertility(languages())["tokens_per_word"] is None


def test_languages_without_spaces_are_known_in_any_spelling() -> None:
    assert not any(map(writes_spaces, ("zh", "zh-Hant", "zh_CN", "ZHO_Hans", "cmn", "ja", "jpn", "tha", "km", "my")))
    assert all(map(writes_spaces, ("en", "ko", "vi", "und", "jav", "tham", "", "loz", "code")))
