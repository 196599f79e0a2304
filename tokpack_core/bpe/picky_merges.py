"""Trains byte-level BPE with deletions (PickyBPE, arXiv 2409.04599) and encodes by the order of its events.

A token that was deleted has no id, and a merge that needs it may come back to it later; so what was done, in its order,
is the model: merges and deletions.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tokpack_core.bpe.encoder_kernels import FREE
from tokpack_core.bpe.event_encoder_kernels import encode_words_by_events, fill_pair_events
from tokpack_core.bpe.merge_settings import TIE_BREAKS, MergeSettings
from tokpack_core.bpe.merges import as_symbols
from tokpack_core.bpe.picky_merge_kernel import merge_and_delete
from tokpack_core.bpe.pretoken_counting import count_parts
from tokpack_core.bpe.pretoken_counts import PretokenCounts, without_long
from tokpack_core.bpe.spelling_kernels import spelling_of
from tokpack_core.bpe.training import Seen, counting, refuse_unsplit
from tokpack_core.bpe.window_kernels import WINDOW
from tokpack_core.bpe.word_memory import EncodeWords

MOST_SYMBOLS_EACH = 4
"""Symbols ever made, for each token wanted; a training that deletes nearly all it makes ends there."""


@dataclass(frozen=True)
class Events:
    """Symbols are numbered; those that live in the end are tokens."""

    symbols: list[bytes]
    """By number: the single bytes in byte-level order, then what merges made."""
    alive: npt.NDArray[np.bool_]
    """[symbols]"""
    events: npt.NDArray[np.int32]
    """[events, 3]: left, right, made; or deleted, -1, k with the parts parts[part_offsets[k] : part_offsets[k + 1]]"""
    counts: npt.NDArray[np.int64]
    """[events]: how often the pair occurred when it was merged; 0 for a deletion"""
    parts: npt.NDArray[np.int32]
    part_offsets: npt.NDArray[np.int64]


def train_with_deletions(
    texts: Iterator[pa.Array],
    splits: tuple[str, ...],
    settings: MergeSettings,
    threshold: float,
    workers: int = 1,
    remedy: str = "",
) -> tuple[Events, Seen]:
    """As `training.train_merges`; `threshold`: see `picky_merge_kernel`."""
    seen = Seen()
    parts, seen.bytes_unmatched = count_parts(counting(texts, seen), splits, workers)
    if parts and settings.max_pretoken_bytes is None:
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        refuse_unsplit(lengths, np.concatenate([part.counts for part in parts]), remedy)
    for number, part in enumerate(parts):
        parts[number], dropped = without_long(part, settings.max_pretoken_bytes)
        seen.bytes_dropped += dropped
    return learn_with_deletions(parts, settings, threshold), seen


def learn_with_deletions(words: list[PretokenCounts], settings: MergeSettings, threshold: float) -> Events:
    """`words`: parts that have no word in common; they are taken out of the list."""
    alphabet = settings.alphabet
    with ThreadPoolExecutor(1) as threads:
        symbols, weights = as_symbols(words, alphabet, threads)
    # What a merge made and no deletion took occurs, so a larger size takes no more memory.
    most = MOST_SYMBOLS_EACH * min(max(settings.vocab_size, len(alphabet)), len(alphabet) + symbols.size)
    done, alive, spelling = merge_and_delete(
        symbols,
        weights,
        spelling_of([bytes([byte]) for byte in alphabet], most + 2),
        len(alphabet),
        settings.vocab_size,
        most,
        max(settings.min_frequency, 1),
        threshold,
        TIE_BREAKS.index(settings.tie_break),
    )
    return Events(
        spelling.tokens(0, alive.size),
        alive.copy(),
        done.events[: done.number].copy(),
        done.counts[: done.number].copy(),
        done.parts[: done.part_offsets[done.deletions]].copy(),
        done.part_offsets[: done.deletions + 1].copy(),
    )


def event_encoder(
    byte_ids: npt.NDArray[np.int32],
    lengths: npt.NDArray[np.int64],
    events: npt.NDArray[np.int32],
    parts: npt.NDArray[np.int32],
    part_offsets: npt.NDArray[np.int64],
    window: int = WINDOW,
) -> EncodeWords:
    """What encodes words by events. byte_ids [256], lengths [symbols]: bytes of each; the others as in `Events`.

    `window`: bytes of a long word that are encoded at a time, which changes no id.
    """
    merging = np.flatnonzero(events[:, 1] >= 0)
    order = merging[np.lexsort((merging, events[merging, 1], events[merging, 0]))]
    pairs = events[order, :2]
    first = np.ones(order.size, np.bool_)
    first[1:] = (pairs[1:] != pairs[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    # Each pair's list of events is ended by -1.
    pair_events = np.insert(order, np.append(starts[1:], order.size), -1).astype(np.int32)
    table = np.full((1 << max(4 * starts.size, 16).bit_length(), 2), FREE, np.int64)
    fill_pair_events(table, pairs[starts, 0], pairs[starts, 1], starts + np.arange(starts.size))
    deleting = np.flatnonzero(events[:, 1] < 0)
    deleted = events[deleting, 0]
    symbol_events = deleting[np.argsort(deleted, kind="stable")].astype(np.int32)
    deleted_at = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(np.bincount(deleted, minlength=lengths.size), out=deleted_at[1:])

    def encode_words(
        data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        ids = np.empty(int(offsets[-1] - offsets[0]), np.int32)
        begins = np.zeros(offsets.size, np.int64)
        encode_words_by_events(
            data,
            offsets,
            byte_ids,
            table,
            pair_events,
            deleted_at,
            symbol_events,
            events,
            parts,
            part_offsets,
            lengths,
            window,
            ids,
            begins,
        )
        ids.resize(begins[-1], refcheck=False)
        return ids, begins

    return encode_words
