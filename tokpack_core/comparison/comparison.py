"""Tokenizers against one another on held-out text: all figures as plain data, `comparison.json`.

Every tokenizer is compared with one of them, the baseline, on all text and language by language. Each such question
has an answer: `shorter`, `longer`, `not significant` (corrected p not below SIGNIFICANT), `too few documents`, or
`unknown tokens` where one of the two loses some of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tokpack_core.comparison.bootstrap import SIGNIFICANT, finite, holm, paired_difference
from tokpack_core.comparison.controls import controls
from tokpack_core.comparison.efficiency import by_language, overall
from tokpack_core.comparison.held_out import Candidate, HeldOut
from tokpack_core.comparison.morphemes import GoldWords, boundary_scores
from tokpack_core.comparison.parallel import parallel_rows
from tokpack_core.comparison.retrofit import retrofit_rows
from tokpack_core.comparison.unknown import TOLERATED, unknown_share
from tokpack_core.vocabulary.parallel_text import ParallelText

VERSION = 1
CERTAIN = ("shorter", "longer")
UNKNOWN = "unknown tokens"
ALL = "all"
Comparison = dict[str, Any]


def compare(
    candidates: Sequence[Candidate],
    held_out: HeldOut,
    baseline: str,
    parallel: ParallelText | None = None,
    gold: GoldWords | None = None,
) -> Comparison:
    """The figures as `docs/compare.md` lists them."""
    names = [candidate.name for candidate in candidates]
    sizes = {candidate.name: candidate.tokenizer.vocab_size for candidate in candidates}
    languages = held_out.languages
    chosen = {lang: held_out.of_language(lang) for lang in languages}
    differences = difference_rows(held_out, names, baseline)
    aligned = parallel_rows(candidates, baseline, parallel) if parallel else []
    corrected = holm([row["p"] for row in differences + aligned])
    for row, p in zip(differences + aligned, corrected, strict=True):
        row["corrected_p"] = p
        own = row["tokenizer"] == baseline
        row["verdict"] = "baseline" if own else verdict(row["ratio"], p, row["unknown_share"])
    return {
        "version": VERSION,
        "baseline": baseline,
        "documents": len(held_out.bytes),
        "bytes": int(held_out.bytes.sum()),
        "languages": languages,
        "questions": sum(p is not None for p in corrected),
        "tokenizers": [overall(candidate, held_out) for candidate in candidates],
        "by_language": [
            by_language(candidate, held_out, lang, chosen[lang]) for candidate in candidates for lang in languages
        ],
        "differences": differences,
        "parallel": aligned,
        "controls": controls(held_out, names, baseline, sizes),
        "morphemes": [{"tokenizer": one.name, **boundary_scores(one.tokenizer, gold)} for one in candidates]
        if gold
        else [],
        "retrofit": retrofit_rows({candidate.tokenizer.family for candidate in candidates}),
    }


def difference_rows(held_out: HeldOut, names: Sequence[str], baseline: str) -> list[dict[str, Any]]:
    """A row a tokenizer (but the baseline) and language, all text together first."""
    everything = np.ones(len(held_out.bytes), bool)
    texts = {ALL: everything} | {lang: held_out.of_language(lang) for lang in held_out.languages}
    rows = []
    for name in names:
        for lang, chosen in texts.items() if name != baseline else ():
            found = paired_difference(held_out.tokens[name][chosen], held_out.tokens[baseline][chosen])
            lost = max(
                unknown_share(held_out.unknown[one][chosen], held_out.tokens[one][chosen]) for one in (name, baseline)
            )
            rows.append({"tokenizer": name, "lang": lang, **finite(found), "unknown_share": lost})
    return rows


def verdict(ratio: float | None, corrected_p: float | None, unknown: float = 0.0) -> str:
    """`unknown`: share of unknown tokens, the larger of the two."""
    if unknown > TOLERATED:
        return UNKNOWN
    if ratio is None or corrected_p is None:
        return "too few documents"
    if corrected_p >= SIGNIFICANT:
        return "not significant"
    return "shorter" if ratio < 1 else "longer"
