"""Tokens per aligned sentence on parallel text: the same content, so tokenizers and languages compare directly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokpack_core.comparison.bootstrap import paired_difference
from tokpack_core.comparison.held_out import Candidate
from tokpack_core.vocabulary.fairness import reference_language, token_lengths
from tokpack_core.vocabulary.parallel_text import ParallelText


def parallel_rows(candidates: Sequence[Candidate], baseline: str, parallel: ParallelText) -> list[dict[str, Any]]:
    """A row a tokenizer and language, the baseline's first.

    premium: tokens over those of the reference language on sentences that both have; the difference to the baseline is
    on the sentences of the language, `p` before correction (null for the baseline itself and where there are too few).
    """
    reference = reference_language(parallel)
    lengths = {
        candidate.name: {lang: token_lengths(candidate.tokenizer, texts) for lang, texts in parallel.texts.items()}
        for candidate in candidates
    }
    rows = []
    for candidate in sorted(candidates, key=lambda one: one.name != baseline):
        own = lengths[candidate.name]
        for lang, tokens in own.items():
            there, aligned = tokens >= 0, (tokens >= 0) & (own[reference] >= 0)
            difference = paired_difference(tokens[there], lengths[baseline][lang][there])
            rows.append(
                {
                    "tokenizer": candidate.name,
                    "lang": lang,
                    "sentences": int(there.sum()),
                    "tokens_per_sentence": float(tokens[there].mean()),
                    "premium": float(tokens[aligned].sum() / max(int(own[reference][aligned].sum()), 1)),
                    "ratio": difference.ratio,
                    "low": difference.low,
                    "high": difference.high,
                    "p": None if candidate.name == baseline else difference.p,
                }
            )
    return rows
