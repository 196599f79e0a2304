"""Byte-level BPE training (Sennrich et al. 2016) from pretoken counts: the most frequent pair is merged, again and
again.

Counts are 64-bit. Ties are broken by one of three rules: `hugging_face`, the smaller pair of ids; or the greatest or
smallest pair of byte strings. The merges depend on nothing but the counts: not on the order of words, documents or
threads.

The loop over merges is started with a threshold on counts, guessed so that few pairs need to be followed, and started
again with a lower one if it was too high; that changes nothing but speed and memory.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.merge_kernels import compacted, write_symbols
from tokpack_core.bpe.merge_loop_kernel import merge_while
from tokpack_core.bpe.merge_settings import BYTE_LEVEL_ORDER, TIE_BREAKS, Merges, MergeSettings
from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.errors import InputError

UNLIMITED = 2**62


def learn_merges(words: PretokenCounts, settings: MergeSettings) -> Merges:
    if words.data.size + words.counts.size >= 2**31 - 1:
        raise InputError(
            f"the training sample has {words.data.size} bytes of different pretokens, more than the trainer can hold: "
            "lower `sample_bytes` or limit the length of pretokens"
        )
    seen = np.bincount(words.data, minlength=256) > 0
    alphabet = bytes(byte for byte in BYTE_LEVEL_ORDER if seen[byte] or byte in settings.alphabet)
    most_tokens = max(settings.vocab_size, len(alphabet))
    begins = np.zeros(most_tokens + 1, np.int64)
    begins[: len(alphabet) + 1] = np.arange(len(alphabet) + 1)
    arena = np.frombuffer(alphabet, np.uint8).copy()
    symbols, weights = as_symbols(words, alphabet)
    occurrences = int((words.counts * np.diff(words.offsets)).sum())
    del words  # a caller that does not keep it saves its memory
    rows = np.empty((most_tokens, 3), np.int64)
    least = max(settings.min_frequency, 1)
    threshold = max(least, occurrences // (32 * most_tokens))
    longest = UNLIMITED if settings.max_token_length is None else settings.max_token_length
    tie_break = TIE_BREAKS.index(settings.tie_break)
    tokens = len(alphabet)
    while True:
        tokens, arena, cells = merge_while(symbols, weights, arena, begins, rows, tokens, threshold, longest, tie_break)
        if tokens == most_tokens or threshold == least:
            break
        threshold = max(least, threshold // 16)
        symbols = symbols[: compacted(symbols, cells)]
    spelled = arena[: begins[tokens]].tobytes()
    left, right, count = rows[len(alphabet) : tokens].T
    return Merges(
        [spelled[begins[i] : begins[i + 1]] for i in range(tokens)],
        left.astype(np.int32),
        right.astype(np.int32),
        count.copy(),
    )


def as_symbols(words: PretokenCounts, alphabet: bytes) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    symbol_of_byte = np.zeros(256, np.int32)
    symbol_of_byte[np.frombuffer(alphabet, np.uint8)] = np.arange(len(alphabet), dtype=np.int32)
    weights, places = np.unique(words.counts, return_inverse=True)
    symbols = np.empty(words.data.size + words.counts.size + 1, np.int32)
    write_symbols(words.data, words.offsets, places, symbol_of_byte, symbols)
    return symbols, weights
