"""Byte-level BPE training (Sennrich et al. 2016) from pretoken counts: the most frequent pair is merged, again and
again.

Counts are 64-bit. Ties are broken by one of three rules: `hugging_face`, the smaller pair of ids; or the greatest or
smallest pair of byte strings. The merges depend on nothing but the counts: not on the order of words, documents or
threads. Threads share out the spelling of words, finding their pairs, and the places of merges that are made together.

Memory: 4 bytes for each byte of a word and for its end, and at the start 5 more for each pair of bytes.

The loop over merges is started with a threshold on counts, guessed so that few pairs need to be followed, and started
again with a lower one if it was too high; that changes nothing but speed and memory.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.byte_pair_kernels import (
    BYTE_PAIRS,
    count_byte_pairs,
    frequent_byte_pairs,
    note_bytes,
    write_places,
    write_symbols,
)
from tokpack_core.bpe.merge_kernels import FIRST_WEIGHT, UNLIMITED, Pairs, compacted, count_pairs
from tokpack_core.bpe.merge_loop import MergeLoop, ranges
from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, TIE_BREAKS, Merges, MergeSettings
from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.bpe.spelling_kernels import spelling_of
from tokpack_core.errors import InputError

SPARE_SHARE = 4
"""A fourth of the pool is room for the pairs of new tokens: it is compacted when that is used up."""


def learn_merges(parts: list[PretokenCounts], settings: MergeSettings, workers: int = 1) -> Merges:
    """`parts` have no word in common; they are taken out of the list, so that their memory is free for pairs."""
    cells = sum(part.data.size + part.counts.size for part in parts)
    if cells >= 2**31 - 1:
        raise InputError(
            f"the training sample has {cells} bytes of different pretokens, more than the trainer can hold: "
            "lower `sample_bytes` or limit the length of pretokens"
        )
    seen = np.zeros(256, bool)
    for part in parts:
        note_bytes(part.data, seen)
    alphabet = bytes(byte for byte in BYTE_LEVEL_ORDER if seen[byte] or byte in settings.alphabet)
    # Each merge takes a symbol away, so a larger size takes no more memory.
    most_tokens = min(max(settings.vocab_size, len(alphabet)), len(alphabet) + cells)
    spelling = spelling_of([bytes([byte]) for byte in alphabet], most_tokens)
    occurrences = sum(int((part.counts * np.diff(part.offsets)).sum()) for part in parts)
    least = max(settings.min_frequency, 1)
    threshold = max(least, occurrences // (32 * most_tokens))
    rows = np.empty((most_tokens, 3), np.int64)
    longest = UNLIMITED if settings.max_token_length is None else settings.max_token_length
    tokens = len(alphabet)
    with ThreadPoolExecutor(workers) as threads:
        symbols, weights = as_symbols(parts, alphabet, threads)
        pairs = byte_pairs(symbols, weights, threshold, longest, workers, threads)
        while True:
            loop = MergeLoop(symbols, weights, rows, TIE_BREAKS.index(settings.tie_break), threads, workers)
            tokens, spelling, lengths = loop.run(pairs, spelling, tokens)
            if tokens == most_tokens or threshold == least:
                break
            threshold = max(least, threshold // 16)
            symbols = symbols[: compacted(symbols, lengths)]
            pairs = count_pairs(symbols, weights, threshold, longest)
    left, right, count = rows[len(alphabet) : tokens].T
    return Merges(spelling.tokens(0, tokens), left.astype(np.int32), right.astype(np.int32), count.copy())


def as_symbols(
    parts: list[PretokenCounts], alphabet: bytes, threads: ThreadPoolExecutor
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    symbol_of_byte = np.zeros(256, np.int32)
    symbol_of_byte[np.frombuffer(alphabet, np.uint8)] = np.arange(len(alphabet), dtype=np.int32)
    weights = np.unique(np.concatenate([np.unique(part.counts) for part in parts] or [np.empty(0, np.int64)]))
    ends = 1 + np.cumsum([0, *(part.data.size + part.counts.size for part in parts)])
    symbols = np.empty(ends[-1], np.int32)
    symbols[0] = FIRST_WEIGHT

    def write(number: int) -> None:
        part = parts[number]
        places = np.searchsorted(weights, part.counts)
        own = symbols[ends[number] : ends[number + 1]]
        write_symbols(part.data, part.offsets, places, symbol_of_byte, own)

    list(threads.map(write, range(len(parts))))
    parts.clear()
    return symbols, weights


def byte_pairs(
    symbols: npt.NDArray[np.int32],
    weights: npt.NDArray[np.int64],
    threshold: int,
    below_length: int,
    workers: int,
    threads: ThreadPoolExecutor,
) -> Pairs:
    """All pairs of at least that count among words spelled in bytes, with room for those of new tokens."""
    borders = list(ranges(symbols, workers))
    counts = np.zeros((len(borders), BYTE_PAIRS), np.int64)
    numbers = np.zeros((len(borders), BYTE_PAIRS), np.int64)

    def count(number: int) -> None:
        first, stop = borders[number]
        count_byte_pairs(symbols[first:stop], weights, counts[number], numbers[number])

    list(threads.map(count, range(len(borders))))
    table, rows, filled = frequent_byte_pairs(counts.sum(axis=0), numbers, threshold)
    pool = np.empty(filled + filled // SPARE_SHARE, np.int32)

    def write(number: int) -> None:
        first, stop = borders[number]
        write_places(symbols[first:stop], first, numbers[number], pool)

    list(threads.map(write, range(len(borders))))
    return Pairs(table, rows, pool, filled, threshold, below_length)
