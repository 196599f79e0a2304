"""Fairness: what the same content costs in different languages (Petrov et al. 2023, arXiv 2305.15425).

On sentences that both languages have, a language's premium is its tokens over those of English. Its confidence interval
is the 2.5th to 97.5th percentile of RESAMPLES bootstrap samples of sentences (Efron 1979); of more than MOST_GROUPS
sentences, neighbours are drawn together. Draws come from a fixed generator (SplitMix64), so that the same text gives
the same figures anywhere.

The Gini coefficient is of the mean tokens a sentence over languages: 0 where all cost the same, towards 1 where one
bears all the cost: sum over all pairs |x_i - x_j| / (2 n^2 mean).
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.vocabulary.parallel_text import ParallelText

RESAMPLES = 1000
MOST_GROUPS = 2000
CONTEXTS = (4096, 32768, 131072)
ENGLISH = re.compile(r"en(g)?([-_].*)?", re.IGNORECASE)


def fairness(tokenizer: Tokenizer, parallel: ParallelText) -> dict[str, Any]:
    """The figures as `docs/report.md` lists them under `fairness`; languages of the highest premium first."""
    lengths = {lang: token_lengths(tokenizer, texts) for lang, texts in parallel.texts.items()}
    reference = reference_language(parallel)
    rows = [
        language_row(lang, parallel.texts[lang], lengths[lang], lengths[reference])
        for lang in lengths
        if ((lengths[lang] >= 0) & (lengths[reference] >= 0)).any()
    ]
    rows.sort(key=lambda row: (-row["premium"], row["lang"]))
    means = np.array([row["tokens_per_sentence"] for row in rows])
    return {
        "sentences": parallel.sentences,
        "reference": reference,
        "languages": rows,
        "gini": round(gini(means), 9),
        "worst": rows[0]["lang"],
        "contexts": list(CONTEXTS),
    }


def reference_language(parallel: ParallelText) -> str:
    """English, or where there is none the language with the most sentences."""
    english = [lang for lang in parallel.texts if ENGLISH.fullmatch(lang)]
    return (english or sorted(parallel.texts, key=lambda lang: (parallel.texts[lang].null_count, lang)))[0]


def token_lengths(tokenizer: Tokenizer, texts: pa.Array) -> NDArray[np.int64]:
    """Tokens of each sentence: int64 [sentences], -1 for null."""
    lengths = np.full(len(texts), -1, np.int64)
    lengths[texts.is_valid().to_numpy(zero_copy_only=False)] = tokenizer.encode(texts.drop_null()).lengths
    return lengths


def language_row(
    lang: str, texts: pa.Array, lengths: NDArray[np.int64], reference: NDArray[np.int64]
) -> dict[str, Any]:
    aligned = (lengths >= 0) & (reference >= 0)
    tokens, others = lengths[aligned], reference[aligned]
    own = texts.filter(pa.array(aligned))
    total, per_sentence = int(tokens.sum()), float(tokens.mean())
    low, high = premium_interval(tokens, others)
    return {
        "lang": lang,
        "sentences": len(tokens),
        "tokens": total,
        "reference_tokens": int(others.sum()),
        "tokens_per_sentence": per_sentence,
        "bytes_per_token": pc.sum(pc.binary_length(own)).as_py() / total if total else None,
        "characters_per_token": pc.sum(pc.utf8_length(own)).as_py() / total if total else None,
        "premium": premium(total, int(others.sum())),
        "low": low,
        "high": high,
        "sentences_in_context": [int(context // per_sentence) if per_sentence else None for context in CONTEXTS],
    }


def premium(tokens: int, reference: int) -> float:
    return tokens / reference if reference else 1.0


def premium_interval(tokens: NDArray[np.int64], reference: NDArray[np.int64]) -> tuple[float, float]:
    """95 % bootstrap interval of sum(tokens) / sum(reference)."""
    ratios = np.sort(resampled_ratios(tokens, reference))
    return float(ratios[int(0.025 * RESAMPLES)]), float(ratios[int(0.975 * RESAMPLES) - 1])


def resampled_ratios(tokens: NDArray[np.int64], reference: NDArray[np.int64]) -> NDArray[np.float64]:
    """sum(tokens) / sum(reference) of each bootstrap sample, drawn alike for both: float64 [RESAMPLES]."""
    groups = min(len(tokens), MOST_GROUPS)
    starts = np.arange(groups) * len(tokens) // groups
    ours, theirs = np.add.reduceat(tokens, starts), np.add.reduceat(reference, starts)
    drawn = draws(RESAMPLES * groups, groups).reshape(RESAMPLES, groups)
    ratios: NDArray[np.float64] = ours[drawn].sum(axis=1) / np.maximum(theirs[drawn].sum(axis=1), 1)
    return ratios


def draws(count: int, below: int) -> NDArray[np.int64]:
    """Numbers from 0 to below - 1: SplitMix64 (Steele, Lea and Flood 2014) of 0, 1, 2 …, scaled by its upper half."""
    state = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return ((state >> np.uint64(32)) * np.uint64(below) >> np.uint64(32)).astype(np.int64)


def gini(values: NDArray[np.float64]) -> float:
    """0 for equal values; the formula above, by ranks."""
    ordered = np.sort(values)
    size, total = len(ordered), float(ordered.sum())
    if not total:
        return 0.0
    return float(((2 * np.arange(1, size + 1) - size - 1) * ordered).sum() / (size * total))
