"""Byte-level BPE: layout of ids, determinism, refusals, and equality with tiktoken and transformers."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
import regex
import tiktoken
from hypothesis import given, settings
from transformers import AutoTokenizer

from tests.tokenizer_samples import (
    EOD,
    HOSTILE,
    PAD,
    SPECIAL_TOKENS,
    config,
    documents,
    ids,
    ordinary_text,
    saved_files,
    token_bytes,
    train,
    trained,
)
from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.pretokenizers import PRETOKENIZERS

PUBLISHED_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
PUBLISHED_CL100K = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"""
    r"""\s+(?!\S)|\s"""
)


def merges_by_hand(text: str, count: int) -> list[bytes]:
    """Merges of a one-pretoken-a-word corpus, counted anew at every step: ties go to the smaller pair of ids."""
    order: dict[bytes, int] = {bytes([byte]): byte for byte in range(256)}
    order = {token: place for place, token in enumerate(sorted(order, key=alphabet_order))}
    words = Counter(
        tuple(bytes([byte]) for byte in word.encode()) for word in regex.findall(PRETOKENIZERS["gpt2"], text)
    )
    merged = []
    for _ in range(count):
        pairs: Counter[tuple[bytes, bytes]] = Counter()
        for word, times in words.items():
            for pair in pairwise(word):
                pairs[pair] += times
        best = min(pairs, key=lambda pair: (-pairs[pair], order[pair[0]], order[pair[1]]))
        order[b"".join(best)] = len(order)
        merged.append(b"".join(best))
        words = Counter({join(word, best): times for word, times in words.items()})
    return merged


def alphabet_order(token: bytes) -> tuple[bool, bytes]:
    """Printable bytes stand first in the byte-level alphabet, then the others, each in byte order."""
    printable = 0x21 <= token[0] <= 0x7E or (token[0] >= 0xA1 and token[0] != 0xAD)
    return not printable, token


def join(word: tuple[bytes, ...], pair: tuple[bytes, bytes]) -> tuple[bytes, ...]:
    joined: list[bytes] = []
    place = 0
    while place < len(word):
        whole = word[place : place + 2] == pair
        joined.append(b"".join(pair) if whole else word[place])
        place += 2 if whole else 1
    return tuple(joined)


def test_merges_are_those_of_the_definition() -> None:
    text = "low low low low low lower lower newest newest newest newest newest newest widest widest widest"
    settings_ = TrainConfig(family="byte_bpe", vocab_size=256 + 12, pretokenizer="gpt2", min_frequency=1)
    tokens = token_bytes(train(settings_, [text]))
    assert [tokens[id_] for id_ in range(256, 268)] == merges_by_hand(text, 12)


def test_special_tokens_come_first_then_bytes_then_merges() -> None:
    tokenizer = trained("byte_bpe")
    tokens = token_bytes(tokenizer)
    assert tokenizer.special_tokens == {"eod": 0, "pad": 1}
    assert (tokens[0], tokens[1]) == (EOD.encode(), PAD.encode())
    assert sorted(tokens[id_] for id_ in range(2, 258)) == [bytes([byte]) for byte in range(256)]
    assert tokenizer.vocab_size == 1500 == len(tokens)
    assert len(set(tokens.values())) == 1500
    assert tokenizer.vocabulary()["special"].to_pylist() == [True, True] + [False] * 1498
    assert not any(tokenizer.vocabulary()["byte_fallback"].to_pylist())


def test_whole_documents_are_seen_so_blank_lines_merge() -> None:
    assert b"\n\n" in token_bytes(trained("byte_bpe")).values()


def test_order_and_batching_of_documents_do_not_matter(tmp_path: Path) -> None:
    texts = documents()
    shuffled = random.Random(5).sample(texts, len(texts))
    parts = iter([pa.array(shuffled[:7]), pa.array([], pa.string()), pa.array(shuffled[7:])])
    one = saved_files(registry.train(config("byte_bpe"), iter([pa.array(texts)]), "nfc"), tmp_path / "one")
    other = saved_files(registry.train(config("byte_bpe"), parts, "nfc"), tmp_path / "other")
    assert one == other


def test_a_small_corpus_gives_a_smaller_tokenizer_that_says_so() -> None:
    tokenizer = train(config("byte_bpe", 1000), ["abab abab abab"])
    assert tokenizer.vocab_size == len(tokenizer.vocabulary()) < 1000
    assert tokenizer.training["bytes"] == 14


def test_training_figures_count_documents_and_utf8_bytes() -> None:
    figures = train(config("byte_bpe", 300), ["é", "", "ab"]).training
    assert figures == {"documents": 3, "bytes": 4, "bytes_dropped": 0, "entries_missing": 42}


@pytest.mark.parametrize("texts", [[], ["", ""]])
def test_an_empty_corpus_is_refused(texts: list[str]) -> None:
    with pytest.raises(InputError, match="no text"):
        train(config("byte_bpe", 300), texts)


def test_a_vocabulary_without_room_for_bytes_is_refused() -> None:
    with pytest.raises(InputError, match="need 258"):
        train(config("byte_bpe", 257), ["text"])
    assert train(config("byte_bpe", 258), ["text text"]).vocab_size == 258


@pytest.mark.parametrize("text", ["end", "!", "Ġthe", "Ċ", "EOD"])
def test_a_special_token_that_text_could_become_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="could be learned"):
        train(config("byte_bpe", 300, SpecialTokens(eod=text)), ["the end!\nEOD"] * 9)


@pytest.mark.parametrize("text", ["</s>", "<|im_end|>", "[PAD]", "<文>", "<a b>"])
def test_usual_special_tokens_are_accepted_and_stay_out_of_text(text: str) -> None:
    tokenizer = train(config("byte_bpe", 400, SpecialTokens(eod=text)), [text * 3] * 9)
    assert 0 not in ids(tokenizer, f"{text} x{text}")


def test_an_error_of_the_source_is_not_swallowed() -> None:
    def broken() -> Iterator[pa.Array]:
        yield pa.array(["some text"])
        raise InputError("line 7 is broken")

    with pytest.raises(InputError, match="line 7 is broken"):
        registry.train(config("byte_bpe", 300), broken(), "none")


def test_the_published_regexes_split_alike() -> None:
    for text in [*HOSTILE, *documents()[:20], "I'LL they'Ve don't 'ſ x\n\n  y \r\n z   "]:
        assert regex.findall(PRETOKENIZERS["cl100k"], text) == regex.findall(PUBLISHED_CL100K, text)
        assert regex.findall(PRETOKENIZERS["gpt2"], text) == regex.findall(PUBLISHED_GPT2, text)


@settings(max_examples=200, deadline=None)
@given(ordinary_text())
def test_the_published_regexes_split_any_text_alike(text: str) -> None:
    assert regex.findall(PRETOKENIZERS["cl100k"], text) == regex.findall(PUBLISHED_CL100K, text)
    assert regex.findall(PRETOKENIZERS["gpt2"], text) == regex.findall(PUBLISHED_GPT2, text)


@pytest.mark.parametrize("pretokenizer", ["gpt2", "cl100k", "o200k"])
def test_ids_are_those_of_tiktoken(pretokenizer: Literal["gpt2", "cl100k", "o200k"]) -> None:
    settings_ = TrainConfig(
        family="byte_bpe", vocab_size=1200, pretokenizer=pretokenizer, special_tokens=SPECIAL_TOKENS
    )
    tokenizer = train(settings_, documents()[:30])
    ranks = {token: id_ - 2 for id_, token in token_bytes(tokenizer).items() if id_ >= 2}
    peer = tiktoken.Encoding("peer", pat_str=PRETOKENIZERS[pretokenizer], mergeable_ranks=ranks, special_tokens={})

    @settings(max_examples=100, deadline=None)
    @given(ordinary_text())
    def same(text: str) -> None:
        assert ids(tokenizer, text) == [rank + 2 for rank in peer.encode_ordinary(text)]

    same()
    for text in [*HOSTILE, *documents()[30:]]:
        assert ids(tokenizer, text) == [rank + 2 for rank in peer.encode_ordinary(text)]


def test_the_folder_opens_in_transformers_with_equal_ids(tmp_path: Path) -> None:
    tokenizer = trained("byte_bpe", "nfc")
    tokenizer.save(tmp_path)
    peer = AutoTokenizer.from_pretrained(tmp_path)
    assert (peer.eos_token, peer.pad_token) == (EOD, PAD)
    assert (peer.eos_token_id, peer.pad_token_id) == (0, 1)
    assert peer.bos_token is None
    assert len(peer) == tokenizer.vocab_size
    for text in [text for text in HOSTILE if EOD not in text] + documents()[:20]:
        encoded = peer.encode(text, add_special_tokens=False)
        assert encoded == ids(tokenizer, text)
        restored = tokenizer.decode(tokenizer.encode(pa.array([text])))[0].as_py()
        assert peer.decode(encoded) == restored
    assert peer.encode(EOD) == [0]
    assert 0 not in ids(tokenizer, EOD)


def test_saved_files_hold_no_machine_and_no_time(tmp_path: Path) -> None:
    files = saved_files(trained("byte_bpe"), tmp_path / "saved")
    assert sorted(files) == ["merges.parquet", "tokenizer.json", "tokenizer_config.json"]
    assert str(tmp_path).encode() not in b"".join(files.values())
    recorded = json.loads(files["tokenizer_config.json"])["tokpack"]
    assert recorded["settings"]["tie_break"] == "hugging_face"
    assert recorded["special_tokens"] == {"eod": {"id": 0, "token": EOD}, "pad": {"id": 1, "token": PAD}}
