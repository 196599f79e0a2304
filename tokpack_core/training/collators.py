"""From packs to the tensors that frameworks take; each is a `collate_fn` of torch's DataLoader."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from tokpack_core.errors import InputError
from tokpack_core.training.layout import (
    cu_seqlens,
    loss_mask,
    max_seqlen,
    position_ids,
    shifted_labels,
    unshifted_labels,
)
from tokpack_core.training.packed_dataset import Pack
from tokpack_core.training.segments import joined
from tokpack_core.training.visible_keys import visibility

Batch = dict[str, torch.Tensor]


def flatten(packs: Sequence[Pack]) -> dict[str, torch.Tensor | int]:
    """Hugging Face flattening with FlashAttention's arguments; the packs of the batch lie back to back.

    input_ids, labels, position_ids int64 [1, T]; cu_seq_lens_q and _k int32 [documents + 1]; max_length_q and _k int.
    The first label of each document is -100, and so is all of a filled tail.

    Raises InputError when a pack has image blocks, which cu_seqlens cannot tell.
    """
    require_causal(packs, "flatten_visible")
    batch = flat_tensors(packs)
    edges = cu_seqlens(joined([pack.segments for pack in packs]))
    longest, edges = max_seqlen(edges), torch.from_numpy(edges)
    return {**batch, "cu_seq_lens_q": edges, "cu_seq_lens_k": edges, "max_length_q": longest, "max_length_k": longest}


def flatten_visible(packs: Sequence[Pack]) -> Batch:
    """The same for FlexAttention and for images: input_ids, labels, position_ids int64 [1, T], visibility [1, 4, T].

    `visibility.block_mask(batch.pop("visibility"))` is the attention_mask for `attn_implementation="flex_attention"`.
    """
    seen = visibility(joined([pack.segments for pack in packs]))
    return {**flat_tensors(packs), "visibility": torch.from_numpy(seen)[None]}


def megatron_batch(packs: Sequence[Pack]) -> Batch:
    """Megatron's batch with inter-document masking: `megatron_sample` stacked, all [batch, ...].

    Raises InputError when a pack has image blocks.
    """
    require_causal(packs, "flatten_visible")
    samples = [megatron_sample(pack) for pack in packs]
    return {name: torch.stack([sample[name] for sample in samples]) for name in samples[0]}


def megatron_sample(pack: Pack) -> Batch:
    """tokens, labels, position_ids int64 [S]; loss_mask float32 [S]; cu_seqlens int32 [S + 1]; max_seqlen int32 [].

    cu_seqlens is filled up with S, as Megatron's `--dataloader-inter-document-masking` has it.
    """
    edges = cu_seqlens(pack.segments)
    filled = np.full(pack.tokens.size + 1, pack.tokens.size, np.int32)
    filled[: edges.size] = edges
    return {
        "tokens": torch.from_numpy(pack.tokens.astype(np.int64)),
        "labels": torch.from_numpy(shifted_labels(pack.tokens)),
        "loss_mask": torch.from_numpy(loss_mask(pack.segments).astype(np.float32)),
        "position_ids": torch.from_numpy(position_ids(edges)),
        "cu_seqlens": torch.from_numpy(filled),
        "max_seqlen": torch.tensor(max_seqlen(edges), dtype=torch.int32),
    }


def flat_tensors(packs: Sequence[Pack]) -> Batch:
    tokens = np.concatenate([pack.tokens for pack in packs]).astype(np.int64)
    segments = joined([pack.segments for pack in packs])
    columns = {
        "input_ids": tokens,
        "labels": unshifted_labels(tokens, segments),
        "position_ids": position_ids(cu_seqlens(segments)),
    }
    return {name: torch.from_numpy(values)[None] for name, values in columns.items()}


def require_causal(packs: Sequence[Pack], remedy: str) -> None:
    if not all(pack.segments.causal for pack in packs):
        raise InputError(
            f"a pack has image blocks, which see themselves in both directions, and cu_seqlens cannot tell that: "
            f"use {remedy} with FlexAttention"
        )
