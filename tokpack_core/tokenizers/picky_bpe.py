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
from tokpack_core.bpe.picky_merges import Events, train_with_deletions
from tokpack_core.config import TrainConfig, UnicodeForm
from tokpack_core.errors import InputError
from tokpack_core.tokenizers.metadata import Metadata
from tokpack_core.tokenizers.superword_file import SuperwordModel
from tokpack_core.tokenizers.superword_model import SuperwordTokenizer, refuse_slow

MOST_WORKERS = 8
SETTINGS = ("vocab_size", "pretokenizer", "digits", "min_frequency", "tie_break", "max_pretoken_bytes")
NEVER = "(?!)"
"""No word may be part of a superword."""


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
    found, seen = train_with_deletions(texts, splits, limits, threshold, workers)
    if seen.bytes == 0:
        raise InputError("the training sample holds no text: check `train_on` and the train split of its corpora")
    settings = {name: getattr(config, name) for name in SETTINGS} | {"delete_threshold": threshold}
    training = {
        "documents": seen.documents,
        "bytes": seen.bytes,
        "bytes_dropped": seen.bytes_dropped,
        "tokens_deleted": int(np.count_nonzero(~found.alive)),
        "deletions": int(np.count_nonzero(found.events[:, 1] < 0)),
    }
    metadata = Metadata("byte_bpe", unicode, special, settings, training)
    return SuperwordTokenizer(as_model(found, splits, tuple(special.values())), metadata)


def as_model(found: Events, splits: tuple[str, ...], special: tuple[str, ...]) -> SuperwordModel:
    """The same with ids: those of living symbols first."""
    order = np.argsort(~found.alive, kind="stable")
    ids = np.empty(order.size, np.int32)
    ids[order] = len(special) + np.arange(order.size)
    events = found.events.copy()
    merges = events[:, 1] >= 0
    events[merges] = ids[events[merges]]
    events[~merges, 0] = ids[events[~merges, 0]]
    parts = tuple(tuple(part.tolist()) for part in np.split(ids[found.parts], found.part_offsets[1:-1]))
    ordered = [found.symbols[symbol] for symbol in order.tolist()]
    living = int(np.count_nonzero(found.alive))
    no_superwords = np.empty((0, 3), np.int32)
    return SuperwordModel(
        splits,
        NEVER,
        None,
        special,
        ordered[:living],
        events,
        no_superwords,
        tuple(ordered[living:]),
        parts if (~merges).any() else (),
    )
