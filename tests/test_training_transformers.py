"""The real transformers: its own flattening collator agrees, and a packed loss is that of the documents alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import DataCollatorWithFlattening, LlamaConfig, LlamaForCausalLM

from tests.training_sets import TextSet, write_interleaved_set, write_text_set
from tokpack_core.training.collators import flatten, flatten_visible
from tokpack_core.training.packed_dataset import PackedDataset
from tokpack_core.training.segments import ImageAttention
from tokpack_core.training.visibility import block_mask, dense_mask

VOCABULARY = 64


@pytest.fixture(scope="module")
def text_set(tmp_path_factory: pytest.TempPathFactory) -> tuple[TextSet, PackedDataset]:
    written = write_text_set(tmp_path_factory.mktemp("set") / "packed", "best_fit", VOCABULARY)
    return written, PackedDataset(written.prefix, eod=0)


@pytest.fixture(scope="module")
def llamas() -> dict[str, LlamaForCausalLM]:
    """The same random weights by attention; FlexAttention has no float64 on the CPU."""
    models = {}
    for attention in ("sdpa", "flex_attention"):
        config = LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=512,
            attn_implementation=attention,
        )
        torch.manual_seed(0)
        models[attention] = LlamaForCausalLM(config).eval()
    models["sdpa"].double()
    return models


def test_the_collator_of_transformers_gives_the_same(text_set: tuple[TextSet, PackedDataset]) -> None:
    written, dataset = text_set
    collate = DataCollatorWithFlattening(return_flash_attn_kwargs=True)
    full = [number for number in range(len(dataset)) if None not in written.places(number)]
    assert len(full) > 5
    for pair in (full[:1], full[1:3], full[3:6]):
        pieces = [piece for number in pair for piece in written.pieces(number)]
        theirs = collate([{"input_ids": piece} for piece in pieces])
        ours = flatten([dataset[number] for number in pair])
        assert set(ours) == set(theirs)
        for name, values in theirs.items():
            if isinstance(values, torch.Tensor):
                assert ours[name].dtype == values.dtype
                assert torch.equal(ours[name], values)
            else:
                assert ours[name] == values


def separate_loss(model: LlamaForCausalLM, pieces: list[list[int]]) -> torch.Tensor:
    """Mean over all labels of the documents, one forward a document."""
    total, count = torch.zeros((), dtype=torch.float64), 0
    for piece in pieces:
        if len(piece) > 1:
            ids = torch.tensor([piece])
            total += model(input_ids=ids, labels=ids).loss * (len(piece) - 1)
            count += len(piece) - 1
    return total / count


def test_packed_loss_and_gradient_are_those_of_the_documents_alone(
    text_set: tuple[TextSet, PackedDataset], llamas: dict[str, LlamaForCausalLM]
) -> None:
    written, dataset = text_set
    numbers = [next(n for n in range(len(dataset)) if None in written.places(n) and len(written.pieces(n)) > 1), 2, 5]
    alone = separate_loss(llamas["sdpa"], [piece for number in numbers for piece in written.pieces(number)])
    gradient = torch.autograd.grad(alone, llamas["sdpa"].model.embed_tokens.weight)[0]
    batch = flatten([dataset[number] for number in numbers])
    loss = llamas["sdpa"](**batch, use_cache=False).loss
    assert loss.item() == pytest.approx(alone.item(), rel=1e-6)
    packed_gradient = torch.autograd.grad(loss, llamas["sdpa"].model.embed_tokens.weight)[0]
    assert torch.allclose(packed_gradient, gradient, rtol=1e-4, atol=1e-7)
    tokens = batch["input_ids"]
    unpacked = llamas["sdpa"](input_ids=tokens, labels=batch["labels"]).loss
    assert abs(unpacked.item() - alone.item()) > 1e-4
    visible = flatten_visible([dataset[number] for number in numbers])
    mask = block_mask(visible.pop("visibility"))
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):
        flexed = llamas["flex_attention"](**visible, attention_mask=mask, use_cache=False).loss
    assert flexed.item() == pytest.approx(alone.item(), rel=1e-5)


def test_interleaved_packs_go_through_flex_attention_of_transformers(
    tmp_path: Path, llamas: dict[str, LlamaForCausalLM]
) -> None:
    packs = [[[("text", 9), ("image", 12), ("text", 7), ("image", 6), ("text", 5)], [("text", 20)]]]
    write_interleaved_set(tmp_path / "set", packs, 64, ImageAttention.ISOLATE_IMAGES)
    batch = flatten_visible([PackedDataset(tmp_path / "set")[0]])
    batch["input_ids"] %= VOCABULARY
    batch["labels"] = torch.where(batch["labels"] == -100, -100, batch["input_ids"])
    seen = batch.pop("visibility")
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):
        flexed = llamas["flex_attention"](**batch, attention_mask=block_mask(seen), use_cache=False).loss
        dense = llamas["sdpa"](**batch, attention_mask=dense_mask(seen)[:, None], use_cache=False).loss
        causal = llamas["sdpa"](**batch, use_cache=False).loss
    assert flexed.item() == pytest.approx(dense.item(), rel=1e-5)
    assert abs(causal.item() - dense.item()) > 1e-6
    assert (batch["labels"][0, 9:21] == -100).all()
