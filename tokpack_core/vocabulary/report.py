"""The vocabulary report: what a tokenizer's entries do on its training sample and on the test splits.

The report holds figures and nothing that judges them: limits belong to the configuration and are applied when the
report is read (`gates`), so that changing one rebuilds nothing. `docs/report.md` documents the schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tokpack_core.tokenizers.protocol import Tokenizer
from tokpack_core.tokenizers.sentencepiece.model import SentencePieceTokenizer
from tokpack_core.vocabulary.counting import exact_bpe
from tokpack_core.vocabulary.counts import TokenCounts
from tokpack_core.vocabulary.fairness import fairness
from tokpack_core.vocabulary.fertility import fertility, overall_fertility
from tokpack_core.vocabulary.language_curves import language_curves, utilization_by_rank, whole_growth
from tokpack_core.vocabulary.language_use import language_use
from tokpack_core.vocabulary.parallel_text import ParallelText
from tokpack_core.vocabulary.probe_texts import PASSAGES
from tokpack_core.vocabulary.rare_tokens import REASONS, rare_rows, rarest_first
from tokpack_core.vocabulary.robustness import ids_of, robustness
from tokpack_core.vocabulary.scaling import USUAL_SHAPES, ModelShape, model_costs
from tokpack_core.vocabulary.scripts import SCRIPTS
from tokpack_core.vocabulary.sizes import METHODS, merge_sizes, piece_sizes
from tokpack_core.vocabulary.structure import Audit, audit, structure
from tokpack_core.vocabulary.token_features import token_features
from tokpack_core.vocabulary.utilization import (
    KINDS,
    SPECIAL,
    entry_frequencies,
    frequency_of_frequencies,
    rank_curve,
    rare_entries,
    vocabulary_utilization,
)

SCHEMA_VERSION = 3
RAREST_ENTRIES = 100

Report = dict[str, Any]


def build_report(
    name: str,
    tokenizer_facts: Mapping[str, Any],
    vocabulary: pa.Table,
    sample_counts: TokenCounts,
    test_counts: TokenCounts,
    tokenizer: Tokenizer | None = None,
    texts: pa.Array | None = None,
    parallel: ParallelText | None = None,
    shapes: Sequence[ModelShape] = USUAL_SHAPES,
) -> Report:
    """The report as plain data: strict JSON, no NaN; a ratio with nothing to divide by is null.

    name: the tokenizer's; tokenizer_facts: JSON values shown as they are, of which `family` is also read by `gates`;
    vocabulary: one row an existing id, in id order (id int32, token binary, special bool, byte_fallback bool);
    sample_counts, test_counts: over the training sample and over the test splits; tokenizer: what has to be tried on
    it is left out when there is only its vocabulary; texts: some of the sample, for families whose smaller sizes have
    to be tried; shapes: models whose share of embeddings is worked out.
    Raises ValueError when counts and vocabulary do not belong together, InputError when all tokens are special.
    """
    ids = vocabulary["id"].to_numpy()
    for counts in (sample_counts, test_counts):
        if counts.vocab_size <= ids.max(initial=0):
            raise ValueError(f"counts over {counts.vocab_size} ids, but the vocabulary has id {ids.max()}")
    entry_frequencies(sample_counts, vocabulary)
    found = audit(tokenizer, token_features(vocabulary), sample_counts, test_counts)
    sizes = size_figures(tokenizer, sample_counts, vocabulary, texts)
    by_kind = np.bincount(found.features.kind, minlength=SPECIAL + 1).tolist()
    return {
        "schema_version": SCHEMA_VERSION,
        "name": name,
        "tokenizer": dict(tokenizer_facts),
        "vocabulary": {
            "size": len(ids),
            "special": by_kind[SPECIAL],
            "entries": sum(by_kind[:SPECIAL]),
            "kinds": dict(zip(KINDS, by_kind, strict=False)),
        },
        "sample": text_figures(sample_counts, vocabulary),
        "test": text_figures(test_counts, vocabulary),
        "rare": rare_rows(found.features, sample_counts, found.why),
        "rarest": rarest(found, sample_counts),
        "structure": structure(tokenizer, found, sample_counts),
        "growth": whole_growth(sample_counts, vocabulary),
        "utilization_by_rank": utilization_by_rank(entry_frequencies(sample_counts, vocabulary)),
        "language_curves": language_curves(sample_counts, vocabulary),
        "sizes": sizes,
        "fairness": None if tokenizer is None or parallel is None else fairness(tokenizer, parallel),
        "robustness": None if tokenizer is None else robustness(tokenizer),
        "models": model_costs(len(ids), sizes["rows"] if sizes else None, shapes),
        "tokens": {
            "id": ids.tolist(),
            "token": [json_token(token) for token in vocabulary["token"].to_pylist()],
            "kind": found.features.kind.tolist(),
            "script": found.features.script.tolist(),
            "marks": found.marks.tolist(),
            "reason": found.why.tolist(),
            "sample": sample_counts.tokens[ids].tolist(),
            "test": test_counts.tokens[ids].tolist(),
        },
        "scripts": list(SCRIPTS),
        "passages": [] if tokenizer is None else passages(tokenizer),
    }


def text_figures(counts: TokenCounts, vocabulary: pa.Table) -> dict[str, Any]:
    """The figures of one text: `sample` and `test`."""
    curve = rank_curve(counts, vocabulary)
    used = language_use(counts, vocabulary)
    return {
        **overall_fertility(counts.languages),
        "languages": [row | used.get(row["lang"], {}) for row in fertility(counts.languages).to_pylist()],
        "vocabulary_utilization": vocabulary_utilization(counts, vocabulary),
        "rare": rare_entries(counts, vocabulary),
        "frequency_of_frequencies": frequency_of_frequencies(counts, vocabulary),
        "rank_curve": {
            "rank": curve.rank.tolist(),
            "count": curve.count.tolist(),
            "coverage": curve.coverage.tolist(),
        },
    }


def rarest(found: Audit, counts: TokenCounts) -> list[dict[str, Any]]:
    """The rarest entries of the sample with their reason, rarest first."""
    rows = rarest_first(found.features, counts, RAREST_ENTRIES)
    ids = found.features.ids[rows].tolist()
    return [
        {"id": token, "count": int(counts.tokens[token]), "reason": REASONS[why]}
        for token, why in zip(ids, found.why[rows].tolist(), strict=True)
    ]


def passages(tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """How our own sentences are cut."""
    return [
        {"title": title, "ids": ids}
        for title, ids in zip(PASSAGES, ids_of(tokenizer, list(PASSAGES.values())), strict=True)
    ]


def size_figures(
    tokenizer: Tokenizer | None, counts: TokenCounts, vocabulary: pa.Table, texts: pa.Array | None
) -> dict[str, Any] | None:
    """Utilization by vocabulary size; null for families whose smaller sizes do not follow from a larger one."""
    if isinstance(tokenizer, SentencePieceTokenizer) and texts is not None:
        method = METHODS["sentencepiece_bpe" if tokenizer.merges_pairs else "sentencepiece_unigram"]
        return {"method": method, "rows": piece_sizes(tokenizer, texts)}
    exact = None if tokenizer is None else exact_bpe(tokenizer)
    if exact is None or counts.merges is None:
        return None
    frequencies = entry_frequencies(counts, vocabulary)
    merged = np.unique(np.append(exact.model.byte_ids, exact.model.token)).size
    size = sum(counts.languages["bytes"].to_pylist())
    extra = max(len(frequencies) - merged, 0)
    rows = merge_sizes(exact.model, counts.merges, frequencies, extra, size)
    return {"method": METHODS["merges"], "rows": rows}


def json_token(token: bytes) -> str | dict[str, str]:
    try:
        return token.decode()
    except UnicodeDecodeError:
        return {"hex": token.hex()}


def token_bytes(token: str | dict[str, str]) -> bytes:
    """The bytes of an element of the report's `tokens.token`."""
    return token.encode() if isinstance(token, str) else bytes.fromhex(token["hex"])
