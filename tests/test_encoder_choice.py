"""The fastest encoder is used where it is exact, and a difference is a warning that is stored."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, pre_tokenizers

from tests.small_project import write_small_project
from tests.test_bpe_encoder import assert_equal, by_library, engine_of
from tests.tokenizer_samples import EOD, HOSTILE, PAD, documents, trained
from tokpack_core.bpe.unicode_categories import category_lines, changed_characters
from tokpack_core.config import UnicodeForm
from tokpack_core.stages import shards
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.normalize import read_parts
from tokpack_core.tokenizers.agreement.encoder_choice import EncoderChoice
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts, random_texts
from tokpack_core.tokenizers.byte_bpe import engine as byte_bpe_engine
from tokpack_core.tokenizers.byte_bpe import gigatoken_engine
from tokpack_core.tokenizers.byte_bpe.engine import ExactBpe, equal_encoder
from tokpack_core.tokenizers.byteification.token_bytes import byte_level_bytes
from tokpack_core.tokenizers.character_search_kernels import documents_with, first_two_bytes
from tokpack_core.tokenizers.encoded import from_lists
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.pretokenizers import PRETOKENIZERS
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer
from tokpack_core.tokenizers.tiktoken.ranks import TiktokenTokenizer

OTHER_SPLITS = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""GPT-2's regex, spelled as gigatoken knows it: unlike cl100k's, it parts a full stop and a line end."""
OF_ANY = st.characters(exclude_categories=["Cs"])
NEWER = "".join(chr(first) for first, _, old, new in category_lines() if old != new)
TEXTS = [
    *HOSTILE,
    *hard_texts([EOD]),
    *random_texts()[:200],
    *(f"a{one}b {one}1\n" for one in NEWER[:60]),
    *documents(),
]


def exact(name: str) -> ExactBpe:
    engine = engine_of(name)
    found = equal_encoder(engine, lambda texts: by_library(engine, texts))
    assert found is not None
    return found


@pytest.mark.parametrize("name", ["gpt2", "cl100k", "o200k", "qwen2", "llama3"])
def test_gigatoken_takes_the_published_regexes_and_gives_the_librarys_ids(name: str) -> None:
    encoder = exact(name)
    assert encoder.choice.engine == "gigatoken"
    assert encoder.choice.warnings == ()
    texts = pa.array(TEXTS)
    expected = by_library(engine_of(name), texts)
    assert_equal(encoder.encode(texts), expected)
    assert_equal(encoder.encode(texts.slice(5, 40)), by_library(engine_of(name), texts.slice(5, 40)))


def test_forgetting_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = exact("gpt2")
    texts = pa.array(TEXTS)
    expected = encoder.encode(texts)
    monkeypatch.setattr(gigatoken_engine, "GROWTH", -1)
    assert encoder.faster is not None
    engines = []
    for _ in range(2):
        assert_equal(encoder.encode(texts), expected)
        engines.append(encoder.faster.engines.take())
    assert engines[0] is not engines[1]
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(encoder.encode, [texts] * 6):
            assert_equal(found, expected)


def test_an_engine_is_begun_anew_when_the_process_has_grown_by_the_share_of_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = exact("gpt2")
    assert encoder.faster is not None
    engines, growth, size = encoder.faster.engines, gigatoken_engine.GROWTH, 0
    monkeypatch.setattr(gigatoken_engine, "resident_bytes", lambda: 10**9 + size)
    one = engines.take()
    one.least = 10**9
    two = engines.take()
    size = 2 * growth
    for own in (one, two):
        engines.give_back(own)
        assert engines.take() is own
    size += 1
    engines.give_back(one)
    begun_anew = engines.take()
    assert begun_anew is not one
    engines.give_back(two)
    assert engines.take() is not two
    del one, own, two
    size += growth
    engines.give_back(begun_anew)
    assert engines.take() is begun_anew
    size += 1
    engines.give_back(begun_anew)
    assert engines.take() is not begun_anew


def test_what_one_thread_taught_an_engine_is_there_for_the_next() -> None:
    encoder = exact("gpt2")
    assert encoder.faster is not None
    engines = encoder.faster.engines
    known = engines.take()
    engines.give_back(known)
    for _ in range(2):
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(engines.take).result() is known
        engines.give_back(known)


def test_a_regex_of_ones_own_has_our_encoder() -> None:
    engine = engine_of("gpt2")
    engine.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex("[a-z]+|[^a-z]+"), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    encoder = equal_encoder(engine, lambda texts: by_library(engine, texts))
    assert encoder is not None
    assert encoder.choice == EncoderChoice("tokpack")


def test_other_ids_are_a_warning_that_the_shards_keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = write_small_project(tmp_path)
    key = "tokenized_shards/bpe_600/docs"
    before = project.build(key)[key]
    assert "encoder_warnings" not in before.counts
    monkeypatch.setitem(gigatoken_engine.RESPELLED, PRETOKENIZERS["cl100k"], OTHER_SPLITS)
    monkeypatch.setattr(byte_bpe_engine, "WORTH_LOADING", 0)
    folder = project.build("tokenizer_model/bpe_600")["tokenizer_model/bpe_600"].folder
    part = read_parts(project.work().store, project.build("normalized_corpus/docs")["normalized_corpus/docs"].folder)[0]
    tokenizer_stage.load_anew.cache_clear()
    counts = shards.write_shard(folder, shards.Framing(bos=False), part.path, part.sha256, tmp_path).counts
    tokenizer_stage.load_anew.cache_clear()
    (warning,) = counts["encoder_warnings"]
    assert "gave other ids than the reference and is not used" in warning
    assert counts["encoder"] == "tokpack"
    (unit,) = shards.read_shards(project.work(), "bpe_600", "docs")
    assert (tmp_path / "part.bin").read_bytes() == (unit.folder / "part.bin").read_bytes()


def test_rank_files_too() -> None:
    names = engine_of("cl100k").get_vocab(with_added_tokens=False)
    tokens = {byte_level_bytes(name): rank for name, rank in names.items() if name not in (EOD, PAD)}
    ranks = {token: rank - len((EOD, PAD)) for token, rank in tokens.items() if token is not None}
    tokenizer = TiktokenTokenizer(ranks, Metadata("pretrained", "none", {}, {"pretokenizer": "cl100k"}))
    peer = tiktoken.Encoding("peer", pat_str=PRETOKENIZERS["cl100k"], mergeable_ranks=ranks, special_tokens={})
    assert tokenizer.encoder == EncoderChoice("tiktoken")
    expected = from_lists(peer.encode_ordinary_batch(TEXTS))
    assert_equal(tokenizer.encode(pa.array(TEXTS)), expected)
    assert tokenizer.exact_bpe() is not None
    assert tokenizer.encoder.engine in ("gigatoken", "tokpack")
    assert_equal(tokenizer.encode(pa.array(TEXTS)), expected)


@pytest.mark.parametrize("unicode", ["none", "nfc", "nfkc"])
def test_sentencepiece_bpe_has_a_faster_engine_with_its_librarys_ids(unicode: UnicodeForm) -> None:
    tokenizer = trained("sentencepiece_bpe", unicode)
    assert isinstance(tokenizer, SentencePieceTokenizer)
    texts = pa.array([*TEXTS, "a line.\n" * 200_000])
    expected = tokenizer._encode_by_library(texts)
    tokenizer.choose_engine()
    assert tokenizer.encoder == EncoderChoice("gigatoken")
    assert_equal(tokenizer.encode(texts), expected)
    assert_equal(tokenizer.encode(texts.slice(7, 90)), tokenizer._encode_by_library(texts.slice(7, 90)))


def test_a_unigram_model_stays_with_its_library() -> None:
    tokenizer = trained("sentencepiece_unigram")
    assert isinstance(tokenizer, SentencePieceTokenizer)
    tokenizer.choose_engine()
    assert tokenizer.encoder == EncoderChoice("sentencepiece")


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(OF_ANY), max_size=5), st.sets(st.characters(min_codepoint=128, exclude_categories=["Cs"])))
def test_texts_with_a_character_of_a_set(texts: list[str], characters: set[str]) -> None:
    bits = np.zeros(0x110000, np.bool_)
    bits[[ord(character) for character in characters]] = True
    data = "".join(texts).encode()
    offsets = np.cumsum([0, *(len(text.encode()) for text in texts)])
    packed = np.packbits(bits, bitorder="little")
    found = documents_with(np.frombuffer(data, np.uint8), offsets, packed, first_two_bytes(packed))
    assert found.tolist() == [bool(characters & set(text)) for text in texts]


def test_changed_characters_are_those_of_the_table() -> None:
    bits = np.unpackbits(changed_characters(), bitorder="little")
    assert bits.sum() == sum(last - first + 1 for first, last, old, new in category_lines() if old != new)
    assert all(bits[ord(character)] for character in NEWER)
