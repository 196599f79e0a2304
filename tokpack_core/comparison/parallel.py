"""Tokens per aligned sentence on parallel text: the same content, so tokenizers and languages compare directly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tokpack_core.comparison.bootstrap import finite, paired_difference
from tokpack_core.comparison.held_out import Candidate
from tokpack_core.comparison.unknown import special_flags, unknown_share, unknown_tokens
from tokpack_core.vocabulary.fairness import reference_language
from tokpack_core.vocabulary.parallel_text import ParallelText

Lengths = NDArray[np.int64]


def parallel_rows(candidates: Sequence[Candidate], baseline: str, parallel: ParallelText) -> list[dict[str, Any]]:
    """A row a tokenizer and language, the baseline's first.

    premium: tokens over those of the reference language on sentences that both have; the difference to the baseline is
    on the sentences of the language, `p` before correction (null for the baseline itself and where there are too few).
    """
    reference = reference_language(parallel)
    lengths: dict[str, dict[str, Lengths]] = {}
    unknown: dict[str, dict[str, float]] = {}
    for candidate in candidates:
        special = special_flags(candidate.tokenizer)
        found = {lang: measured(candidate, special, lang, texts) for lang, texts in parallel.texts.items()}
        lengths[candidate.name] = {lang: tokens for lang, (tokens, _) in found.items()}
        unknown[candidate.name] = {lang: share for lang, (_, share) in found.items()}
    rows = []
    for candidate in sorted(candidates, key=lambda one: one.name != baseline):
        own = lengths[candidate.name]
        for lang, tokens in own.items():
            there, aligned = tokens >= 0, (tokens >= 0) & (own[reference] >= 0)
            difference = finite(paired_difference(tokens[there], lengths[baseline][lang][there]))
            rows.append(
                {
                    "tokenizer": candidate.name,
                    "lang": lang,
                    "sentences": int(there.sum()),
                    "tokens_per_sentence": float(tokens[there].mean()),
                    "premium": float(tokens[aligned].sum() / max(int(own[reference][aligned].sum()), 1)),
                    **{name: difference[name] for name in ("ratio", "low", "high")},
                    "unknown_share": max(unknown[candidate.name][lang], unknown[baseline][lang]),
                    "p": None if candidate.name == baseline else difference["p"],
                }
            )
    return rows


def measured(candidate: Candidate, special: NDArray[np.bool_], lang: str, texts: pa.Array) -> tuple[Lengths, float]:
    """Tokens of each sentence, int64 [sentences], -1 for null; and the share of unknown ones among all."""
    given = texts.drop_null()
    encoded = candidate.encode(given, pa.repeat(pa.scalar(lang), len(given)))
    lengths = np.full(len(texts), -1, np.int64)
    lengths[texts.is_valid().to_numpy(zero_copy_only=False)] = encoded.lengths
    return lengths, unknown_share(unknown_tokens(encoded, special), encoded.lengths)
