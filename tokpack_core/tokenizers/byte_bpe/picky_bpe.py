"""`byte_bpe` with `delete_threshold`: PickyBPE (arXiv 2409.04599), see `bpe.picky_merge_kernel`.

Ids: special tokens, the 256 bytes, then the tokens that were left in the end, in the order in which they were first
made. Saved in our own format (see `superword_file`), since no stock file can say when a token was deleted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tokpack_core.bpe.merge_settings import MergeSettings
from tokpack_core.bpe.picky_merges import train_with_deletions
from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.event_model import event_model
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.superwords.model import SuperwordTokenizer, refuse_slow
from tokpack_core.tokenizers.training_text import NO_TEXT, LookAlikes

MOST_WORKERS = 8
SETTINGS = ("vocab_size", "pretokenizer", "digits", "min_frequency", "tie_break", "max_pretoken_bytes")


def train_picky_bpe(
    config: TrainConfig, texts: Iterator[pa.Array], unicode: UnicodeForm, splits: tuple[str, ...], threshold: float
) -> SuperwordTokenizer:
    """Raises InputError for an empty corpus, and a regex that our encoder does not follow."""
    refuse_slow(config.pretokenizer, splits)
    special = config.special_tokens.by_role()
    limits = MergeSettings(
        (config.vocab_size or 0) - len(special),
        config.min_frequency,
        config.tie_break,
        max_pretoken_bytes=config.max_pretoken_bytes,
    )
    workers = min(os.cpu_count() or 1, MOST_WORKERS)
    look_alikes = LookAlikes(special.values())
    found, seen = train_with_deletions(look_alikes.counting(texts), splits, limits, threshold, workers)
    if seen.bytes == 0:
        raise InputError(NO_TEXT)
    settings = {name: getattr(config, name) for name in SETTINGS} | {"delete_threshold": threshold}
    training = {
        "documents": seen.documents,
        "bytes": seen.bytes,
        "bytes_dropped": seen.bytes_dropped,
        "tokens_deleted": int(np.count_nonzero(~found.alive)),
        "deletions": int(np.count_nonzero(found.events[:, 1] < 0)),
    }
    metadata = Metadata("byte_bpe", unicode, special, settings, training | look_alikes.figures())
    return SuperwordTokenizer(event_model(found, tuple(special.values()), splits), metadata)
