"""Byte-level BPE that goes on from merges learned on other text (the step of sequential BPE, arXiv 2609.15528).

The earlier merges are gone through in their order. One whose pair occurs at least `least` times in this text when its
turn comes is made, and is then as good as one of its own; the others are passed over, and with them all that is made
of what they would make. Then new merges are learned, of at least the same count, until the vocabulary is full. A pair
that was passed over never comes up again: once its two parts exist, a pair's count only falls.

`least` decides how many places earlier merges may take. It is chosen such that no place goes to an earlier merge that a
new one would have deserved more: the count of the last merge that this text makes by itself in a vocabulary of the same
size, lowered by tenths while places are left.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.continued_merges_kernel import NONE, Earlier, replay
from tokpack_core.bpe.merge_kernels import UNLIMITED, Words, compacted, count_pairs
from tokpack_core.bpe.merge_loop import MergeLoop
from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, TIE_BREAKS, MergeSettings
from tokpack_core.bpe.merges import as_symbols, byte_pairs, learn_merges
from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.bpe.spelling_kernels import spelling_of

BYTES = len(BYTE_LEVEL_ORDER)
LOWERED = 0.9


@dataclass(frozen=True)
class EarlierMerges:
    """Merges of tokens by number: the 256 bytes in byte-level order, then what merges first made, in their order."""

    tokens: list[bytes]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    product: npt.NDArray[np.int32]
    """[merges] each; two merges may have the same product."""


@dataclass(frozen=True)
class ContinuedMerges:
    """Symbols of this text: the 256 bytes, one for each earlier merge that is kept, one for each new merge."""

    kept: npt.NDArray[np.bool_]
    """[earlier merges]"""
    spelled: list[bytes]
    """[symbols]"""
    left: npt.NDArray[np.int32]
    """[symbols - 256]: of the merges that are kept and then of the new ones"""
    right: npt.NDArray[np.int32]
    count: npt.NDArray[np.int64]


def continue_merges(
    parts: list[PretokenCounts], earlier: EarlierMerges, settings: MergeSettings, workers: int = 1
) -> ContinuedMerges:
    """`parts` as `learn_merges` takes them, but they are kept; `settings.vocab_size` is that of this text, bytes
    included. The result depends neither on the order of words nor on `workers`."""
    alone = learn_merges(list(parts), settings, workers)
    if not earlier.left.size:
        kept = np.zeros(0, np.bool_)
        return ContinuedMerges(kept, alone.tokens, alone.left, alone.right, alone.count)
    lowest = max(settings.min_frequency, 1)
    full = len(alone.tokens) == settings.vocab_size and alone.count.size > 0
    least = int(alone.count[-1]) if full else lowest
    while True:
        found = continued(parts, earlier, settings, least, workers)
        if len(found.spelled) == settings.vocab_size or least == lowest:
            return found
        least = max(lowest, min(least - 1, int(LOWERED * least)))


def continued(
    parts: list[PretokenCounts],
    earlier: EarlierMerges,
    settings: MergeSettings,
    least: int,
    workers: int,
) -> ContinuedMerges:
    """All merges of at least `least` occurrences; they may be fewer than the vocabulary has room for."""
    size = min(max(settings.vocab_size, BYTES), BYTES + sum(part.data.size for part in parts))
    spelling = spelling_of([bytes([byte]) for byte in BYTE_LEVEL_ORDER], size)
    rows = np.empty((size, 3), np.int64)
    symbol_of = np.full(len(earlier.tokens), NONE, np.int32)
    symbol_of[:BYTES] = np.arange(BYTES)
    kept = np.zeros(earlier.left.size, np.bool_)
    with ThreadPoolExecutor(workers) as threads:
        symbols, weights = as_symbols(list(parts), BYTE_LEVEL_ORDER, threads)
        pairs = byte_pairs(symbols, weights, least, UNLIMITED, workers, threads)
        words = Words(symbols, weights, np.ones(size, np.int32))
        merges = Earlier(earlier.left, earlier.right, earlier.product, symbol_of, kept)
        tokens, spelling = replay(merges, words, pairs, spelling, rows, BYTES)
        symbols = symbols[: compacted(symbols, words.cells)]
        loop = MergeLoop(symbols, weights, rows, TIE_BREAKS.index(settings.tie_break), threads, workers)
        tokens, spelling, _ = loop.run(count_pairs(symbols, weights, least, UNLIMITED), spelling, tokens)
    left, right, count = rows[BYTES:tokens].T
    return ContinuedMerges(
        kept, spelling.tokens(0, tokens), left.astype(np.int32), right.astype(np.int32), count.copy()
    )
