"""Byte-level BPE with deletions against its description, one event at a time over all words."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from tests.test_bpe_merges import as_words
from tests.tokenizer_samples import EOD, HOSTILE, documents, normalized
from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, MergeSettings
from tokpack_core.bpe.picky_merges import Events, event_encoder, learn_with_deletions
from tokpack_core.bpe.window_kernels import WINDOW
from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.round_trip import round_trip_failures

Symbols = tuple[bytes, ...]
Event = tuple[bytes, bytes] | tuple[bytes, Symbols]


class Reference:
    """Ties go to the lexicographically smallest pair, so that no numbering matters."""

    def __init__(self, words: dict[bytes, int], vocab_size: int, least: int, threshold: float) -> None:
        self.words = {tuple(bytes([byte]) for byte in word): count for word, count in words.items()}
        self.alive = {bytes([byte]) for byte in range(256)}
        self.made_of: dict[bytes, tuple[bytes, bytes]] = {}
        self.events: list[tuple[str, bytes, object]] = []
        self.counts: list[int] = []
        ever = set(self.alive)
        while len(self.alive) < vocab_size and len(ever) < 4 * vocab_size:
            pairs: Counter[tuple[bytes, bytes]] = Counter()
            single: Counter[bytes] = Counter()
            for word, count in self.words.items():
                for token in word:
                    single[token] += count
                for pair in pairwise(word):
                    pairs[pair] += count
            most = max(pairs.values(), default=0)
            if most < least:
                break
            pair = min(two for two, count in pairs.items() if count == most)
            new = b"".join(pair)
            if new not in self.alive:
                self.alive.add(new)
                ever.add(new)
                self.made_of[new] = pair
            self.events.append(("merge", new, pair))
            self.counts.append(most)
            self.words = regrouped((merged(word, pair), count) for word, count in self.words.items())
            for token in dict.fromkeys(pair):
                if len(token) > 1 and most >= threshold * single[token]:
                    self.alive.remove(token)
                    parts = self.parts_of(token)
                    self.events.append(("delete", token, parts))
                    self.words = regrouped((split(word, token, parts), count) for word, count in self.words.items())

    def parts_of(self, token: bytes) -> Symbols:
        sides = self.made_of[token]
        return tuple(part for side in sides for part in ((side,) if side in self.alive else self.parts_of(side)))

    def encode(self, word: bytes) -> Symbols:
        symbols: Symbols = tuple(bytes([byte]) for byte in word)
        for kind, token, rest in self.events:
            symbols = merged(symbols, rest) if kind == "merge" else split(symbols, token, rest)  # type: ignore[arg-type]
        return symbols


def regrouped(rows: object) -> dict[Symbols, int]:
    words: Counter[Symbols] = Counter()
    for word, count in rows:  # type: ignore[attr-defined]
        words[word] += count
    return dict(words)


def merged(word: Symbols, pair: tuple[bytes, bytes]) -> Symbols:
    result: list[bytes] = []
    place = 0
    while place < len(word):
        whole = word[place : place + 2] == pair
        result.append(b"".join(pair) if whole else word[place])
        place += 1 + whole
    return tuple(result)


def split(word: Symbols, token: bytes, parts: Symbols) -> Symbols:
    return tuple(part for symbol in word for part in (parts if symbol == token else (symbol,)))


def events_of(found: Events) -> list[tuple[str, bytes, object]]:
    rows: list[tuple[str, bytes, object]] = []
    for left, right, made in found.events.tolist():
        if right >= 0:
            rows.append(("merge", found.symbols[made], (found.symbols[left], found.symbols[right])))
        else:
            parts = found.parts[found.part_offsets[made] : found.part_offsets[made + 1]].tolist()
            rows.append(("delete", found.symbols[left], tuple(found.symbols[part] for part in parts)))
    return rows


def encoded(found: Events, words: list[bytes], window: int = WINDOW) -> list[Symbols]:
    byte_ids = np.zeros(256, np.int32)
    byte_ids[np.frombuffer(BYTE_LEVEL_ORDER, np.uint8)] = np.arange(256)
    lengths = np.array([len(symbol) for symbol in found.symbols], np.int64)
    encode = event_encoder(byte_ids, lengths, found.events, found.parts, found.part_offsets, window)
    offsets = np.cumsum([0, *map(len, words)])
    ids, begins = encode(np.frombuffer(b"".join(words), np.uint8), offsets)
    return [tuple(found.symbols[k] for k in ids[a:b].tolist()) for a, b in pairwise(begins.tolist())]


few_letters = st.one_of(*(st.text(letters, min_size=1, max_size=20) for letters in ("a", "ab", "abc", "éa")))
word_counts = st.dictionaries(few_letters.map(str.encode), st.sampled_from([1, 2, 3, 5, 2**33]), min_size=1, max_size=8)


@settings(max_examples=120, deadline=None)
@given(word_counts, st.sampled_from([1, 2]), st.integers(0, 40), st.sampled_from([0.5, 0.6, 0.8, 0.9, 1.0]))
def test_events_and_ids_are_those_of_the_description(
    words: dict[bytes, int], least: int, room: int, threshold: float
) -> None:
    limits = MergeSettings(256 + room, least, "lexicographic_smallest")
    expected = Reference(words, 256 + room, least, threshold)
    found = learn_with_deletions([as_words(words)], limits, threshold)
    assert events_of(found) == expected.events
    assert {symbol for symbol, alive in zip(found.symbols, found.alive, strict=True) if alive} == expected.alive
    others = [b"abcabc", b"aaaaaaaaaaaaa", b"cab", *(word[1:] + word for word in words)]
    assert encoded(found, [*words, *others]) == [expected.encode(word) for word in [*words, *others]]


@settings(max_examples=120, deadline=None)
@given(word_counts, st.integers(0, 40), st.sampled_from([0.5, 0.6, 0.8]), st.data())
def test_windows_of_any_size(words: dict[bytes, int], room: int, threshold: float, data: st.DataObject) -> None:
    found = learn_with_deletions([as_words(words)], MergeSettings(256 + room, 1, "lexicographic_smallest"), threshold)
    pieces = st.lists(st.sampled_from([*words, b"a", b"ab", b"c"]), min_size=1, max_size=12)
    others = [b"".join(data.draw(pieces)), data.draw(st.sampled_from(list(words))) * 6]
    expected = encoded(found, others, 10_000)
    for window in data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=4)):
        assert encoded(found, others, window) == expected


@pytest.fixture(scope="module")
def config() -> TrainConfig:
    return TrainConfig(family="byte_bpe", vocab_size=1500, special_tokens=SpecialTokens(eod=EOD), delete_threshold=0.7)


def test_a_vocabulary_without_what_was_deleted(config: TrainConfig, tmp_path: object) -> None:
    texts = pa.array(documents(), pa.string())
    tokenizer = registry.train(config, iter([texts]), "nfc")
    assert tokenizer.vocab_size == 1500
    assert tokenizer.training["tokens_deleted"] > 5
    folder = tmp_path / "saved"  # type: ignore[operator]
    folder.mkdir()
    tokenizer.save(folder)
    loaded = registry.load(folder)
    held = pa.array([normalized(text, "nfc") for text in [*documents(), *HOSTILE, "a" * 100_000]])
    assert loaded.encode(held).ids.tolist() == tokenizer.encode(held).ids.tolist()
    assert loaded.vocabulary() == tokenizer.vocabulary()
    assert round_trip_failures(loaded, held) == []
    plain = registry.train(
        TrainConfig(family="byte_bpe", vocab_size=1500, special_tokens=SpecialTokens(eod=EOD)), iter([texts]), "nfc"
    )
    ours, theirs = (np.unique(one.encode(texts).ids).size for one in (tokenizer, plain))
    assert ours > theirs
