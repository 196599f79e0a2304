"""Probabilities of a fixed Unigram vocabulary by expectation-maximization (Kudo 2018, section 3.2).

They start equal, and are fitted until the likelihood of the text gains less than TOLERANCE of itself, MOST_ROUNDS times
at most (the settings of arXiv 2609.15528). A piece that is hardly expected keeps the probability of LEAST occurrences,
so that no entry is lost. Sums are taken in the order of the words by one thread, so that the result is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokpack_core.bpe.pretoken_counts import PretokenCounts
from tokpack_core.tokenizers.sentencepiece.exact_scores import UNKNOWN_PENALTY
from tokpack_core.tokenizers.sentencepiece.piece_trie import piece_trie
from tokpack_core.tokenizers.sentencepiece.piece_trie_kernels import BEGIN
from tokpack_core.tokenizers.sentencepiece.unigram_em_kernels import expect

MOST_ROUNDS = 50
TOLERANCE = 1e-4
LEAST = 0.5


@dataclass(frozen=True)
class Fitted:
    log_p: npt.NDArray[np.float64]
    """[pieces]"""
    rounds: int


def fit(pieces: Sequence[str], words: PretokenCounts) -> Fitted:
    """Log-probabilities of different, non-empty pieces on counted words, which no piece goes across."""
    trie = piece_trie(pieces, [BEGIN] * len(pieces), range(len(pieces)))
    log_p = np.full(len(pieces), -np.log(len(pieces)))
    longest = int(np.diff(words.offsets).max(initial=0))
    before = -np.inf
    for round_number in range(1, MOST_ROUNDS + 1):
        expected = np.zeros(len(pieces))
        unknown = float(log_p.min()) - UNKNOWN_PENALTY
        likelihood = expect(
            words.data,
            words.offsets,
            words.counts,
            trie.keys,
            trie.children,
            trie.tokens,
            log_p,
            unknown,
            longest,
            expected,
        )
        if likelihood - before < TOLERANCE * abs(likelihood):
            return Fitted(log_p, round_number - 1)
        before = likelihood
        np.maximum(expected, LEAST, out=expected)
        log_p = np.log(expected) - np.log(expected.sum())
    return Fitted(log_p, MOST_ROUNDS)
