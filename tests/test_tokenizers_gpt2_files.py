"""GPT-2's `vocab.json` and `merges.txt` give the ids that transformers gives for them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer as Engine
from tokenizers import models, pre_tokenizers, trainers
from transformers import GPT2Tokenizer

from tests.tokenizer_samples import HOSTILE, documents
from tokpack_core.commands.opened_tokenizer import open_tokenizer
from tokpack_core.config import SpecialTokens
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.protocol import Tokenizer

EOD = "<|endoftext|>"
TEXTS = [*HOSTILE, *documents()[:20], "  two spaces, I'll don't 1234\n\n\tx ", "\u4e2d\u6587 \U0001f600"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`gpt2-vocab.json` and `gpt2-merges.txt` of 400 entries."""
    root = tmp_path_factory.mktemp("gpt2")
    engine = Engine(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=[EOD], initial_alphabet=alphabet, show_progress=False)
    engine.train_from_iterator(documents()[:50], trainer)
    engine.model.save(str(root), "gpt2")
    return root


def ids(tokenizer: Tokenizer) -> list[list[int]]:
    encoded = tokenizer.encode(pa.array(TEXTS))
    return [part.tolist() for part in np.split(encoded.ids, encoded.offsets[1:-1])]


def test_the_ids_are_the_peers(folder: Path) -> None:
    vocabulary, merges = folder / "gpt2-vocab.json", folder / "gpt2-merges.txt"
    peer = GPT2Tokenizer(str(vocabulary), str(merges))
    expected = [peer(text, split_special_tokens=True, add_special_tokens=False).input_ids for text in TEXTS]
    for path in (vocabulary, folder):
        tokenizer = registry.load(path)
        assert ids(tokenizer) == expected
        assert tokenizer.special_tokens == {"eod": peer.eos_token_id}
        assert tokenizer.vocab_size == len(peer) == 400
    assert tokenizer.decode(tokenizer.encode(pa.array(TEXTS))).to_pylist() == TEXTS


def test_both_files_are_of_the_tokenizer(folder: Path, tmp_path: Path) -> None:
    opened = open_tokenizer(folder / "gpt2-vocab.json")
    assert [file.path for file in opened.files] == ["gpt2-vocab.json", "gpt2-merges.txt"]
    opened.tokenizer.save(tmp_path)
    again = registry.load(tmp_path, SpecialTokens(eod=EOD))
    assert ids(again) == ids(opened.tokenizer)


def test_files_of_another_kind_are_refused(folder: Path, tmp_path: Path) -> None:
    vocabulary, merges = tmp_path / "vocab.json", tmp_path / "merges.txt"
    vocabulary.write_bytes((folder / "gpt2-vocab.json").read_bytes())
    with pytest.raises(InputError, match=r"vocab\.json needs \S+/merges\.txt beside it"):
        registry.load(vocabulary)
    merges.write_text("#version: 0.2\nno merge at all\n")
    with pytest.raises(InputError, match="are no vocabulary and merges of a BPE"):
        registry.load(tmp_path)
    merges.write_bytes((folder / "gpt2-merges.txt").read_bytes())
    vocabulary.write_text(json.dumps({token: n for token, n in json.loads(vocabulary.read_bytes()).items() if n}))
    with pytest.raises(InputError, match=r"is not of GPT-2's kind, for it has no <\|endoftext\|>"):
        registry.load(vocabulary)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"does not say how text is split, as \S+/tokenizer\.json beside it does"):
        registry.load(vocabulary)
