"""Every hostile input through `tokpack encode` and through the graph's normalization and shards."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from tests.command_line import read_raw
from tests.hostile_entry import HostileInput, Result
from tests.hostile_inputs import hostile_inputs, write_inputs
from tokpack_core.commands.encode import EncodeOptions, encode
from tokpack_core.commands.opened_tokenizer import OpenedTokenizer, open_tokenizer
from tokpack_core.commands.reading import Reading, open_reading
from tokpack_core.config import ReadConfig, SpecialTokens, TrainConfig
from tokpack_core.corpus.files import SourceFile
from tokpack_core.errors import InputError
from tokpack_core.stages.shards import Framing, encode_described
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.encoded import Encoded

LISTS = "list_text.parquet"
"""What `encode` alone takes: see test_encode_sentences."""
ENTRIES = [entry for entry in hostile_inputs() if not entry.file.endswith(LISTS)]


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile_encode")
    write_inputs(folder)
    return folder


@pytest.fixture(scope="session")
def opened(tmp_path_factory: pytest.TempPathFactory) -> OpenedTokenizer:
    folder = tmp_path_factory.mktemp("bytes")
    config = TrainConfig(family="byte_bpe", vocab_size=300, special_tokens=SpecialTokens(eod="<|endoftext|>"))
    registry.train(config, iter([pa.array(["some text, then some more text"])]), "none").save(folder)
    return open_tokenizer(folder)


def reading(path: Path, entry: HostileInput, on_error: str) -> Reading:
    status = path.stat()
    file = SourceFile(entry.file, path, status.st_size, status.st_mtime_ns, status.st_ino)
    return Reading([file], ReadConfig.model_validate({**entry.options, "on_error": on_error}))


@pytest.mark.parametrize("on_error", ["error", "skip"])
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.file)
def test_encoding_is_one_error_or_all_documents(
    hostile: Path, opened: OpenedTokenizer, tmp_path: Path, entry: HostileInput, on_error: str
) -> None:
    expected: Result = getattr(entry, on_error)
    options = EncodeOptions(append_eod=True, workers=2)
    run = partial(encode, opened, reading(hostile / entry.file, entry, on_error), tmp_path / "x", options, True)
    if isinstance(expected, str) or not any(expected):
        with pytest.raises(InputError) as caught:
            run()
        assert "\n" not in str(caught.value)
        assert not list(tmp_path.iterdir())
        return
    counts = run()["counts"]
    tokens = read_raw(tmp_path / "x")
    texts = [text for text in expected if text]
    assert len(tokens.document_indices) - 1 == counts["documents"] == len(expected)
    assert len(tokens.sequences) == len(texts)
    eod = opened.tokenizer.special_tokens["eod"]
    assert all(ids[-1] == eod and ids.count(eod) == 1 for ids in tokens.sequences)
    joined = np.concatenate([ids[:-1] for ids in tokens.sequences]).astype(np.int32)
    whole = opened.tokenizer.decode(Encoded(joined, np.array([0, joined.size])))
    assert whole[0].as_py() == "".join(texts)


class OneBadDocument:
    """A tokenizer of which one text brings out a fault."""

    vocab_size = 10
    special_tokens: ClassVar[dict[str, int]] = {"eod": 0}

    def __init__(self, bad_id: int | None) -> None:
        self.bad_id = bad_id

    def encode(self, texts: pa.Array) -> Encoded:
        if self.bad_id is None and "bad" in texts.to_pylist():
            raise RuntimeError("cannot\nencode")
        ids = np.array([self.bad_id if text == "bad" else 1 for text in texts.to_pylist()], np.int32)
        return Encoded(ids, np.arange(ids.size + 1))


@pytest.mark.parametrize(("bad_id", "reason"), [(None, "cannot encode"), (10, "token id 10 is outside"), (-1, "id -1")])
def test_a_document_that_cannot_be_encoded_is_named(bad_id: int | None, reason: str) -> None:
    batch = pa.record_batch(
        {"text": ["a", "bad", "c"], "source": ["x.jsonl"] * 3, "row": [4, 5, 6], "id": ["p", "q", "r"]}
    )
    with pytest.raises(InputError, match=rf"^x\.jsonl, row 5: document 'q' cannot be encoded \(.*{reason}.*; leave"):
        encode_described(OneBadDocument(bad_id), batch, Framing(bos=False))


def test_a_name_that_is_no_utf_8(opened: OpenedTokenizer, tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad-\xff.jsonl"))
    path.write_text('{"text": "a"}\n', encoding="utf-8")
    found = open_reading([str(path)], ReadConfig(), None)
    manifest = encode(opened, found, tmp_path / "x", EncodeOptions(resume=True), True)
    assert manifest["inputs"][0]["path"] == f"{tmp_path}/bad-\\xff.jsonl"
