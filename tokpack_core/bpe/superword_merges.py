"""Supermerges from counted runs: the most frequent pair of neighbouring tokens is merged, again and again.

Alone (`append_supermerges`) or in competition with the word merges for the room in the vocabulary
(`compete`: BoundlessBPE, arXiv 2504.00178, in the two passes of arXiv 2604.05192).

A word merge never has a lower count than a later one, nor than a pair of words that it made one of; so a threshold at
the count of the last word merge that could be taken leaves no supermerge out that could.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.merge_kernels import FIRST_WEIGHT
from tokpack_core.bpe.merge_settings import TIE_BREAKS
from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.bpe.spelling_kernels import spelling_of
from tokpack_core.bpe.superword_merge_kernel import Competitors, Limits, merge_superwords
from tokpack_core.bpe.superword_runs import Runs
from tokpack_core.bpe.superword_unit_kernels import write_run_symbols
from tokpack_core.config import TieBreak

TieWinner = Literal["word", "superword"]
NO_WORDS = np.empty(0, np.int64)


@dataclass(frozen=True)
class SupermergeSettings:
    min_frequency: int = 2
    tie_break: TieBreak = "hugging_face"
    tie_winner: TieWinner = "word"
    """Which merge is taken when the best supermerge and the next word merge are equally frequent."""
    max_words: int | None = None
    """Most parts between spaces in a superword."""
    forbid_colon: bool = False
    """No superword holds a colon before a space."""


@dataclass(frozen=True)
class WordMerges:
    """What supermerges build on, and compete with."""

    tokens: list[bytes]
    """By id: the single bytes, then what the merges made, in their order."""
    counts: npt.NDArray[np.int64]
    """[merges that compete], in their order; none: nothing competes"""
    sizes: npt.NDArray[np.int64]
    """[merges that compete + 1]: tokens that exist when so many are taken"""
    revealed: npt.NDArray[np.int64]
    """[tokens]: how many merges must be taken before a token exists"""


@dataclass(frozen=True)
class Supermerges:
    """Ids go on after those of the word tokens."""

    tokens: list[bytes]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    count: npt.NDArray[np.int64]
    after: npt.NDArray[np.int64]
    """Word merges that were taken before."""
    word_merges: int
    """Word merges that were taken in all."""


def compete(runs: Runs, words: WordMerges, vocab_size: int, settings: SupermergeSettings) -> Supermerges:
    """Word merges and supermerges in the order of their counts, until there are `vocab_size` tokens."""
    least = max(settings.min_frequency, 1)
    enough = words.sizes[-1] >= vocab_size and words.counts.size
    threshold = max(least, int(words.counts.min())) if enough else least
    found, _ = learn(runs.count(threshold), words, vocab_size, threshold, settings)
    return found


def append_supermerges(runs: Runs, words: WordMerges, most: int, settings: SupermergeSettings) -> Supermerges:
    """Up to `most` supermerges after all word merges."""
    least = max(settings.min_frequency, 1)
    base = len(words.tokens)
    alone = standing_alone(words.tokens)
    threshold = max(least, runs.joined // (32 * max(most, 1)))
    while True:
        found, complete = learn(runs.count(threshold), alone, base + most, threshold, settings)
        if complete or threshold == least:
            merges = words.counts.size
            return replace(found, after=np.full_like(found.after, merges), word_merges=merges)
        threshold = max(least, threshold // 8)


def standing_alone(tokens: list[bytes]) -> WordMerges:
    """Tokens with which nothing competes."""
    return WordMerges(tokens, NO_WORDS, np.array([len(tokens)]), np.zeros(len(tokens), np.int64))


def learn(
    pieces: PretokenCounts, words: WordMerges, vocab_size: int, threshold: int, settings: SupermergeSettings
) -> tuple[Supermerges, bool]:
    """Supermerges, and whether the vocabulary is full."""
    symbols, weights = as_symbols(pieces)
    base = len(words.tokens)
    # Each supermerge takes a symbol away, so a larger size takes no more memory.
    most_tokens = base + min(max(vocab_size - int(words.sizes[0]), 0), symbols.size)
    revealed = np.zeros(most_tokens + 1, np.int64)
    revealed[:base] = words.revealed
    rows = np.empty((most_tokens, 4), np.int64)
    tokens, spelling, taken, complete = merge_superwords(
        symbols,
        weights,
        spelling_of(words.tokens, most_tokens + 1),
        rows,
        base,
        threshold,
        TIE_BREAKS.index(settings.tie_break),
        Limits(settings.max_words or 0, settings.forbid_colon),
        Competitors(words.counts, words.sizes, revealed, settings.tie_winner == "word"),
        vocab_size,
    )
    left, right, count, after = rows[base:tokens].T
    found = Supermerges(
        spelling.tokens(base, tokens),
        left.astype(np.int32),
        right.astype(np.int32),
        count.copy(),
        after.copy(),
        int(taken),
    )
    return found, bool(complete)


def as_symbols(pieces: PretokenCounts) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    tokens = np.frombuffer(pieces.data, np.int32)
    weights, places = np.unique(pieces.counts, return_inverse=True)
    symbols = np.empty(tokens.size + pieces.counts.size + 1, np.int32)
    write_run_symbols(tokens, pieces.offsets // 4, places, FIRST_WEIGHT, symbols)
    return symbols, weights
