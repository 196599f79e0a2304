"""Merges equal those of the definition and of Hugging Face's trainer, whoever counts and in whatever order."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from tokenizers.trainers import BpeTrainer

from tests.tokenizer_samples import HOSTILE, documents
from tokpack_core.bpe import merge_loop, pretoken_counting, training
from tokpack_core.bpe.merge_round_kernels import MOST_PLACES, new_scratch
from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, TIE_BREAKS, Merges, MergeSettings
from tokpack_core.bpe.merges import learn_merges
from tokpack_core.bpe.pretoken_counting import count_parts, count_pretokens
from tokpack_core.bpe.pretoken_counts import PretokenCounts, without_long
from tokpack_core.bpe.regex_splitting import count_words
from tokpack_core.bpe.small_merges import learn_merges_in_python
from tokpack_core.bpe.training import train_merges
from tokpack_core.bpe.word_runs import SpilledRun
from tokpack_core.bpe.word_table import WordTable
from tokpack_core.config import TieBreak
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.byteification.token_bytes import byte_level_bytes
from tokpack_core.tokenizers.pretokenizers import SPLITS

Steps = list[tuple[bytes, bytes, int]]


def by_definition(words: dict[bytes, int], limits: MergeSettings) -> Steps:
    """All pairs counted anew for every merge."""
    ids = {bytes([byte]): place for place, byte in enumerate(BYTE_LEVEL_ORDER)}
    split = [([bytes([byte]) for byte in word], count) for word, count in words.items()]
    steps: Steps = []
    while len(ids) < limits.vocab_size:
        pairs: Counter[tuple[bytes, bytes]] = Counter()
        for word, count in split:
            for pair in pairwise(word):
                pairs[pair] += count
        if not pairs or max(pairs.values()) < max(limits.min_frequency, 1):
            break
        best = {
            "hugging_face": lambda pairs: min(pairs, key=lambda p: (-pairs[p], ids[p[0]], ids[p[1]])),
            "lexicographic_greatest": lambda pairs: max(pairs, key=lambda p: (pairs[p], p)),
            "lexicographic_smallest": lambda pairs: min(pairs, key=lambda p: (-pairs[p], p)),
        }[limits.tie_break](pairs)
        steps.append((*best, pairs[best]))
        assert b"".join(best) not in ids
        ids[b"".join(best)] = len(ids)
        split = [(joined(word, best), count) for word, count in split]
    return steps


def joined(word: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    result: list[bytes] = []
    place = 0
    while place < len(word):
        whole = tuple(word[place : place + 2]) == pair
        result.append(b"".join(pair) if whole else word[place])
        place += 1 + whole
    return result


def steps_of(merges: Merges) -> Steps:
    assert len(merges.tokens) == len(set(merges.tokens))
    rows = zip(merges.left.tolist(), merges.right.tolist(), merges.count.tolist(), strict=True)
    steps = [(merges.tokens[left], merges.tokens[right], count) for left, right, count in rows]
    assert merges.tokens[len(merges.tokens) - len(steps) :] == [left + right for left, right, _ in steps]
    return steps


def as_words(words: dict[bytes, int]) -> PretokenCounts:
    offsets = np.cumsum([0, *map(len, words)])
    return PretokenCounts(np.frombuffer(b"".join(words), np.uint8), offsets, np.array(list(words.values()), np.int64))


def as_dictionary(words: PretokenCounts) -> dict[bytes, int]:
    borders = pairwise(words.offsets.tolist())
    pieces = [words.data[first:stop].tobytes() for first, stop in borders]
    assert len(set(pieces)) == len(pieces)
    return dict(zip(pieces, words.counts.tolist(), strict=True))


few_letters = st.one_of(*(st.text(letters, min_size=1, max_size=30) for letters in ("a", "ab", "abc", "éa")))
word_counts = st.dictionaries(
    few_letters.map(str.encode), st.sampled_from([1, 2, 3, 5, 2**31 - 1, 2**31, 2**40]), min_size=1, max_size=8
)


@settings(max_examples=400, deadline=None)
@given(word_counts, st.sampled_from([0, 1, 2, 4]), st.integers(0, 60), st.sampled_from(TIE_BREAKS))
def test_merges_are_those_of_the_definition(
    words: dict[bytes, int], min_frequency: int, room: int, tie_break: TieBreak
) -> None:
    limits = MergeSettings(256 + room, min_frequency, tie_break)
    expected = by_definition(words, limits)
    assert steps_of(learn_merges([as_words(words)], limits)) == expected
    halves = [as_words(dict(half)) for half in (list(words.items())[::2], list(words.items())[1::2]) if half]
    assert steps_of(learn_merges(halves, limits, workers=3)) == expected
    assert steps_of(learn_merges_in_python(words, limits)) == expected


@pytest.mark.parametrize("tie_break", TIE_BREAKS)
def test_real_words_by_the_definition(tie_break: TieBreak) -> None:
    words = count_words(documents()[:12], SPLITS["o200k"])
    limits = MergeSettings(256 + 150, 2, tie_break)
    expected = by_definition(words, limits)
    assert len(expected) == 150
    assert steps_of(learn_merges([as_words(words)], limits)) == expected
    assert steps_of(learn_merges_in_python(words, limits)) == expected


def test_counts_beyond_32_bits_are_exact() -> None:
    words = {b"ab": 2**31 + 1, b"bc": 2**31 + 2, b"abc": 2**33}
    assert steps_of(learn_merges([as_words(words)], MergeSettings(258)))[0] == (b"b", b"c", 2**33 + 2**31 + 2)


@pytest.mark.parametrize("workers", [2, 3])
def test_merges_by_several_threads_are_the_same(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of any size, made together or by one thread in between."""

    def with_rounds_of(most: int) -> Any:
        return lambda *sizes: new_scratch(*sizes)._replace(batch=np.empty((most, 5), np.int64))

    @settings(max_examples=250, deadline=None)
    @given(word_counts, st.sampled_from(TIE_BREAKS), st.sampled_from([0, 2, 3, 9]), st.sampled_from([1, 2, 256]))
    def same(words: dict[bytes, int], tie_break: TieBreak, many: int, most: int) -> None:
        monkeypatch.setattr(merge_loop, "MANY", many)
        monkeypatch.setattr(merge_loop, "new_scratch", with_rounds_of(most))
        limits = MergeSettings(290, 1, tie_break)
        assert steps_of(learn_merges([as_words(words)], limits, workers)) == by_definition(words, limits)

    same()
    words = count_words(documents()[:12], SPLITS["o200k"])
    expected = by_definition(words, MergeSettings(256 + 150, 2))
    for many in (0, 40):
        monkeypatch.setattr(merge_loop, "MANY", many)
        limits = MergeSettings(256 + 150, 2)
        assert steps_of(learn_merges([as_words(words)], limits, workers)) == expected
        limits = MergeSettings(2000, 2, max_token_length=9)
        small = steps_of(learn_merges_in_python(words, limits))
        assert steps_of(learn_merges([as_words(words)], limits, workers)) == small


def test_one_pair_of_more_places_than_rounds_have_room_for() -> None:
    number = MOST_PLACES + 5_000
    words = {b"%05xqz" % place: 1 + place % 3 for place in range(number)}
    limits = MergeSettings(256 + 40)
    expected = steps_of(learn_merges_in_python(words, limits))
    assert expected[0] == (b"q", b"z", sum(words.values()))
    for workers in (1, 2):
        assert steps_of(learn_merges([as_words(words)], limits, workers)) == expected


def test_a_round_makes_many_merges_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no symbol on one side that another has on the other, in the order of counts; (e, f) overlaps (d, e)."""
    words = {b"ab": 9, b"cb": 8, b"ad": 7, b"de": 6, b"ef": 5, b"xx": 4, b"yz": 3}
    rounds: list[int] = []
    original = merge_loop.merge_rounds

    def noted(*arguments: Any) -> Any:
        found = original(*arguments)
        rounds.append(found[0])
        return found

    monkeypatch.setattr(merge_loop, "merge_rounds", noted)
    monkeypatch.setattr(merge_loop, "MANY", 0)
    found = learn_merges([as_words(words)], MergeSettings(300, 1, alphabet=b""), workers=2)
    assert steps_of(found) == [(word[:1], word[1:], count) for word, count in words.items()]
    assert rounds == [3, 1, 1, 1, 1, 0]


def test_a_threshold_that_was_too_high_is_lowered() -> None:
    """One pair is so frequent that all others lie below the first guess."""
    words = {b"ab": 10**9, **{bytes([65 + k, 66 + k]): k + 1 for k in range(20)}}
    limits = MergeSettings(300, 1)
    assert steps_of(learn_merges([as_words(words)], limits)) == by_definition(words, limits)


def by_hugging_face(texts: list[str], name: str, vocab_size: int, **limits: int) -> Steps:
    engine = Tokenizer(models.BPE())
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in SPLITS[name]]
    engine.pre_tokenizer = pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(False, use_regex=False)])
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    engine.train_from_iterator(
        texts, BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False, **limits)
    )
    import json

    pairs = json.loads(engine.to_str())["model"]["merges"]
    return [(byte_level_bytes(left) or b"", byte_level_bytes(right) or b"", 0) for left, right in pairs]


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("limits", [{"min_frequency": 2}, {"min_frequency": 0, "max_token_length": 6}])
def test_merges_are_those_of_hugging_face(name: str, limits: dict[str, int]) -> None:
    texts = [*documents(), *HOSTILE]
    expected = by_hugging_face(texts, name, 3000, **limits)
    ours = MergeSettings(3000, limits["min_frequency"], max_token_length=limits.get("max_token_length"))
    words = count_pretokens(iter([pa.array(texts)]), SPLITS[name])
    assert [(left, right, 0) for left, right, _ in steps_of(learn_merges([words], ours))] == expected
    small = learn_merges_in_python(count_words(texts, SPLITS[name]), ours)
    assert [(left, right, 0) for left, right, _ in steps_of(small)] == expected


@pytest.mark.parametrize("name", SPLITS)
def test_counts_are_those_of_regex(name: str) -> None:
    texts = [*documents(), *HOSTILE]
    expected = dict(count_words(texts, SPLITS[name]))
    assert as_dictionary(count_pretokens(iter([pa.array(texts)]), SPLITS[name])) == expected
    pieces = iter([pa.array(texts[start : start + 3], pa.large_string()) for start in range(0, len(texts), 3)])
    assert as_dictionary(count_pretokens(pieces, SPLITS[name], workers=3)) == expected


def test_words_that_differ_late_or_by_length_are_kept_apart() -> None:
    stem = "x" * 40
    words = [stem[:length] + end for length in range(1, 40) for end in ("", "a", "b", "é")] + ["a\x00", "a\x00\x00"]
    texts = [f"{word}\n" for word in words] * 2
    expected = Counter(piece.encode() for text in texts for piece in regex.findall(SPLITS["cl100k"][0], text))
    assert as_dictionary(count_pretokens(iter([pa.array(texts)]), SPLITS["cl100k"])) == expected


def test_many_different_words_make_the_table_grow() -> None:
    texts = [" ".join(f"{number:x}" for number in range(start, start + 40_000)) for start in (0, 20_000, 70_000)]
    expected = Counter(piece for text in texts for piece in regex.findall(SPLITS["gpt2"][0], text))
    found = as_dictionary(count_pretokens(iter(map(pa.array, [[text] for text in texts])), SPLITS["gpt2"], workers=2))
    assert found == {piece.encode(): count for piece, count in expected.items()}


@pytest.mark.parametrize("splits", [SPLITS["gpt2"], (r"\p{N}++|\P{N}++",)], ids=["threads", "processes"])
def test_counts_that_go_to_disk_are_exact(splits: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretoken_counting, "MOST_BYTES", 2**19)
    texts = [" ".join(map(str, range(start, start + 9_000))) for start in (0, 6_000, 30_000)] + ["", "x" * 9000, "a b"]
    expected = count_words(texts, splits)
    files: list[Path] = []
    spilled = pretoken_counting.spilled

    def noted(table: WordTable, path: Path) -> SpilledRun:
        files.append(path)
        return spilled(table, path)

    monkeypatch.setattr(pretoken_counting, "spilled", noted)
    arrays = [pa.array([text]) for text in texts]
    parts, _ = count_parts(iter(arrays), splits, workers=2)
    assert len(files) > 1
    assert not any(file.exists() for file in files)
    assert sum(part.counts.size for part in parts) == len(expected)
    assert {word: count for part in parts for word, count in as_dictionary(part).items()} == dict(expected)
    limits = MergeSettings(700, 2)
    assert steps_of(learn_merges(parts, limits, workers=3)) == steps_of(learn_merges_in_python(expected, limits))


def test_more_different_words_than_the_trainer_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretoken_counting, "MOST_CELLS", 10**5)
    texts = [pa.array([" ".join(map(str, range(start, start + 20_000)))]) for start in range(0, 100_000, 20_000)]
    with pytest.raises(InputError, match="different pretokens"):
        count_pretokens(iter(texts), SPLITS["gpt2"], workers=2)


def test_a_regex_without_automaton_is_counted_by_processes() -> None:
    splits = (r"\p{L}++|\P{L}++",)
    expected = Counter(piece.encode() for text in documents()[:9] for piece in regex.findall(splits[0], text))
    arrays = iter([pa.array(documents()[:4]), pa.array(documents()[4:9])])
    assert as_dictionary(count_pretokens(arrays, splits, workers=2)) == expected


def test_long_pretokens_are_left_out_and_counted() -> None:
    words, dropped = without_long(as_words({b"abc": 2, b"abcdef": 5, b"x": 1}), 3)
    assert (as_dictionary(words), dropped) == ({b"abc": 2, b"x": 1}, 30)


@pytest.mark.parametrize("small", [0, 10**9])
def test_neither_order_nor_workers_matter(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "SMALL", small)
    texts = documents()
    shuffled = random.Random(7).sample(texts, len(texts))
    limits = MergeSettings(2000, 2, "lexicographic_smallest", max_pretoken_bytes=12)
    one, seen = train_merges(iter([pa.array(texts)]), SPLITS["gpt2"], limits)
    parts = iter([pa.array(shuffled[:5]), pa.array(shuffled[5:40]), pa.array(shuffled[40:])])
    other, seen_shuffled = train_merges(parts, SPLITS["gpt2"], limits, workers=3)
    assert (steps_of(one), seen) == (steps_of(other), seen_shuffled)
    words = count_words(texts, SPLITS["gpt2"])
    assert seen.bytes_dropped == sum(len(word) * count for word, count in words.items() if len(word) > 12) > 0
    assert (seen.documents, seen.bytes) == (len(texts), sum(len(text.encode()) for text in texts))


@pytest.mark.parametrize("size", [1, 600])
def test_text_that_the_regex_does_not_split_is_refused(size: int) -> None:
    texts = pa.array([f"{number:0>2000}" for number in range(2000)] * size if size == 1 else ["a" * 1001] * 2000)
    with pytest.raises(InputError, match="hardly splits"):
        train_merges(iter([texts]), (r"\p{L}+|\p{N}+",), MergeSettings(300))


def test_a_regex_that_does_not_compile_is_one_error() -> None:
    with pytest.raises(InputError, match="no regular expression"):
        train_merges(iter([pa.array(["text"])]), ("(a",), MergeSettings(300))


def test_bytes_without_an_id_are_those_that_do_not_occur() -> None:
    limits = MergeSettings(10, alphabet=b"z")
    assert learn_merges([as_words({b"ab": 3})], limits).tokens == [b"a", b"b", b"z", b"ab"]
    assert learn_merges_in_python({b"ab": 3}, limits).tokens == [b"a", b"b", b"z", b"ab"]


def test_small_texts_are_trained_without_numba() -> None:
    script = (
        "import sys, pyarrow as pa; from tokpack_core.config import SpecialTokens, TrainConfig; "
        "from tokpack_core.tokenizers.byte_bpe.training import train_byte_bpe; "
        "c = TrainConfig(family='byte_bpe', vocab_size=400, special_tokens=SpecialTokens(eod='<|eod|>')); "
        "t = train_byte_bpe(c, iter([pa.array(['some text and some more'] * 9)]), 'none'); "
        "t.encode(pa.array(['text'])); print(sorted(m for m in sys.modules if m in ('numba', 'llvmlite')))"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
