"""Figures of one tokenizer on the held-out text: bytes per token, utilization, Rényi efficiency, residues."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tokpack_core.comparison.held_out import Candidate, HeldOut
from tokpack_core.comparison.unknown import unknown_share
from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.vocabulary.counts import TokenCounts
from tokpack_core.vocabulary.fertility import quotient, writes_spaces
from tokpack_core.vocabulary.merge_use import merge_use
from tokpack_core.vocabulary.utilization import entry_frequencies, entry_ids, rare_token_share, vocabulary_utilization

RENYI_ORDER = 2.5


def overall(candidate: Candidate, held_out: HeldOut) -> dict[str, Any]:
    counts, vocabulary = held_out.counts[candidate.name], candidate.tokenizer.vocabulary()
    tokens = int(held_out.tokens[candidate.name].sum())
    return {
        "tokenizer": candidate.name,
        "family": candidate.tokenizer.family,
        "vocab_size": candidate.tokenizer.vocab_size,
        "tokens": tokens,
        "bytes_per_token": quotient(int(held_out.bytes.sum()), tokens),
        "tokens_per_1000_characters": quotient(1000 * tokens, int(held_out.characters.sum())),
        "unknown_share": unknown_share(held_out.unknown[candidate.name], held_out.tokens[candidate.name]),
        "vocabulary_utilization": vocabulary_utilization(counts, vocabulary),
        "rare_token_share_below_5": rare_token_share(counts, vocabulary, 5),
        "renyi_efficiency": renyi_efficiency(entry_frequencies(counts, vocabulary)),
        "residue_share": residue_share(candidate.tokenizer, counts),
    }


def by_language(candidate: Candidate, held_out: HeldOut, lang: str, chosen: NDArray[np.bool_]) -> dict[str, Any]:
    """chosen: the documents of the language, bool [documents]."""
    tokens = int(held_out.tokens[candidate.name][chosen].sum())
    characters, words = int(held_out.characters[chosen].sum()), int(held_out.words[chosen].sum())
    return {
        "tokenizer": candidate.name,
        "lang": lang,
        "documents": int(chosen.sum()),
        "tokens": tokens,
        "bytes_per_token": quotient(int(held_out.bytes[chosen].sum()), tokens),
        "tokens_per_1000_characters": quotient(1000 * tokens, characters),
        "tokens_per_word": quotient(tokens, words) if writes_spaces(lang) else None,
    }


def renyi_efficiency(frequencies: NDArray[np.int64], order: float = RENYI_ORDER) -> float | None:
    """Rényi entropy of the entries over its maximum, the logarithm of their number (Zouhar et al. 2023, equation 6).

    1 when all entries are equally frequent; null when nothing was seen or there is but one entry.
    """
    total = int(frequencies.sum())
    if not total or len(frequencies) < 2:
        return None
    shares = frequencies[frequencies > 0] / total
    entropy = np.log((shares**order).sum()) / (1 - order)
    return float(entropy / np.log(len(frequencies)))


def residue_share(tokenizer: Tokenizer, counts: TokenCounts) -> float | None:
    """Residues as a share of the entries; null for a family without merges that can be replayed."""
    use = merge_use(tokenizer, counts)
    if use is None:
        return None
    entries = entry_ids(tokenizer.vocabulary())
    return float(use.are_residues()[entries].sum() / len(entries))
