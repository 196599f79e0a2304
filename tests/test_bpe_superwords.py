"""Superword training against one merge at a time over all the text."""

from __future__ import annotations

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

from tests.superword_reference import Made, boundless_by_definition
from tests.tokenizer_samples import documents
from tokpack_core.bpe.merge_settings import TIE_BREAKS, MergeSettings
from tokpack_core.bpe.superword_merges import SupermergeSettings
from tokpack_core.bpe.superwords import Superwords, train_boundless
from tokpack_core.config import TieBreak
from tokpack_core.tokenizers.pretokenizers import SPLITS


def holds_letter(token: bytes) -> bool:
    return any(character.isalpha() for character in token.decode("utf-8", "ignore"))


def steps_of(found: Superwords) -> Made:
    rows = zip(found.left, found.right, found.count.tolist(), found.is_superword.tolist(), strict=True)
    steps = [(found.tokens[left], found.tokens[right], count, whole) for left, right, count, whole in rows]
    assert found.tokens[256:] == [left + right for left, right, _, _ in steps]
    return Made(steps)


words = st.sampled_from([" a", " b", " ab", " ba", "a", "b", " aa", ".", " .", "1", "\n", " abab", "'s"])
texts = st.lists(st.lists(words, max_size=25).map("".join), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(texts, st.integers(0, 40), st.sampled_from([1, 2, 3]), st.sampled_from(TIE_BREAKS), st.booleans())
def test_boundless_merges_are_those_of_one_pass(
    texts: list[str], room: int, min_frequency: int, tie_break: TieBreak, words_win: bool
) -> None:
    found = train_boundless(
        iter([pa.array(texts, pa.string())]),
        SPLITS["gpt2"],
        MergeSettings(256 + room, min_frequency, tie_break),
        SupermergeSettings(min_frequency, tie_break, "word" if words_win else "superword"),
        holds_letter,
    )
    expected = boundless_by_definition(
        texts, SPLITS["gpt2"], 256 + room, min_frequency, tie_break, words_win, holds_letter
    )
    assert steps_of(found) == expected


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_boundless_merges_of_real_text(tie_break: TieBreak) -> None:
    texts = [text[:2000] for text in documents()[:4]]
    found = train_boundless(
        iter(pa.array([text], pa.string()) for text in texts),
        SPLITS["cl100k"],
        MergeSettings(256 + 600, 2, tie_break),
        SupermergeSettings(2, tie_break),
        holds_letter,
        workers=2,
    )
    expected = boundless_by_definition(texts, SPLITS["cl100k"], 256 + 600, 2, tie_break, True, holds_letter)
    assert sum(whole for *_, whole in expected.steps) > 10
    assert steps_of(found) == expected
