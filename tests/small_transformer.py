"""A small transformer whose attention is given from outside: sdpa with a dense mask, or FlexAttention."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
VOCABULARY = 128
WIDTH = 32
HEADS = 2


def sdpa(mask: torch.Tensor) -> Attention:
    """mask: bool [batch, T, T], True where a query sees a key."""
    return lambda q, k, v: scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None])


def flex(mask: BlockMask) -> Attention:
    return lambda q, k, v: flex_attention(q, k, v, block_mask=mask)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: torch.Tensor, attention: Attention) -> torch.Tensor:
        batch, tokens, _ = x.shape
        heads = self.qkv(self.norms[0](x)).view(batch, tokens, 3, HEADS, WIDTH // HEADS)
        seen = attention(*heads.permute(2, 0, 3, 1, 4))
        x = x + self.out(seen.transpose(1, 2).reshape(batch, tokens, WIDTH))
        return x + self.mlp(self.norms[1](x))


class SmallTransformer(nn.Module):
    """Two layers: what leaks through the tokens in between shows."""

    def __init__(self, positions: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(positions, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(2)])
        self.logits = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, attention: Attention) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions(positions)
        for layer in self.layers:
            x = layer(x, attention)
        return self.logits(x)
