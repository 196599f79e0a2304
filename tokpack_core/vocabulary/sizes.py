"""Utilization against vocabulary size: what smaller vocabularies of the same training make of the same text.

Byte-level BPE: the counts at each cut of the merges, over all of the sample (`merge_counts`). SentencePiece: the model
without the pieces of the lowest scores, over its first SIZE_BYTES. A BPE model's scores are the order of its merges,
so that too is exactly the smaller tokenizer; a Unigram model would be trained again to a smaller size, and this is not:
its figures are those of pruning by score.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tokpack_core.bpe.encoder import BpeModel
from tokpack_core.tokenizers.pruning import prune
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer
from tokpack_core.tokenizers.text_batches import text_batches
from tokpack_core.vocabulary.merge_counts import HALVINGS, MergeCounts

RARE_BELOW = 5


METHODS = {
    "merges": "merges cut after the first ones: exactly the tokenizers of smaller sizes",
    "sentencepiece_bpe": "pieces of late merges left out: exactly the tokenizers of smaller sizes",
    "sentencepiece_unigram": "pieces of the lowest scores left out, not trained again",
}
SIZE_BYTES = 2**20
"""Text that a SentencePiece model is tried on at each size."""


def size_row(entries: int, frequencies: NDArray[np.int64], total_bytes: int) -> dict[str, Any]:
    """frequencies: int64, occurrences of the entries of this size; those beyond `entries` do not occur."""
    tokens = int(frequencies.sum())
    seen, common = int((frequencies > 0).sum()), int((frequencies >= RARE_BELOW).sum())
    return {
        "entries": entries,
        "seen": seen,
        "utilization": seen / entries,
        "rare_share": 1 - common / entries,
        "tokens": tokens,
        "bytes_per_token": total_bytes / tokens if tokens else None,
    }


def merge_sizes(
    model: BpeModel, merges: MergeCounts, final: NDArray[np.int64], extra: int, total_bytes: int
) -> list[dict[str, Any]]:
    """Rows of `size_row`, smallest size first, the whole vocabulary last.

    final: int64 [vocab_size], occurrences of entries (no special tokens); extra: entries that are neither bytes nor
    merged, which every size has.
    """
    rows = []
    for cut, frequencies in zip(merges.cuts, merges.at_cut, strict=True):
        entries = extra + np.unique(np.append(model.byte_ids, model.token[model.rank < cut])).size
        rows.append(size_row(int(entries), frequencies, total_bytes))
    whole = extra + np.unique(np.append(model.byte_ids, model.token)).size
    return [*rows, size_row(int(whole), final, total_bytes)]


def piece_sizes(tokenizer: SentencePieceTokenizer, texts: pa.Array) -> list[dict[str, Any]]:
    """The same rows for a SentencePiece model, on `texts`."""
    _, scores, removable = tokenizer.pieces()
    order = np.flatnonzero(removable)[np.argsort(-scores[removable], kind="stable")]
    total = pc.sum(pc.binary_length(texts)).as_py() or 0
    rows = []
    for left_out in (*(len(order) - (len(order) >> halving) for halving in range(HALVINGS, 0, -1)), 0):
        removed = np.zeros(tokenizer.vocab_size, bool)
        removed[order[len(order) - left_out :]] = True
        smaller = prune(tokenizer, removed).tokenizer
        special = smaller.vocabulary()["special"].to_numpy()
        frequencies = np.bincount(smaller.encode(texts).ids, minlength=smaller.vocab_size)[~special]
        rows.append(size_row(len(frequencies), frequencies, total))
    return rows


def first_texts(batches: Iterable[pa.Array], limit: int = SIZE_BYTES) -> pa.Array:
    """The first documents of a text, until they have `limit` bytes."""
    found: list[pa.Array] = []
    size = 0
    for part in (part for texts in batches for part in text_batches(texts, limit // 16)):
        if size >= limit:
            break
        found.append(part)
        size += pc.sum(pc.binary_length(part)).as_py() or 0
    return pa.concat_arrays(found) if found else pa.array([], pa.string())
