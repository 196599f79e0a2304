"""The vocabulary report: what a tokenizer's entries do on its training sample and on the test splits.

The report holds figures and nothing that judges them: limits belong to the configuration and are applied when the
report is read (`gates`), so that changing one rebuilds nothing. `build_report` documents the schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tokpack_core.vocabulary.counts import TokenCounts
from tokpack_core.vocabulary.fertility import fertility, overall_fertility
from tokpack_core.vocabulary.utilization import (
    KINDS,
    SPECIAL,
    frequency_of_frequencies,
    kinds_of_tokens,
    rank_curve,
    rare_entries,
    rarest_entries,
    vocabulary_utilization,
)

SCHEMA_VERSION = 1
RAREST_ENTRIES = 100

Report = dict[str, Any]


def build_report(
    name: str,
    tokenizer_facts: Mapping[str, Any],
    vocabulary: pa.Table,
    sample_counts: TokenCounts,
    test_counts: TokenCounts,
    samples: Mapping[str, Sequence[int]] | None = None,
) -> Report:
    """The report as plain data: strict JSON, no NaN; a ratio with nothing to divide by is null.

    name: the tokenizer's; tokenizer_facts: JSON values shown as they are, of which `family` is also read by `gates`;
    vocabulary: one row an existing id, in id order (id int32, token binary, special bool, byte_fallback bool);
    sample_counts, test_counts: over the training sample and over the test splits; samples: token ids of short
    passages by title, to be shown cut up.
    Raises ValueError when counts and vocabulary do not belong together, InputError when all tokens are special.

    ```
    schema_version          1
    name, tokenizer         as given
    vocabulary
      size, special         existing ids; special tokens among them
      entries               size - special: what all shares below are shares of
      kinds                 entries of each kind: text, partial_utf8, single_byte, byte_fallback
    sample, test            the same for both texts:
      documents, bytes, characters, words, tokens
      bytes_per_token, characters_per_token, tokens_per_character, tokens_per_word
      languages             [{lang, documents … tokens_per_word}], most bytes first; no language is "und"
      vocabulary_utilization
      rare                  [{below, entries, share, text, partial_utf8, single_byte, byte_fallback}] for 5 thresholds
      frequency_of_frequencies   [entries seen 0 times, once, … 1000 times]
      rank_curve            {rank, count, coverage}: three lists of at most 300 numbers
    rarest                  [{id, count, reasons}]: the 100 rarest entries of the sample, rarest first
    tokens                  columns over all ids: id, token (a string, or {"hex": …} where it is not UTF-8),
                            kind (0 text, 1 partial_utf8, 2 single_byte, 3 byte_fallback, 4 special), sample, test
    passages                [{title, ids}]
    ```
    """
    ids = vocabulary["id"].to_numpy()
    for counts in (sample_counts, test_counts):
        if counts.vocab_size <= ids.max(initial=0):
            raise ValueError(f"counts over {counts.vocab_size} ids, but the vocabulary has id {ids.max()}")
    kinds = kinds_of_tokens(vocabulary)
    by_kind = np.bincount(kinds, minlength=SPECIAL + 1).tolist()
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
        "rarest": [
            {"id": entry, "count": occurrences, "reasons": reasons}
            for entry, occurrences, reasons in rarest_entries(sample_counts, vocabulary, RAREST_ENTRIES)
        ],
        "tokens": {
            "id": ids.tolist(),
            "token": [json_token(token) for token in vocabulary["token"].to_pylist()],
            "kind": kinds.tolist(),
            "sample": sample_counts.tokens[ids].tolist(),
            "test": test_counts.tokens[ids].tolist(),
        },
        "passages": [
            {"title": title, "ids": [int(token) for token in passage]} for title, passage in (samples or {}).items()
        ],
    }


def text_figures(counts: TokenCounts, vocabulary: pa.Table) -> dict[str, Any]:
    """The figures of one text, as `build_report` lists them under `sample` and `test`."""
    curve = rank_curve(counts, vocabulary)
    return {
        **overall_fertility(counts.languages),
        "languages": fertility(counts.languages).to_pylist(),
        "vocabulary_utilization": vocabulary_utilization(counts, vocabulary),
        "rare": rare_entries(counts, vocabulary),
        "frequency_of_frequencies": frequency_of_frequencies(counts, vocabulary),
        "rank_curve": {
            "rank": curve.rank.tolist(),
            "count": curve.count.tolist(),
            "coverage": curve.coverage.tolist(),
        },
    }


def json_token(token: bytes) -> str | dict[str, str]:
    try:
        return token.decode()
    except UnicodeDecodeError:
        return {"hex": token.hex()}


def token_bytes(token: str | dict[str, str]) -> bytes:
    """The bytes of an element of the report's `tokens.token`."""
    return token.encode() if isinstance(token, str) else bytes.fromhex(token["hex"])
