"""The role `image` in every family: an id of its own, that no text becomes, and that a saved tokenizer keeps."""

from __future__ import annotations

from pathlib import Path
from pydoc_data import topics

import pyarrow as pa
import pytest

from tokpack_core.config import SpecialTokens, TrainConfig
from tokpack_core.tokenizers import registry
from tokpack_core.tokenizers.encoded import from_lists

IMAGE = "<|image|>"
SPECIAL = {"eod": "<|endoftext|>", "unk": "<|unk|>", "image": IMAGE}
SIZES = {
    "byte_bpe": 300,
    "sentencepiece_bpe": 400,
    "sentencepiece_unigram": 400,
    "wordpiece": 300,
    "character": 300,
    "word": 300,
}


@pytest.mark.parametrize("family", SIZES)
def test_the_placeholder_is_a_special_token_of_its_own(family: str, tmp_path: Path) -> None:
    text = [body for _, body in sorted(topics.topics.items())[:40]]
    config = TrainConfig(family=family, vocab_size=SIZES[family], special_tokens=SpecialTokens(**SPECIAL))
    trained = registry.train(config, iter([pa.array(text)]), "nfc")
    trained.save(tmp_path)
    for tokenizer in (trained, registry.load(tmp_path)):
        image = tokenizer.special_tokens["image"]
        assert len(set(tokenizer.special_tokens.values())) == len(tokenizer.special_tokens)
        assert tokenizer.decode(from_lists([[image]])).to_pylist() == [IMAGE]
        row = tokenizer.vocabulary().filter(pa.compute.equal(tokenizer.vocabulary()["id"], image)).to_pylist()
        assert [(found["token"], found["special"]) for found in row] == [(IMAGE.encode(), True)]
        encoded = tokenizer.encode(pa.array([f"a {IMAGE} b", IMAGE]))
        assert image not in encoded.ids
