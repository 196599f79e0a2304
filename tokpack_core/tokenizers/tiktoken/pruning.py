"""Pruning of a tiktoken rank file: ranks of tokens that stay close up, in their order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tokpack_core.tokenizers.byte_bpe.merge_paths import mark_needed
from tokpack_core.tokenizers.tiktoken.ranks import TiktokenTokenizer


def prune_ranks(tokenizer: TiktokenTokenizer, wanted: NDArray[np.bool_]) -> tuple[TiktokenTokenizer, NDArray[np.bool_]]:
    """The tokenizer and what it keeps, bool [vocab_size]: `wanted` and all that is needed for it."""
    ranks, metadata = tokenizer.parts()
    ordered = sorted(ranks, key=ranks.__getitem__)
    kept = wanted.copy()
    kept[[rank for token, rank in ranks.items() if len(token) == 1]] = True
    needed = kept[: len(ordered)].copy()
    mergeable = np.ones(len(ordered), bool)
    mark_needed(pa.array(ordered, pa.binary()), np.arange(len(ordered)), needed, mergeable, by_character=False)
    kept[: len(ordered)] = needed
    staying = (token for token, stays in zip(ordered, needed, strict=True) if stays)
    smaller = {token: rank for rank, token in enumerate(staying)}
    return TiktokenTokenizer(smaller, replace(metadata, ids={})), kept
