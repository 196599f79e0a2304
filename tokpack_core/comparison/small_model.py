"""Bits per byte of one small language model trained with each tokenizer: same bytes, same shape, several seeds.

Bits per byte does not depend on how text is cut: the sum of the negative log-likelihoods of all tokens of the held-out
documents, in bits, over their bytes. The model is a causal transformer with tied embeddings (two layers, width 128,
four heads, 128 tokens of context); no window of context holds two documents, and each begins with one learned start
vector. Every model reads each training document once, in an order drawn from its seed. So a tokenizer of fewer tokens
takes fewer steps for the same bytes: what it saves in computation is not given back to it.

It tells only what so small a model tells. How sure a difference is, `model_difference` says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from torch import nn

from tokpack_core.comparison.bootstrap import holm
from tokpack_core.comparison.held_out import Candidate
from tokpack_core.comparison.model_difference import LOSES_TEXT, bits_verdict, model_difference
from tokpack_core.errors import InputError

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
    """ids int64 [windows, CONTEXT], -100 behind the end of a window; documents int64 [windows]: which one each is cut
    from; bytes: of all of them."""

    ids: NDArray[np.int64]
    documents: NDArray[np.int64]
    bytes: int


def windows_of(candidate: Candidate, documents: pa.Table) -> Windows:
    """Documents cut every CONTEXT tokens, so that no window holds two of them."""
    encoded = candidate.encode(documents["text"].combine_chunks(), documents["lang"].combine_chunks())
    lengths = np.diff(encoded.offsets)
    each = -(-lengths // CONTEXT)
    first = np.repeat(encoded.offsets[:-1], each)
    rank = np.arange(int(each.sum())) - np.repeat(np.cumsum(each) - each, each)
    starts = first + rank * CONTEXT
    stops = np.minimum(starts + CONTEXT, np.repeat(encoded.offsets[1:], each))
    places = starts[:, None] + np.arange(CONTEXT)
    ids = np.where(places < stops[:, None], encoded.ids[np.minimum(places, max(len(encoded.ids) - 1, 0))], -100)
    return Windows(ids.astype(np.int64), np.repeat(np.arange(len(documents)), each), text_bytes(documents))


def text_bytes(documents: pa.Table) -> int:
    return int(pc.sum(pc.binary_length(documents["text"])).as_py() or 0)


def trained_model(candidate: Candidate, training: pa.Table, seed: int, on_read: Callable[[int], None]) -> SmallModel:
    """The same seed gives the same model on one machine; on_read: is told the bytes read since it was told last."""
    torch.manual_seed(seed)
    model = SmallModel(candidate.tokenizer.vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE, betas=(0.9, 0.95), weight_decay=0.1)
    windows = windows_of(candidate, training)
    order = np.random.default_rng(seed).permutation(len(windows.ids))
    batches = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
    warm_up = max(1, int(WARM_UP * len(batches)))
    for step, batch in enumerate(batches):
        rate = PEAK_RATE * min((step + 1) / warm_up, (len(batches) - step) / max(len(batches) - warm_up, 1))
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = token_losses(model, windows.ids[batch]).sum() / int((windows.ids[batch] >= 0).sum())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        on_read(windows.bytes * (step + 1) // len(batches) - windows.bytes * step // len(batches))
    return model


def bits_of_documents(model: SmallModel, candidate: Candidate, held_out: pa.Table) -> NDArray[np.float64]:
    """Bits that the model needs for each document: float64 [documents]."""
    windows = windows_of(candidate, held_out)
    with torch.no_grad():
        nats = [
            token_losses(model, windows.ids[at : at + BATCH]).double().sum(dim=1).numpy()
            for at in range(0, len(windows.ids), BATCH)
        ]
    found = np.concatenate([np.zeros(0), *nats]) / math.log(2)
    bits: NDArray[np.float64] = np.bincount(windows.documents, found, minlength=len(held_out)).astype(np.float64)
    return bits


def token_losses(model: SmallModel, ids: NDArray[np.int64]) -> torch.Tensor:
    """Nats of each token [windows, tokens of the longest], 0 behind the end of a window."""
    longest = int((ids >= 0).sum(axis=1).max())
    targets = torch.from_numpy(ids[:, :longest])
    logits = model(targets.clamp(min=0)).flatten(0, 1)
    losses = nn.functional.cross_entropy(logits, targets.flatten(), ignore_index=-100, reduction="none")
    return losses.view(targets.shape)


def small_model_rows(
    candidates: Sequence[Candidate],
    documents: pa.Table,
    seeds: int,
    baseline: str,
    lossy: frozenset[str],
    on_read: Callable[[int], None],
) -> list[dict[str, Any]]:
    """A row a tokenizer: bits per byte by seed, mean and spread, and the difference to the baseline with its verdict.

    documents: `text` and `lang`; every tenth is held out, the others train.
    lossy: tokenizers whose tokens do not spell all of the text, so that their bits are not of the same text.

    Raises InputError if there is no tenth document.
    """
    judged = np.arange(len(documents)) % 10 == 9
    training, held_out = documents.filter(pa.array(~judged)), documents.filter(pa.array(judged))
    size = text_bytes(held_out)
    if not size:
        raise InputError("every tenth document is held out from a small model, and there is none: raise --model-bytes")
    bits: dict[str, NDArray[np.float64]] = {}
    for candidate in candidates:
        found = []
        for seed in range(seeds):
            found.append(bits_of_documents(trained_model(candidate, training, seed, on_read), candidate, held_out))
            on_read(size)
        bits[candidate.name] = np.stack(found)
    rows = [
        {"tokenizer": name, **of_seeds(own, size), **model_difference(own, bits[baseline])}
        for name, own in bits.items()
    ]
    compared = [name for name in bits if name != baseline and lossy.isdisjoint((name, baseline))]
    asked = [row["p"] if row["tokenizer"] in compared else None for row in rows]
    for row, p in zip(rows, holm(asked), strict=True):
        row["p"], row["corrected_p"] = (None if p is None else row["p"]), p
        row["verdict"] = bits_verdict(row["ratio"], p) if row["tokenizer"] in compared else LOSES_TEXT
        if row["tokenizer"] == baseline:
            row["verdict"] = "baseline"
    return rows


def of_seeds(bits: NDArray[np.float64], size: int) -> dict[str, Any]:
    """bits: [seeds, documents]; size: bytes of the documents."""
    found = bits.sum(axis=1) / size
    spread = float(found.std(ddof=1)) if len(found) > 1 else None
    return {"seeds": found.tolist(), "mean": float(found.mean()), "spread": spread}
