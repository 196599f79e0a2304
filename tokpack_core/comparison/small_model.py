"""Bits per byte of one small language model trained with each tokenizer: same bytes, same shape, several seeds.

Bits per byte does not depend on how text is cut: the sum of the negative log-likelihoods of all tokens of the held-out
documents, in bits, over their bytes. The model is a causal transformer with tied embeddings (two layers, width 128,
four heads, 128 tokens of context); no window of context holds two documents, and each begins with one learned start
vector. Every model reads each training document once, in an order drawn from its seed. So a tokenizer of fewer tokens
takes fewer steps for the same bytes: what it saves in computation is not given back to it.

It tells only what so small a model tells: read differences together with their spread over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import nn

from tokpack_core.comparison.held_out import Candidate

WIDTH, HEADS, LAYERS, CONTEXT = 128, 4, 2, 128
BATCH = 16
PEAK_RATE, WARM_UP = 2e-3, 0.1


class SmallModel(nn.Module):
    """Logits [batch, length, vocabulary] of ids [batch, length]: position t is told from the ids before it."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, WIDTH)
        self.start = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.position = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH))
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 4 * WIDTH, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        batch, length = ids.shape
        before = torch.cat([self.start.expand(batch, 1, WIDTH), self.embedding(ids[:, :-1])], dim=1)
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.layers(before + self.position[:length], mask=mask, is_causal=True)
        logits: torch.Tensor = self.norm(hidden) @ self.embedding.weight.T
        return logits


@dataclass(frozen=True, eq=False)
class Windows:
    """ids int64 [windows, CONTEXT], -100 behind the end of a window; bytes: of the documents they are cut from."""

    ids: NDArray[np.int64]
    bytes: int


def windows_of(candidate: Candidate, texts: pa.Array) -> Windows:
    """Documents cut every CONTEXT tokens, so that no window holds two of them."""
    encoded = candidate.tokenizer.encode(texts)
    lengths = np.diff(encoded.offsets)
    each = -(-lengths // CONTEXT)
    first = np.repeat(encoded.offsets[:-1], each)
    rank = np.arange(int(each.sum())) - np.repeat(np.cumsum(each) - each, each)
    starts = first + rank * CONTEXT
    stops = np.minimum(starts + CONTEXT, np.repeat(encoded.offsets[1:], each))
    places = starts[:, None] + np.arange(CONTEXT)
    ids = np.where(places < stops[:, None], encoded.ids[np.minimum(places, max(len(encoded.ids) - 1, 0))], -100)
    return Windows(ids.astype(np.int64), int(sum(len(text.encode()) for text in texts.to_pylist())))


def bits_per_byte(
    candidate: Candidate, training: pa.Array, held_out: pa.Array, seed: int, on_read: Callable[[int], None]
) -> float:
    """Trains one model and judges it; the same seed gives the same figure on one machine.

    on_read: is told the bytes of text that were read since it was told last.
    """
    torch.manual_seed(seed)
    model = SmallModel(candidate.tokenizer.vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE, betas=(0.9, 0.95), weight_decay=0.1)
    windows = windows_of(candidate, training)
    ids = windows.ids
    order = np.random.default_rng(seed).permutation(len(ids))
    batches = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
    warm_up = max(1, int(WARM_UP * len(batches)))
    for step, batch in enumerate(batches):
        rate = PEAK_RATE * min((step + 1) / warm_up, (len(batches) - step) / max(len(batches) - warm_up, 1))
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = cross_entropy(model, ids[batch], "mean")
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        on_read(windows.bytes * (step + 1) // len(batches) - windows.bytes * step // len(batches))
    judged = windows_of(candidate, held_out)
    on_read(judged.bytes)
    with torch.no_grad():
        total = sum(
            float(cross_entropy(model, judged.ids[at : at + BATCH], "sum")) for at in range(0, len(judged.ids), BATCH)
        )
    return total / math.log(2) / judged.bytes


def cross_entropy(model: SmallModel, ids: NDArray[np.int64], reduction: str) -> torch.Tensor:
    longest = int((ids >= 0).sum(axis=1).max())
    targets = torch.from_numpy(ids[:, :longest])
    logits = model(targets.clamp(min=0))
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction=reduction)


def small_model_rows(
    candidates: Sequence[Candidate], texts: pa.Array, seeds: int, on_read: Callable[[int], None]
) -> list[dict[str, Any]]:
    """A row a tokenizer: bits per byte by seed, mean and spread. Every tenth document is held out, the others train."""
    judged = np.arange(len(texts)) % 10 == 9
    training, held_out = texts.filter(pa.array(~judged)), texts.filter(pa.array(judged))
    rows = []
    for candidate in candidates:
        found = [bits_per_byte(candidate, training, held_out, seed, on_read) for seed in range(seeds)]
        spread = float(np.std(found, ddof=1)) if seeds > 1 else None
        rows.append({"tokenizer": candidate.name, "seeds": found, "mean": float(np.mean(found)), "spread": spread})
    return rows
