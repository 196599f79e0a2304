"""FlexAttention's BlockMask and the dense mask, from the intervals of `visible_keys`.

Plain integers travel from data-loading workers, which a BlockMask (it holds a function) cannot.

FlexAttention: Dong et al., "Flex Attention: A Programming Model for Generating Optimized Attention Kernels"
(arXiv 2412.05496); torch 2.5 or newer.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

BLOCK_SIZE = 128
MaskMod = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


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
