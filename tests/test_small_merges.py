"""Training in plain Python, with every share of work between its two halves, gives the merges of the definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.test_bpe_merges import Steps, as_words, by_definition, steps_of
from tests.tokenizer_samples import OTHER_SCRIPTS, documents
from tokpack_core.bpe import small_frequent_pairs, small_merges
from tokpack_core.bpe.merge_settings import TIE_BREAKS, MergeSettings
from tokpack_core.bpe.merges import learn_merges
from tokpack_core.bpe.regex_splitting import count_words
from tokpack_core.bpe.small_vocabulary import Vocabulary
from tokpack_core.bpe.small_words import Words
from tokpack_core.config import TieBreak
from tokpack_core.tokenizers.pretokenizers import SPLITS

# Few letters and few counts: nearly all pairs are equally frequent and overlap each other.
dense_words = st.dictionaries(
    st.one_of(
        *(
            st.binary(min_size=1, max_size=40).map(letters)
            for letters in (
                lambda text: bytes(97 + byte % 2 for byte in text),
                lambda text: bytes(97 + byte % 5 for byte in text),
                lambda text: bytes(97 + byte % 26 for byte in text),
            )
        )
    ),
    st.sampled_from([1, 1, 1, 2, 3, 2**40]),
    min_size=1,
    max_size=30,
)


def learned(words: dict[bytes, int], limits: MergeSettings, often: int, candidates: int) -> Steps:
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(small_merges, "OFTEN", often)
        changed.setattr(small_frequent_pairs, "CANDIDATES", candidates)
        return steps_of(small_merges.learn_merges_in_python(words, limits))


@settings(max_examples=150, deadline=None)
@given(
    dense_words,
    st.sampled_from(TIE_BREAKS),
    st.sampled_from([1, 2, 3]),
    st.integers(0, 80),
    st.sampled_from([None, 3, 5]),
    st.sampled_from([1, 2, 4, 2**50]),
    st.sampled_from([1, 2, 7, 64]),
)
def test_merges_of_the_definition(
    words: dict[bytes, int],
    tie_break: TieBreak,
    least: int,
    room: int,
    longest: int | None,
    often: int,
    candidates: int,
) -> None:
    limits = MergeSettings(256 + room, least, tie_break, longest)
    expected = by_definition(words, limits) if longest is None else steps_of(learn_merges([as_words(words)], limits))
    assert learned(words, limits, often, candidates) == expected


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_all_of_real_text(tie_break: TieBreak) -> None:
    words = count_words([*documents(), *OTHER_SCRIPTS], SPLITS["cl100k"])
    limits = MergeSettings(10**6, 1, tie_break)
    expected = steps_of(learn_merges([as_words(words)], limits))
    assert len(expected) > 3000
    for often, candidates in ((1, 64), (16, 5), (10**6, 1)):
        assert learned(words, limits, often, candidates) == expected


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_pairs_that_were_not_followed_get_a_turn(tie_break: TieBreak, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the two most frequent pairs the first parts the second, and what is born is too long."""
    words = {b"abc": 10, b"de": 2}
    limits = MergeSettings(256 + 2, 1, tie_break, max_token_length=3)
    turns = []
    merge_rare = small_merges.merge_rare

    def counting(vocabulary: Vocabulary, words: Words, most: int) -> int:
        turns.append(merge_rare(vocabulary, words, most))
        return turns[-1]

    monkeypatch.setattr(small_merges, "merge_rare", counting)
    first = (b"b", b"c", 10) if tie_break == "lexicographic_greatest" else (b"a", b"b", 10)
    assert learned(words, limits, 16, 64) == [first, (b"d", b"e", 2)]
    assert turns == [5, 2]


def test_what_is_born_as_often_takes_its_place() -> None:
    """(c, ab) comes before (d, e), which was there first; of its parts the new symbol is known only afterwards."""
    words = {b"cab": 3, b"de": 3, b"ac": 1}
    assert learned(words, MergeSettings(256 + 3, 1), 16, 64) == [(b"a", b"b", 3), (b"c", b"ab", 3), (b"d", b"e", 3)]


def test_room_for_a_part_of_a_count() -> None:
    """All pairs have one left symbol and one count, and there is room for some."""
    words = {b"a" + bytes([right]): 2 for right in b"bcdefgh"}
    steps = [(b"a", bytes([right]), 2) for right in b"bcdefgh"]
    for room in range(1, 9):
        assert learned(words, MergeSettings(256 + room, 1), 16, 64) == steps[:room]
