"""How much of a vocabulary text uses: utilization, rare tokens, and the rank curve.

Entries are the rows of a vocabulary that are not special tokens; byte-fallback pieces and single bytes are entries like
all others, and are listed apart where they are rare, since no vocabulary size makes them go away.

utilization            entries seen at least once / entries
rare-token share       entries seen fewer than `rare_below` times, never seen included / entries
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tokpack_core.corpus.text_buffers import text_buffers
from tokpack_core.errors import InputError
from tokpack_core.vocabulary.counts import TokenCounts
from tokpack_core.vocabulary.spelling_kernel import are_utf8

RARE_THRESHOLDS = (1, 2, 5, 20, 100)
FREQUENCY_BOUND = 1000
"""Largest count of `frequency_of_frequencies`: a rare-token share can be told for any `rare_below` up to one more."""
CURVE_POINTS = 300

KINDS = ("text", "partial_utf8", "single_byte", "byte_fallback")
"""Every entry is of one kind, the last that fits: whole characters; several bytes that are not whole characters;
one byte; a piece that the tokenizer itself declares to be a byte."""
SPECIAL = len(KINDS)
"""Stands in place of a kind for special tokens, which are no entries."""


def kinds_of_tokens(vocabulary: pa.Table, utf8: NDArray[np.bool_] | None = None) -> NDArray[np.int8]:
    """Index into `KINDS`, or SPECIAL, of each row of the vocabulary: int8 [rows]. utf8: which are, where known."""
    if utf8 is None:
        utf8 = are_utf8(*text_buffers(vocabulary["token"].combine_chunks()))
    kinds = (~utf8).astype(np.int8)
    kinds[pc.binary_length(vocabulary["token"]).to_numpy() == 1] = 2
    kinds[column(vocabulary, "byte_fallback")] = 3
    kinds[column(vocabulary, "special")] = SPECIAL
    return kinds


def column(vocabulary: pa.Table, name: str) -> NDArray[np.bool_]:
    return vocabulary[name].to_numpy().astype(bool)


def entry_ids(vocabulary: pa.Table) -> NDArray[np.int32]:
    """Ids of the entries, ascending: int32 [entries]. Raises InputError if there are none."""
    ids: NDArray[np.int32] = vocabulary["id"].to_numpy()[~column(vocabulary, "special")]
    if not len(ids):
        raise InputError("the vocabulary holds nothing but special tokens: there is nothing to report on")
    return ids


def entry_frequencies(counts: TokenCounts, vocabulary: pa.Table) -> NDArray[np.int64]:
    """Occurrences of each of `entry_ids`: int64 [entries]."""
    return counts.tokens[entry_ids(vocabulary)]


def vocabulary_utilization(counts: TokenCounts, vocabulary: pa.Table) -> float:
    """Share of the entries that were seen at least once."""
    frequencies = entry_frequencies(counts, vocabulary)
    return int(np.count_nonzero(frequencies)) / len(frequencies)


def rare_token_share(counts: TokenCounts, vocabulary: pa.Table, rare_below: int) -> float:
    """Share of the entries seen fewer than `rare_below` times, never seen included."""
    frequencies = entry_frequencies(counts, vocabulary)
    return int(np.count_nonzero(frequencies < rare_below)) / len(frequencies)


def rare_entries(
    counts: TokenCounts, vocabulary: pa.Table, thresholds: tuple[int, ...] = RARE_THRESHOLDS
) -> list[dict[str, int | float]]:
    """One row a threshold: below, entries, share, and how many of the entries are of each of `KINDS`."""
    frequencies = entry_frequencies(counts, vocabulary)
    kinds = kinds_of_tokens(vocabulary)
    kinds = kinds[kinds != SPECIAL]
    rows: list[dict[str, int | float]] = []
    for below in thresholds:
        rare = frequencies < below
        by_kind = np.bincount(kinds[rare], minlength=len(KINDS)).tolist()
        entries = sum(by_kind)
        share = entries / len(frequencies)
        rows.append({"below": below, "entries": entries, "share": share, **dict(zip(KINDS, by_kind, strict=True))})
    return rows


def frequency_of_frequencies(counts: TokenCounts, vocabulary: pa.Table) -> list[int]:
    """At k, the number of entries seen exactly k times, for k = 0..FREQUENCY_BOUND."""
    frequencies = entry_frequencies(counts, vocabulary)
    within = frequencies[frequencies <= FREQUENCY_BOUND]
    return [int(entries) for entries in np.bincount(within, minlength=FREQUENCY_BOUND + 1)]


@dataclass(frozen=True)
class RankCurve:
    """Entries seen at least once by falling count, at log-spaced ranks that always include the first and the last.

    rank: int64 [points], 1-based; count: int64, occurrences at that rank; coverage: float64, share of all occurrences
    that ranks 1..rank make up.
    """

    rank: NDArray[np.int64]
    count: NDArray[np.int64]
    coverage: NDArray[np.float64]


def rank_curve(counts: TokenCounts, vocabulary: pa.Table, points: int = CURVE_POINTS) -> RankCurve:
    """At most `points` points; none when nothing was seen."""
    frequencies = np.sort(entry_frequencies(counts, vocabulary))[::-1]
    frequencies = frequencies[: np.count_nonzero(frequencies)]
    if not len(frequencies):
        return RankCurve(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float64))
    ranks = np.unique(np.rint(np.geomspace(1, len(frequencies), points)).astype(np.int64))
    cumulative = np.cumsum(frequencies)
    return RankCurve(ranks, frequencies[ranks - 1], cumulative[ranks - 1] / cumulative[-1])
