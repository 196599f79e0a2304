"""A vocabulary of the largest size that a configuration may name takes no more memory than the text can fill."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.tokenizer_samples import documents
from tokpack_core.bpe import training
from tokpack_core.config import TrainConfig
from tokpack_core.config.families import Family
from tokpack_core.errors import InputError
from tokpack_core.tokenizers import registry

LARGEST = 2**31 - 1


@pytest.mark.parametrize(
    "kind",
    [
        {"family": "byte_bpe"},
        {"family": "byte_bpe", "delete_threshold": 0.9},
        {"family": "superbpe"},
        {"family": "superbpe", "transition_size": 500},
        {"family": "superbpe", "joins": "words", "transition_size": 500},
        {"family": "boundless_bpe"},
        {"family": "boundless_bpe", "delete_threshold": 0.9},
        {"family": "wordpiece"},
    ],
)
def test_the_text_is_all_that_it_takes(kind: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "SMALL", 0)
    config = TrainConfig(vocab_size=LARGEST, **kind)
    text = documents()[:8]
    tokenizer = registry.train(config, iter([pa.array(text, pa.string())]), "nfc")
    assert 300 < tokenizer.vocab_size < 256 + sum(len(one.encode()) for one in text)


@pytest.mark.parametrize("family", ["sentencepiece_bpe", "sentencepiece_unigram", "modular_unigram"])
def test_sentencepiece_names_what_the_text_can_give(family: Family) -> None:
    config = TrainConfig(family=family, vocab_size=LARGEST)
    if family == "modular_unigram":
        languages = pa.array(["en"] * 8)
        rows = iter([(pa.array(documents()[:8], pa.string()), languages)])
        assert registry.train_modular(config, rows, "nfc", lambda _: None).vocab_size < 10_000
    else:
        with pytest.raises(InputError, match=rf"`vocab_size` {LARGEST} is more than .* lower it to \d+"):
            registry.train(config, iter([pa.array(documents()[:8], pa.string())]), "nfc")
