"""Pruning of a SentencePiece model: pieces left out of its file, those that others are merged through kept."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from tokpack_core.tokenizers.byte_bpe.merge_paths import mark_needed
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer


def prune_sentencepiece(
    tokenizer: SentencePieceTokenizer, wanted: NDArray[np.bool_]
) -> tuple[SentencePieceTokenizer, NDArray[np.bool_]]:
    """The tokenizer and what it keeps, bool [vocab_size]: `wanted` and all that is needed for it."""
    pieces, scores, removable = tokenizer.pieces()
    kept = wanted | ~removable | (pc.utf8_length(pieces).to_numpy() < 2)
    if tokenizer.merges_pairs:
        needed = kept & removable
        mark_needed(pieces, ranks_of(scores), needed, removable, by_character=True)
        kept |= needed
    return tokenizer.with_pieces(kept), kept


def ranks_of(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """0 for the highest score."""
    ranks = np.empty(len(scores), np.int64)
    ranks[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    return ranks
