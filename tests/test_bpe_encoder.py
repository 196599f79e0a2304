"""Our encoder gives the ids of Hugging Face tokenizers and of tiktoken, and stands aside where it could not."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tiktoken
from hypothesis import given, settings
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers

from tests.tokenizer_samples import EOD, HOSTILE, SPECIAL_TOKENS, documents, ordinary_text, train
from tokpack_core.bpe import encoder as encoder_module
from tokpack_core.bpe.encoder import ByteBpeEncoder, from_ranks
from tokpack_core.bpe.window_kernels import WINDOW
from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.hard_texts import hard_texts
from tokpack_core.tokenizers.byte_bpe import engine as byte_bpe_engine
from tokpack_core.tokenizers.byte_bpe.engine import equal_encoder
from tokpack_core.tokenizers.byte_bpe.file_model import bpe_model
from tokpack_core.tokenizers.byteification.token_bytes import byte_level_bytes
from tokpack_core.tokenizers.encoded import Encoded, from_lists
from tokpack_core.tokenizers.pretokenizers import PRETOKENIZERS, SPLITS

LONG = [unit * 60_000 for unit in ("a", " ", "\n", "1", "ab", "你", " \n", "A", "-", "é")]


@cache
def file_of(name: str) -> str:
    """The tokenizer.json of a tokenizer with one of the published pretokenizers."""
    settings_ = TrainConfig(family="byte_bpe", vocab_size=1500, pretokenizer=name, special_tokens=SPECIAL_TOKENS)
    folder = Path(mkdtemp())
    train(settings_, [*documents(), "a" * 5000, "é" * 300]).save(folder)
    return (folder / "tokenizer.json").read_text(encoding="utf-8")


def engine_of(name: str, **changes: Any) -> Tokenizer:
    content = json.loads(file_of(name))
    content["model"] |= changes
    engine = Tokenizer.from_str(json.dumps(content))
    engine.encode_special_tokens = True
    return engine


def by_library(engine: Tokenizer, texts: pa.Array) -> Encoded:
    return from_lists([e.ids for e in engine.encode_batch_fast(texts.to_pylist(), add_special_tokens=False)])


def our_encoder(name: str, window: int = WINDOW, **changes: Any) -> ByteBpeEncoder:
    return ByteBpeEncoder(bpe_model(json.loads(file_of(name))["model"] | changes), SPLITS[name], window=window)


def assert_equal(ours: Encoded, theirs: Encoded) -> None:
    assert ours.ids.dtype == np.int32
    assert ours.offsets.dtype == np.int64
    assert ours.offsets.tolist() == theirs.offsets.tolist()
    assert np.array_equal(ours.ids, theirs.ids)


@pytest.mark.parametrize("name", SPLITS)
def test_ids_are_those_of_hugging_face(name: str) -> None:
    engine, encoder = engine_of(name), our_encoder(name)
    texts = pa.array([*HOSTILE, *documents(), *hard_texts([EOD]), *LONG])
    assert_equal(encoder.encode(texts), by_library(engine, texts))
    assert_equal(encoder.encode(texts.slice(3, 9)), by_library(engine, texts.slice(3, 9)))

    @settings(max_examples=150, deadline=None)
    @given(ordinary_text())
    def same(text: str) -> None:
        assert_equal(encoder.encode(pa.array([text, ""])), by_library(engine, pa.array([text, ""])))

    same()


@pytest.mark.parametrize("window", [129, 1000])
def test_long_pretokens_in_windows(window: int) -> None:
    texts = pa.array([*LONG, "x" + "abcde" * 999 + " " + "".join(map(chr, range(0x4E00, 0x5600)))])
    assert_equal(our_encoder("gpt2", window).encode(texts), by_library(engine_of("gpt2"), texts))


def test_every_code_point() -> None:
    engine, encoder = engine_of("o200k"), our_encoder("o200k")
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    texts = pa.array(["".join(characters[start : start + 9000]) for start in range(0, len(characters), 9000)])
    assert_equal(encoder.encode(texts), by_library(engine, texts))


@pytest.mark.parametrize("unit", ["a", " ", "1", "\u4f60", "'"])
def test_a_megabyte_of_one_character(unit: str) -> None:
    """In quadratic time this would take hours."""
    encoder = our_encoder("gpt2")
    text = unit * (10**6 // len(unit.encode()))
    ids = {token: name for name, token in engine_of("gpt2").get_vocab().items()}
    found = encoder.encode(pa.array([text])).ids
    spelled = b"".join(byte_level_bytes(ids[token]) or b"" for token in found.tolist())
    assert spelled == text.encode()


def test_no_text_and_large_strings() -> None:
    encoder = our_encoder("gpt2")
    assert encoder.encode(pa.array([], pa.string())).offsets.tolist() == [0]
    assert encoder.encode(pa.array(["", ""])).offsets.tolist() == [0, 0, 0]
    assert (
        encoder.encode(pa.array(["a"], pa.large_string())).ids.tolist() == encoder.encode(pa.array(["a"])).ids.tolist()
    )


def test_ignored_merges_take_whole_pretokens() -> None:
    content = json.loads(file_of("cl100k"))["model"]
    content["vocab"]["Ġzqzqzq"] = 1500
    engine = engine_of("cl100k", ignore_merges=True, vocab=content["vocab"])
    encoder = our_encoder("cl100k", ignore_merges=True, vocab=content["vocab"])
    texts = pa.array([" zqzqzq zqzqzqz x zqzqzq", *documents()[:9]])
    assert encoder.encode(texts).ids[0] == 1500
    assert_equal(encoder.encode(texts), by_library(engine, texts))


def test_rank_files_give_the_ids_of_tiktoken() -> None:
    vocabulary = train(
        TrainConfig(family="byte_bpe", vocab_size=1500, special_tokens=SpecialTokens()), documents()
    ).vocabulary()
    ranks = dict(zip(vocabulary["token"].to_pylist(), vocabulary["id"].to_pylist(), strict=True))
    ranks |= {b"never": 1500, b" nev": 1501}
    peer = tiktoken.Encoding("peer", pat_str=PRETOKENIZERS["cl100k"], mergeable_ranks=ranks, special_tokens={})
    encoder = ByteBpeEncoder(from_ranks(ranks), SPLITS["cl100k"])
    texts = ["never nevernever", *HOSTILE, *documents()[:20]]
    assert_equal(encoder.encode(pa.array(texts)), from_lists(peer.encode_ordinary_batch(texts)))


def test_forgetting_and_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_module, "MOST_KNOWN", 2**17)
    encoder = our_encoder("o200k")
    texts = [pa.array(documents()[start:]) for start in range(4)]
    expected = [encoder.encode(text) for text in texts]
    with ThreadPoolExecutor(3) as pool:
        for found, wanted in zip(pool.map(encoder.encode, texts * 3), expected * 3, strict=True):
            assert_equal(found, wanted)


@pytest.mark.parametrize("form", ["none", "nfc", "nfkc"])
def test_a_loaded_tokenizer_changes_engines_and_not_ids(form: str, tmp_path: Path) -> None:
    engine = engine_of("cl100k")
    if form != "none":
        engine.normalizer = normalizers.NFC() if form == "nfc" else normalizers.NFKC()
    engine.add_tokens(["<tool>", AddedToken("zz", normalized=False)])
    engine.save(str(tmp_path / "tokenizer.json"))
    texts = pa.array([*documents(), "a <tool> b zz c", *HOSTILE, "e\u0301 ﬁ", EOD])
    expected = by_library(engine, texts)
    tokenizer = registry.load(tmp_path)
    for _ in range(2 + byte_bpe_engine.WORTH_LOADING // texts.nbytes):
        assert_equal(tokenizer.encode(texts), expected)
    assert vars(tokenizer)["_fast"].in_use


def test_what_is_not_understood_stays_with_the_library() -> None:
    def kept(engine: Tokenizer) -> bool:
        return equal_encoder(engine, lambda texts: by_library(engine, texts)) is None

    assert not kept(engine_of("gpt2"))
    for change in (
        {"normalizer": normalizers.Lowercase()},
        {"pre_tokenizer": pre_tokenizers.Metaspace()},
        {"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=True)},
        {"normalizer": normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])},
    ):
        engine = engine_of("gpt2")
        for name, value in change.items():
            setattr(engine, name, value)
        assert kept(engine), change
    assert kept(engine_of("gpt2", end_of_word_suffix="</w>"))


def test_different_ids_on_hard_texts_keep_the_library() -> None:
    engine = engine_of("gpt2")
    assert equal_encoder(engine, lambda texts: by_library(engine_of("qwen2"), texts)) is None


def test_the_byte_level_pretokenizer_is_gpt2s() -> None:
    engine = engine_of("gpt2")
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    exact = equal_encoder(engine, lambda texts: by_library(engine, texts))
    assert exact is not None
    texts = pa.array(documents())
    assert_equal(exact.encode(texts), by_library(engine, texts))
