"""Special tokens in text: ordinary text by default, tokens where the corpus says so, in every family."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import cast, get_args

import numpy as np
import pyarrow as pa
import pytest
import tiktoken

from tests.command_line import tokpack
from tests.small_project import write_small_project
from tests.tokenizer_samples import EOD, PAD, documents, train
from tokpack_core.config import DERIVED, MODULAR, Family, SpecialTokens, TrainConfig
from tokpack_core.megatron.indexed_reader import IndexedReader
from tokpack_core.stages import tokenizer as tokenizer_stage
from tokpack_core.stages.shards import read_shards
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.agreement.special_tokens_in_text import encode_with_special_tokens
from tokpack_core.tokenizers.encoded import Encoded, common_beginnings, from_lists
from tokpack_core.tokenizers.framing import surrounded, without_last
from tokpack_core.tokenizers.huggingface.model import HuggingFaceTokenizer, ids_of
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.pretokenizers import PRETOKENIZERS
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.text_batches import text_batches
from tokpack_core.tokenizers.tiktoken.ranks import TiktokenTokenizer

FAMILIES = [family for family in get_args(Family) if family not in ("pretrained", *DERIVED)]
SPECIAL = SpecialTokens(eod=EOD)
TEXTS = ["plain", f"the one{EOD}the other", "", EOD, f"{EOD}{PAD}x{EOD}{EOD}", f"almost <|endoftext|{PAD}", "end"]


@cache
def tokenizer_of(family: Family) -> Tokenizer:
    special = SpecialTokens(eod=EOD, pad=PAD, unk="<unk>" if family in ("wordpiece", "character", "word") else None)
    config = TrainConfig(family=family, vocab_size=900, special_tokens=special)
    if family in MODULAR:
        texts = pa.array(documents()[:20], pa.string())
        return registry.train_modular(config, iter([(texts, pa.array(["en"] * len(texts)))]), "none")
    return train(config, documents()[:20])


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    return cast(list[int], tokenizer.encode(pa.array([text])).ids.tolist())


def test_many_special_tokens_are_searched_by_what_they_begin_with() -> None:
    reserved = [f"<|reserved_{number}|>" for number in range(10_000)]
    found = common_beginnings([*reserved, EOD, PAD])
    assert found == ["<|endoftext|", "<|pad|>", *(f"<|reserved_{digit}" for digit in range(10))]
    assert common_beginnings(["<a>", "<ab>", "b"]) == ["<a>", "<ab>", "b"]
    assert common_beginnings([]) == []
    assert len(common_beginnings(map(chr, range(1000, 1100)))) == 100


def test_reserved_tokens_in_text_are_tokens() -> None:
    config = TrainConfig(family="byte_bpe", allocation={"en": 400, "reserved": 3000}, special_tokens=SPECIAL)
    texts = iter([("en", pa.array(documents()[:20]))])
    tokenizer = registry.train_allocated(config, texts, "none")
    text = pa.array(["a<|reserved_2900|>b", "<|reserved_x|>"])
    encoded = encode_with_special_tokens(tokenizer, text)
    assert encoded.ids[:3].tolist() == [*ids(tokenizer, "a"), 401 + 2900, *ids(tokenizer, "b")]
    assert encoded.ids[3:].tolist() == ids(tokenizer, "<|reserved_x|>")


@pytest.mark.parametrize("family", FAMILIES)
def test_text_is_cut_at_special_tokens(family: Family) -> None:
    tokenizer = tokenizer_of(family)
    eod, pad = tokenizer.special_tokens["eod"], tokenizer.special_tokens["pad"]
    encoded = encode_with_special_tokens(tokenizer, pa.array(TEXTS))
    found = [encoded.ids[a:b].tolist() for a, b in zip(encoded.offsets[:-1], encoded.offsets[1:], strict=True)]
    assert found == [
        ids(tokenizer, "plain"),
        [*ids(tokenizer, "the one"), eod, *ids(tokenizer, "the other")],
        [],
        [eod],
        [eod, pad, *ids(tokenizer, "x"), eod, eod],
        [*ids(tokenizer, "almost <|endoftext|"), pad],
        ids(tokenizer, "end"),
    ]
    ordinary = tokenizer.encode(pa.array(TEXTS))
    assert not {eod, pad} & set(ordinary.ids.tolist())


@pytest.mark.parametrize("family", ["byte_bpe", "wordpiece", "word"])
def test_long_texts_are_cut_at_special_tokens_without_the_library(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = cast(HuggingFaceTokenizer, tokenizer_of(family))
    assert tokenizer._special is not None
    texts = pa.array([*TEXTS, *(f"{text}{EOD} {text}{PAD}{EOD[:-1]}\n{EOD}" for text in documents()[:9])])
    expected = tokenizer.encode_with_special_tokens(texts)
    monkeypatch.setattr("tokpack_core.tokenizers.huggingface.model.UNCHECKED", 0)
    monkeypatch.setattr("tokpack_core.tokenizers.huggingface.model.text_batches", lambda some: text_batches(some, 1))
    monkeypatch.setattr("tokpack_core.tokenizers.huggingface.model.ids_of", None)
    monkeypatch.setattr(tokenizer._special, "_batch", 50)
    monkeypatch.setattr(tokenizer, "encode", lambda some: given(tokenizer, some))
    found = tokenizer.encode_with_special_tokens(texts)
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.offsets.tolist() == expected.offsets.tolist()


def given(tokenizer: HuggingFaceTokenizer, texts: pa.Array) -> Encoded:
    """By the library, which reads all as text."""
    return from_lists(ids_of(tokenizer._engine, texts.to_pylist()))


def test_rank_files_are_cut_as_tiktoken_cuts() -> None:
    vocabulary = tokenizer_of("byte_bpe").vocabulary().to_pylist()
    tokens = [row["token"] for row in vocabulary if not row["special"]]
    ranks = {token: rank for rank, token in enumerate(tokens)}
    metadata = Metadata("pretrained", "none", {"eod": EOD, "pad": PAD}, {"pretokenizer": "cl100k"})
    tokenizer = TiktokenTokenizer(ranks, metadata)
    named = {EOD: tokenizer.special_tokens["eod"], PAD: tokenizer.special_tokens["pad"]}
    peer = tiktoken.Encoding("p", pat_str=PRETOKENIZERS["cl100k"], mergeable_ranks=ranks, special_tokens=named)
    encoded = encode_with_special_tokens(tokenizer, pa.array(TEXTS))
    assert encoded.ids.tolist() == [token for text in TEXTS for token in peer.encode(text, allowed_special="all")]


def test_a_corpus_says_so(tmp_path: Path) -> None:
    """A document keeps exactly one EOD at its end, and a normalized corpus is not made anew."""
    project = write_small_project(tmp_path)
    (tmp_path / "data" / "code" / "special.txt").write_text(f"one{EOD}two{EOD}")
    before = project.build()
    tokenizer = tokenizer_stage.load(before["tokenizer_model/bpe_600"].folder)

    def documents_of_code() -> list[list[int]]:
        readers = [IndexedReader(shard.folder / "part") for shard in read_shards(project.work(), "bpe_600", "code")]
        return [reader.sequence(i).tolist() for reader in readers for i in range(len(reader))]

    as_text = [*ids(tokenizer, f"one{EOD}two{EOD}"), 0]
    as_tokens = [*ids(tokenizer, "one"), 0, *ids(tokenizer, "two"), 0]
    assert as_text in documents_of_code()
    assert as_tokens not in documents_of_code()
    project.edit("    lang: code\n", "    lang: code\n    parse_special_tokens: true\n")
    after = project.build()
    assert after["normalized_corpus/code"].entry.object == before["normalized_corpus/code"].entry.object
    assert after["tokenized_shards/bpe_600/docs"].units_run == 0
    assert after["tokenized_shards/bpe_600/code"].units_run > 0
    assert as_tokens in documents_of_code()
    assert as_text not in documents_of_code()
    audit = tokpack(tmp_path, "audit", "megatron_dataset/base", "--json", store=project.store).json
    assert audit["differing"] == 0


def test_frames() -> None:
    encoded = Encoded(np.array([5, 0, 7, 0, 0], np.int32), np.array([0, 2, 2, 3, 4, 5]))
    cut = without_last(encoded, 0)
    assert (cut.ids.tolist(), cut.offsets.tolist()) == ([5, 7], [0, 1, 1, 2, 2, 2])
    around = surrounded(cut, (1, 2), (3,))
    assert around.ids.tolist() == [1, 2, 5, 3, 1, 2, 3, 1, 2, 7, 3, 1, 2, 3, 1, 2, 3]
    assert around.offsets.tolist() == [0, 4, 7, 11, 14, 17]
    assert surrounded(cut, (), ()) is cut
