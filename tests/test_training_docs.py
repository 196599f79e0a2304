"""The examples of docs/training.md run as they stand (Megatron-Core's runs in test_training_megatron)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import BlockMask
from transformers import LlamaConfig, LlamaForCausalLM

from tests.small_transformer import SmallTransformer, flex
from tests.training_examples import example
from tests.training_sets import EOD, SEQUENCE_LENGTH, write_text_set


@pytest.fixture
def names(tmp_path: Path) -> dict[str, Any]:
    write_text_set(tmp_path / "set", "best_fit", 64)
    return {"prefix": str(tmp_path / "set"), "eod": EOD, "folder": tmp_path, "device": "cpu"}


def test_torch(names: dict[str, Any]) -> None:
    small = SmallTransformer(SEQUENCE_LENGTH)

    def model(tokens: torch.Tensor, positions: torch.Tensor, mask: BlockMask) -> torch.Tensor:
        return small(tokens, positions, flex(mask))

    with torch.no_grad():  # FlexAttention has no backward on the CPU
        exec(example("torch"), names | {"model": model})


def test_hugging_face(names: dict[str, Any]) -> None:
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2
    )
    names["model"] = LlamaForCausalLM(config)
    exec(example("Hugging Face"), names)
    assert torch.isfinite(names["loss"])


def test_megatron_bridge(names: dict[str, Any]) -> None:
    exec(example("Megatron-Bridge"), names)
    assert names["written"].rows > 20
