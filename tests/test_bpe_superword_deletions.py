"""BoundlessBPE with deletions against its description, one step at a time over all the text."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

from tests.superword_reference import replaced
from tests.test_bpe_deletions import Reference, events_of
from tests.test_bpe_superwords import holds_letter, words
from tests.tokenizer_samples import EOD, HOSTILE, documents
from tokpack_core.bpe.merge_settings import MergeSettings
from tokpack_core.bpe.regex_splitting import compiled, pretokens
from tokpack_core.bpe.superword_deletions import train_boundless_with_deletions
from tokpack_core.bpe.superword_merges import SupermergeSettings
from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.round_trip import round_trip_failures
from tokpack_core.tokenizers.event_model import event_model
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.pretokenizers import SPLITS
from tokpack_core.tokenizers.superwords.model import SuperwordTokenizer

Pair = tuple[bytes, bytes]


class Description:
    """The first pass of deletions, then words and superwords by their counts; ties to the smaller strings."""

    def __init__(self, texts: list[str], vocab_size: int, least: int, threshold: float, words_win: bool) -> None:
        self.patterns = compiled(SPLITS["gpt2"])
        chunks = [[word.encode() for word in pretokens(text, self.patterns)] for text in texts]
        self.first = Reference(Counter(word for text in chunks for word in text), vocab_size, least, threshold)
        self.supermerges: list[Pair] = []
        self.taken = 0
        runs: list[list[bytes | None]] = [
            [word if self.is_whole(word) and word in self.first.alive and holds_letter(word) else None for word in text]
            for text in chunks
        ]
        known = {bytes([byte]) for byte in range(256)} | set(self.first.made_of)
        while len(self.living()) + len(self.supermerges) < vocab_size:
            counts = Counter(pair for run in runs for pair in pairwise(run) if None not in pair)
            revealed = self.revealed()
            usable = {
                pair: count
                for pair, count in counts.items()
                if count >= least and set(pair) <= revealed and b"".join(pair) not in known  # type: ignore[arg-type]
            }
            most = max(usable.values(), default=0)
            following = self.first.counts[self.taken] if self.taken < len(self.first.counts) else 0
            if not most and not following:
                break
            if following > most or (following == most and words_win):
                self.taken += 1
                continue
            pair = min(pair for pair, count in usable.items() if count == most)
            self.supermerges.append(pair)  # type: ignore[arg-type]
            known.add(b"".join(pair))  # type: ignore[arg-type]
            runs = [replaced(run, pair) for run in runs]  # type: ignore[arg-type]

    def is_whole(self, word: bytes) -> bool:
        return self.first.encode(word) == (word,)

    def events(self) -> list[tuple[str, bytes, object]]:
        """Those of the merges that were taken, and their deletions."""
        found, merges = [], 0
        for event in self.first.events:
            merges += event[0] == "merge"
            if merges > self.taken:
                break
            found.append(event)
        return found

    def living(self) -> set[bytes]:
        alive = {bytes([byte]) for byte in range(256)}
        for kind, token, _ in self.events():
            (alive.add if kind == "merge" else alive.remove)(token)
        return alive

    def revealed(self) -> set[bytes]:
        """What lives now and will not be deleted any more, and superwords."""
        later = self.first.events[len(self.events()) :]
        deleted = {token for kind, token, _ in later if kind == "delete"}
        return (self.living() - deleted) | {b"".join(pair) for pair in self.supermerges}

    def encode(self, text: str) -> list[bytes]:
        events, tokens = self.events(), []
        self.first.events, whole = events, self.first.events
        for word in pretokens(text, self.patterns):
            spelled = self.first.encode(word.encode())
            joinable = len(spelled) == 1 and holds_letter(spelled[0])
            tokens += [(token, joinable) for token in spelled]
        self.first.events = whole
        run: list[bytes | None] = []
        parts: list[bytes] = []
        for token, joinable in [*tokens, (b"", False)]:
            if joinable:
                run.append(token)
                continue
            for pair in self.supermerges:
                run = replaced(run, pair)
            parts += [part for part in run if part is not None]
            parts += [token] if token else []
            run = []
        return parts


long_texts = st.lists(st.lists(words, min_size=5, max_size=25).map("".join), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(long_texts, st.integers(8, 30), st.sampled_from([1, 2]), st.sampled_from([0.6, 0.8, 1.0]), st.booleans())
def test_events_supermerges_and_ids_are_those_of_the_description(
    texts: list[str], room: int, least: int, threshold: float, words_win: bool
) -> None:
    expected = Description(texts, 256 + room, least, threshold, words_win)
    limits = MergeSettings(256 + room, least, "lexicographic_smallest")
    events, made, _ = train_boundless_with_deletions(
        iter([pa.array(texts, pa.string())]),
        SPLITS["gpt2"],
        limits,
        threshold,
        SupermergeSettings(least, "lexicographic_smallest", "word" if words_win else "superword"),
        holds_letter,
    )
    assert events_of(events) == expected.events()
    names = [*events.symbols, *made.tokens]
    assert [(names[left], names[right]) for left, right in zip(made.left, made.right, strict=True)] == (
        expected.supermerges
    )
    model = event_model(events, (), SPLITS["gpt2"], made, r"\p{L}")
    assert set(model.tokens) == expected.living() | set(made.tokens)
    tokenizer = SuperwordTokenizer(model, Metadata("boundless_bpe", "none", {}))
    for text in [*texts, "a b ab ba. ab a 1"]:
        ids = tokenizer.encode(pa.array([text], pa.string())).ids
        assert [model.tokens[token] for token in ids] == expected.encode(text)


def test_a_deleted_token_may_come_back_in_all_words() -> None:
    """Then nothing is deleted in the end, and encoding still goes through the deletions."""
    texts = pa.array([" ab abc ab"] * 3 + [" abc" * 9, " ab" * 5], pa.string())
    for room in range(12):
        limits = MergeSettings(256 + room, 1)
        events, made, _ = train_boundless_with_deletions(
            iter([texts]), SPLITS["gpt2"], limits, 0.6, SupermergeSettings(1), holds_letter
        )
        model = event_model(events, (), SPLITS["gpt2"], made, r"\p{L}")
        tokenizer = SuperwordTokenizer(model, Metadata("boundless_bpe", "none", {}))
        assert tokenizer.decode(tokenizer.encode(texts)).equals(texts)


def test_a_saved_model_opens_again(tmp_path: Path) -> None:
    config = TrainConfig(
        family="boundless_bpe", vocab_size=1500, special_tokens=SpecialTokens(eod=EOD), delete_threshold=0.7
    )
    tokenizer = registry.train(config, iter([pa.array(documents(), pa.string())]), "none")
    assert tokenizer.vocab_size == 1500
    assert tokenizer.training["tokens_deleted"] > 5
    assert tokenizer.training["superwords"] > 20
    tokenizer.save(tmp_path)
    held = pa.array([*documents(), *HOSTILE], pa.string())
    assert registry.load(tmp_path).encode(held).ids.tolist() == tokenizer.encode(held).ids.tolist()
    assert round_trip_failures(tokenizer, held) == []


def test_no_stock_file_says_when_a_token_is_deleted() -> None:
    with pytest.raises(ValueError, match="cannot say when a token is deleted"):
        TrainConfig(family="boundless_bpe", vocab_size=1500, delete_threshold=0.7, export="hf")
