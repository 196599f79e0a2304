"""Bytes, borders and longest suffixes of tokens, against a search through the whole vocabulary."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import decoders, models, normalizers, pre_tokenizers

from tests.command_line import refused, tokpack
from tests.tokenizer_samples import HOSTILE, OTHER_SCRIPTS
from tokpack_core.commands import byteify as command
from tokpack_core.commands.opened_tokenizer import open_tokenizer
from tokpack_core.config import TrainConfig
from tokpack_core.errors import InputError
from tokpack_core.megatron.indexed_dataset import dtype_for
from tokpack_core.megatron.shards import ShardWriter
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.byteification.byte_map import ByteMapper, automaton
from tokpack_core.tokenizers.byteification.longest_suffix_kernels import spell
from tokpack_core.tokenizers.byteification.token_bytes import vocabulary_table
from tokpack_core.tokenizers.encoded import Encoded, from_lists
from tokpack_core.tokenizers.framing import framed
from tokpack_core.tokenizers.protocol import Tokenizer

TEXTS = ["the cat sat on the mat, and the hat", *OTHER_SCRIPTS[:5], "the the  the\n\tthe 1234"] * 3
KINDS: dict[str, dict[str, Any]] = {
    "byte_bpe": {"vocab_size": 400},
    "picky": {"family": "byte_bpe", "vocab_size": 300, "delete_threshold": 0.8},
    "sentencepiece_bpe": {"vocab_size": 450},
    "sentencepiece_unigram": {"vocab_size": 380},
    "boundless_bpe": {"vocab_size": 400},
    "superbpe": {"vocab_size": 400, "transition_size": 300},
}


def train(kind: str, **options: Any) -> Tokenizer:
    settings = {"family": kind, "special_tokens": {"eod": "<|endoftext|>"}} | KINDS.get(kind, {}) | options
    return registry.train(TrainConfig.model_validate(settings), iter([pa.array(TEXTS)]), "none")


def longest_suffixes(text: bytes, vocabulary: pa.Table) -> list[int]:
    """For each byte the longest entry that ends there: of equal ones no byte piece, then the lowest id."""
    found = []
    entries = [row for row in vocabulary.to_pylist() if not row["special"] and row["token"]]
    for end in range(1, len(text) + 1):
        fitting = [row for row in entries if text[:end].endswith(row["token"])]
        best = max(fitting, key=lambda row: (len(row["token"]), not row["byte_fallback"], -row["id"]), default=None)
        found.append(-1 if best is None else best["id"])
    return found


def check(tokenizer: Tokenizer, texts: list[str]) -> None:
    encoded = tokenizer.encode(pa.array(texts))
    encoded = framed(encoded, encoded.lengths > 0, None, tokenizer.special_tokens["eod"])
    found = ByteMapper(tokenizer).map(encoded)
    assert found.text.tobytes() == "".join(texts).encode()
    assert found.document_ends.tolist() == np.cumsum([len(text.encode()) for text in texts]).tolist()
    token_of = {row["id"]: row["token"] for row in tokenizer.vocabulary().to_pylist()}
    begins = [*found.token_begins.tolist(), found.text.size]
    ends = np.zeros(found.text.size, bool)
    for place, token in enumerate(encoded.ids.tolist()):
        piece = found.text[begins[place] : begins[place + 1]].tobytes()
        assert piece == (b"" if token == tokenizer.special_tokens["eod"] else token_of[token])
        if piece:
            ends[begins[place + 1] - 1] = True
    assert found.token_ends.tolist() == ends.tolist()
    expected = [suffix for text in texts for suffix in longest_suffixes(text.encode(), tokenizer.vocabulary())]
    assert found.longest_suffix.tolist() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_every_family(kind: str) -> None:
    check(train(kind), [*TEXTS[:7], "", "a\u2581b", HOSTILE[4], HOSTILE[9], "x" * 50])


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.binary(max_size=5).map(lambda b: bytes(97 + byte % 3 for byte in b)), max_size=12),
    st.lists(st.integers(0, 11), max_size=30),
    st.lists(st.integers(0, 30), max_size=3),
)
def test_any_vocabulary(tokens: list[bytes], ids: list[int], cuts: list[int]) -> None:
    ids = [token for token in ids if token < len(tokens)]
    table = vocabulary_table(
        range(len(tokens)), tokens, [False] * len(tokens), [n % 2 == 1 for n in range(len(tokens))]
    )
    borders = sorted({0, len(ids), *(cut for cut in cuts if cut < len(ids))}) if ids else [0, 0]
    pieces = [b"".join(tokens[token] for token in ids[a:b]) for a, b in pairwise(borders)]
    starts = np.concatenate([[0], np.cumsum([len(token) for token in tokens])]).astype(np.int64)
    size = sum(map(len, pieces))
    arrays = np.empty(size, np.uint8), np.empty(size, np.bool_), np.empty(size, np.int32)
    begins, edges = np.empty(len(ids), np.int64), np.empty(len(borders) - 1, np.int64)
    spelled = np.frombuffer(b"".join(tokens), np.uint8)
    tables = (np.zeros(len(tokens), np.int8), starts, spelled, False, *automaton(table))
    used = spell(np.array(ids, np.int32), np.array(borders, np.int64), *tables, *arrays, begins, edges)
    assert used == size
    assert arrays[0].tobytes() == b"".join(pieces)
    assert arrays[2].tolist() == [token for piece in pieces for token in longest_suffixes(piece, table)]


def test_nothing() -> None:
    mapper = ByteMapper(train("byte_bpe"))
    for encoded in (from_lists([]), from_lists([[], []]), from_lists([[0], []])):
        found = mapper.map(encoded)
        assert found.text.size == found.longest_suffix.size == 0
        assert found.document_ends.tolist() == [0] * encoded.documents


@pytest.mark.parametrize("family", ["wordpiece", "character", "word"])
def test_families_that_lose_text_are_refused(family: str) -> None:
    tokenizer = train(family, vocab_size=300, special_tokens={"eod": "<|endoftext|>", "unk": "<unk>"})
    with pytest.raises(InputError, match=f"{family} does not keep all text"):
        ByteMapper(tokenizer)


def test_unknown_ids_are_named() -> None:
    tokenizer = train(
        "byte_bpe", vocab_size=300, alphabet="seen_bytes", special_tokens={"eod": "<|endoftext|>", "unk": "<unk>"}
    )
    encoded = tokenizer.encode(pa.array(["the cat", "the \x00 cat"]))
    unk = tokenizer.special_tokens["unk"]
    with pytest.raises(InputError, match=f"document 6 has id {unk}, which stands for no known text"):
        ByteMapper(tokenizer).map(encoded, first=5)
    for outside in (-1, tokenizer.vocab_size):
        with pytest.raises(InputError, match=f"document 1 has id {outside}"):
            ByteMapper(tokenizer).map(from_lists([[0], [outside]]))


def published(model: models.Model, decoder: decoders.Decoder | None, folder: Path) -> Tokenizer:
    engine = tokenizers.Tokenizer(model)
    if isinstance(model, models.WordPiece):
        engine.pre_tokenizer = pre_tokenizers.Whitespace()
    else:
        engine.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    engine.decoder = decoder
    engine.add_special_tokens(["</s>"])
    engine.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>"}))
    return registry.load(folder)


def test_a_published_file_with_a_space_in_front(tmp_path: Path) -> None:
    """As Llama's: the space before each text is none of its bytes."""
    names = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "▁a", "ab", "▁ab"]
    model = models.BPE(
        {name: number for number, name in enumerate(names)},
        [("▁", "a"), ("▁a", "b"), ("a", "b")],
        byte_fallback=True,
        unk_token="<unk>",
    )
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer = published(model, decoders.Sequence(steps), tmp_path)
    encoded = tokenizer.encode(pa.array(["ab ab", "é b", " a"]))
    eod = tokenizer.special_tokens["eod"]
    found = ByteMapper(tokenizer).map(framed(encoded, encoded.lengths > 0, None, eod))
    assert found.text.tobytes() == "ab abé b a".encode()
    assert found.document_ends.tolist() == [5, 9, 11]
    together = Encoded(framed(encoded, encoded.lengths > 0, None, eod).ids, np.array([0, encoded.ids.size + 3]))
    assert ByteMapper(tokenizer).map(together).text.tobytes() == "ab abé b a".encode()


def test_a_published_file_that_loses_text_is_refused(tmp_path: Path) -> None:
    model = models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2, "c": 3}, unk_token="[UNK]")
    tokenizer = published(model, decoders.WordPiece(), tmp_path)
    with pytest.raises(
        InputError, match="document 1: the tokens of this pretrained tokenizer spell 'abc' and decode to"
    ):
        ByteMapper(tokenizer).map(tokenizer.encode(pa.array(["a", "ab c"])))


@pytest.mark.parametrize("tokens_at_once", [2, 2**20])
@pytest.mark.parametrize("vocab_size", [400, 70_000])
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vocab_size: int, tokens_at_once: int) -> None:
    """uint16 and int32 tokens, batch by batch."""
    monkeypatch.setattr(command, "BATCH_TOKENS", tokens_at_once)
    tokenizer = train("byte_bpe")
    (tmp_path / "tokenizer").mkdir()
    tokenizer.save(tmp_path / "tokenizer")
    texts = [*TEXTS[:6], "", "the"]
    encoded = tokenizer.encode(pa.array(texts))
    with ShardWriter(tmp_path / "set", dtype_for(vocab_size), vocab_size) as shard:
        shard.append(encoded)
    opened = open_tokenizer(tmp_path / "tokenizer")
    command.byteify(tmp_path / "set", opened, tmp_path / "map", quiet=True)
    arrays = {name: np.load(tmp_path / f"map.{name}.npy", mmap_mode="r") for name in command.ARRAYS}
    expected = ByteMapper(tokenizer).map(encoded)
    assert arrays["bytes"].tobytes() == "".join(texts).encode()
    assert arrays["token_ends"].tolist() == expected.token_ends.tolist()
    assert arrays["longest_suffix"].tolist() == expected.longest_suffix.tolist()
    assert arrays["token_begins"].tolist() == [*expected.token_begins.tolist(), expected.text.size]
    filled = [len(text.encode()) for text in texts if text]
    assert arrays["sequence_begins"].tolist() == [0, *np.cumsum(filled).tolist()]
    assert {name: str(array.dtype) for name, array in arrays.items()} == {
        "bytes": "uint8",
        "token_ends": "bool",
        "longest_suffix": "int32",
        "token_begins": "int64",
        "sequence_begins": "int64",
    }


def test_a_set_without_documents(tmp_path: Path) -> None:
    train("byte_bpe").save(tmp_path)
    with ShardWriter(tmp_path / "set", dtype_for(400), 400):
        pass
    done = command.byteify(tmp_path / "set", open_tokenizer(tmp_path), tmp_path / "map", quiet=True)
    assert done["counts"] == {"sequences": 0, "tokens": 0, "bytes": 0}
    sizes = {name: np.load(tmp_path / f"map.{name}.npy").size for name in command.ARRAYS}
    nothing = {"bytes": 0, "token_ends": 0, "longest_suffix": 0}
    assert sizes == nothing | {"token_begins": 1, "sequence_begins": 1}


def test_from_the_command_line(tmp_path: Path) -> None:
    """The tokenizer that made the tokens is found, and a second run overwrites nothing."""
    tokenizer = train("sentencepiece_unigram")
    (tmp_path / "tokenizer").mkdir()
    tokenizer.save(tmp_path / "tokenizer")
    (tmp_path / "set.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:5]))
    tokpack(tmp_path, "encode", "--tokenizer", "tokenizer", "--append-eod", "--output", "set", "set.jsonl")
    done = json.loads(tokpack(tmp_path, "byteify", "set", "--output", "map", "--json").out)
    text = "".join(TEXTS[:5]).encode()
    assert done["counts"]["bytes"] == len(text)
    assert np.load(tmp_path / "map.bytes.npy").tobytes() == text
    assert "exists already" in refused(tmp_path, "byteify", "set", "--output", "map")
    (tmp_path / "set.manifest.json").unlink()
    assert "name it with --tokenizer" in refused(tmp_path, "byteify", "set", "--output", "other")
    assert not list(tmp_path.glob("other*"))
