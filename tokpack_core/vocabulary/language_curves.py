"""Utilization of each language by itself: against the amount of its text, and against the rank of entries.

Against text it is the rarefaction of `growth` on what the language's own text counts, so it tells which languages the
sample has enough of. A language is saturated if as much of its text again would show fewer than 1 % more entries than
it has shown.

Against rank it is the share of the entries seen in each of RANK_STEPS equal runs of entries in the order of their ids,
which in a vocabulary made by merges is the order in which they were learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tokpack_core.vocabulary.counts import TokenCounts
from tokpack_core.vocabulary.fertility import UNDETERMINED
from tokpack_core.vocabulary.growth import growth
from tokpack_core.vocabulary.utilization import entry_frequencies, entry_ids

RANK_STEPS = 40


def language_curves(counts: TokenCounts, vocabulary: pa.Table) -> list[dict[str, Any]]:
    """One row a language (none is `und`), most tokens first: lang, growth, utilization_by_rank."""
    rows = []
    for lang, frequencies in by_language(counts, entry_ids(vocabulary)):
        figures = growth_figures(frequencies, int(np.count_nonzero(frequencies)))
        rows.append({"lang": lang, "growth": figures, "utilization_by_rank": utilization_by_rank(frequencies)})
    return sorted(rows, key=lambda row: (-row["growth"]["tokens"][-1], row["lang"]))


def by_language(counts: TokenCounts, entries: NDArray[np.int32]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Each language with the occurrences of the entries in it: int64 [entries]."""
    row_of = np.full(counts.vocab_size, -1, np.int64)
    row_of[entries] = np.arange(len(entries))
    table = counts.by_language
    table = table.set_column(0, "lang", pc.fill_null(table["lang"], UNDETERMINED)).sort_by("lang")
    names = table["lang"].combine_chunks().dictionary_encode()
    codes, rows, occurrences = names.indices.to_numpy(), row_of[table["id"].to_numpy()], table["count"].to_numpy()
    borders = np.searchsorted(codes, np.arange(len(names.dictionary) + 1))
    for code, lang in enumerate(names.dictionary.to_pylist()):
        own = slice(borders[code], borders[code + 1])
        kept = rows[own] >= 0
        frequencies = np.zeros(len(entries), np.int64)
        np.add.at(frequencies, rows[own][kept], occurrences[own][kept])
        yield lang, frequencies


def whole_growth(counts: TokenCounts, vocabulary: pa.Table) -> dict[str, Any]:
    """`growth` of a report: of all languages together, saturated if few of all entries would be new."""
    frequencies = entry_frequencies(counts, vocabulary)
    return growth_figures(frequencies, len(frequencies))


def growth_figures(frequencies: NDArray[np.int64], few_of: int) -> dict[str, Any]:
    curve = growth(frequencies)
    tokens = int(frequencies.sum())
    return {
        "tokens": np.rint(curve.share * tokens).astype(np.int64).tolist(),
        "utilization": rounded(curve.seen / len(frequencies)),
        "new_if_doubled": round(curve.new_if_doubled, 1),
        "chance_of_new": curve.chance_of_new,
        "saturated": curve.saturated(few_of),
    }


def utilization_by_rank(frequencies: NDArray[np.int64]) -> list[float]:
    """Share of entries seen in each of RANK_STEPS runs of entries, fewer if there are fewer entries."""
    parts = np.array_split(frequencies > 0, min(RANK_STEPS, len(frequencies)))
    return [round(float(part.mean()), 6) for part in parts]


def rounded(values: NDArray[np.float64]) -> list[float]:
    """To what does not depend on the machine's exponentials."""
    return [round(value, 9) for value in values.tolist()]
