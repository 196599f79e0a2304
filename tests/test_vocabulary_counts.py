"""Token counts: equal to a brute-force count, in any order of addition, through the published files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.encoded import Encoded, from_lists
from tokpack_core.tokenizers.registry import train
from tokpack_core.vocabulary.counts import LANGUAGE_SCHEMA, TOKEN_SCHEMA, TokenCounts, count, count_words

VOCAB_SIZE = 9
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2005\u200a\u2028\u2029\u202f\u205f\u3000"
LOOK_LIKE_SPACE = "\x1c\x1f\u180e\u200b\u2060\ufeff\xc2\u1681\u2041\u3001"

document = st.tuples(
    st.lists(st.integers(0, VOCAB_SIZE - 1), max_size=6),
    st.text(st.sampled_from("aé中😀" + WHITE_SPACE + LOOK_LIKE_SPACE), max_size=12),
    st.sampled_from(["en", "zh", "", None]),
)


def counted(documents: list[tuple[list[int], str, str | None]]) -> TokenCounts:
    texts = pa.array([text for _, text, _ in documents], pa.string())
    langs = pa.array([lang for *_, lang in documents], pa.string())
    return count(from_lists([ids for ids, *_ in documents]), texts, langs, VOCAB_SIZE)


def assert_equal(left: TokenCounts, right: TokenCounts) -> None:
    assert left.tokens.tolist() == right.tokens.tolist()
    assert left.languages.equals(right.languages)
    assert left.by_language.equals(right.by_language)


@settings(deadline=None)  # the first call compiles
@given(st.lists(document, max_size=12))
def test_counts_equal_brute_force(documents: list[tuple[list[int], str, str | None]]) -> None:
    counts = counted(documents)
    ids = Counter(token for tokens, *_ in documents for token in tokens)
    assert counts.tokens.dtype == np.int64
    assert counts.tokens.tolist() == [ids[token] for token in range(VOCAB_SIZE)]
    expected = [
        {
            "lang": lang,
            "documents": len(rows),
            "bytes": sum(len(text.encode()) for _, text in rows),
            "characters": sum(len(text) for _, text in rows),
            "words": sum(len(regex.findall(r"\P{White_Space}+", text)) for _, text in rows),
            "tokens": sum(len(tokens) for tokens, _ in rows),
        }
        for lang in sorted({lang for *_, lang in documents}, key=lambda lang: (lang is None, lang or ""))
        if (rows := [(tokens, text) for tokens, text, of in documents if of == lang])
    ]
    assert counts.languages.to_pylist() == expected
    by_language = Counter((of, token) for tokens, _, of in documents for token in tokens)
    rows = counts.by_language.to_pylist()
    assert {(row["lang"], row["id"]): row["count"] for row in rows} == by_language
    assert rows == sorted(rows, key=lambda row: (row["lang"] is None, row["lang"] or "", row["id"]))


@settings(deadline=None)
@given(st.lists(document, max_size=9), st.integers(0, 9), st.integers(0, 9))
def test_counts_of_parts_add_up_in_any_order(
    documents: list[tuple[list[int], str, str | None]], first: int, second: int
) -> None:
    low, high = sorted((first, second))
    a, b, c = counted(documents[:low]), counted(documents[low:high]), counted(documents[high:])
    whole = counted(documents)
    for total in ((a + b) + c, a + (b + c), c + b + a, TokenCounts.zero(VOCAB_SIZE) + whole):
        assert_equal(total, whole)


def test_every_white_space_character_of_unicode_parts_words() -> None:
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    words = count_words(pa.array([f"a{character}b" for character in characters], pa.string()))
    parting = [character for character, found in zip(characters, words, strict=True) if found == 2]
    assert parting == regex.findall(r"\p{White_Space}", "".join(characters))
    assert len(parting) == 25


def test_words_of_a_slice_and_of_nothing() -> None:
    texts = pa.array(["skipped text", " one\u3000two\xa0three ", "", " \n"])
    for kind in (pa.string(), pa.large_string()):
        assert count_words(texts.cast(kind).slice(1)).tolist() == [3, 0, 0]
    assert count_words(pa.array([], pa.string())).tolist() == []
    assert count_words(pa.array(["", ""], pa.string())).tolist() == [0, 0]


def test_counts_of_a_trained_tokenizer_equal_its_encodings_one_by_one() -> None:
    texts = pa.array(["the cat sat on the mat", "", "die Katze saß auf der Matte\n", "貓坐在墊子上"])
    config = TrainConfig(family="byte_bpe", vocab_size=300, special_tokens=SpecialTokens(eod="<|endoftext|>"))
    tokenizer = train(config, iter([texts]), "nfc")
    counts = count(tokenizer.encode(texts), texts, pa.array(["en", None, "de", "zh"]), tokenizer.vocab_size)
    one_by_one = Counter(
        token for text in texts.to_pylist() for token in tokenizer.encode(pa.array([text])).ids.tolist()
    )
    assert {token: n for token, n in enumerate(counts.tokens.tolist()) if n} == one_by_one
    assert counts.languages["bytes"].to_pylist() == [29, 22, 18, 0]
    assert counts.languages["words"].to_pylist() == [6, 6, 1, 0]


def test_published_files_hold_the_counts_and_nothing_else(tmp_path: Path) -> None:
    counts = counted([([3, 3, 8], "a b", "en"), ([0], "", None), ([], "中", "zh")])
    counts.write(tmp_path)
    assert_equal(TokenCounts.read(tmp_path), counts)
    tokens = pq.read_table(tmp_path / "token_counts.parquet")
    assert tokens.to_pydict() == {"lang": ["en", "en", None], "id": [3, 8, 0], "count": [2, 1, 1]}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["language_counts.parquet", "token_counts.parquet"]
    written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    counts.write(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == written


def test_files_that_are_no_counts_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=str(tmp_path)):
        TokenCounts.read(tmp_path)
    counted([([3], "a", "en")]).write(tmp_path)
    pq.write_table(pa.table({"id": [1], "count": [2]}), tmp_path / "token_counts.parquet")
    with pytest.raises(InputError, match=f"{tmp_path}.*count again"):
        TokenCounts.read(tmp_path)
    beyond = pa.table([["en"], [5], [1]], schema=TOKEN_SCHEMA)
    pq.write_table(beyond.replace_schema_metadata({"vocab_size": "5"}), tmp_path / "token_counts.parquet")
    with pytest.raises(InputError, match=r"outside 0\.\.4"):
        TokenCounts.read(tmp_path)


def test_parts_that_do_not_belong_together_are_refused() -> None:
    one = pa.array(["a"])
    with pytest.raises(ValueError, match="token id 9 in a vocabulary of 9"):
        count(from_lists([[9]]), one, one, VOCAB_SIZE)
    with pytest.raises(ValueError, match="1 texts, 1 languages and 2 encoded"):
        count(from_lists([[1], [2]]), one, one, VOCAB_SIZE)
    with pytest.raises(ValueError, match="do not add up"):
        TokenCounts.zero(3) + TokenCounts.zero(4)


def test_an_empty_batch_counts_nothing() -> None:
    empty = count(Encoded(np.zeros(0, np.int32), np.zeros(1, np.int64)), pa.array([], pa.string()), pa.nulls(0), 5)
    assert empty.tokens.tolist() == [0] * 5
    assert empty.languages.equals(LANGUAGE_SCHEMA.empty_table())
