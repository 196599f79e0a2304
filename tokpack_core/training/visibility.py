"""Which keys each query sees, as two intervals a token; FlexAttention's BlockMask and the dense mask follow from it.

A query sees the keys [context_begin, context_end) and [block_begin, block_end). For text the context runs from the
document's first token to the query itself; an image block sees all of itself, and before it what its ImageAttention
says. Plain integers travel from data-loading workers, which a BlockMask (it holds a function) cannot.

FlexAttention: Dong et al., "Flex Attention: A Programming Model for Generating Optimized Attention Kernels"
(arXiv 2412.05496); torch 2.5 or newer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from tokpack_core.training.layout import Int64, cu_seqlens
from tokpack_core.training.segments import IMAGE, Flags, ImageAttention, Int32, PackSegments, document_ends

BLOCK_SIZE = 128
MaskMod = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def visibility(segments: PackSegments) -> Int32:
    """Rows context_begin, context_end, block_begin, block_end: int32 [4, T]."""
    ends = np.cumsum(segments.length, dtype=np.int32)
    begins = ends - segments.length
    last = document_ends(segments)
    number: Int64 = np.cumsum(last) - last
    document_begin = cu_seqlens(segments)[:-1][number]
    image = segments.mode == IMAGE
    attention = segments.image_attention
    context_end = np.where(attention == ImageAttention.ISOLATE_MODALITIES, document_begin, begins)
    isolated = attention == ImageAttention.ISOLATE_IMAGES
    context_end = np.where(isolated, first_image_begins(number, image, begins)[number], context_end)
    by_segment = np.stack([document_begin, context_end, begins, ends]).astype(np.int32)
    seen = np.repeat(by_segment, segments.length, axis=1)
    text = np.flatnonzero(np.repeat(~image, segments.length)).astype(np.int32)
    seen[1, text] = seen[3, text] = text + 1
    seen[2, text] = text
    return seen


def first_image_begins(number: Int64, image: Flags, begins: Int32) -> Int32:
    """First token of the first image of each document, int32 [documents]; 0 where there is none."""
    documents, first = np.unique(number[image], return_index=True)
    out = np.zeros(int(number.max(initial=-1)) + 1, np.int32)
    out[documents] = begins[image][first]
    return out


def mask_mod(seen: torch.Tensor) -> MaskMod:
    """FlexAttention's mask function for a batch, from `visibility` stacked to int32 [batch, 4, T]."""

    def sees(batch: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        context = (key >= seen[batch, 0, query]) & (key < seen[batch, 1, query])
        block = (key >= seen[batch, 2, query]) & (key < seen[batch, 3, query])
        return context | block

    return sees


def block_mask(seen: torch.Tensor, block_size: int = BLOCK_SIZE) -> torch.nn.attention.flex_attention.BlockMask:
    """The BlockMask of a batch, on the device of `seen`, int32 [batch, 4, T]."""
    from torch.nn.attention.flex_attention import create_block_mask

    batch, _, tokens = seen.shape
    return create_block_mask(mask_mod(seen), batch, None, tokens, tokens, device=seen.device, BLOCK_SIZE=block_size)


def dense_mask(seen: torch.Tensor) -> torch.Tensor:
    """True where a query (row) sees a key (column), bool [batch, T, T]: 16 MiB a pack of 4,096; made for tests."""
    batch, _, tokens = seen.shape
    device = seen.device
    batches = torch.arange(batch, device=device)[:, None, None]
    queries = torch.arange(tokens, device=device)[None, :, None]
    keys = torch.arange(tokens, device=device)[None, None, :]
    return mask_mod(seen)(batches, batches, queries, keys)
